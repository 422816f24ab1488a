"""One past batch's verdict on arms."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import ShapeError
from rareswitch.linalg import inverse_root
from rareswitch.policy.kernels import widest
from rareswitch.validation import FloatArray, finite_array, number, parameters, vector


@dataclass(frozen=True, eq=False, kw_only=True)
class Elimination:
    """Confidence intervals xᵀθ̂ ± ‖root·x‖; an arm falls whose upper end is below another's lower end.

    The root is stored, not the matrix it comes from, so that a loaded policy computes with the very same numbers.
    """

    #: (d,) θ̂
    estimate: FloatArray
    #: (d, d), lower triangular: α·L⁻¹ where LLᵀ = Λ.
    root: FloatArray

    def __post_init__(self) -> None:
        estimate = vector("estimate", parameters("estimate", self.estimate))
        root = parameters("root", self.root)
        if root.shape != (len(estimate), len(estimate)) or np.triu(root, 1).any():
            raise ShapeError(
                f"root must be lower triangular {(len(estimate), len(estimate))} beside an estimate of "
                f"{len(estimate)}; got {root.shape}."
            )
        vars(self).update(estimate=estimate, root=root)

    @classmethod
    def of(cls, estimate: Any, precision: FloatArray, multiplier: float, **others: Any) -> Self:
        """Intervals xᵀθ̂ ± multiplier·√(xᵀΛ⁻¹x) for ``precision`` Λ (d, d); ``others`` are fields of a kind of them."""
        number("multiplier", multiplier, low=0.0)
        root = multiplier * inverse_root(finite_array("precision", precision))
        return cls(estimate=estimate, root=root, **others)

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.estimate)


def widest_intervals(elimination: Elimination, sets: ContextSets) -> FloatArray:
    """(n,) the largest half-width ‖root·x‖ among the available arms of each set."""
    widths = np.empty(len(sets))
    widest(sets.contexts, sets.alive, elimination.root, widths)
    return widths
