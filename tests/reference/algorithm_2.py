"""Algorithm 2 as printed, one step at a time: the reference for the accelerated one."""

import math

import numpy as np

from rareswitch.core import FloatArray


def literal_algorithm_2(
    contexts: FloatArray, play: FloatArray, *, regularization: float, form: str
) -> tuple[list[int], list[FloatArray]]:
    """Stage lengths |τ_i| and matrices W_i, the dropped stages included.

    ``contexts`` (Γ, K, d) holds Γ > 1/λ sets and ``play`` is E_{x∼π^G(X)} xxᵀ averaged over them.
    """
    size, arms, dim = contexts.shape
    assert size > 1.0 / regularization
    blocks = max(1, math.ceil(2 * dim**2 * math.log2(dim)))
    u = regularization * blocks * size * np.eye(dim) + 0.5 * blocks * size * play
    w, w_inverse, w_logdet = u, np.linalg.inv(u), np.linalg.slogdet(u)[1]
    lengths, matrices = [0], [w]
    for t in range(blocks * size):
        lengths[-1] += 1
        x = contexts[t % size]
        values = ((x @ w_inverse) * x).sum(axis=1)
        if form == "argmax":
            chosen = x[values.argmax()]
            u = u + np.outer(chosen, chosen)
        else:
            shares = (values / values.max()) ** math.log2(arms)
            u = u + (x * (shares / shares.sum())[:, None]).T @ x
        if np.linalg.slogdet(u)[1] > math.log(2.0) + w_logdet:
            w, w_inverse, w_logdet = u, np.linalg.inv(u), np.linalg.slogdet(u)[1]
            lengths.append(0)
            matrices.append(w)
    if lengths[-1] == 0:
        lengths.pop()
        matrices.pop()
    return lengths, matrices
