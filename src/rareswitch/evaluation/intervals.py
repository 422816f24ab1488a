"""One pooling and one interval: estimates that are sums over batches, each with an error of its own.

Given the past, a batch is a sample of n decisions of one frozen policy. What it adds to an estimate is a mean over its
own rows, with the variance and the third moment of these rows. Errors of batches are martingale differences, so their
sum over the root of the summed variances is about standard normal, whatever made the policies what they are (Zhang,
Janson and Murphy 2020). A value, a gain over what was logged, a lift over a baseline and the effect of an arm are all
such sums, of other rows: their numbers agree with each other.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from rareswitch.core import FloatArray
from rareswitch.evaluation.results import Interval

#: ρ of the mixture, in variances of the first batch: with 2 the first looks, at which rows are farthest from normal,
#: are the careful ones.
MIXTURE = 2.0


class BatchMean(NamedTuple):
    """What one batch adds to an estimate."""

    value: float
    #: Of the value; infinite where there is a single row.
    variance: float
    #: Third central moment of the value.
    third: float
    #: Degrees of freedom of the variance.
    freedom: float

    def scaled(self, share: float) -> "BatchMean":
        """A share of it."""
        return BatchMean(share * self.value, share**2 * self.variance, share**3 * self.third, self.freedom)


def term_of(rows: FloatArray) -> BatchMean:
    """The mean of rows (n,).

    The degrees of freedom of their variance s² are Satterthwaite's, 2 s⁴/Var(s²), where Var(s²) is about (m₄ − s⁴)/n:
    large weights and rare or large rewards make them few, as few rows determine the variance then; n − 1 at most.

    >>> term_of(np.array([1.0, 2.0, 3.0]))
    BatchMean(value=2.0, variance=0.3333333333333333, third=0.0, freedom=2.0)
    """
    count, mean = len(rows), float(rows.mean())
    if count == 1:
        return BatchMean(mean, math.inf, 0.0, 1.0)
    pulls = rows - mean
    scale = float(np.abs(pulls).max()) or 1.0  # fourth powers of huge rewards have no floating-point number
    pulls = pulls / scale
    squares = pulls * pulls
    variance, fourth = float(squares.sum()) / (count - 1), float(squares @ squares) / count
    noise = (fourth - variance**2) / count
    freedom = min(2.0 * variance**2 / noise, count - 1.0) if noise > 0.0 else count - 1.0
    return BatchMean(mean, scale**2 * variance / count, scale**3 * float(squares @ pulls) / count**3, max(freedom, 1.0))


def summed(terms: Sequence[BatchMean]) -> BatchMean:
    """The sum of what batches add, with Welch's and Satterthwaite's degrees of freedom."""
    value, variance, third = (sum(term[at] for term in terms) for at in range(3))
    shares = [term.variance / variance for term in terms] if 0.0 < variance < math.inf else []
    freedom = 1.0 / sum(share**2 / term.freedom for share, term in zip(shares, terms, strict=True)) if shares else 1.0
    return BatchMean(value, variance, third, freedom)


def p_value_of(term: BatchMean) -> float:
    """The two-sided p-value of its being 0, of Student's t distribution.

    >>> round(p_value_of(BatchMean(1.96, 1.0, 0.0, 1e9)), 3)
    0.05
    """
    from scipy.special import stdtr

    return min(1.0, 2.0 * float(stdtr(term.freedom, -abs(term.value) / math.sqrt(term.variance))))


def combined(terms: Sequence[BatchMean], *, level: float, anytime: bool = False) -> Interval:
    """The sum of what batches add, with its interval; from -inf to inf where rows do not vary.

    Student's quantile, of Welch's and Satterthwaite's degrees of freedom, bounds the error on both sides. Where the
    estimate is skewed by γ, as rare rewards and large weights make it, its error over its standard error T becomes
    nearly normal as T + γT²/3 + γ²T³/27 + γ/6 (Hall 1992), which moves both ends to the side of the long tail. The
    interval contains both: an end that Hall's transformation moves inwards would be wrong too often where few rewards
    came (benchmarks/inference.py, case kinds).

    With ``anytime`` the same interval has the level of Robbins' mixture, an asymptotic confidence sequence: errors of
    batches are about normal with the variances v and the sum V, and √(ρ/(V + ρ))·exp(S²/2(V + ρ)) ever comes above
    1/(1 − level) with probability 1 − level at the most. It contains the interval for one look at every look, and
    holds for all of them together as far as the normal approximation does.

    >>> print(combined([BatchMean(0.25, 0.01, 0.0, 1e9), BatchMean(0.25, 0.01, 0.0, 1e9)], level=0.95))
    0.5 (0.2228 to 0.7772)
    >>> print(combined([BatchMean(0.25, 0.01, 4e-4, 1e9), BatchMean(0.25, 0.01, 4e-4, 1e9)], level=0.95))
    0.5 (0.2228 to 0.8658)
    """
    from scipy import special

    value, variance, third, freedom = summed(terms)
    kind = "anytime" if anytime else "by batch"
    if not 0.0 < variance < math.inf:
        return Interval(value=value, low=-math.inf, high=math.inf, level=level, kind=kind)
    variances = np.array([term.variance for term in terms])
    normal = mixture_bound(variances, level) if anytime else quantile_of_level(level)
    student = -float(special.stdtrit(freedom, special.ndtr(-normal)))
    error, skewness = math.sqrt(variance), third / variance**1.5
    low = value - error * max(student, hall_inverse(normal, skewness))
    high = value + error * max(student, -hall_inverse(-normal, skewness))
    return Interval(value=value, low=low, high=high, level=level, kind=kind)


def hall_inverse(quantile: float, skewness: float) -> float:
    """The error, in standard errors, that Hall's transformation takes to a quantile of the normal distribution.

    >>> round(hall_inverse(1.96, 0.3), 3), round(hall_inverse(-1.96, 0.3), 3), hall_inverse(1.96, 0.0)
    (1.63, -2.65, 1.96)
    """
    if abs(skewness) < 1e-9:
        return quantile
    return 3.0 / skewness * (float(np.cbrt(1.0 + skewness * (quantile - skewness / 6.0))) - 1.0)


def mixture_bound(variances: FloatArray, level: float) -> float:
    """What |S| may be after any batch, in units of √V, of batches whose variances these are.

    >>> round(mixture_bound(np.ones(4), 0.95), 3)
    3.261
    """
    variance, mixed = float(variances.sum()), MIXTURE * float(variances[0] or variances.mean())
    steps = (variance + mixed) / variance * (math.log((variance + mixed) / mixed) - 2.0 * math.log1p(-level))
    return math.sqrt(steps)


def drift_p_value(terms: Sequence[BatchMean]) -> float:
    """The p-value of all batches having the same mean; 1 where fewer than two have an error.

    Cochran's Q = Σ (Ψ − Ψ̄)²/e², Ψ̄ weighted by 1/e², with Welch's correction for errors that are estimated.

    >>> batches = (0.52, 0.0025), (0.47, 9e-4), (0.55, 4e-4)
    >>> round(drift_p_value([BatchMean(value, variance, 0.0, 1e9) for value, variance in batches]), 3)
    0.085
    """
    from scipy import special

    known = [term for term in terms if 0.0 < term.variance < math.inf]
    if len(known) < 2:
        return 1.0
    value, variance, _, freedom = np.array(known).T
    precision, many = 1.0 / variance, float(len(known))
    share = precision / precision.sum()
    statistic = float(precision @ (value - share @ value) ** 2)
    slack = float(((1.0 - share) ** 2 / freedom).sum())
    ratio = statistic / (many - 1.0) / (1.0 + 2.0 * (many - 2.0) / (many**2 - 1.0) * slack)
    return float(special.fdtrc(many - 1.0, (many**2 - 1.0) / (3.0 * slack), ratio))


@cache
def quantile_of_level(level: float) -> float:
    """Of the normal distribution, two-sided.

    >>> round(quantile_of_level(0.95), 2)
    1.96
    """
    from scipy import special

    return float(special.ndtri(0.5 + level / 2.0))


#: The largest bet of :func:`bounded`.
LARGEST_BET = 0.5


def bounded(weights: FloatArray, rewards: FloatArray, *, low: float, high: float, level: float = 0.95) -> Interval:
    """The value of rewards that are known to be within bounds, with an interval that holds after every row at once.

    Nothing is approximate: it holds for any number of rows, any policies and any weights, if propensities are exact.
    The price is width. X = w·(r − low)/(high − low) is at least 0 and has the mean θ given the past. With X̂ at most 1
    and bets 0 ≤ λ < 1, both made of earlier rows,

        exp(Σ λ(X − θ) − ψ(λ)(X − X̂)²),    ψ(λ) = −ln(1 − λ) − λ,

    is a supermartingale, since λy − ψ(λ)y² ≤ ln(1 + λy) for y ≥ −1: the empirical-Bernstein sequence of Waudby-Smith,
    Wu, Ramdas, Karampatziakis and Mineiro (2022). It bounds θ from below; the same of w·(high − r)/(high − low), whose
    mean is 1 − θ, bounds it from above. Bounds of all rows so far hold together, and the narrowest are given; should
    these contradict each other, the value moved on the way or propensities are wrong, and the bounds are those of the
    last row alone.

    Parameters
    ----------
    weights
        (n,) π/μ of the chosen arms, at least 0, in the order in which decisions were made.
    rewards
        (n,) within ``low`` and ``high``.
    level
        The probability with which all intervals together are to hold the value.

    Returns
    -------
    Interval
        The value is the self-normalised mean, or the bound that is nearest to it.

    Examples
    --------
    >>> clicks = np.tile([1.0, 0.0, 0.0, 0.0], 500)
    >>> print(bounded(np.ones(2000), clicks, low=0, high=1))
    0.25 (0.2113 to 0.2912)
    """
    share = (rewards - low) / (high - low)
    least = _lower_bounds(weights * share, level)
    most = 1.0 - _lower_bounds(weights * (1.0 - share), level)
    bottom, top = max(0.0, float(least.max())), min(1.0, float(most.min()))
    if bottom > top:
        bottom, top = max(0.0, float(least[-1])), min(1.0, float(most[-1]))
    mean = float(weights @ share / weights.sum()) if weights.any() else 0.5
    value, bottom, top = (low + (high - low) * place for place in (min(max(mean, bottom), top), bottom, top))
    return Interval(value=value, low=bottom, high=top, level=level, kind="anytime")


def _lower_bounds(scores: FloatArray, level: float) -> FloatArray:
    """(n,) bounds from below of the mean of scores of at least 0, after each of them, each side at half the risk."""
    rows = np.arange(1.0, len(scores) + 1.0)
    # so far, with one made-up row at 1/2 of variance 1/4; a row is predicted, and its bet made, by those before it
    means = np.minimum((0.5 + np.cumsum(scores)) / (rows + 1.0), 1.0)
    before = np.concatenate([[0.5], means[:-1]])
    squares = (scores - before) ** 2
    variances = np.concatenate([[0.25], (0.25 + np.cumsum((scores - means) ** 2)[:-1]) / rows[1:]])
    risk = math.log(2.0 / (1.0 - level))
    bets = np.minimum(np.sqrt(2.0 * risk / (variances * rows * np.log1p(rows))), LARGEST_BET)
    costs = -np.log1p(-bets) - bets
    lower: FloatArray = (np.cumsum(bets * scores) - np.cumsum(costs * squares) - risk) / np.cumsum(bets)
    return lower
