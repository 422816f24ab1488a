"""Yardsticks: LinUCB in plain NumPy, one step at a time, and other ways to compute the same designs, in good faith.

A solver returns weights whose largest leverage is at most (1 + tol) times the dimension, for sets that span it.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_CACHE_RESIDENT = 2**18  # numbers of a chunk: larger ones leave the cache, smaller ones pay for more calls
_LARGEST_SWEPT_DIM = 16  # from here LAPACK, matrix by matrix, is faster than a sweep along all sets
_MOST_PASSES = 10_000


class NumpyLinUCB:
    """Plays argmax xᵀθ̂ + α√(xᵀΛ⁻¹x) and learns after every step."""

    def __init__(self, dim: int, alpha: float = 1.0) -> None:
        self.alpha = alpha
        self.inverse = np.eye(dim)
        self.moment = np.zeros(dim)
        self.theta = np.zeros(dim)

    def decide(self, x: FloatArray) -> int:
        """The arm of largest upper confidence bound among x (K, d)."""
        widths = np.sqrt(((x @ self.inverse) * x).sum(axis=1))
        return int((x @ self.theta + self.alpha * widths).argmax())

    def update(self, x: FloatArray, reward: float) -> None:
        """Learn from the chosen vector x (d,)."""
        image = self.inverse @ x
        self.inverse -= np.outer(image, image) / (1.0 + x @ image)
        self.moment += reward * x
        self.theta = self.inverse @ self.moment


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
    positive = np.maximum(weights.value, 0.0)  # an interior-point solution meets its constraints up to rounding
    return np.asarray(positive / positive.sum())
