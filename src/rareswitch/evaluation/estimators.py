"""Estimates of what a policy would have earned, of the decisions of another: IPS, SNIPS and DR.

Each takes the columns of some decisions of one frozen policy: rewards r, weights w = π(a | x)/μ(a | x) of the chosen
arms, and for the doubly robust ones a model's predictions of the chosen arm, q̂(x, a), and of the candidate policy,
v(x) = Σ π(a | x) q̂(x, a).
"""

from typing import Literal, NamedTuple, get_args

import numpy as np

from rareswitch.core import FloatArray

Estimator = Literal["ips", "snips", "dr"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)


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
    """E w² and E w³ of the weights."""

    square: float
    cube: float


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


def estimate(name: Estimator, columns: Columns, *, moments: Moments | None = None) -> Estimate:
    """The estimate of that name, of a batch; with the moments of the weights where policies tell them.

    >>> columns = Columns(*map(np.array, ([1.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.5] * 3, [0.5] * 3)))
    >>> [round(estimate(name, columns).value, 6) for name in ESTIMATORS]
    [1.0, 1.0, 1.0]
    """
    rewards, weights, predicted, expected = columns
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
    alike = square * float((residuals**2).mean())
    third = cube * float((residuals**3).mean())
    if name == "ips":
        third += 2.0 * value**3 - 3.0 * value * alike
    return Estimate(value, pulls, float(np.sqrt(max(0.0, steady + alike) / 2.0 / count)), third)


def paired(name: Estimator, columns: Columns, share: float, less: float, *, moments: Moments) -> Estimate:
    """``share`` of the estimate of that name, less a share of the mean reward, of the same decisions.

    Both rest on the same rewards, so decisions count with the weight share·w − less: where a candidate does what was
    done, little is left.

    >>> columns = Columns(*map(np.array, ([1.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.5] * 3, [0.5] * 3)))
    >>> [round(paired(name, columns, 1.0, 1.0, moments=Moments(5 / 3, 3.0)).value, 6) for name in ESTIMATORS]
    [0.333333, 0.333333, 0.333333]
    """
    rewards, weights, predicted, expected = columns
    if name != "dr":  # both are doubly robust with a constant for a model
        level = 0.0 if name == "ips" else estimate(name, columns).value
        weights = weights if name == "ips" else weights / weights.mean()
        predicted = expected = np.full(len(rewards), level)
    square = share**2 * moments.square - 2.0 * share * less + less**2
    cube = share**3 * moments.cube - 3.0 * share**2 * less * moments.square + 3.0 * share * less**2 - less**3
    seen = Columns(rewards, share * weights - less, predicted, share * expected - less * predicted)
    return estimate("dr", seen, moments=Moments(max(square, 0.0), cube))
