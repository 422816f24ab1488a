"""Learners with confidence intervals, which need to know the noise; what those with one model share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

from rareswitch.core import LARGEST_SCALE, number
from rareswitch.errors import ParameterError
from rareswitch.learner.bounds import Switching, guarantee_of
from rareswitch.learner.clocks import Clock, DeterminantGrowth, EveryStep, growth_factor
from rareswitch.learner.confidence import (
    LEAST_DELTA,
    ConfidenceMode,
    Intervals,
    SelfNormalized,
    independent_intervals,
    self_normalized_intervals,
)
from rareswitch.learner.grids import StaticGrid, as_grid, geometric_grid, paper_grid
from rareswitch.learner.learner import Learner, Parts
from rareswitch.learner.rule import OneModel, SumsRule
from rareswitch.learner.settings import about, count, real, setting

#: Batches of a stale learner.
USUAL_UPDATES = 8
#: Settings on which all intervals depend.
OF_INTERVALS = ("dim", "horizon", "delta", "noise", "norm", "ridge")


def confidence_level(name: str, value: ConfidenceMode | float) -> ConfidenceMode | float:
    """A mode, or a multiplier."""
    if isinstance(value, str):
        if value not in get_args(ConfidenceMode):
            raise ParameterError(f"{name} must be 'paper', 'tight' or a number; got {value!r:.60}.")
        return value
    return number(name, value, low=0.0, high=LARGEST_SCALE)


@dataclass(frozen=True, kw_only=True)
class OneModelRule(SumsRule):
    """A rule with one model of all decisions and its intervals."""

    any_first: ClassVar[bool] = True
    statistics: OneModel
    level: SelfNormalized

    @property
    def any_past(self) -> bool:
        return self.statistics.pooled


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

    def by_sums(self, rule: Callable[..., OneModelRule]) -> Parts:
        """One model of all decisions so far, by whose sums the rule decides."""
        level = self.self_normalized()
        statistics = OneModel(dim=self.dim, ridge=level.ridge)
        return Parts(rule(statistics=statistics, level=level), self.pace(), statistics)

    def self_normalized(self, **replaced: float) -> SelfNormalized:
        """Intervals that hold although the estimate chooses its own data."""
        return self_normalized_intervals(self.confidence, **self._of_intervals() | replaced)

    def independent(self, *, batches: int, **replaced: float) -> Intervals:
        """Intervals of estimates that do not choose their own data, of which ``batches - 1`` judge an arm."""
        settings = self._of_intervals() | {"arms": self.arms, "batches": batches} | replaced
        return independent_intervals(self.confidence, **settings)

    def _of_intervals(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in OF_INTERVALS}


@dataclass(frozen=True, kw_only=True)
class GridLearner(IntervalLearner):
    """One that learns at the ends of batches."""

    policies: int | None = setting(None, "policies, one a batch; the algorithm's own number by default", count())
    grid: StaticGrid | Sequence[int] | None = setting(
        None, "where batches end, as a list or a grid; the algorithm's own by default", as_grid
    )

    def pace(self) -> StaticGrid:
        """The grid that was given, or the learner's own."""
        if self.grid is None:
            return self.default_grid()
        if self.policies is not None:
            raise ParameterError(
                "give policies, for the algorithm's own grid of that many batches, or a grid; not both."
            )
        return as_grid("grid", self.grid)

    def default_grid(self) -> StaticGrid:
        """The learner's own, with ``policies`` batches if they are given: the paper's, unless it says otherwise."""
        return paper_grid(self.horizon, self.policies)


@dataclass(frozen=True, kw_only=True)
class StaleLearner(GridLearner):
    """A learner of practice, which was made to be updated at every step and is updated by batch."""

    adaptivity: ClassVar[str] = "updates (8)"
    regret: ClassVar[str] = "none"

    def default_grid(self) -> StaticGrid:
        return geometric_grid(
            self.horizon, min(self.horizon, USUAL_UPDATES) if self.policies is None else self.policies
        )


@dataclass(frozen=True, kw_only=True)
class GrowingLearner(IntervalLearner):
    """A learner that is updated when det Λ has grown by C since the last time."""

    growth: float = setting(2.0, "C, by which the determinant grows between policies", growth_factor)

    def pace(self) -> DeterminantGrowth:
        return DeterminantGrowth(horizon=self.horizon, factor=self.growth)

    def rate(self) -> str:
        """The bound with this C, where there is one."""
        proved = guarantee_of(self.name)
        if not isinstance(proved, Switching):
            return self.regret
        text, _ = proved.regret_at(self.dim, self.arms, self.horizon, self.growth)
        return proved.stated(text, self.dim, self.horizon)

    @property
    def switch_bound(self) -> int:
        """The most policies that a run can deploy, the first included."""
        return self.pace().most(self.dim, self.parts.statistics.ridge)
