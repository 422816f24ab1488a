"""LinUCB (Li et al. 2010, Chu et al. 2011), updated at every step or stale on any grid."""

from typing import Any, ClassVar

import numpy as np

from rareswitch.learner.clocks import EveryStep
from rareswitch.learner.kernels import walk_optimist
from rareswitch.learner.pooled import PooledLearner
from rareswitch.learner.walking import Walk, Walker
from rareswitch.linalg import inverse_root, log_growth
from rareswitch.policy import Optimistic, Policy
from rareswitch.validation import FloatArray, Sets


class LinUCB(PooledLearner, Walker):
    """Plays the arm whose confidence interval reaches highest; regret d√T·log T when updated at every step.

    On a grid (``clock=geometric_grid(…)``) it is the *stale* LinUCB of practice, which has no bound: within a batch its
    optimism repeats itself.

    >>> learner = LinUCB(dim=5, arms=10, horizon=1000, noise=0.5)
    >>> learner.stop                    # of the first policy: it makes one decision
    1
    """

    name: ClassVar[str] = "linucb"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.walks = isinstance(self.clock, EveryStep)

    def _make_policy(self) -> Policy:
        level = self.confidence
        estimate = self.total.estimate(ridge=level.ridge)
        sampler = Optimistic.of(estimate, self.precision(), level.multiplier(log_growth(self.precision(), level.ridge)))
        return Policy(dim=self.dim, sampler=sampler)

    def walk(self, sets: Sets, rewards: FloatArray, *, changes: int) -> Walk:
        steps = min(len(sets.contexts), changes)
        arms = np.empty(steps, dtype=np.int64)
        gram, moment = self.total.gram.copy(), self.total.moment.copy()
        level = self.confidence
        walk_optimist(
            sets.contexts[:steps],
            sets.alive[:steps],
            rewards[:steps],
            inverse_root(self.precision()),
            self.total.estimate(ridge=level.ridge),
            gram,
            moment,
            log_growth(self.precision(), level.ridge),
            -1.0 if level.fixed is None else level.fixed,
            2.0 * np.log(1.0 / level.delta),
            level.noise,
            np.sqrt(level.ridge) * level.norm,
            arms,
        )
        self._walked(steps, gram, moment, rewards[np.arange(steps), arms])
        return Walk(arms, None)
