"""Quadratic forms xᵀ·matrix·x of arms, and the choices of argmax and softmax policies by them."""

import numpy as np

from rareswitch.choosing import first_highest
from rareswitch.design.kernels import padded_length
from rareswitch.errors import ShapeError
from rareswitch.lanes import add_rows, compiled, lane_zeros
from rareswitch.validation import FloatArray, Sets, read_only


def quadratic_forms(sets: Sets, matrix: FloatArray) -> FloatArray:
    """xᵀ·matrix·x of every arm, (n, K), and minus infinity where an arm is not alive."""
    dim, given = matrix.shape[0], sets.contexts.shape[2]
    if dim != given:
        raise ShapeError(f"this sampling policy is for {dim} dimensions; got contexts of {given}.")
    forms = np.empty(sets.alive.shape)
    _forms(sets.contexts, read_only(matrix), forms)
    forms[~sets.alive] = -np.inf
    return forms


def one_hot(values: FloatArray) -> FloatArray:
    """1 at the first highest value of each row, up to rounding; 0 elsewhere."""
    hot = np.zeros(values.shape)
    np.put_along_axis(hot, first_highest(values)[:, None], 1.0, axis=1)
    return hot


def normalized_powers(values: FloatArray, sets: Sets, exponent: float | None) -> FloatArray:
    """values^α normalised along rows, α by default log₂ of the living arms; uniform where a row is all zero."""
    exponents = np.log2(sets.alive.sum(axis=1)) if exponent is None else np.full(len(values), float(exponent))
    probabilities = np.empty(values.shape)
    _normalized_powers(values, sets.alive, exponents, probabilities)
    return probabilities


@compiled
def _forms(contexts, matrix, forms):  # type: ignore[no-untyped-def]
    """``forms`` (n, K) becomes xᵀ·matrix·x for every arm of ``contexts`` (n, K, d); ``matrix`` symmetric."""
    n, arm_count, dim = contexts.shape
    length = padded_length(arm_count)
    arms, image, zero = lane_zeros(dim, length), lane_zeros(np.int64(1), length), lane_zeros(np.int64(1), length)
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
def _normalized_powers(values, alive, exponents, probabilities):  # type: ignore[no-untyped-def]
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
