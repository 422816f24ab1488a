"""Sums, factors and choices that come out the same on every machine: what learners stand on.

Sufficient statistics of a linear model add over any split of the data.
"""

import math
from copy import copy
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np

from rareswitch.core.codec import kind
from rareswitch.core.validation import (
    FloatArray,
    IntArray,
    finite_array,
    frozen,
    number,
    read_only,
    sealed,
    summable,
    vector,
    whole,
)
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.lanes import WIDTH, add_products, compiled, lane_zeros

__all__ = ["TIE", "Expansion", "Stats", "absorb", "first_highest", "inverse_root", "log_growth", "semidefinite_root"]

#: Rows that are summed up before they are added to the whole, which keeps rounding errors small.
_PANEL = 128
#: Of Σ r², what rounding may leave of the spread of rewards that are all the same.
_ALIKE = 1e-12
#: Pivots below this, relative to the largest entry of the diagonal, are what rounding leaves of zero.
_RANK = 1e-13
#: Candidates whose values differ by less than this, relative to the largest, are equally good.
TIE = 1e-9
T = TypeVar("T")
#: What adds up of an expansion.
_EXPANDED = ("value", "gradient", "curvature", "held_out")


@kind("expansion")
@dataclass(frozen=True, eq=False, kw_only=True)
class Expansion:
    """The log-likelihood ℓ of rows around a point θ₀, to second order: those of other rows at the same point add up.

    ℓ(θ) ≈ value + gᵀ(θ - θ₀) - ½(θ - θ₀)ᵀH(θ - θ₀), with the gradient g and the curvature H = -ℓ″(θ₀).
    """

    #: θ₀ (d,)
    point: FloatArray
    value: float
    #: g (d,)
    gradient: FloatArray
    #: H (d, d), positive semidefinite
    curvature: FloatArray
    #: (m,) the log-likelihood of the same rows by each of m models that were fitted to earlier rows.
    held_out: FloatArray

    def __post_init__(self) -> None:
        point, gradient = vector("point", self.point), vector("gradient", self.gradient, len(self.point))
        curvature = finite_array("curvature", self.curvature)
        if curvature.shape != (len(point), len(point)):
            raise ShapeError(f"curvature must be {(len(point), len(point))}; got {curvature.shape}.")
        number("value", self.value, low=-np.inf)
        held_out = vector("held_out", self.held_out)
        vars(self).update(point=point, gradient=gradient, curvature=frozen(curvature), held_out=held_out)

    @property
    def moment(self) -> FloatArray:
        """G + Hθ₀ (d,), which adds up over expansions at any points."""
        return np.asarray(self.gradient + self.curvature @ self.point)

    def joins(self, other: Self) -> bool:
        """Whether both are at the same point, and were held out from the same models."""
        return np.array_equal(self.point, other.point) and len(self.held_out) == len(other.held_out)

    def __add__(self, other: Self) -> Self:
        return _derived(self, **{name: getattr(self, name) + getattr(other, name) for name in _EXPANDED})

    def scaled(self, weight: float) -> Self:
        """That of rows which count ``weight`` times."""
        return _derived(self, **{name: weight * getattr(self, name) for name in _EXPANDED})


@kind("stats")
@dataclass(frozen=True, eq=False, kw_only=True)
class Stats:
    """Gram matrix Σ xxᵀ, moment vector Σ r·x, count, Σ r² and Σ r of (features, reward) pairs.

    Statistics add: those of a million servers sum to those of the whole. They never include a ridge. The same rows give
    the same bits on every machine, with any number of threads.

    Where the last feature is the constant 1, r may stand for the reward less a ``shift``, which is part of the
    statistics: of rewards such as 10⁹ ± 1 the squares alone would fill all digits. Sums with different shifts add up as
    well, to the shift of the larger part.

    Examples
    --------
    >>> left = Stats.of([[1.0, 0.0]], [2.0])
    >>> right = Stats.of([[0.0, 1.0]], [3.0])
    >>> total = left + right
    >>> total.count, total.estimate(ridge=1e-9).round(6).tolist()
    (2, [2.0, 3.0])
    """

    #: (dim, dim)
    gram: FloatArray
    #: (dim,)
    moment: FloatArray
    count: int
    #: Σ r², from which the noise level can be estimated.
    square_sum: float
    #: Σ r, by which a level is noticed that the features do not explain; None where it was not summed.
    reward_sum: float | None = None
    #: What was taken off each reward before it was summed.
    shift: float = 0.0
    #: What the same rows say by a likelihood that is no parabola; None where that was not summed, and of any sum in
    #: which a part has none or has it at another point.
    expansion: "Expansion | None" = None

    def __post_init__(self) -> None:
        moment = vector("moment", self.moment)
        gram = finite_array("gram", self.gram)
        if gram.shape != (len(moment), len(moment)):
            raise ShapeError(
                f"gram must be {(len(moment), len(moment))} beside a moment of {len(moment)}; got {gram.shape}."
            )
        whole("count", self.count, low=0)
        number("square_sum", self.square_sum, low=0.0)
        if self.reward_sum is not None:
            number("reward_sum", self.reward_sum, low=-np.inf)
        number("shift", self.shift, low=-np.inf)
        if self.expansion is not None and len(self.expansion.point) != len(moment):
            raise ShapeError(
                f"an expansion is of the same {len(moment)} features as the sums; got {len(self.expansion.point)}."
            )
        vars(self).update(gram=frozen(gram), moment=moment)

    @property
    def all_alike(self) -> bool:
        """Whether all rewards were the same, but for rounding; not where Σ r was not summed.

        >>> Stats.of([[1.0], [2.0]], [0.1, 0.1]).all_alike, Stats.of([[1.0], [2.0]], [0.1, 0.2]).all_alike
        (True, False)
        """
        if self.reward_sum is None:
            return False
        return bool(self.count * self.square_sum - self.reward_sum**2 <= _ALIKE * self.count * self.square_sum)

    @classmethod
    def zero(cls, dim: int) -> Self:
        """The statistics of no data."""
        dim = whole("dim", dim)
        empty = object.__new__(cls)
        return _derived(empty, gram=np.zeros((dim, dim)), moment=np.zeros(dim), count=0, square_sum=0.0, reward_sum=0.0)

    @classmethod
    def of(cls, features: object, rewards: object, *, shift: float = 0.0) -> Self:
        """The statistics of features (n, dim) and rewards (n,), less a shift where the last feature is 1."""
        x = summable("features", finite_array("features", features))
        if x.ndim != 2:
            raise ShapeError(f"features must have shape (n, dim); got {x.shape}. For a single row pass features[None].")
        r = summable("rewards", vector("rewards", rewards, len(x)))
        if shift != 0.0:
            if not (x[:, -1] == 1.0).all():
                raise ParameterError("a shift of the rewards needs a last feature that is 1 in every row.")
            r = r - shift
        # not BLAS, whose sums change with the number of its threads and with the processor
        products = _products(read_only(x), r)
        return _derived(
            object.__new__(cls),
            gram=products[:-1, :-1].copy(),
            moment=products[-1, :-1].copy(),
            count=len(x),
            square_sum=float(products[-1, -1]),
            reward_sum=float(_total(r)),
            shift=float(shift),
        )

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Stats):
            return NotImplemented
        if other.dim != self.dim:
            raise ShapeError(f"statistics of {self.dim} and of {other.dim} dimensions cannot be added.")
        if not (self.count and other.count):
            return self if self.count else other
        left, right = (self, other) if self.count >= other.count else (other, self)
        right = right.shifted(left.shift)
        reward_sum = None
        if left.reward_sum is not None and right.reward_sum is not None:
            reward_sum = left.reward_sum + right.reward_sum
        expansion = None
        if self.expansion is not None and other.expansion is not None and self.expansion.joins(other.expansion):
            expansion = self.expansion + other.expansion
        return _derived(
            self,
            gram=self.gram + other.gram,
            moment=left.moment + right.moment,
            count=self.count + other.count,
            square_sum=left.square_sum + right.square_sum,
            reward_sum=reward_sum,
            shift=left.shift,
            expansion=expansion,
        )

    def shifted(self, shift: float) -> Self:
        """The same rows, with another shift taken off their rewards; the last feature must be 1.

        >>> Stats.of([[2.0, 1.0]], [1e9 + 3.0], shift=1e9).shifted(1e9 + 1.0).moment.tolist()
        [4.0, 2.0]
        """
        more = self.shift - shift
        if more == 0.0:
            return self
        moment = self.moment + more * self.gram[:, -1]
        squares = self.square_sum + more * (self.moment[-1] + moment[-1])
        return _derived(
            self, moment=moment, square_sum=max(0.0, float(squares)), reward_sum=float(moment[-1]), shift=float(shift)
        )

    def scaled(self, weight: float) -> Self:
        """The statistics of rows which count ``weight`` times; the count is rounded, and none are left of too few."""
        if weight == 1.0:
            return self
        count = round(weight * self.count)
        if not count:
            return self.zero(self.dim)
        return _derived(
            self,
            gram=weight * self.gram,
            moment=weight * self.moment,
            count=count,
            square_sum=weight * self.square_sum,
            reward_sum=None if self.reward_sum is None else weight * self.reward_sum,
            expansion=None if self.expansion is None else self.expansion.scaled(weight),
        )

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.moment)

    def estimate(self, *, ridge: float) -> FloatArray:
        """Ridge regression θ̂ = (ridge·I + Σ xxᵀ)⁻¹ Σ r·x, shape (dim,)."""
        if not number("ridge", ridge, low=0.0) > 0.0:
            raise ParameterError(f"ridge must be positive, so that the estimate exists for any data; got {ridge}.")
        from scipy.linalg import cho_factor, cho_solve  # half as long to import as all else together

        factor = cho_factor(self.gram + ridge * np.eye(self.dim))
        return np.asarray(cho_solve(factor, self.moment))


def _derived(value: T, /, **fields: FloatArray | float | Expansion | None) -> T:
    """A copy with other fields: numbers that follow from checked ones, and are not checked again."""
    copied = copy(value)
    for part in fields.values():
        if isinstance(part, np.ndarray):
            sealed(part)
    vars(copied).update(fields)
    return copied


def first_highest(values: FloatArray) -> IntArray:
    """(…) the index of the first of the highest ``values`` (…, n) of each row, up to a relative 1e-9.

    Another processor rounds otherwise: which of two equally good candidates is chosen must not depend on that. Pass the
    negatives of costs. Values may be minus infinity, but none may be plus infinity.

    >>> first_highest(np.array([[0.5, 1.0 - 1e-12, 1.0], [3.0, 2.0, 1.0]])).tolist()
    [1, 0]
    """
    highest_value = values.max(axis=-1, keepdims=True)
    return np.asarray((values >= highest_value - TIE * np.abs(highest_value)).argmax(axis=-1))


def inverse_root(precision: FloatArray) -> FloatArray:
    """L⁻¹ (d, d), lower triangular, where LLᵀ = ``precision``."""
    lower = np.linalg.cholesky(precision)
    inverse = np.zeros_like(lower)
    # not LAPACK's, which hands even the smallest matrices to several threads, and these wait for each other
    _triangular_inverse(read_only(np.ascontiguousarray(lower)), inverse)
    return inverse


def semidefinite_root(matrix: FloatArray) -> FloatArray:
    """The lower triangular R with RᵀR = ``matrix`` (d, d), positive semidefinite; no entry of its diagonal is negative.

    Where the matrix has no full rank other such R exist, and an orthogonal decomposition gives one that depends on
    rounding. This is the one with a row of zeros for each dimension that the matrix lacks.

    >>> semidefinite_root(np.array([[4.0, 2.0], [2.0, 1.0]])).tolist()
    [[0.0, 0.0], [2.0, 1.0]]
    """
    rest, root = matrix.copy(), np.zeros_like(matrix)
    least = _RANK * float(np.diag(matrix).max(initial=0.0))
    for i in reversed(range(len(matrix))):
        if rest[i, i] > least:
            root[i, : i + 1] = rest[i, : i + 1] / math.sqrt(rest[i, i])
            rest[:i, :i] -= np.outer(root[i, :i], root[i, :i])
    return root


def log_growth(precision: FloatArray, ridge: float) -> float:
    """ln(det Λ/ridge^d) of a precision Λ (d, d), at least 0."""
    return max(0.0, float(np.linalg.slogdet(precision / ridge)[1]))


@compiled
def _triangular_inverse(lower, inverse):  # type: ignore[no-untyped-def]
    """``inverse`` (d, d), zero before, becomes that of the lower triangular matrix ``lower``."""
    dim = lower.shape[0]
    for i in range(dim):
        for k in range(i):
            for j in range(k + 1):
                inverse[i, j] -= lower[i, k] * inverse[k, j]
        for j in range(i):
            inverse[i, j] /= lower[i, i]
        inverse[i, i] = 1.0 / lower[i, i]


@compiled
def absorb(root, x, image, sums):  # type: ignore[no-untyped-def]
    """Turn ``root`` = L⁻¹ (d, d), lower triangular, LLᵀ = Λ, into that of Λ + xxᵀ; the growth 1 + xᵀΛ⁻¹x of det Λ.

    The factor of I + vvᵀ is known in closed form: with v = L⁻¹x and s_i = 1 + Σ_{j ≤ i} v_j², row i becomes
    √(s_{i-1}/s_i)·row_i - v_i/√(s_{i-1}·s_i)·Σ_{j < i} v_j·row_j. ``image`` (d,) and ``sums`` (d,) are scratch.
    """
    dim = root.shape[0]
    for i in range(dim):
        total = 0.0
        for j in range(i + 1):
            total += root[i, j] * x[j]
        image[i] = total
        sums[i] = 0.0
    before = 1.0
    for i in range(dim):
        after = before + image[i] * image[i]
        keep = math.sqrt(before / after)
        take = image[i] / math.sqrt(before * after)
        for j in range(i + 1):
            old = root[i, j]
            root[i, j] = keep * old - take * sums[j]
            sums[j] += image[i] * old
        before = after
    return before


@compiled
def _total(rewards):  # type: ignore[no-untyped-def]
    """Σ r, in one order of summation whatever the machine."""
    total = 0.0
    for first in range(0, len(rewards), _PANEL):
        part = 0.0
        for k in range(first, min(first + _PANEL, len(rewards))):
            part += rewards[k]
        total += part
    return total


@compiled
def _products(features, rewards):  # type: ignore[no-untyped-def]
    """AᵀA (d + 1, d + 1) of A = (features, rewards), in one order of summation whatever the machine."""
    count, dim = features.shape
    size = (dim + WIDTH) // WIDTH * WIDTH  # of d + 1 columns, padded
    total = lane_zeros(size, size)
    panel = lane_zeros(min(_PANEL, count), size)
    for first in range(0, count, _PANEL):
        rows = min(_PANEL, count - first)
        for k in range(rows):
            for j in range(dim):
                panel[k, j] = features[first + k, j]
            panel[k, dim] = rewards[first + k]
        for i in range(0, dim + 1, 4):
            for column in range(i // WIDTH * WIDTH, size, WIDTH):
                add_products(total, panel, i, column, rows)
    for i in range(dim + 1):
        for j in range(i):
            total[i, j] = total[j, i]
    return total[: dim + 1, : dim + 1]
