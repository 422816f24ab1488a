"""Confidence intervals, the multiplier α of √(xᵀΛ⁻¹x) and the ridge λ inside Λ, and the learners that have them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from rareswitch.core import LARGEST_SCALE, number
from rareswitch.errors import ParameterError
from rareswitch.learner.clocks import Clock, DeterminantGrowth, EveryStep, growth_factor
from rareswitch.learner.grids import POLICIES, GridLike, StaticGrid, as_grid, geometric_grid, paper_grid
from rareswitch.learner.learner import Learner, Parts
from rareswitch.learner.rule import OneModel, SumsRule
from rareswitch.learner.settings import count, real, setting, setting_metadata

__all__ = ["LEAST_DELTA", "ConfidenceMode", "GridLearner", "GrowingLearner", "IntervalLearner", "Intervals"]
__all__ += ["OneModelRule", "SelfNormalized", "StaleLearner"]

ConfidenceMode = Literal["paper", "tight"]
#: The smallest failure probability, whose inverse is still a number.
LEAST_DELTA = 1e-300


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """Interval of an arm x: estimate ± multiplier·√(xᵀΛ⁻¹x), Λ = ridge·I + Σ xxᵀ."""

    multiplier: float
    ridge: float


def independent_intervals(
    mode: ConfidenceMode | float,
    *,
    dim: int,
    arms: int,
    horizon: int,
    batches: int,
    estimates: int | None = None,
    delta: float = 0.05,
    noise: float = 1.0,
    norm: float = 1.0,
    ridge: float | None = None,
    ridge_constant: float = 16.0,
) -> Intervals:
    """The intervals of an algorithm whose estimates do not choose their own data, of settings that were checked.

    Parameters
    ----------
    mode
        ``"paper"``: α = 10·max(noise, norm)·√ln(2dKT/δ) and λ = ridge_constant·ln(2dT/δ), the constants of the proofs.

        ``"tight"``: α = noise·γ + √λ·norm, what the analysis of linear regression in Appendix B.2 proves for any λ. All
        intervals of a run hold together with probability 1 - δ. γ is the smaller of two union bounds: over the K·T arms
        and the batches - 1 estimates, γ = √(2 ln(2KT(batches - 1)/δ)), or over an ε-net of directions,
        γ = √(2 ln(2(1 + 2/ε)^d · estimates/δ))/(1 - ε) at the best ε, which does not depend on K and T.

        A number: that multiplier itself.
    batches, estimates
        An arm is judged by at most ``batches - 1`` estimates. In a batched algorithm there are no others; in a layered
        one ``estimates`` counts all that are made in a run.
    noise
        σ, the variance proxy's root of the sub-Gaussian noise.
    norm
        A bound on ‖θ‖.
    ridge
        λ. In the last two modes (noise/norm)² by default, so that intervals do not depend on the units of rewards and
        features.

    Examples
    --------
    >>> round(independent_intervals("paper", dim=10, arms=20, horizon=10_000, batches=4).multiplier, 1)
    42.7
    >>> round(independent_intervals("tight", dim=10, arms=20, horizon=10_000, batches=4, noise=0.5).multiplier, 2)
    3.41
    """
    if mode == "paper":
        return Intervals(
            multiplier=10.0 * max(noise, norm) * math.sqrt(math.log(2 * dim * arms * horizon / delta)),
            ridge=ridge_constant * math.log(2 * dim * horizon / delta) if ridge is None else ridge,
        )
    if ridge is None:
        ridge = _unit_free(noise, norm)
    if mode == "tight":
        judges = max(1, batches - 1)
        over_arms = math.sqrt(2 * math.log(2 * arms * horizon * judges / delta))
        over_net = min(_net(eps / 100, dim, estimates or judges, delta) for eps in range(5, 96, 5))
        alpha = noise * min(over_arms, over_net) + math.sqrt(ridge) * norm
        return Intervals(multiplier=alpha, ridge=ridge)
    return Intervals(multiplier=mode, ridge=ridge)


@dataclass(frozen=True, kw_only=True)
class SelfNormalized:
    """Intervals that hold even where the estimate chooses its own data (Abbasi-Yadkori et al. 2011).

    Interval of an arm x: estimate ± β·√(xᵀΛ⁻¹x), Λ = ridge·I + Σ xxᵀ, with β of :meth:`multiplier`.
    """

    ridge: float
    delta: float
    noise: float
    norm: float
    #: β itself, where it does not follow the data.
    fixed: float | None

    def multiplier(self, log_growth: float) -> float:
        """β = noise·√(2 ln(1/δ) + ln(det Λ / ridge^d)) + √ridge·norm, or the fixed one."""
        if self.fixed is not None:
            return self.fixed
        return self.noise * math.sqrt(2.0 * math.log(1.0 / self.delta) + log_growth) + math.sqrt(self.ridge) * self.norm


def self_normalized_intervals(
    mode: ConfidenceMode | float,
    *,
    dim: int,
    horizon: int,
    delta: float = 0.05,
    noise: float = 1.0,
    norm: float = 1.0,
    ridge: float | None = None,
) -> SelfNormalized:
    """The intervals of LinUCB, OFUL and layer 0 of RarelySwitch-SupLinUCB.

    ``"tight"`` is the bound of Abbasi-Yadkori et al., which holds for all arms and times together with probability
    1 - δ; ``"paper"`` is α_0 = 2·max(noise, norm)·√(d ln(2T/δ)) with ridge 1 (Algorithm 6); a number is β itself.

    >>> round(self_normalized_intervals("paper", dim=10, horizon=10_000).multiplier(0.0), 1)
    22.7
    >>> round(self_normalized_intervals("tight", dim=10, horizon=10_000, noise=0.5).multiplier(20.0), 2)
    3.05
    """
    fixed = None
    if mode == "paper":
        fixed = 2.0 * max(noise, norm) * math.sqrt(dim * math.log(2 * horizon / delta))
        ridge = 1.0 if ridge is None else ridge
    elif mode != "tight":
        fixed = mode
    if ridge is None:
        ridge = _unit_free(noise, norm)
    return SelfNormalized(ridge=ridge, delta=delta, noise=noise, norm=norm, fixed=fixed)


def _unit_free(noise: float, norm: float) -> float:
    """(noise/norm)², the ridge that does not depend on units; not so small that rounding would rule."""
    if noise == 0.0 or norm == 0.0:
        return 1.0
    ratio = noise / norm
    if ratio > LARGEST_SCALE:
        raise ParameterError(
            f"norm must be at least noise / {LARGEST_SCALE:g}, as (noise/norm)² is the ridge; got {norm:g} beside a "
            f"noise of {noise:g}. Give it in the unit of rewards over that of features, or give a ridge."
        )
    return max(1e-10, ratio**2)


def _net(epsilon: float, dim: int, estimates: int, delta: float) -> float:
    """√(2 ln(2·size·estimates/δ))/(1 - ε) for an ε-net of the unit sphere, whose size is at most (1 + 2/ε)^d."""
    logarithm = math.log(2 * estimates / delta) + dim * math.log(1.0 + 2.0 / epsilon)
    return math.sqrt(2.0 * logarithm) / (1.0 - epsilon)


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

    arms: int = field(metadata=setting_metadata("most arms in a set, K", count()))
    horizon: int = field(metadata=setting_metadata("decisions in all, T", count(low=2)))
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
    grid: GridLike | None = setting(
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
        return geometric_grid(self.horizon, min(self.horizon, POLICIES) if self.policies is None else self.policies)


@dataclass(frozen=True, kw_only=True)
class GrowingLearner(IntervalLearner):
    """A learner that is updated when det Λ has grown by C since the last time."""

    growth: float = setting(2.0, "C, by which the determinant grows between policies", growth_factor)

    def pace(self) -> DeterminantGrowth:
        return DeterminantGrowth(horizon=self.horizon, factor=self.growth)

    @property
    def switch_bound(self) -> int:
        """The most policies that a run can deploy, the first included."""
        return self.pace().most(self.dim, self.parts.statistics.ridge)
