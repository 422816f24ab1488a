"""Compiled kernels of the sampling policies: quadratic forms of arms, and probabilities from them."""

import numpy as np

from rareswitch.lanes import add_rows, compiled, lane_zeros, padded

padded_length = compiled(padded)


@compiled
def quadratic_forms(contexts, matrix, forms):  # type: ignore[no-untyped-def]
    """``forms`` (n, K) becomes xᵀ·matrix·x for every arm of ``contexts`` (n, K, d); ``matrix`` symmetric."""
    n, arm_count, dim = contexts.shape
    length = padded_length(arm_count)
    arms = lane_zeros(dim, length)
    image = lane_zeros(1, length)
    zero = lane_zeros(1, length)
    twice = np.zeros((dim, dim))  # the forms need one triangle of the matrix, off-diagonal entries counted twice
    for j in range(dim):
        for k in range(j):
            twice[j, k] = 2.0 * matrix[j, k]
        twice[j, j] = matrix[j, j]
    for s in range(n):
        for i in range(arm_count):
            forms[s, i] = 0.0
            for j in range(dim):
                arms[j, i] = contexts[s, i, j]
        for j in range(dim):
            add_rows(image, zero, 0, twice, j, arms, j + 1, length)
            for i in range(arm_count):
                forms[s, i] += image[0, i] * arms[j, i]


@compiled
def normalized_powers(values, alive, exponents, probabilities):  # type: ignore[no-untyped-def]
    """``probabilities`` (n, K) become values^exponent normalised along rows, zero where an arm is not alive.

    The softmax is free of scale, so each row is divided by its largest value before it is raised. A row without a
    positive value is uniform over its living arms.
    """
    n, arm_count = values.shape
    for s in range(n):
        largest = 0.0
        for i in range(arm_count):
            if alive[s, i] and values[s, i] > largest:
                largest = values[s, i]
        total = 0.0
        for i in range(arm_count):
            share = 0.0
            if alive[s, i]:
                if largest == 0.0:
                    share = 1.0
                elif values[s, i] > 0.0:
                    share = (values[s, i] / largest) ** exponents[s]
            probabilities[s, i] = share
            total += share
        for i in range(arm_count):
            probabilities[s, i] /= total
