"""Sufficient statistics of a linear model, additive over any split of the data."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rareswitch.errors import ParameterError, ShapeError
from rareswitch.validation import FloatArray, finite_array, frozen, number, vector, whole


@dataclass(frozen=True, eq=False, kw_only=True)
class Stats:
    """Gram matrix Σ xxᵀ, moment vector Σ r·x, count and Σ r² of (features, reward) pairs.

    Statistics add: those of a million servers sum to those of the whole. They never include a ridge.

    Examples
    --------
    >>> left = Stats.of([[1.0, 0.0]], [2.0])
    >>> right = Stats.of([[0.0, 1.0]], [3.0])
    >>> total = left + right
    >>> total.count, total.estimate(ridge=1e-9).round(6).tolist()
    (2, [2.0, 3.0])
    """

    gram: FloatArray
    """(dim, dim)"""
    moment: FloatArray
    """(dim,)"""
    count: int
    square_sum: float
    """Σ r², from which the noise level can be estimated."""

    def __post_init__(self) -> None:
        moment = vector("moment", self.moment)
        gram = finite_array("gram", self.gram)
        if gram.shape != (len(moment), len(moment)):
            raise ShapeError(
                f"gram must be {(len(moment), len(moment))} beside a moment of {len(moment)}; got {gram.shape}."
            )
        whole("count", self.count, low=0)
        number("square_sum", self.square_sum, low=0.0)
        object.__setattr__(self, "gram", frozen(gram))
        object.__setattr__(self, "moment", moment)

    @classmethod
    def zero(cls, dim: int) -> Self:
        """The statistics of no data."""
        dim = whole("dim", dim)
        return cls(gram=np.zeros((dim, dim)), moment=np.zeros(dim), count=0, square_sum=0.0)

    @classmethod
    def of(cls, features: object, rewards: object) -> Self:
        """The statistics of features (n, dim) and rewards (n,)."""
        x = finite_array("features", features)
        if x.ndim != 2:
            raise ShapeError(f"features must have shape (n, dim); got {x.shape}. For a single row pass features[None].")
        r = vector("rewards", rewards, len(x))
        return cls(gram=x.T @ x, moment=x.T @ r, count=len(x), square_sum=float(r @ r))

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Stats):
            return NotImplemented
        if other.dim != self.dim:
            raise ShapeError(f"statistics of {self.dim} and of {other.dim} dimensions cannot be added.")
        return type(self)(
            gram=self.gram + other.gram,
            moment=self.moment + other.moment,
            count=self.count + other.count,
            square_sum=self.square_sum + other.square_sum,
        )

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.moment)

    def estimate(self, *, ridge: float) -> FloatArray:
        """Ridge regression θ̂ = (ridge·I + Σ xxᵀ)⁻¹ Σ r·x, shape (dim,)."""
        if not number("ridge", ridge, low=0.0) > 0.0:
            raise ParameterError(f"ridge must be positive, so that the estimate exists for any data; got {ridge}.")
        factor = cho_factor(self.gram + ridge * np.eye(self.dim))
        return np.asarray(cho_solve(factor, self.moment))
