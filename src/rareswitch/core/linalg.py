"""Small dense linear algebra with one order of operations on every machine."""

import math

import numpy as np

from rareswitch.core.validation import FloatArray, read_only
from rareswitch.lanes import compiled

#: Pivots below this, relative to the largest entry of the diagonal, are what rounding leaves of zero.
_RANK = 1e-13


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
