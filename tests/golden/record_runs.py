"""Record what every learner of the catalogue decides in six worlds: ``python tests/golden/record_runs.py > FILE``."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rareswitch.env import make_world
from rareswitch.errors import UnsuitableError
from rareswitch.learner import LEARNERS, Learner, Rows, Summary
from rareswitch.sim import learner_for, simulate

WORLDS = ("gaussian", "segments", "varying", "fixed", "plain", "drifting")
SEEDS = (11, 12)
STEPS, RUN = 240, 4000
"""Decisions of a run that is stepped through, and of one that is simulated."""
SLOW = {"suplinrel", "linmed", "rho"}


def world(name: str, horizon: int) -> Any:
    """One of six worlds, one of which has masks, one no features, and one changes."""
    return make_world(name, dim=6, arms=12, noise=0.5, horizon=horizon)


def stepped(learner: Learner, world: Any, seed: int) -> dict[str, Any]:
    """The loop by hand: all arms, propensities and policies."""
    arms, propensities, policies, ends = hashlib.sha256(), hashlib.sha256(), hashlib.sha256(), []
    state, first = learner.begin(), 0
    summary: Summary | None = None
    policies.update(state.policy.id.encode())
    while not state.done:
        count = min(50, state.stop - first)
        rounds = world.draw(count, seed=seed, first=first)
        decisions = state.policy.decide(rounds.contexts, rounds.alive, seed=seed, ids=range(first, first + count))
        due = learner.due(state, rounds.contexts, decisions, summary, alive=rounds.alive)
        count = count if due is None else due
        decisions = decisions.upto(count)
        rewards = world.rewards(rounds.means[np.arange(count), decisions.arms], seed=seed, first=first)
        alive = None if rounds.alive is None else rounds.alive[:count]
        part = learner.summarize(state, Rows.of(rounds.contexts[:count], decisions, rewards, alive))
        summary, first = part if summary is None else summary + part, first + count
        arms.update(decisions.arms.astype("<i8").tobytes())
        propensities.update(decisions.propensities.astype("<f8").tobytes())
        if due is not None or first == state.stop:
            state, summary = learner.next(state, summary), None
            ends.append(first)
            policies.update(state.policy.id.encode())
    return {
        "arms": arms.hexdigest()[:16],
        "propensities": propensities.hexdigest()[:16],
        "policies": policies.hexdigest()[:16],
        "updates": state.updates,
        "ends": hashlib.sha256(json.dumps(ends).encode()).hexdigest()[:16],
    }


def simulated(learner: Learner, world: Any, seed: int) -> dict[str, Any]:
    """A run of the simulator, with compiled steps where there are any."""
    run = simulate(learner, world, seed=seed)
    ends = hashlib.sha256(json.dumps(run.batch_ends.tolist()).encode()).hexdigest()[:16]
    regrets = hashlib.sha256(run.regrets.astype("<f8").tobytes()).hexdigest()[:16]
    return {"regret": run.regret.hex(), "regrets": regrets, "updates": run.updates, "ends": ends}


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
    for name in LEARNERS:
        for kind in HOW:
            if kind == "stepped" or name not in SLOW:
                yield from ((name, place, seed, kind) for place in WORLDS for seed in SEEDS)


if __name__ == "__main__":
    found = {"/".join(map(str, case)): record(*case) for case in cases()}
    lines = (f"{json.dumps(key)}: {json.dumps(entry, sort_keys=True)}" for key, entry in sorted(found.items()))
    print("{\n" + ",\n".join(lines) + "\n}", file=sys.stdout)
