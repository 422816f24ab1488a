"""Runs that nobody ran."""

from typing import Any

import numpy as np

from rareswitch.lab import Run


def run_of(learner: str, world: str, seed: int, regret: float, horizon: int = 100, **facts: Any) -> Run:
    """A run of this regret; ``unlearnable`` of it is that of the best linear policy."""
    policies, unlearnable = facts.pop("policies", 3), facts.pop("unlearnable", 0.0)
    usual = {
        "seconds": 0.5,
        "times": np.array([1, horizon]),
        "regrets": np.array([0.0, regret]),
        "batch_ends": np.arange(1, policies + 1) * horizon // policies,
        "survivors": np.linspace(5, 1, policies),
        "linear_regret": regret - unlearnable,
        "policies": policies,
    }
    return Run(learner=learner, world=world, seed=seed, regret=regret, horizon=horizon, **usual | facts)
