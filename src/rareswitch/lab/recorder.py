"""What a run adds up to while it is under way."""

import math
import time

import numpy as np

from rareswitch.lab.run import Run, checkpoints
from rareswitch.validation import FloatArray, IntArray


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
