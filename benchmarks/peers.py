"""Other ways to compute the same designs, written in good faith, to compare with.

Each one returns weights whose largest leverage is at most (1 + tol) times the dimension, for sets that span it.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_CACHE_RESIDENT = 2**18  # numbers of a chunk: larger ones leave the cache, smaller ones pay for more calls
_LARGEST_SWEPT_DIM = 16  # from here LAPACK, matrix by matrix, is faster than a sweep along all sets
_MOST_PASSES = 10_000


def python_frank_wolfe(x: FloatArray, tol: float = 0.05) -> FloatArray:
    """One set (K, d): Frank-Wolfe with exact line search (Fedorov-Wynn; Lattimore and Szepesvári, chapter 21).

    Each step is a rank-one update of the inverse and of the leverages, so it costs O(Kd + d²). Both are computed afresh
    before a design is returned, for updates drift.
    """
    arms, dim = x.shape
    weights = np.full(arms, 1.0 / arms)
    for _ in range(_MOST_PASSES):
        inverse = np.linalg.inv((x * weights[:, None]).T @ x)
        leverages = ((x @ inverse) * x).sum(axis=1)
        if leverages.max() <= (1.0 + tol) * dim:
            return weights
        while True:
            best = int(leverages.argmax())
            largest = leverages[best]
            if largest <= (1.0 + tol) * dim:
                break
            step = (largest / dim - 1.0) / (largest - 1.0)
            image = inverse @ x[best]
            shrink = step / (1.0 - step + step * largest)
            inverse = (inverse - shrink * np.outer(image, image)) / (1.0 - step)
            leverages = (leverages - shrink * (x @ image) ** 2) / (1.0 - step)
            weights *= 1.0 - step
            weights[best] += step
    raise RuntimeError(f"Frank-Wolfe did not reach {(1.0 + tol) * dim}")


def open_loop_frank_wolfe(x: FloatArray, tol: float = 0.05) -> FloatArray:
    """One set (K, d): Frank-Wolfe as it is mostly stated, with steps 2/(k + 2) and everything computed afresh.

    Step k counts from the number of arms, because the uniform start already spreads that many observations.
    """
    arms, dim = x.shape
    weights = np.full(arms, 1.0 / arms)
    for k in range(arms, arms + _MOST_PASSES):
        inverse = np.linalg.inv((x * weights[:, None]).T @ x)
        leverages = ((x @ inverse) * x).sum(axis=1)
        best = int(leverages.argmax())
        if leverages[best] <= (1.0 + tol) * dim:
            return weights
        step = 2.0 / (k + 2)
        weights *= 1.0 - step
        weights[best] += step
    raise RuntimeError(f"Frank-Wolfe did not reach {(1.0 + tol) * dim}")


def batched_numpy(contexts: FloatArray, tol: float = 0.05) -> FloatArray:
    """Many sets (n, K, d): the multiplicative update w ← w(g - ½ min g), in chunks, without the sets that are done.

    The fastest of what was tried: chunks that stay in the cache, sums by ``vecdot``, small matrices inverted along all
    sets at once, larger ones by LAPACK. ``solve``, Cholesky factors, the symmetric product and a layout with the sets
    innermost throughout are slower.
    """
    n, arms, dim = contexts.shape
    chunk = max(16, _CACHE_RESIDENT // (arms * dim))
    result = np.empty((n, arms))
    for start in range(0, n, chunk):
        active = np.arange(start, min(n, start + chunk))
        x = contexts[start : start + chunk]
        weights = np.full((len(x), arms), 1.0 / arms)
        for _ in range(_MOST_PASSES):
            information = (x * weights[:, :, None]).transpose(0, 2, 1) @ x
            inverse = _swept(information) if dim < _LARGEST_SWEPT_DIM else np.linalg.inv(information)
            leverages = np.vecdot(x @ inverse, x)
            done = leverages.max(axis=1) <= (1.0 + tol) * dim
            if done.any():
                result[active[done]] = weights[done]
                rest = ~done
                active, x, weights, leverages = active[rest], x[rest], weights[rest], leverages[rest]
                if not len(active):
                    break
            weights = weights * (leverages - 0.5 * leverages.min(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
        else:
            raise RuntimeError(f"the multiplicative update did not reach {(1.0 + tol) * dim} on {len(active)} sets")
    return result


def _swept(matrices: FloatArray) -> FloatArray:
    """Inverses of positive definite matrices (n, d, d) by Gauss-Jordan, every operation along the n matrices."""
    swept = np.ascontiguousarray(matrices.transpose(1, 2, 0))
    change = np.empty_like(swept)
    for pivot in range(len(swept)):
        reciprocal = 1.0 / swept[pivot, pivot]
        row = swept[pivot] * reciprocal
        row[pivot] = reciprocal
        column = swept[:, pivot].copy()
        column[pivot] = -1.0
        swept[pivot] = swept[:, pivot] = 0.0
        swept -= np.multiply(column[:, None], row, out=change)
    return np.ascontiguousarray(swept.transpose(2, 0, 1))


def clarabel(x: FloatArray) -> FloatArray:
    """One set (K, d): maximise ln det Σ w x xᵀ with cvxpy and Clarabel, as their manuals write it."""
    import cvxpy

    weights = cvxpy.Variable(len(x), nonneg=True)
    objective = cvxpy.Maximize(cvxpy.log_det(x.T @ cvxpy.diag(weights) @ x))
    cvxpy.Problem(objective, [cvxpy.sum(weights) == 1]).solve(solver=cvxpy.CLARABEL)
    return _normalised(weights.value)


def clarabel_prepared(x: FloatArray) -> FloatArray:
    """One set (K, d), the same: a problem that cvxpy translates once per shape, with tolerances as loose as will do."""
    problem, products, weights = _prepared_problem(*x.shape)
    products.value = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1).T
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-3, tol_gap_rel=1e-3, tol_feas=1e-4)
    return _normalised(weights.value)


@lru_cache
def _prepared_problem(arms: int, dim: int) -> tuple[Any, Any, Any]:
    import cvxpy

    weights = cvxpy.Variable(arms, nonneg=True)
    products = cvxpy.Parameter((dim * dim, arms))
    information = cvxpy.reshape(products @ weights, (dim, dim), order="C")
    return cvxpy.Problem(cvxpy.Maximize(cvxpy.log_det(information)), [cvxpy.sum(weights) == 1]), products, weights


def _normalised(weights: Any) -> FloatArray:
    """An interior-point solution meets its constraints up to rounding."""
    positive = np.maximum(weights, 0.0)
    return np.asarray(positive / positive.sum())
