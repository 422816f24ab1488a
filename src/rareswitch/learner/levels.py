"""Levels and units of rewards: taken off where they would fill all digits, noticed where no feature explains them."""

from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from rareswitch.errors import UnsuitableError
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray

#: How many times their spread the level of rewards must be for it to be taken off before they are summed.
HIGH = 1e3
#: The same, for it to leave too few digits to models that cannot take it off.
TOO_HIGH = 1e6
#: Rewards of which a level is refused: fewer may be alike by chance.
FEW = 10
#: By how many variances of a reward a constant must explain more than all features do, for it to be said.
NOTICED = 50.0
#: Standard deviations from the mean beyond which a reward is an outlier. Exponential rewards come as far only in
#: batches of 400,000; of a hundred rewards whose largest lies there it holds most of the sum of squares.
FAR = 12.0
#: How large the largest number must be for all to be squared.
SMALLEST = 1e-100
#: How large the largest feature must be for learners in the unit ball, whose ridge and designs count on it.
SHORTEST = 1e-4


def level_of(rewards: FloatArray) -> float:
    """The level of rewards (n,) where it is many times their spread, else 0.

    Squares of rewards less this level keep the digits that tell their spread. Near the level the subtraction is exact.

    >>> level_of(np.array([1e9 - 1.0, 1e9 + 1.0])), level_of(np.array([5.0, 6.0]))
    (1000000000.0, 0.0)
    """
    if not len(rewards):
        return 0.0
    low, high = float(rewards.min()), float(rewards.max())
    middle = low + (high - low) / 2.0
    return middle if abs(middle) > HIGH * (high - low) else 0.0


class Extent(NamedTuple):
    """How far the rewards of some rows reach, and the size of the largest feature."""

    low: float
    high: float
    largest: float

    @classmethod
    def of(cls, features: FloatArray, rewards: FloatArray) -> "Extent":
        """Of rows, at least one."""
        largest = max(float(features.max()), -float(features.min()))
        return cls(float(rewards.min()), float(rewards.max()), largest)

    def joined(self, other: "Extent") -> "Extent":
        """Of the rows of both."""
        return Extent(min(self.low, other.low), max(self.high, other.high), max(self.largest, other.largest))


def check_scales(extent: Extent, count: int, *, intercept: bool, in_unit_ball: bool, remedy: str) -> None:
    """Refuse a batch of so many rows whose sums lose what they tell: all too small, or a level that fills all digits.

    Where there is an intercept the level is taken off, and rewards that are all the same have no spread to lose.
    """
    if count < FEW:
        return
    for name, largest in (("features", extent.largest), ("rewards", max(extent.high, -extent.low))):
        least, why = SMALLEST, "so that their squares can be summed"
        if name == "features" and in_unit_ball:
            least, why = SHORTEST, "as this learner is for vectors of lengths up to 1 and regularizes accordingly"
        if 0.0 < largest < least:
            raise UnsuitableError(
                f"{name} must not all be below {least:g} in size, {why}; the largest is {largest:g}. Multiply all "
                f"{name} by a constant."
            )
    spread, level = extent.high - extent.low, max(abs(extent.low), abs(extent.high))
    # what differs by rounding alone is the same
    if not intercept and 8.0 * np.finfo(np.float64).eps * level < spread < level / TOO_HIGH:
        raise UnsuitableError(
            f"rewards lie around {extent.low + spread / 2.0:g}, within {spread:.3g} of each other: their level leaves "
            f"no digits for what tells arms apart. {remedy}"
        )


def outlying(extent: Extent, stats: Stats) -> float | None:
    """How many standard deviations the farthest reward is from the mean, where that is far; else None.

    Rewards of two values, such as clicks, have no outliers, however rare one of the values is.

    >>> r = np.array([*[1.0, 2.0] * 200, 90.0])
    >>> outlying(Extent(1.0, 90.0, 1.0), Stats.of(np.ones((401, 1)), r)).__round__()
    20
    """
    count, total = stats.count, stats.reward_sum
    if total is None or count < 2:
        return None
    low, high, mean = extent.low - stats.shift, extent.high - stats.shift, total / count
    squares = stats.square_sum - count * mean**2
    between = (low + high) * total - stats.square_sum - count * low * high  # Σ (r - low)(high - r)
    if between <= 1e-9 * count * (high - low) ** 2 or squares <= 0.0:
        return None
    distance = max(high - mean, mean - low) / float(np.sqrt(squares / count))
    return distance if distance > FAR else None


def unexplained_level(sums: tuple[Stats, ...]) -> float | None:
    """The mean reward, where a constant explains the rewards better than all features together; else None.

    If rewards are xᵀθ + noise, with features (1, x) or x, the squares that the constant explains exceed those that x
    explains by a few noise variances at the most, whatever θ is: so there is no false alarm, up to a probability of
    10⁻¹¹. A level is not noticed while features tell more than it does, or where they can express it.

    >>> x = np.array([[1.0], [-1.0]] * 50)
    >>> unexplained_level((Stats.of(x, 7.0 + x[:, 0]),)), unexplained_level((Stats.of(x, x[:, 0]),))
    (7.0, None)
    """
    total = reduce(add, sums)
    count = total.count
    if total.reward_sum is None or count < total.dim + 2:
        return None
    values, vectors = np.linalg.eigh(total.gram)
    known = values > 1e-12 * values[-1]
    explained = float((((vectors.T @ total.moment)[known] / np.sqrt(values[known])) ** 2).sum())
    mean = total.reward_sum / count
    by_constant = total.reward_sum * mean
    variance = max(total.square_sum - by_constant, 1e-9 * total.square_sum) / count
    return mean if by_constant - explained > NOTICED * variance > 0.0 else None


def centred(stats: Stats) -> Stats:
    """Statistics of features (x, 1) turned into those of x and the rewards less their means, which cost one count.

    Whatever shift the rewards have gone through, it goes with the means.

    >>> centred(Stats.of([[1.0, 1.0], [3.0, 1.0]], [10.0, 14.0])).gram.tolist()
    [[2.0]]
    """
    n = float(stats.gram[-1, -1])  # the counts of batches that fade are rounded, their weights are not
    mean, level = stats.gram[:-1, -1] / n, stats.moment[-1] / n
    values, vectors = np.linalg.eigh(stats.gram[:-1, :-1] - n * np.outer(mean, mean))
    # what rounding leaves of a feature without spread is not information
    known = np.where(values > 1e-12 * np.trace(stats.gram[:-1, :-1]), values, 0.0)
    moment = vectors @ np.where(known > 0.0, vectors.T @ (stats.moment[:-1] - n * level * mean), 0.0)
    spread = stats.square_sum - n * level**2
    if spread <= 1e-12 * stats.square_sum:  # nor is what it leaves of rewards that are all equal
        spread, moment = 0.0, np.zeros_like(moment)
    return Stats(gram=(vectors * known) @ vectors.T, moment=moment, count=stats.count - 1, square_sum=spread)
