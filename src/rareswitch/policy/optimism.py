"""The optimistic sampler: the arm whose interval reaches highest."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rareswitch.policy.elimination import Elimination
from rareswitch.policy.kernels import highest_arms
from rareswitch.validation import FloatArray, sets_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Optimistic:
    """The living arm with the largest xᵀθ̂ + ‖root·x‖, the first of them on a tie (to a relative 1e-9).

    >>> Optimistic(estimate=[0.0, 0.5], root=[[1.0, 0.0], [0.0, 0.1]]).probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [1.0, 0.0]
    """

    estimate: FloatArray
    """(d,) θ̂"""
    root: FloatArray
    """(d, d), lower triangular: α·L⁻¹ where LLᵀ = Λ."""

    def __post_init__(self) -> None:
        checked = Elimination(estimate=self.estimate, root=self.root)  # the same intervals, put to another use
        object.__setattr__(self, "estimate", checked.estimate)
        object.__setattr__(self, "root", checked.root)

    @classmethod
    def of(cls, estimate: Any, precision: FloatArray, multiplier: float) -> Self:
        """Intervals xᵀθ̂ ± multiplier·√(xᵀΛ⁻¹x) for ``precision`` Λ (d, d)."""
        intervals = Elimination.of(estimate, precision, multiplier)
        return cls(estimate=intervals.estimate, root=intervals.root)

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.estimate)

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = sets_of(self.dim, contexts, alive)
        probabilities = np.zeros(sets.alive.shape)
        highest_arms(sets.contexts, sets.alive, self.estimate, self.root, probabilities)
        return probabilities[0] if sets.single else probabilities
