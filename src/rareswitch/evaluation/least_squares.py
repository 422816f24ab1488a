"""Least squares in one batch, with the error of any direction under noise that differs from row to row."""

import math
from typing import Literal, NamedTuple

import numpy as np

from rareswitch.stats import Stats
from rareswitch.validation import FloatArray

Variance = Literal["hc2", "hc3"]
#: By how much a squared residual is raised for the leverage h of its row: divided by (1 − h) to this power.
POWERS: dict[str, float] = {"hc2": 1.0, "hc3": 2.0}
#: A batch says nothing about a direction that rests on fewer rows than these: it has no error of its own.
LEAST_ROWS = 3.0
#: Directions in which the columns of a batch, brought to length 1, vary less than this do not vary.
_FLAT = 1e-10
#: How much of a direction may lie outside of what a batch varied, for rounding.
_OUTSIDE = 1e-6
#: A row that alone decides a part of the fit has a leverage of 1, for rounding.
_ALONE = 1.0 - 1e-9


class Told(NamedTuple):
    """What a batch says of one direction."""

    #: Rows with a reward.
    rows: int
    #: NaN where the batch cannot say, as is its error; that is 0 where rewards do not vary.
    value: float
    error: float
    #: Equally many rows of equal weight would determine it as well.
    effective: float
    #: Its variance, if every reward had the variance 1.
    squares: float
    #: Why it cannot say; empty where it can. It never depends on the rewards, which would bias what is left.
    reason: str


class BatchFit:
    """The least squares of one batch, made from its sums, and errors that are summed up in a second pass.

    Parameters
    ----------
    sums
        Of the rows of the batch.
    directions
        (m, d): c of the values cᵀθ that are asked for.

    Examples
    --------
    >>> x, r = np.array([[1.0, 0.0], [0.0, 1.0]] * 50), np.array([1.0, 0.0, 3.0, 0.0] * 25)
    >>> fit = BatchFit(Stats.of(x, r), np.array([[1.0, 0.0], [1.0, -1.0]]), "hc2")
    >>> fit.add(x, r)
    >>> told = fit.told(0)
    >>> round(told.value, 9), round(told.error, 6), round(told.effective)
    (2.0, 0.142857, 50)
    """

    def __init__(self, sums: Stats, directions: FloatArray, variance: Variance) -> None:
        self.count, self.shift, self._power = sums.count, sums.shift, POWERS[variance]
        scale = np.sqrt(np.diag(sums.gram))
        inverse = np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0.0)
        values, vectors = np.linalg.eigh(sums.gram * np.outer(inverse, inverse))
        kept = values > _FLAT * len(scale)
        #: (d, rank): G⁺ = R Rᵀ.
        self._root = inverse[:, None] * vectors[:, kept] / np.sqrt(values[kept])
        self.rank = int(kept.sum())
        self.estimate = self._root @ (self._root.T @ sums.moment)
        # a direction is determined where it lies in what the rows span, in columns of length 1
        unit = directions * inverse
        outside = unit - unit @ vectors[:, kept] @ vectors[:, kept].T
        self._unseen = ((scale == 0.0) & (directions != 0.0)).any(axis=1)
        length = np.linalg.norm(unit, axis=1)
        self._determined = (np.linalg.norm(outside, axis=1) <= _OUTSIDE * length) & ~self._unseen
        #: (d, m): θ̂ moves by x ↦ xᵀ(G⁺ c) for each unit of a row's reward.
        self._pulls = self._root @ (self._root.T @ directions.T)
        self._values = directions @ self.estimate + sums.shift * directions[:, -1]
        self._variances, self._squares, self._fourths, self._alone = np.zeros((4, len(directions)))

    def add(self, features: FloatArray, rewards: FloatArray) -> None:
        """Sum up errors over rows (n, d) of the batch, with their rewards (n,); each row once."""
        residuals = rewards - self.shift - features @ self.estimate
        leverage = np.square(features @ self._root).sum(axis=1)
        pulls = np.square(features @ self._pulls)  # (n, m)
        single = leverage >= _ALONE
        raised = np.square(residuals) / np.where(single, 1.0, 1.0 - leverage) ** self._power
        self._variances += raised @ pulls
        self._squares += pulls.sum(axis=0)
        with np.errstate(over="ignore"):  # which is told of in the end
            self._fourths += np.square(pulls).sum(axis=0)
        if single.any():
            self._alone = np.maximum(self._alone, pulls[single].max(axis=0))

    def told(self, direction: int) -> Told:
        """What the batch says of a direction, when all its rows were added."""
        if self._unseen[direction]:
            return self._silent("a column of it is 0 in all rows")
        if not self._determined[direction]:
            return self._silent(
                "its columns vary only together with others, such as the levels of a field, of which one is always 1"
            )
        squares = float(self._squares[direction])
        fourths = float(self._fourths[direction])
        if not (0.0 < fourths < math.inf and 0.0 < squares < 1e150):
            return self._silent("its numbers are too large or too small to be squared: use other units")
        effective = squares**2 / fourths
        freedom = min(effective - 1.0, float(self.count - self.rank))
        if min(effective, freedom + 1.0) < LEAST_ROWS:
            worth = math.floor(max(0.0, min(effective, freedom + 1.0)))
            return self._silent(
                f"too few of its rows vary in this direction, worth {worth} where {LEAST_ROWS:g} are needed"
            )
        if self._alone[direction] > _FLAT * squares:
            return self._silent("it rests on a row that no other one is like")
        error = math.sqrt(float(self._variances[direction]))
        return Told(self.count, float(self._values[direction]), error, freedom + 1.0, squares, "")

    def _silent(self, reason: str) -> Told:
        return Told(self.count, math.nan, math.nan, 0.0, math.nan, reason)
