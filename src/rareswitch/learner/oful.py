"""OFUL with rare switches (Abbasi-Yadkori, Pál, Szepesvári 2011, Section 5.1)."""

from typing import Any, ClassVar

import numpy as np

from rareswitch.learner.clocks import TOLERANCE, DeterminantGrowth
from rareswitch.learner.kernels import advance_optimist
from rareswitch.learner.linucb import LinUCB
from rareswitch.learner.walking import Advance, GrowthWalker
from rareswitch.linalg import inverse_root
from rareswitch.policy import Optimistic
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, IntArray, Sets


class OFUL(GrowthWalker, LinUCB):
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

    def _advance(self, sets: Sets, arms: IntArray) -> Advance:
        assert isinstance(self.clock, DeterminantGrowth)
        assert isinstance(self.policy.sampler, Optimistic)
        before = None if self._pending is None else self._pending.stats[0]
        growth = np.array([self._growth(before)])
        running = inverse_root(self.precision(before))
        bar = self.clock.factor * (1.0 - TOLERANCE)
        sampler = self.policy.sampler
        steps = advance_optimist(sets.contexts, sets.alive, sampler.estimate, sampler.root, running, growth, bar, arms)
        return Advance(steps, bool(growth[0] >= bar), np.zeros(steps, dtype=np.int64))

    def _by_model(self, features: FloatArray, rewards: FloatArray, layers: IntArray) -> tuple[Stats, ...]:
        return (Stats.of(features, rewards),)

    @property
    def switch_bound(self) -> int:
        """The most policies that a run can deploy, the first included."""
        assert isinstance(self.clock, DeterminantGrowth)
        return self.clock.most(self.dim, self.confidence.ridge)
