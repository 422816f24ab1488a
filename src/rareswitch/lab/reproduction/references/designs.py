"""Algorithms 2 and 4 as printed, one step and one set at a time."""

import math

import numpy as np

from rareswitch.core import FloatArray, IntArray


def literal_algorithm_2(
    contexts: FloatArray, explored: FloatArray, *, regularization: float, form: str
) -> tuple[list[int], list[FloatArray]]:
    """Stage lengths |τ_i| and matrices W_i, the dropped stages included.

    ``contexts`` (Γ, K, d) holds Γ > 1/λ sets and ``explored`` is E_{x∼π^G(X)} xxᵀ averaged over them.
    """
    size, arms, dim = contexts.shape
    assert size > 1.0 / regularization
    blocks = max(1, math.ceil(2 * dim**2 * math.log2(dim)))
    u = regularization * blocks * size * np.eye(dim) + 0.5 * blocks * size * explored
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


def literal_core(contexts: FloatArray, weights: FloatArray, lam: float, threshold: float) -> tuple[IntArray, int]:
    """Algorithm 4: the places of the sets of the core, and how often its condition was looked at.

    ``weights`` (γ, K) are the G-optimal design of each of the sets (γ, K, d), and ``threshold`` is d^c.
    """
    gamma, _, dim = contexts.shape
    inside = list(range(gamma))
    for iteration in range(1, gamma + 2):
        total = lam * np.eye(dim) + sum(
            (weights[i, k] / gamma) * np.outer(x, x) for i in inside for k, x in enumerate(contexts[i])
        )
        inverse = np.linalg.inv(total)
        largest = {i: max(float(x @ inverse @ x) for x in contexts[i]) for i in inside}
        if max(largest.values()) <= threshold:
            return np.array(inside), iteration
        inside = [i for i in inside if largest[i] <= threshold / 2]
    raise AssertionError("each iteration drops a set or is the last")
