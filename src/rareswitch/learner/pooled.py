"""Learners with one linear model of all decisions so far, from which each policy is made."""

import math
from abc import abstractmethod

import numpy as np

from rareswitch.confidence import ConfidenceMode, self_normalized
from rareswitch.errors import BatchError, ParameterError
from rareswitch.learner.clocks import TOLERANCE, Clock, DeterminantGrowth, EveryStep, furthest
from rareswitch.learner.feedback import Summary
from rareswitch.learner.kernels import first_growth
from rareswitch.learner.learner import Learner
from rareswitch.linalg import inverse_root
from rareswitch.policy import Policy
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, IntArray, Sets


class PooledLearner(Learner):
    """What differs between its algorithms is the rule that makes a policy of the statistics.

    Parameters
    ----------
    dim, arms, horizon
        d, the most arms in a set K, and T.
    clock
        When a new policy is due: at every step, at the ends of a grid, or by growth of the determinant.
    confidence, delta, noise, norm, ridge
        See :func:`rareswitch.confidence.self_normalized`.
    """

    def __init__(
        self,
        *,
        dim: int,
        arms: int,
        horizon: int,
        clock: Clock | None = None,
        confidence: ConfidenceMode | float = "tight",
        delta: float = 0.05,
        noise: float = 1.0,
        norm: float = 1.0,
        ridge: float | None = None,
    ) -> None:
        super().__init__(dim=dim, arms=arms, horizon=horizon)
        self.clock: Clock = self._default_clock() if clock is None else clock
        if self.clock.horizon != self.horizon:
            raise ParameterError(f"the clock ends at {self.clock.horizon} where the horizon is {self.horizon}.")
        if getattr(self.clock, "needs_width", False):
            raise ParameterError(
                "an adaptive grid follows the widths of eliminations; give this learner another clock."
            )
        self.confidence = self_normalized(
            confidence, dim=self.dim, horizon=self.horizon, delta=delta, noise=noise, norm=norm, ridge=ridge
        )
        self.total = Stats.zero(self.dim)
        """Of all decisions before ``start``."""
        self.policy = self._make_policy()
        self.stop = self._latest()

    def _default_clock(self) -> Clock:
        return EveryStep(horizon=self.horizon)

    @abstractmethod
    def _make_policy(self) -> Policy:
        """The policy of the statistics as they stand."""

    @property
    def fixed_ends(self) -> bool:
        return not isinstance(self.clock, DeterminantGrowth)

    @property
    def settings(self) -> str:
        """All that tells this learner's runs from those of another, on one line."""
        return f"{type(self).__name__} d={self.dim} K={self.arms} {self.clock} {self.confidence}{self._own_settings()}"

    def _own_settings(self) -> str:
        """What a subclass adds to the settings."""
        return ""

    def _act_together(self, agents: int) -> None:
        if isinstance(self.clock, EveryStep):
            self.stop = min(self.horizon, agents)
        elif not isinstance(self.clock, DeterminantGrowth):
            super()._act_together(agents)

    def precision(self, stats: Stats | None = None) -> FloatArray:
        """Λ = ridge·I + Σ xxᵀ, (d, d), of all decisions before ``start``, or of those and ``stats``."""
        gram = self.total.gram if stats is None else self.total.gram + stats.gram
        return np.asarray(gram + self.confidence.ridge * np.eye(self.dim))

    def _due(self, sets: Sets, arms: IntArray, summary: Summary | None) -> int | None:
        if not isinstance(self.clock, DeterminantGrowth):
            return None
        count = len(arms)
        features = sets.contexts[np.arange(count), arms]
        before = None if summary is None else summary.stats[0]
        growths = np.array([self._growth(before)])
        root = inverse_root(self.precision(before))[None]
        bar = self.clock.factor * (1.0 - TOLERANCE)
        return first_growth(features, np.zeros(count, dtype=np.int64), root, growths, bar) or None

    def _growth(self, stats: Stats | None) -> float:
        """By what factor ``stats`` made the determinant grow since the policy was made."""
        if stats is None:
            return 1.0
        now, then = (np.linalg.slogdet(self.precision(part))[1] for part in (stats, None))
        return float(np.exp(now - then))

    def _check_due(self, summary: Summary) -> None:
        if not isinstance(self.clock, DeterminantGrowth):
            super()._check_due(summary)
            return
        growth, factor = self._growth(summary.stats[0]), self.clock.factor
        if summary.stop < self.horizon and growth < factor * (1.0 - 2.0 * TOLERANCE):
            raise BatchError(
                f"no new policy is due: the determinant has grown by {growth:.4g} where the clock waits for "
                f"{factor:g}. Ask due() how many decisions the current one still makes."
            )
        if math.log(growth) > furthest(factor, self.confidence.ridge, self.agents):
            raise BatchError(
                f"the next policy is overdue: the determinant has grown by {growth:.4g} where the clock waits for "
                f"{factor:g}. Ask due() after how many decisions it must come."
            )

    def _learn(self, summary: Summary) -> Policy:
        self.total = self.total + summary.stats[0]
        self.start = summary.stop  # the rule may key randomness by it
        return self._make_policy()

    def _next_stop(self, summary: Summary) -> int:
        return self._latest()

    def _latest(self) -> int:
        if isinstance(self.clock, EveryStep):
            return min(self.horizon, self.start + self.agents)
        if isinstance(self.clock, DeterminantGrowth):
            return self.horizon
        return self.clock.end(self.updates, self.start, 1.0)

    def _walked(self, steps: int, gram: FloatArray, moment: FloatArray, rewards: FloatArray) -> None:
        """Take over where a walk of so many steps ended."""
        self.total = Stats(
            gram=gram,
            moment=moment,
            count=self.total.count + steps,
            square_sum=self.total.square_sum + float(rewards @ rewards),
        )
        self.start += steps
        self.done = self.start == self.horizon
        self.updates += steps - self.done
        if not self.done:
            self.policy = self._make_policy()
            self.stop = self._latest()
