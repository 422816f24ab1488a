"""OFUL with rare switches (Abbasi-Yadkori, Pál, Szepesvári 2011, Section 5.1)."""

from typing import Any, ClassVar

import numpy as np

from rareswitch.learner.clocks import TOLERANCE, DeterminantGrowth
from rareswitch.learner.kernels import advance_optimist
from rareswitch.learner.learner import Walk
from rareswitch.learner.linucb import LinUCB
from rareswitch.policy import Optimistic
from rareswitch.policy.elimination import inverse_root
from rareswitch.validation import FloatArray, Sets


class OFUL(LinUCB):
    """LinUCB whose policy changes only when the determinant has grown by C; regret √C·d√T·log T.

    It deploys O(d log T/log C) policies. ``growth`` is C.

    >>> learner = OFUL(dim=5, arms=10, horizon=10_000, growth=4.0, noise=0.5)
    >>> learner.switch_bound
    33
    """

    name: ClassVar[str] = "oful"

    def __init__(self, *, horizon: int, growth: float = 2.0, **settings: Any) -> None:
        super().__init__(horizon=horizon, clock=DeterminantGrowth(horizon=horizon, factor=growth), **settings)
        self.walks = True

    def walk(self, sets: Sets, rewards: FloatArray, *, changes: int) -> Walk:
        assert isinstance(self.clock, DeterminantGrowth)
        count, done = len(sets.contexts), 0
        arms, ends = np.empty(count, dtype=np.int64), []
        bar = self.clock.factor * (1.0 - TOLERANCE)
        while done < count and changes > 0:
            sampler = self.policy.sampler
            assert isinstance(sampler, Optimistic)
            before = None if self._pending is None else self._pending.stats[0]
            growth = np.array([self._growth(before)])
            running = inverse_root(self.precision(before))
            steps = advance_optimist(
                sets.contexts[done:],
                sets.alive[done:],
                sampler.estimate,
                sampler.root,
                running,
                growth,
                bar,
                arms[done:],
            )
            at = np.arange(done, done + steps)
            done += steps
            self._pending = self._stretch(sets.contexts[at, arms[at]], rewards[at, arms[at]])
            if growth[0] >= bar or self._pending.stop == self.horizon:
                ends.append(self._pending.stop)
                self.next(self._pending)
                self._pending = None
                changes -= 1
        return Walk(arms[:done], np.array([end for end in ends if end < self.horizon], dtype=np.int64))

    @property
    def switch_bound(self) -> int:
        """The most policies that a run can deploy, the first included."""
        assert isinstance(self.clock, DeterminantGrowth)
        return self.clock.most(self.dim, self.confidence.ridge)
