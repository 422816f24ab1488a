"""Estimates of what a policy would have earned, of the decisions of another: IPS, SNIPS, DR and switch-DR.

Each takes the columns of some decisions of one frozen policy: rewards r, weights w = π(a | x)/μ(a | x) of the chosen
arms, and for the doubly robust ones a model's predictions of the chosen arm, q̂(x, a), and of the candidate policy,
v(x) = Σ π(a | x) q̂(x, a).
"""

from typing import Literal, NamedTuple, get_args

import numpy as np

from rareswitch.validation import FloatArray

Estimator = Literal["ips", "snips", "dr", "switch-dr"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)
#: Weights above which switch-DR trusts the model alone.
SWITCH = 20.0


class Columns(NamedTuple):
    """Some decisions of one policy, as a candidate sees them; all (n,)."""

    rewards: FloatArray
    #: w, the candidate's probability of the chosen arm over the propensity.
    weights: FloatArray
    #: q̂ of the chosen arm; 0 where there is no model.
    predicted: FloatArray
    #: v, Σ π(a | x) q̂(x, a) over the offered arms.
    expected: FloatArray


class Moments(NamedTuple):
    """E w² and E w³ of weights of mean 1."""

    square: float
    cube: float

    def less(self, share: float, other: float) -> "Moments":
        """Those of share·w − other.

        >>> Moments(4.0, 10.0).less(1.0, 1.0)
        Moments(square=3.0, cube=0.0)
        """
        square = share**2 * self.square - 2.0 * share * other + other**2
        cube = share**3 * self.cube - 3.0 * share**2 * other * self.square + 3.0 * share * other**2 - other**3
        return Moments(max(square, 0.0), cube)


class Estimate(NamedTuple):
    """An estimate of a mean, and how far each row pulls it.

    A decision that weighs much and whose reward is rare may be missing by chance. The estimate is then too low, and the
    pulls that came do not tell. Weights and rewards tell it each by itself, as both are seen often. So the variance is
    at least half of what follows where residuals do not depend on weights, and the third moment is the larger one.
    """

    value: float
    #: (n,) of mean 0.
    pulls: FloatArray
    #: The error is not less.
    least: float = 0.0
    #: Third central moment of a single decision's score, where residuals do not depend on weights.
    third: float = 0.0
    #: Of the weights, and of the residuals that they multiply.
    weights: Moments = Moments(1.0, 1.0)
    residuals: Moments = Moments(0.0, 0.0)

    @property
    def error(self) -> float:
        """The standard error."""
        count = len(self.pulls)
        if count < 2:
            return float("inf")
        return max(float(np.sqrt(self.pulls @ self.pulls / (count - 1) / count)), self.least)

    @property
    def skew(self) -> float:
        """The third central moment of the estimate."""
        both = float((self.pulls**3).mean()), self.third
        return (max(both) if sum(both) > 0.0 else min(both)) / len(self.pulls) ** 2


def estimate(name: Estimator, columns: Columns, *, switch: float = SWITCH, moments: Moments | None = None) -> Estimate:
    """The estimate of that name, of a batch; with the moments of the weights where policies tell them.

    >>> columns = Columns(*map(np.array, ([1.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.5] * 3, [0.5] * 3)))
    >>> [round(estimate(name, columns).value, 6) for name in ESTIMATORS]
    [1.0, 1.0, 1.0, 1.0]
    >>> round(estimate("switch-dr", columns, switch=1.5).value, 6)
    0.666667
    """
    rewards, weights, predicted, expected = columns
    if name == "switch-dr":
        weights, moments = np.where(weights <= switch, weights, 0.0), None
    square, cube = moments or Moments(float((weights**2).mean()), float((weights**3).mean()))
    count = len(rewards)
    if name == "snips":
        total = weights.mean()
        if total <= 0.0:
            return Estimate(float("nan"), np.full(len(rewards), np.nan))
        value = float((weights @ rewards) / weights.sum())
        residuals, steady = rewards - value, 0.0
        pulls = weights * residuals / total
    else:
        residuals = rewards if name == "ips" else rewards - predicted
        scores = weights * rewards if name == "ips" else expected + weights * residuals
        value = float(scores.mean())
        pulls = scores - value
        steady = -(value**2) if name == "ips" else float(expected.var())
    rest = Moments(float((residuals**2).mean()), float((residuals**3).mean()))
    alike, third = square * rest.square, cube * rest.cube
    if name == "ips":
        third += 2.0 * value**3 - 3.0 * value * alike
    return Estimate(value, pulls, least_error(steady + alike, count), third, Moments(square, cube), rest)


def least_error(variance: float, count: int) -> float:
    """Of the mean of so many scores with this variance, where residuals do not depend on weights."""
    return float(np.sqrt(max(0.0, variance) / 2.0 / count))
