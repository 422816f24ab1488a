"""When the next policy is due, besides at the ends of a grid."""

import math
from dataclasses import dataclass

from rareswitch.errors import ParameterError
from rareswitch.learner.grids import Grid
from rareswitch.validation import whole

TOLERANCE = 1e-9
"""A determinant that has grown to C·(1 - TOLERANCE) has grown to C, so that exact ties do not hang on rounding."""


@dataclass(frozen=True, kw_only=True)
class EveryStep:
    """A new policy after each decision: full adaptivity, to compare with."""

    horizon: int

    def __post_init__(self) -> None:
        whole("horizon", self.horizon, low=2)


@dataclass(frozen=True, kw_only=True)
class DeterminantGrowth:
    """A new policy when det Λ has grown by the factor C since the last one (Abbasi-Yadkori et al. 2011).

    It looks at the features of the chosen arms and never at rewards, and the determinant bounds how often it strikes:
    at most d·log_C(1 + T/(dλ)) times.
    """

    horizon: int
    factor: float = 2.0

    def __post_init__(self) -> None:
        whole("horizon", self.horizon, low=2)
        object.__setattr__(self, "factor", growth_factor(self.factor))

    def most(self, dim: int, ridge: float) -> int:
        """The most policies it can call for in a run, the first included.

        >>> DeterminantGrowth(horizon=100_000).most(10, 1.0)
        133
        """
        return most_switches(dim=dim, horizon=self.horizon, factor=self.factor, ridge=ridge)


Clock = Grid | EveryStep | DeterminantGrowth


def growth_factor(factor: float) -> float:
    """C, checked."""
    if not isinstance(factor, (int, float)) or not 1.0 < factor < math.inf:
        raise ParameterError(
            f"the growth factor C must be a number above 1; got {factor!r}. At C = 1 every decision would bring a new "
            "policy: use the learner that is updated every step for that (linucb, suplinucb)."
        )
    return float(factor)


def most_switches(*, dim: int, horizon: int, factor: float, ridge: float) -> int:
    """⌊1 + d·log_C(1 + T/(dλ))⌋: how many policies one growing determinant can call for, the first included.

    det Λ starts at λ^d and ends at no more than (λ + T/d)^d, for vectors in the unit ball.
    """
    growth = dim * math.log1p(horizon / (dim * ridge)) / math.log(factor)
    return 1 + math.floor(growth + TOLERANCE)


def furthest(factor: float, ridge: float, agents: int) -> float:
    """The logarithm of the most that a determinant can have grown when the next policy is due.

    It is C and what one time step adds: each of its decisions, in the unit ball, lets it grow by at most 1 + 1/λ.
    """
    return math.log(factor) + agents * math.log1p(1.0 / ridge) + TOLERANCE
