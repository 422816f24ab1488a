"""Record what every learner of the catalogue decides in six worlds: ``python tests/golden/record_runs.py > FILE``."""

import hashlib
import json
import sys
from typing import Any

import numpy as np

from rareswitch.env import make_world
from rareswitch.errors import UnsuitableError
from rareswitch.learner import LEARNERS, Feedback, Learner, Summary
from rareswitch.sim import simulate
from rareswitch.sim.suiting import learner_for

WORLDS = ("gaussian", "segments", "varying", "fixed", "plain", "drifting")
SEEDS = (11, 12)
STEPS, RUN = 240, 4000
"""Decisions of a run that is stepped through, and of one that is simulated."""
SLOW = {"suplinrel"}


def worlds(horizon: int) -> dict[str, Any]:
    """Six worlds, one of them with masks, one without features and one that changes."""
    return {name: make_world(name, dim=6, arms=12, noise=0.5, horizon=horizon) for name in WORLDS}


def stepped(learner: Learner, world: Any, seed: int) -> dict[str, Any]:
    """The loop by hand: all arms, propensities and policies."""
    arms, propensities, policies, ends = hashlib.sha256(), hashlib.sha256(), hashlib.sha256(), []
    first, summary = 0, None
    part: Summary | None
    policies.update(learner.policy.id.encode())
    while not learner.done:
        count = min(50, learner.stop - first)
        rounds = world.draw(count, seed=seed, first=first)
        decisions = learner.policy.decide(rounds.contexts, rounds.alive, seed=seed, first=first)
        due = learner.due(rounds.contexts, decisions, summary, alive=rounds.alive)
        count = count if due is None else due
        decisions = decisions.upto(count)
        rewards = world.rewards(rounds.means[np.arange(count), decisions.arms], seed=seed, first=first)
        alive = None if rounds.alive is None else rounds.alive[:count]
        part = learner.summarize(Feedback.of(rounds.contexts[:count], decisions, rewards, alive))
        summary, first = part if summary is None else summary + part, first + count
        arms.update(decisions.arms.astype("<i8").tobytes())
        propensities.update(decisions.propensities.astype("<f8").tobytes())
        if due is not None or first == learner.stop:
            learner.next(summary)
            summary = None
            ends.append(first)
            policies.update(learner.policy.id.encode())
    return {
        "arms": arms.hexdigest()[:16],
        "propensities": propensities.hexdigest()[:16],
        "policies": policies.hexdigest()[:16],
        "updates": learner.updates,
        "ends": hashlib.sha256(json.dumps(ends).encode()).hexdigest()[:16],
    }


def simulated(learner: Learner, world: Any, seed: int) -> dict[str, Any]:
    """A run of the simulator, with compiled steps where there are any."""
    run = simulate(learner, world, seed=seed)
    ends = hashlib.sha256(json.dumps(run.batch_ends.tolist()).encode()).hexdigest()[:16]
    regrets = hashlib.sha256(run.regrets.astype("<f8").tobytes()).hexdigest()[:16]
    return {"regret": run.regret.hex(), "regrets": regrets, "updates": run.updates, "ends": ends}


def record() -> dict[str, Any]:
    """Everything, by learner, world and seed."""
    found: dict[str, Any] = {}
    for name in LEARNERS:
        for how, horizon, kind in ((stepped, STEPS, "stepped"), (simulated, RUN, "simulated")):
            if kind == "simulated" and name in SLOW:
                continue
            for place, world in worlds(horizon).items():
                for seed in SEEDS:
                    key = f"{name}/{place}/{seed}/{kind}"
                    try:
                        learner = learner_for(world, name, horizon=horizon, seed=seed, noise=0.5)
                        found[key] = how(learner, world, seed)
                    except UnsuitableError:
                        found[key] = "unsuitable"
                    print(key, found[key], file=sys.stderr)
    return found


if __name__ == "__main__":
    lines = (f"{json.dumps(key)}: {json.dumps(found, sort_keys=True)}" for key, found in sorted(record().items()))
    print("{\n" + ",\n".join(lines) + "\n}")
