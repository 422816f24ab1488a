"""One past batch's verdict on arms."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rareswitch.errors import ShapeError
from rareswitch.policy.kernels import triangular_inverse
from rareswitch.validation import FloatArray, finite_array, frozen, number, read_only, vector


@dataclass(frozen=True, eq=False, kw_only=True)
class Elimination:
    """Confidence intervals xᵀθ̂ ± ‖root·x‖; an arm falls whose upper end is below another's lower end.

    The root is stored, not the matrix it comes from, so that a loaded policy computes with the very same numbers.
    """

    estimate: FloatArray
    """(d,) θ̂"""
    root: FloatArray
    """(d, d), lower triangular: α·L⁻¹ where LLᵀ = Λ."""

    def __post_init__(self) -> None:
        estimate = vector("estimate", self.estimate)
        root = finite_array("root", self.root)
        if root.shape != (len(estimate), len(estimate)) or np.triu(root, 1).any():
            raise ShapeError(
                f"root must be lower triangular {(len(estimate), len(estimate))} beside an estimate of "
                f"{len(estimate)}; got {root.shape}."
            )
        object.__setattr__(self, "estimate", estimate)
        object.__setattr__(self, "root", frozen(root))

    @classmethod
    def of(cls, estimate: Any, precision: FloatArray, multiplier: float) -> Self:
        """Intervals xᵀθ̂ ± multiplier·√(xᵀΛ⁻¹x) for ``precision`` Λ (d, d)."""
        number("multiplier", multiplier, low=0.0)
        return cls(estimate=estimate, root=multiplier * inverse_root(finite_array("precision", precision)))

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.estimate)


def inverse_root(precision: FloatArray) -> FloatArray:
    """L⁻¹ (d, d), lower triangular, where LLᵀ = ``precision``."""
    lower = np.linalg.cholesky(precision)
    inverse = np.zeros_like(lower)
    # not LAPACK's, which hands even the smallest matrices to several threads, and these wait for each other
    triangular_inverse(read_only(np.ascontiguousarray(lower)), inverse)
    return inverse
