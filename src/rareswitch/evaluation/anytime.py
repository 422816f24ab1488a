"""Intervals for people who look after every batch, or every day: they hold at all looks at once.

An interval of 95 % that is looked at twenty times is wrong at one of the looks far more often than once in twenty. A
confidence sequence is wrong at *any* look, however many there are and whenever one stops, with probability 1 − level.
"""

import math

import numpy as np

from rareswitch.core import FloatArray, finite_array, number
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.evaluation.intervals import probability
from rareswitch.evaluation.results import Interval

#: The largest bet of :func:`bounded`.
LARGEST_BET = 0.5


def bounded(
    weights: FloatArray,
    rewards: FloatArray,
    *,
    low: float,
    high: float,
    level: float = 0.95,
) -> Interval:
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
        (n,) π/μ of the chosen arms, in the order in which decisions were made.
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
    level = probability(level)
    low, high = number("low", low, low=-math.inf), number("high", high, low=-math.inf)
    if not low < high:
        raise ParameterError(f"low must be below high; got {low:g} and {high:g}.")
    weight, reward = finite_array("weights", weights), finite_array("rewards", rewards)
    if weight.ndim != 1 or weight.shape != reward.shape or not len(weight):
        raise ShapeError(
            f"weights and rewards must be (n,), a number for each decision; got {weight.shape} and {reward.shape}."
        )
    if (weight < 0.0).any():
        raise ParameterError(f"weights must be at least 0; the smallest is {weight.min():g}.")
    outside = (reward < low) | (reward > high)
    if outside.any():
        raise ParameterError(
            f"rewards must be from {low:g} to {high:g}, the bounds that were given; {int(outside.sum())} are not, the "
            f"first of them {reward[outside][0]:g}. Give bounds that hold for certain, not those of the rewards seen."
        )
    share = (reward - low) / (high - low)
    least = _lower_bounds(weight * share, level)
    most = 1.0 - _lower_bounds(weight * (1.0 - share), level)
    bottom, top = max(0.0, float(least.max())), min(1.0, float(most.min()))
    if bottom > top:
        bottom, top = max(0.0, float(least[-1])), min(1.0, float(most[-1]))
    mean = float(weight @ share / weight.sum()) if weight.any() else 0.5
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
    found: FloatArray = (np.cumsum(bets * scores) - np.cumsum(costs * squares) - risk) / np.cumsum(bets)
    return found
