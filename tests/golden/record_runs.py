"""Record what every learner of the catalogue decides in seven worlds: ``python tests/golden/record_runs.py [NAME …]``.

The runs of the learners that are named are recorded anew, of all if none is; say why in the docstring of test_runs.py.
Other processors round otherwise, so arms and ends are recorded as they are, and numbers to twelve digits.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.core import FloatArray
from rareswitch.decisions import DecisionLog
from rareswitch.errors import UnsuitableError
from rareswitch.lab import learner_for, simulate
from rareswitch.lab.worlds import make_world
from rareswitch.learner import Learner, Summary, all_learners

FILE = Path(__file__).parent / "runs.json"
WORLDS = ("gaussian", "segments", "varying", "fixed", "plain", "drifting", "clicks")
SEEDS = (11, 12)
STEPS, RUN = 240, 4000
"""Decisions of a run that is stepped through, and of one that is simulated."""
SLOW = {"suplinrel", "linmed", "rho"}


def world(name: str, horizon: int) -> Any:
    """One of seven worlds, one of which has masks, one no features, one changes, and one pays clicks."""
    return make_world(name, dim=6, arms=12, noise=0.5, horizon=horizon)


def stepped(learner: Learner, world: Any, seed: int) -> dict[str, Any]:
    """The loop by hand: all arms, and the propensities in sums of forty."""
    arms, propensities, ends = hashlib.sha256(), list[FloatArray](), list[int]()
    state, first = learner.begin(), 0
    summary: Summary | None = None
    while not state.done:
        count = min(50, state.stop - first)
        rounds = world.draw(count, seed=seed, first=first)
        decisions = state.policy.decide(rounds.contexts, rounds.available, seed=seed, ids=range(first, first + count))
        due = learner.due(state, rounds.contexts, decisions, summary, available=rounds.available)
        count = count if due is None else due
        decisions = decisions.upto(count)
        rewards = world.rewards(rounds.means[np.arange(count), decisions.arms], seed=seed, first=first)
        available = None if rounds.available is None else rounds.available[:count]
        rows = DecisionLog.of(rounds.contexts[:count], decisions, rewards, available)
        part = learner.summarize(state, rows, part=True)
        summary, first = part if summary is None else summary + part, first + count
        arms.update(decisions.arms.astype("<i8").tobytes())
        propensities.append(decisions.propensities)
        if due is not None or first == state.stop:
            state, summary = learner.next(state, summary), None
            ends.append(first)
    return {
        "arms": arms.hexdigest()[:16],
        "propensities": rounded(np.concatenate(propensities).reshape(-1, 40).sum(axis=1)),
        "policies": state.policies,
        "ends": digest(ends),
    }


def simulated(learner: Learner, world: Any, seed: int) -> dict[str, Any]:
    """A run of the simulator, with compiled steps where there are any."""
    run = simulate(learner, world, seed=seed)
    regrets = run.regrets[:: len(run.regrets) // 8]
    return {
        "regret": rounded([run.regret]),
        "regrets": rounded(regrets),
        "policies": run.policies,
        "ends": digest(run.batch_ends.tolist()),
    }


def rounded(numbers: Iterable[float]) -> list[float]:
    """Numbers to twelve digits."""
    return [float(f"{number:.12g}") for number in numbers]


def digest(ends: list[int]) -> str:
    """Of the ends of all batches."""
    return hashlib.sha256(json.dumps(ends).encode()).hexdigest()[:16]


HOW: dict[str, tuple[Callable[[Learner, Any, int], dict[str, Any]], int]] = {
    "stepped": (stepped, STEPS),
    "simulated": (simulated, RUN),
}


def record(name: str, place: str, seed: int, kind: str) -> Any:
    """What one run comes to."""
    how, horizon = HOW[kind]
    try:
        here = world(place, horizon)
        return how(learner_for(here, name, horizon=horizon, seed=seed, noise=0.5), here, seed)
    except UnsuitableError:
        return "unsuitable"


def cases() -> Iterator[tuple[str, str, int, str]]:
    """Learner, world, seed and kind of all runs."""
    for name in all_learners():
        for kind in HOW:
            if kind == "stepped" or name not in SLOW:
                yield from ((name, place, seed, kind) for place in WORLDS for seed in SEEDS)


if __name__ == "__main__":
    runs = json.loads(FILE.read_text(encoding="utf-8")) if sys.argv[1:] else {}
    for case in cases():
        if not sys.argv[1:] or case[0] in sys.argv[1:]:
            runs["/".join(map(str, case))] = record(*case)
    lines = (f"{json.dumps(key)}: {json.dumps(run, sort_keys=True)}" for key, run in sorted(runs.items()))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
