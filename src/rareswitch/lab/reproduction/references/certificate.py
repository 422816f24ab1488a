"""What the certificate of a design claims, computed from the weights in 70 digits."""

import numpy as np

from rareswitch.core import FloatArray
from rareswitch.errors import MissingExtraError

try:
    import mpmath
except ImportError as error:
    problem = "leverages in extended precision need mpmath"
    raise MissingExtraError(f"{problem}. Install it with: pip install 'rareswitch[reproduce]'") from error

RANK_TOLERANCE = 1e-13
DIGITS = 70


def exact_certificate(arms: FloatArray, weights: FloatArray) -> tuple[float, int, float]:
    """Max leverage inside the span, its dimension, and the largest relative distance of an arm to it.

    Dead arms must be passed as zero vectors. The span grows by the arm that is farthest from it,
    as long as one is farther than the rank tolerance relative to its own norm. Features are first scaled to the same
    range, which changes no leverage.
    """
    with mpmath.workdps(DIGITS):
        count, dim = arms.shape
        largest = np.abs(arms).max(axis=0)
        scales = 2.0 ** np.floor(np.log2(np.where(largest > 0, largest, 1.0)))
        rest = _exact(arms / scales)
        squares = [sum(v * v for v in row) for row in rest]
        counted = [i for i in range(count) if squares[i] > 0]
        coordinates: list[list[mpmath.mpf]] = []
        while True:
            lengths = [sum(v * v for v in row) for row in rest]
            residual = max((mpmath.sqrt(lengths[i] / squares[i]) for i in counted), default=mpmath.mpf(0))
            outside = [i for i in counted if lengths[i] > mpmath.mpf(RANK_TOLERANCE) ** 2 * squares[i]]
            if not outside or len(coordinates) == dim:
                break
            pivot = max(outside, key=lambda i: lengths[i])
            along, square = rest[pivot], lengths[pivot]
            shares = [sum(a * b for a, b in zip(row, along, strict=True)) / square for row in rest]
            rest = [[a - c * b for a, b in zip(row, along, strict=True)] for row, c in zip(rest, shares, strict=True)]
            coordinates.append(shares)
        rank = len(coordinates)
        leverage = _max_leverage([list(row) for row in zip(*coordinates, strict=True)], weights, 0) if rank else 0.0
        return leverage, rank, float(residual)


def regularized_max_leverage(arms: FloatArray, weights: FloatArray, epsilon: float) -> float:
    """max_i x_iᵀ(εI + Σ w x xᵀ)⁻¹x_i with the arms scaled to a largest entry of one; no notion of rank is involved."""
    with mpmath.workdps(DIGITS):
        scale = mpmath.mpf(float(np.abs(arms).max())) or mpmath.mpf(1)
        return _max_leverage([[v / scale for v in row] for row in _exact(arms)], weights, epsilon)


def _exact(arms: FloatArray) -> list[list["mpmath.mpf"]]:
    return [[mpmath.mpf(float(v)) for v in row] for row in arms]


def _max_leverage(rows: list[list["mpmath.mpf"]], weights: FloatArray, epsilon: float) -> float:
    dim = len(rows[0])
    moment = mpmath.matrix(dim, dim)
    for j in range(dim):
        for k in range(dim):
            total = sum(mpmath.mpf(float(w)) * row[j] * row[k] for w, row in zip(weights, rows, strict=True))
            moment[j, k] = total + (epsilon if j == k else 0)
    inverse = moment**-1
    return float(max(sum(row[j] * inverse[j, k] * row[k] for j in range(dim) for k in range(dim)) for row in rows))
