"""Settings of learners that are told the noise, for confidence intervals."""

from dataclasses import dataclass, field
from typing import Any, get_args

from rareswitch.confidence import (
    LEAST_DELTA,
    ConfidenceMode,
    Intervals,
    SelfNormalized,
    independent_intervals,
    self_normalized_intervals,
)
from rareswitch.errors import ParameterError
from rareswitch.learner.bounds import switching_rate
from rareswitch.learner.clocks import Clock, DeterminantGrowth, EveryStep, growth_factor
from rareswitch.learner.grids import ADAPTIVE, AdaptiveGrid, Grid, as_grid_or_adaptive, paper_grid
from rareswitch.learner.learner import Learner, Parts
from rareswitch.learner.rule import OneModel, OneModelRule
from rareswitch.learner.settings import about, count, real, setting
from rareswitch.validation import LARGEST_SCALE, number

#: Settings on which all intervals depend.
TOLD = ("dim", "horizon", "delta", "noise", "norm", "ridge")


def confidence_level(name: str, value: Any) -> Any:
    """A mode, or a multiplier."""
    if isinstance(value, str):
        if value not in get_args(ConfidenceMode):
            raise ParameterError(f"{name} must be 'paper', 'tight' or a number; got {value!r:.60}.")
        return value
    return number(name, value, low=0.0, high=LARGEST_SCALE)


@dataclass(frozen=True, kw_only=True)
class IntervalLearner(Learner):
    """A learner for at most ``arms`` arms and ``horizon`` decisions, with confidence intervals."""

    arms: int = field(metadata=about("most arms in a set, K", count()))
    horizon: int = field(metadata=about("decisions in all, T", count(low=2)))
    confidence: ConfidenceMode | float = setting(
        "tight", "'paper', 'tight' or a multiplier of the interval widths", confidence_level
    )
    delta: float = setting(0.05, "failure probability of the intervals", real(LEAST_DELTA, 1.0))
    noise: float = setting(1.0, "σ of the rewards", real(0.0, LARGEST_SCALE))
    norm: float = setting(1.0, "a bound on the length of the hidden parameter", real(0.0, LARGEST_SCALE))
    ridge: float | None = setting(None, "λ; by default (noise/norm)², so that units do not matter", real(open_low=True))

    def pace(self) -> Clock:
        """When learners without eliminations change their policy: after every step, unless they say otherwise."""
        return EveryStep(horizon=self.horizon)

    def by_sums(self, rule: type[OneModelRule], **told: Any) -> Parts:
        """One model of all decisions so far, by whose sums a rule decides."""
        level = self.self_normalized()
        statistics = OneModel(dim=self.dim, ridge=level.ridge)
        return Parts(rule(statistics=statistics, level=level, **told), self.pace(), statistics)

    def self_normalized(self, **told: Any) -> SelfNormalized:
        """Intervals that hold although the estimate chooses its own data; what is told replaces a setting."""
        return self_normalized_intervals(self.confidence, **{name: getattr(self, name) for name in TOLD} | told)

    def independent(self, *, batches: int, **told: Any) -> Intervals:
        """Intervals of estimates that do not choose their own data, of which ``batches - 1`` judge an arm."""
        settings = {name: getattr(self, name) for name in TOLD} | told
        return independent_intervals(self.confidence, arms=self.arms, batches=batches, **settings)


@dataclass(frozen=True, kw_only=True)
class GridLearner(IntervalLearner):
    """One that learns at the ends of batches."""

    policies: int | None = setting(None, "policies, one a batch; the algorithm's own number by default", count())
    grid: Any = setting(
        None,
        "where batches end, as a list or a grid; 'adaptive': at most updates of them, each as long as the widths of "
        "the intervals allow when it begins; the algorithm's own by default",
        as_grid_or_adaptive,
    )

    def schedule(self) -> Grid:
        """The grid that was given, or the learner's own."""
        if self.grid == ADAPTIVE:
            own = self.default_grid()
            assert not isinstance(own, AdaptiveGrid)
            return AdaptiveGrid(horizon=self.horizon, policies=own.policies)
        if self.policies is not None and self.grid is not None:
            raise ParameterError(
                "give policies, for the algorithm's own grid of that many batches, or a grid; not both."
            )
        grid: Grid = self.default_grid() if self.grid is None else self.grid
        return grid

    def pace(self) -> Clock:
        grid = self.schedule()
        if grid.needs_width:
            raise ParameterError("an adaptive grid follows the widths of eliminations; give this learner another.")
        return grid

    def default_grid(self) -> Grid:
        """The learner's own, with ``policies`` batches if they are given: the paper's, unless it says otherwise."""
        return paper_grid(self.horizon, self.policies)


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
