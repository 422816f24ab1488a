"""Levels and units of rewards: taken off where they would fill all digits, noticed where no feature explains them."""

from functools import reduce
from operator import add

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
#: How large the largest number must be for all to be squared.
SMALLEST = 1e-100
#: How large the largest feature must be for learners in the unit ball, whose ridge and designs count on it.
SHORTEST = 1e-4


def level_of(rewards: FloatArray, times: float = HIGH) -> float:
    """The level of rewards (n,) where it is so many times their spread, else 0.

    Squares of rewards less this level keep the digits that tell their spread. Near the level the subtraction is exact.

    >>> level_of(np.array([1e9 - 1.0, 1e9 + 1.0])), level_of(np.array([5.0, 6.0]))
    (1000000000.0, 0.0)
    """
    if not len(rewards):
        return 0.0
    low, high = float(rewards.min()), float(rewards.max())
    middle = low + (high - low) / 2.0
    return middle if abs(middle) > times * (high - low) else 0.0


def check_scales(
    features: FloatArray, rewards: FloatArray, *, intercept: bool, in_unit_ball: bool, remedy: str
) -> None:
    """Refuse rows whose sums would lose what they tell: all too small, or with a level that fills all digits.

    Where there is an intercept the level is taken off, and rewards that are all the same have no spread to lose.
    """
    if len(rewards) < FEW:
        return
    for name, array in (("features", features), ("rewards", rewards)):
        least, why = SMALLEST, "so that their squares can be summed"
        if name == "features" and in_unit_ball:
            least, why = SHORTEST, "as this learner is for vectors of lengths up to 1 and regularizes accordingly"
        largest = max(float(array.max()), -float(array.min()))
        if 0.0 < largest < least:
            raise UnsuitableError(
                f"{name} must not all be below {least:g} in size, {why}; the largest is {largest:g}. Multiply all "
                f"{name} by a constant."
            )
    level = 0.0 if intercept else level_of(rewards, TOO_HIGH)
    if level != 0.0 and (rewards != rewards[0]).any():
        spread = float(rewards.max() - rewards.min())
        raise UnsuitableError(
            f"rewards lie around {level:g}, within {spread:.3g} of each other: their level leaves no digits for what "
            f"tells arms apart. {remedy}"
        )


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
