"""Experiments that are learned on one kind of processor, verified on others, and played anew there.

Twelve experiments with five updates each are played and learned on this processor as it is. Then every other kind that
it can stand for learns all their policies again from what was kept (``verify``) and lets them decide on the stored
requests, and plays the same experiments from the beginning, so that every decision hangs on what was learned there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from measure import Row, arguments, report
from rareswitch.contexts import ContextSets
from rareswitch.experiment import create, open_experiment, verification
from rareswitch.lab.worlds import make_world
from rareswitch.rng import uniforms

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from reference.processors import processors
from reference.trials import planned

UPDATES, DECISIONS, ARMS = 5, 10_000, 8
#: World, whether rewards are clicks, learner, settings.
EXPERIMENTS: dict[str, tuple[str, bool, str, dict[str, Any]]] = {
    **{
        f"foresight, {world}": (world, False, "foresight", {"updates": UPDATES + 1})
        for world in ("gaussian", "segments", "varying", "fixed", "plain", "drifting")
    },
    "foresight, intercept": ("gaussian", False, "foresight", {"updates": UPDATES + 1, "intercept": True}),
    "foresight, reserve": ("segments", False, "foresight", {"updates": UPDATES + 1, "reserve": 2}),
    "foresight, clicks": ("gaussian", True, "foresight", {"updates": UPDATES + 1, "intercept": True}),
    "foresight, clicks of segments": ("segments", True, "foresight", {"updates": UPDATES + 1, "intercept": True}),
    "stale-thompson": ("gaussian", False, "stale-thompson", {"arms": ARMS, "updates": UPDATES + 1}),
    "rho": ("varying", False, "rho", {"arms": ARMS, "updates": UPDATES + 1}),
}


def played(folder: Path, number: int, decisions: int) -> list[int]:
    """Create and play one of the experiments; the arms of all decisions."""
    where, clicks, learner, settings = list(EXPERIMENTS.values())[number]
    world, seed = make_world(where, dim=6, arms=ARMS, noise=0.5, horizon=decisions), 100 + number
    told: dict[str, Any] = {"dim": world.dim, "horizon": decisions, "seed": seed, "now": 0.0}
    arms = list[int]()
    trial = create(url_of(folder), f"trial-{number}", learner=learner, **told, **settings)
    with closing(trial.store):
        while len(arms) < decisions:
            first = len(arms)
            count = min(planned(trial), decisions - first)
            rounds, ids = world.draw(count, seed=seed, first=first), list(range(first, first + count))
            alive = np.ones(rounds.means.shape, dtype=np.bool_) if rounds.alive is None else rounds.alive
            sets = ContextSets.from_ragged([x[there] for x, there in zip(rounds.contexts, alive, strict=True)])
            arms += [int(choice.arm) for choice in trial.decide_many(sets, ids=ids, now=float(first))]
            means = np.array([rounds.means[s][alive[s]][arm] for s, arm in enumerate(arms[first:])])
            rewards = world.rewards(means, seed=seed, first=first)
            if clicks:
                rates = 1.0 / (1.0 + np.exp(2.0 - 2.0 * means))
                rewards = np.where(uniforms(seed, "clicks", first, count)[:, 0] < rates, 1.0, 0.0)
            trial.reward_many(ids, rewards.tolist(), now=float(first))
            if len(arms) < decisions:
                trial.advance(now=float(len(arms)), anyway=True)
    return arms


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder}/trials.db"


def child(folder: Path, original: Path, decisions: int) -> dict[str, Any]:
    """What this process, on the processor that it was told, plays itself and makes of what was learned elsewhere."""
    arms = [played(folder, number, decisions) for number in range(len(EXPERIMENTS))]
    verification.REQUESTS = decisions  # all that are stored
    verified = [open_experiment(url_of(original), f"trial-{number}").verify() for number in range(len(EXPERIMENTS))]
    return {"arms": arms, "verified": [entry.as_dict() for entry in verified]}


def on(environment: dict[str, str], folder: Path, original: Path, decisions: int) -> dict[str, Any]:
    """The same in a process of its own, with the libraries told what processor it is."""
    folder.mkdir()
    out = folder / "out.json"
    command = [sys.executable, __file__, "--child", str(folder), str(original), str(decisions), str(out)]
    subprocess.run(command, env=os.environ | environment, check=True)
    result: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return result


def rows(decisions: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(temporary) / "here"
        plain = on({}, here, here, decisions)
        for number, processor in enumerate(processors()):
            what = f"learned here, verified and played anew on: {processor.name}"
            if processor.missing():
                yield Row(what=what, measured=f"skipped: this processor lacks {processor.missing()}")
                continue
            there = on(dict(processor.environment), Path(temporary) / str(number), here, decisions)
            holding = [entry["holds"] for entry in there["verified"]]
            policies = [policy for entry in there["verified"] for policy in entry["policies"]]
            rounded = [policy for policy in policies if policy["verdict"] == "rounding"]
            differing = sum(
                arm != other
                for mine, others in zip(plain["arms"], there["arms"], strict=True)
                for arm, other in zip(mine, others, strict=True)
            )
            compared = sum(policy["decisions"] for policy in rounded)
            yield Row(
                what=what,
                measured=f"{sum(holding)} of {len(holding)} experiments verify; {len(rounded)} of {len(policies)} "
                f"policies differ by rounding, with the same arm for all {compared:,} stored requests; played anew, "
                f"{differing} of {sum(map(len, plain['arms'])):,} decisions differ",
                needed="all verify, no decision differs",
                holds=all(holding) and not differing,
            )
            for name, verified in zip(EXPERIMENTS, there["verified"], strict=True):
                if not verified["holds"]:
                    print(f"{processor.name}, {name}: {verified}", file=sys.stderr)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.child:
        folder, original, decisions, out = told.child
        Path(out).write_text(json.dumps(child(Path(folder), Path(original), int(decisions))), encoding="utf-8")
        return 0
    title = f"{len(EXPERIMENTS)} experiments with {UPDATES} updates on other kinds of processors"
    return report(title, rows(1000 if told.quick else DECISIONS), told.out)


if __name__ == "__main__":
    sys.exit(main())
