"""The result of a simulated run."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.validation import FloatArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """One learner in one world."""

    learner: str
    world: str
    horizon: int
    seed: int
    #: Σ_t (best expected reward - expected reward of the chosen arm).
    regret: float
    #: Policies deployed, the first included.
    policies: int
    seconds: float
    #: Decision counts at which the regret was read off, increasing, the last the horizon.
    times: IntArray
    #: Regret after so many decisions.
    regrets: FloatArray
    #: (updates,) the decision count at which each policy retired; empty for a learner that changes at every step.
    batch_ends: IntArray
    #: (updates,) mean number of arms that the eliminations left, by policy; empty for a learner with compiled steps.
    survivors: FloatArray
    #: Σ_t (expected reward of the best linear policy in hindsight - expected reward of the chosen arm): what is lost to
    #: what can be learned. Below 0 for a learner that beats it; NaN where it is not known.
    linear_regret: float = math.nan

    def summary(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        names = ("learner", "horizon", "seed", "regret", "policies", "seconds")
        linear = None if math.isnan(self.linear_regret) else self.linear_regret
        return {name: getattr(self, name) for name in names} | {"linear_regret": linear, "world": self.world}


def checkpoints(horizon: int) -> IntArray:
    """Where a run's regret is read off: the same for every learner, dense at the start and at the end.

    >>> checkpoints(5).tolist()
    [1, 2, 3, 4, 5]
    """
    even = np.linspace(1, horizon, 200)
    early = np.geomspace(1, horizon, 100)
    return np.unique(np.concatenate([even, early]).round().astype(np.int64))
