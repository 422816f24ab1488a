"""Compiled kernels of the package learner: growing determinants, best arms by the hundred, predictions row by row."""

import numpy as np

from rareswitch.core import absorb
from rareswitch.lanes import compiled


@compiled
def first_growth(features, layers, roots, growths, bar):  # type: ignore[no-untyped-def]
    """After how many decisions some layer's determinant has grown to ``bar``; 0 if none does.

    ``features`` (n, d) are absorbed into the model of ``layers`` (n,), none where that is negative; ``roots`` (S, d, d)
    and ``growths`` (S,), relative to the frozen determinants, are where the models stand, and are used up.
    """
    dim = features.shape[1]
    image = np.zeros(dim)
    sums = np.zeros(dim)
    for s in range(features.shape[0]):
        if layers[s] >= 0:
            growths[layers[s]] *= absorb(roots[layers[s]], features[s], image, sums)
            if growths[layers[s]] >= bar:
                return s + 1
    return 0


@compiled
def best_columns(scores, available, best, arms):  # type: ignore[no-untyped-def]
    """The first available arm with the highest of ``scores`` (n, K, J), for each set and each of J: ``arms`` (n, J).

    ``best`` (J,) is scratch.
    """
    for s in range(scores.shape[0]):
        for j in range(scores.shape[2]):
            best[j] = -np.inf
        for k in range(scores.shape[1]):
            if available[s, k]:
                for j in range(scores.shape[2]):
                    higher = scores[s, k, j] > best[j]
                    best[j] = scores[s, k, j] if higher else best[j]
                    arms[s, j] = k if higher else arms[s, j]


@compiled
def predictions(features, estimate, means):  # type: ignore[no-untyped-def]
    """xᵀθ of each row of ``features`` (n, d), into an array (n,).

    Every row in one order of summation, so that its place among others does not change a bit.
    """
    for s in range(features.shape[0]):
        mean = 0.0
        for i in range(features.shape[1]):
            mean += features[s, i] * estimate[i]
        means[s] = mean
