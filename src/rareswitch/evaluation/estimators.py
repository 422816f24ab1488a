"""Estimates of what a policy would have earned, of the decisions of another: IPS, SNIPS and DR.

Each takes the columns of some decisions of one frozen policy: rewards r, weights w = π(a | x)/μ(a | x) of the chosen
arms, and for the doubly robust one a model's predictions of the chosen arm, q̂(x, a), and of the candidate policy,
v(x) = Σ π(a | x) q̂(x, a).
"""

from typing import Literal, NamedTuple, get_args

import numpy as np

from rareswitch.core import FloatArray

Estimator = Literal["ips", "snips", "dr"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)
#: Weights that differ from 1 by less are 1.
_ROUNDING = 1e-9


class Columns(NamedTuple):
    """Some decisions of one policy, as a candidate sees them; all (n,)."""

    rewards: FloatArray
    #: w, the candidate's probability of the chosen arm over the propensity.
    weights: FloatArray
    #: q̂ of the chosen arm; 0 where there is no model.
    predicted: FloatArray
    #: v, Σ π(a | x) q̂(x, a) over the offered arms.
    expected: FloatArray


def row_scores(name: Estimator, columns: Columns) -> FloatArray:
    """(n,) scores of rows, whose mean is the estimate of that name and whose spread is its error.

    Where all weights are 1 the candidate is the policy that decided, and its value is what was earned, by every
    estimator. SNIPS is linearised at its value; NaN where no row has a weight.

    >>> columns = Columns(*map(np.array, ([1.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.5] * 3, [0.5] * 3)))
    >>> [round(float(row_scores(name, columns).mean()), 6) for name in ESTIMATORS]
    [1.0, 1.0, 1.0]
    """
    rewards, weights, predicted, expected = columns
    if np.abs(weights - 1.0).max() <= _ROUNDING:
        return rewards
    if name == "dr":
        return np.asarray(expected + weights * (rewards - predicted))
    if name == "ips":
        return np.asarray(weights * rewards)
    total = float(weights.sum())
    if total <= 0.0:
        return np.full(len(rewards), np.nan)
    value = float(weights @ rewards) / total
    return np.asarray(value + weights * (rewards - value) * (len(rewards) / total))
