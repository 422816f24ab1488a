"""Compiled kernels of the policy room: who survives, and who is drawn."""

import math

import numpy as np

from rareswitch.lanes import add_rows, add_squares, compiled, padded

padded_length = compiled(padded)


@compiled
def _widths(arms, root, zero, image, width):  # type: ignore[no-untyped-def]
    """``width`` (1, K) becomes ‖root·x‖ of every arm, root lower triangular."""
    dim, length = arms.shape
    for i in range(length):
        width[0, i] = 0.0
    for j in range(dim):
        add_rows(image, zero, 0, root, j, arms, j + 1, length)
        add_squares(width, 0, image, 0, 1.0, length)
    for i in range(length):
        width[0, i] = math.sqrt(width[0, i])


@compiled
def eliminate(contexts, alive, estimates, roots, survivors):  # type: ignore[no-untyped-def]
    """``survivors`` (n, K) becomes the arms that all eliminations keep, one after the other.

    Elimination κ keeps arm i iff r_i + ω_i ≥ max_j (r_j - ω_j), the maximum over the arms alive before it, where
    r = xᵀ·estimates[κ] and ω = ‖roots[κ]·x‖ (roots lower triangular).
    """
    n, arm_count, dim = contexts.shape
    rounds = estimates.shape[0]
    length = padded_length(arm_count)
    arms = np.zeros((dim, length))
    zero = np.zeros((1, length))
    image = np.zeros((1, length))
    center = np.zeros((1, length))
    width = np.zeros((1, length))
    for s in range(n):
        left = 0
        for i in range(arm_count):
            survivors[s, i] = alive[s, i]
            left += alive[s, i]
            for j in range(dim):
                arms[j, i] = contexts[s, i, j]
        for r in range(rounds):
            if left == 1:
                break
            _widths(arms, roots[r], zero, image, width)
            add_rows(center, zero, 0, estimates, r, arms, dim, length)
            bar = -np.inf
            for i in range(arm_count):
                if survivors[s, i]:
                    bar = max(bar, center[0, i] - width[0, i])
            for i in range(arm_count):
                if survivors[s, i] and center[0, i] + width[0, i] < bar:
                    survivors[s, i] = False
                    left -= 1


@compiled
def widest(contexts, alive, root, widths):  # type: ignore[no-untyped-def]
    """``widths`` (n,) becomes the largest ‖root·x‖ over the living arms of each set."""
    n, arm_count, dim = contexts.shape
    length = padded_length(arm_count)
    arms = np.zeros((dim, length))
    zero = np.zeros((1, length))
    image = np.zeros((1, length))
    width = np.zeros((1, length))
    for s in range(n):
        for i in range(arm_count):
            for j in range(dim):
                arms[j, i] = contexts[s, i, j]
        _widths(arms, root, zero, image, width)
        widths[s] = 0.0
        for i in range(arm_count):
            if alive[s, i]:
                widths[s] = max(widths[s], width[0, i])


@compiled
def draw_arms(probabilities, uniforms, arms, propensities):  # type: ignore[no-untyped-def]
    """The arm at which the running sum of probabilities first exceeds the uniform number, and its probability."""
    for s in range(probabilities.shape[0]):
        total = 0.0
        chosen = -1
        for i in range(probabilities.shape[1]):
            if probabilities[s, i] > 0.0:
                total += probabilities[s, i]
                chosen = i
                if total > uniforms[s]:
                    break
        arms[s] = chosen  # rounding can leave the sum just below the number: the last possible arm then
        propensities[s] = probabilities[s, chosen]
