"""Compiled kernels of the policy room: who survives, and who is drawn."""

import math

import numpy as np

from rareswitch.lanes import add_rows, compiled, lane_zeros, padded, triangular_squares

padded_length = compiled(padded)


@compiled
def eliminate(contexts, alive, estimates, roots, survivors, counts):  # type: ignore[no-untyped-def]
    """``survivors`` (n, K) becomes the arms that all eliminations keep, one after the other; ``counts`` how many.

    Elimination κ keeps arm i iff r_i + ω_i ≥ max_j (r_j - ω_j), the maximum over the arms alive before it, where
    r = xᵀ·estimates[κ] and ω = ‖roots[κ]·x‖ (roots lower triangular). Only arms that are still alive are computed with.
    """
    n, arm_count, dim = contexts.shape
    most = padded_length(arm_count)
    arms = lane_zeros(dim, most)
    zero = lane_zeros(1, most)
    center = lane_zeros(1, most)
    width = lane_zeros(1, most)
    lower = np.zeros(most)
    upper = np.zeros(most)
    place = np.zeros(arm_count, dtype=np.int64)
    index = np.zeros(arm_count, dtype=np.int64)
    for s in range(n):
        left = 0
        for i in range(arm_count):
            survivors[s, i] = alive[s, i]
            if alive[s, i]:
                for j in range(dim):
                    arms[j, left] = contexts[s, i, j]
                place[left] = i
                left += 1
        for r in range(estimates.shape[0]):
            if left == 1:
                break
            length = padded_length(left)
            triangular_squares(width, roots[r], arms, dim, length)
            add_rows(center, zero, 0, estimates, r, arms, dim, length)
            for i in range(length):
                half = math.sqrt(width[0, i])
                lower[i] = center[0, i] - half
                upper[i] = center[0, i] + half
            bar = lower[0]
            for i in range(1, left):
                if lower[i] > bar:
                    bar = lower[i]
            kept = 0
            for i in range(left):  # without a branch, because nobody could predict it
                index[kept] = i
                survivors[s, place[i]] = upper[i] >= bar
                kept += upper[i] >= bar
            if kept < left:
                for k in range(kept):
                    place[k] = place[index[k]]
                    for j in range(dim):
                        arms[j, k] = arms[j, index[k]]
                left = kept
        counts[s] = left


@compiled
def widest(contexts, alive, root, widths):  # type: ignore[no-untyped-def]
    """``widths`` (n,) becomes the largest ‖root·x‖ over the living arms of each set; root lower triangular."""
    n, arm_count, dim = contexts.shape
    length = padded_length(arm_count)
    arms = lane_zeros(dim, length)
    squares = lane_zeros(1, length)
    for s in range(n):
        for i in range(arm_count):
            for j in range(dim):
                arms[j, i] = contexts[s, i, j]
        triangular_squares(squares, root, arms, dim, length)
        largest = 0.0
        for i in range(arm_count):
            if alive[s, i]:
                largest = max(largest, squares[0, i])
        widths[s] = math.sqrt(largest)


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
