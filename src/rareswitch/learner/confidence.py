"""How wide a confidence interval is: the multiplier α of √(xᵀΛ⁻¹x), and the ridge λ inside Λ."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from rareswitch.core import LARGEST_SCALE, number, whole
from rareswitch.errors import ParameterError

ConfidenceMode = Literal["paper", "tight"]
#: The smallest failure probability, whose inverse is still a number.
LEAST_DELTA = 1e-300


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """Interval of an arm x: estimate ± multiplier·√(xᵀΛ⁻¹x), Λ = ridge·I + Σ xxᵀ."""

    multiplier: float
    ridge: float
    #: Where the multiplier comes from, in words.
    reason: str


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
    """The intervals of an algorithm whose estimates do not choose their own data.

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
    whole("arms", arms)
    whole("batches", batches)
    delta, noise, norm = _checked(mode, dim, horizon, delta, noise, norm)
    if ridge is not None:
        ridge = number("ridge", ridge, low=0.0, open_low=True)
    if mode == "paper":
        return Intervals(
            multiplier=10.0 * max(noise, norm) * math.sqrt(math.log(2 * dim * arms * horizon / delta)),
            ridge=ridge_constant * math.log(2 * dim * horizon / delta) if ridge is None else ridge,
            reason="the constants of the paper's proofs",
        )
    if ridge is None:
        ridge = _unit_free(noise, norm)
    if mode == "tight":
        judges = max(1, batches - 1)
        made = judges if estimates is None else whole("estimates", estimates)
        over_arms = math.sqrt(2 * math.log(2 * arms * horizon * judges / delta))
        over_net = min(_net(eps / 100, dim, made, delta) for eps in range(5, 96, 5))
        alpha = noise * min(over_arms, over_net) + math.sqrt(ridge) * norm
        over = "arms and steps" if over_arms <= over_net else "directions"
        return Intervals(multiplier=alpha, ridge=ridge, reason=f"Appendix B.2 with a union bound over {over}")
    return Intervals(
        multiplier=number("confidence", mode, low=0.0, high=LARGEST_SCALE),
        ridge=ridge,
        reason="a multiplier set by hand",
    )


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
    delta, noise, norm = _checked(mode, dim, horizon, delta, noise, norm)
    fixed = None
    if mode == "paper":
        fixed = 2.0 * max(noise, norm) * math.sqrt(dim * math.log(2 * horizon / delta))
        ridge = 1.0 if ridge is None else ridge
    elif mode != "tight":
        fixed = number("confidence", mode, low=0.0, high=LARGEST_SCALE)
    if ridge is None:
        ridge = _unit_free(noise, norm)
    ridge = number("ridge", ridge, low=0.0, open_low=True)
    return SelfNormalized(ridge=ridge, delta=delta, noise=noise, norm=norm, fixed=fixed)


def _checked(
    mode: ConfidenceMode | float, dim: int, horizon: int, delta: float, noise: float, norm: float
) -> tuple[float, float, float]:
    """δ, noise and norm, where all of these may be what they are."""
    if isinstance(mode, str) and mode not in get_args(ConfidenceMode):
        raise ParameterError(f"confidence must be 'paper', 'tight' or a number; got {mode!r}.")
    whole("dim", dim)
    whole("horizon", horizon, low=2)
    delta = number("delta", delta, low=LEAST_DELTA, high=1.0)
    most = LARGEST_SCALE
    return delta, number("noise", noise, low=0.0, high=most), number("norm", norm, low=0.0, high=most)


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
