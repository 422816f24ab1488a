"""The result of a simulated run."""

import math
import time
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


class Recorder:
    """Regret read off at the checkpoints, and the life of each policy."""

    def __init__(self, horizon: int) -> None:
        self.began = time.perf_counter()
        self.horizon = horizon
        self.times = checkpoints(horizon)
        self.regrets = np.empty(len(self.times))
        self.total = 0.0
        self._read = 0
        self._made = 0
        self._left = 0
        self._ends: list[int] = []
        self._survivors: list[float] = []
        self._stepped = self._walked = False

    def add(self, regrets: FloatArray, survivors: int | None) -> None:
        """Count the regrets of the next decisions, one after the other: it does not matter how they are cut."""
        cumulative = np.cumsum(np.concatenate([[self.total], regrets]))
        upto = int(np.searchsorted(self.times, self._made + len(regrets), side="right"))
        self.regrets[self._read : upto] = cumulative[self.times[self._read : upto] - self._made]
        self._read, self.total = upto, float(cumulative[-1])
        self._made += len(regrets)
        if survivors is None:
            self._walked = True
        else:
            self._left += survivors

    def retire(self) -> None:
        """The current policy has made its last decision."""
        since = self._ends[-1] if self._ends else 0
        self._ends.append(self._made)
        self._survivors.append(self._left / (self._made - since))
        self._left = 0

    def retired(self, ends: IntArray | None) -> None:
        """Policies have retired on a walk, after so many decisions; None if one does after every step."""
        if ends is None:
            self._stepped = True
        else:
            self._ends.extend(ends.tolist())

    def run(
        self,
        learner: str,
        world: str,
        *,
        seed: int,
        policies: int,
        seconds: float | None = None,
        unlearnable: float = math.nan,
    ) -> Run:
        """The finished run, of a learner and a world by name; ``unlearnable`` is what the best linear policy loses."""
        return Run(
            learner=learner,
            world=world,
            seed=seed,
            policies=policies,
            seconds=time.perf_counter() - self.began if seconds is None else seconds,
            horizon=self.horizon,
            regret=self.total,
            linear_regret=self.total - unlearnable,
            times=self.times,
            regrets=self.regrets,
            batch_ends=np.array([] if self._stepped else self._ends, dtype=np.int64),
            survivors=np.array([] if self._walked else self._survivors),
        )
