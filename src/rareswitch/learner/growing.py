"""Learners whose policy changes when a determinant has grown."""

from dataclasses import dataclass

from rareswitch.learner.bounds import switching_rate
from rareswitch.learner.clocks import DeterminantGrowth, growth_factor
from rareswitch.learner.interval_learner import IntervalLearner
from rareswitch.learner.settings import setting


@dataclass(frozen=True, kw_only=True)
class GrowingLearner(IntervalLearner):
    """A learner that is updated when det Λ has grown by C since the last time."""

    growth: float = setting(2.0, "C, by which the determinant grows between policies", growth_factor)

    def pace(self) -> DeterminantGrowth:
        return DeterminantGrowth(horizon=self.horizon, factor=self.growth)

    def rate(self) -> str:
        """The bound with this C, where there is one."""
        sizes = self.dim, self.arms, self.horizon
        return switching_rate(self.name, *sizes, self.growth) or self.regret

    @property
    def switch_bound(self) -> int:
        """The most policies that a run can deploy, the first included."""
        return self.pace().most(self.dim, self.parts.statistics.ridge)
