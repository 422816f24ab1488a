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


class Estimate(NamedTuple):
    """An estimate of a mean, and how far each row pulls it: its error is that of the mean of the pulls."""

    value: float
    #: (n,) of mean 0.
    pulls: FloatArray

    @property
    def error(self) -> float:
        """The standard error."""
        count = len(self.pulls)
        return float(np.sqrt(self.pulls @ self.pulls / (count - 1) / count)) if count > 1 else float("inf")


def estimate(name: Estimator, columns: Columns, *, switch: float = SWITCH) -> Estimate:
    """The estimate of that name, of a batch.

    >>> columns = Columns(*map(np.array, ([1.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.5] * 3, [0.5] * 3)))
    >>> [round(estimate(name, columns).value, 6) for name in ESTIMATORS]
    [1.0, 1.0, 1.0, 1.0]
    >>> round(estimate("switch-dr", columns, switch=1.5).value, 6)
    0.666667
    """
    rewards, weights, predicted, expected = columns
    if name == "snips":
        total = weights.mean()
        if total <= 0.0:
            return Estimate(float("nan"), np.full(len(rewards), np.nan))
        value = float((weights @ rewards) / weights.sum())
        return Estimate(value, weights * (rewards - value) / total)
    if name == "ips":
        scores = weights * rewards
    elif name == "dr":
        scores = expected + weights * (rewards - predicted)
    else:
        scores = expected + np.where(weights <= switch, weights, 0.0) * (rewards - predicted)
    value = float(scores.mean())
    return Estimate(value, scores - value)
