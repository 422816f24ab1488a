"""Compiled kernels of the package policy: who survives, and who is drawn."""

import math

import numpy as np

from rareswitch.core import TIE, gather, highest, keep_intervals, largest, pass_layers, unit_at, workspace
from rareswitch.lanes import (
    add_rows,
    compiled,
    first_largest,
    lane_zeros,
    multiply_tile,
    padded_length,
    triangular_squares,
)


@compiled
def eliminate(contexts, available, estimates, roots, survivors, counts):  # type: ignore[no-untyped-def]
    """``survivors`` (n, K) becomes the arms that all eliminations keep, one after the other; ``counts`` how many.

    Returns the last set that has none left, or -1: where intervals overflow, no arm reaches the bar.

    Elimination κ keeps arm i iff r_i + ω_i ≥ max_j (r_j - ω_j), the maximum over the arms available before it, where
    r = xᵀ·estimates[κ] and ω = ‖roots[κ]·x‖ (roots lower triangular). Only arms that are still alive are computed with.
    """
    n, arm_count, dim = contexts.shape
    arms, zero, center, width, place = workspace(arm_count, dim)
    empty = -1
    for s in range(n):
        left = gather(contexts, available, s, arms, place)
        for r in range(estimates.shape[0]):
            if left > 1:
                length = padded_length(left)
                triangular_squares(width, roots[r], arms, dim, length)
                add_rows(center, zero, 0, estimates, r, arms, dim, length)
                for i in range(length):
                    width[0, i] = math.sqrt(width[0, i])
                left = keep_intervals(center, width, left, arms, place)
        for i in range(arm_count):
            survivors[s, i] = False
        for i in range(left):
            survivors[s, place[i]] = True
        counts[s] = left
        if left == 0:
            empty = s
    return empty


@compiled
def widest(contexts, available, root, widths):  # type: ignore[no-untyped-def]
    """``widths`` (n,) becomes the largest ‖root·x‖ over the available arms of each set; root lower triangular."""
    n, arm_count, dim = contexts.shape
    arms, _, squares, _, place = workspace(arm_count, dim)
    for s in range(n):
        left = gather(contexts, available, s, arms, place)
        triangular_squares(squares, root, arms, dim, padded_length(left))
        widths[s] = math.sqrt(squares[0, :left].max())


@compiled
def draw_arms(probabilities, key_0, key_1, keys, arms, propensities):  # type: ignore[no-untyped-def]
    """The arm at which the running sum of probabilities first exceeds the id's uniform number, and its probability.

    Returns the last set that has no arm of positive probability, or -1.
    """
    empty = -1
    for s in range(probabilities.shape[0]):
        uniform = unit_at(key_0, key_1, keys[s, 0], keys[s, 1])
        total = 0.0
        chosen = -1
        for i in range(probabilities.shape[1]):
            if probabilities[s, i] > 0.0:
                total += probabilities[s, i]
                chosen = i
                if total > uniform:
                    break
        arms[s] = chosen  # rounding can leave the sum just below the number: the last possible arm then
        propensities[s] = probabilities[s, chosen]
        if chosen < 0:
            empty = s
    return empty


@compiled
def blend(main, explorer, share, mixed):  # type: ignore[no-untyped-def]
    """``mixed`` (n, K) becomes (1 - share)·main + share·explorer."""
    for s in range(mixed.shape[0]):
        for i in range(mixed.shape[1]):
            mixed[s, i] = (1.0 - share) * main[s, i] + share * explorer[s, i]


@compiled
def raise_to(probabilities, available, protected, least, raised):  # type: ignore[no-untyped-def]
    """``raised`` (n, K) becomes (1 - m·least)·p, plus ``least`` for each of the m protected arms that are alive.

    A set that has no arm of positive probability stays so. Returns the first set in which m·least exceeds 1, or -1.
    """
    for s in range(raised.shape[0]):
        count, total = 0, 0.0
        for i in range(raised.shape[1]):
            total += probabilities[s, i]
            if protected[s, i] and available[s, i]:
                count += 1
        rest = 1.0 - count * least
        if rest < -1e-12:
            return s
        rest = max(rest, 0.0)
        for i in range(raised.shape[1]):
            raised[s, i] = rest * probabilities[s, i]
            if total > 0.0 and protected[s, i] and available[s, i]:
                raised[s, i] += least
    return -1


@compiled
def highest_arms(contexts, available, estimate, root, probabilities):  # type: ignore[no-untyped-def]
    """Put 1 into ``probabilities`` (n, K), zero before, at the largest xᵀ·estimate + ‖root·x‖ of each set."""
    n, arm_count, dim = contexts.shape
    columns, zero, center, width, place = workspace(arm_count, dim)
    factors = np.ascontiguousarray(estimate).reshape((1, dim))
    for s in range(n):
        left = gather(contexts, available, s, columns, place)
        probabilities[s, place[highest(columns, zero, center, width, left, factors, root, 1.0)]] = 1.0


@compiled
def best_of_draws(contexts, available, draws, probabilities):  # type: ignore[no-untyped-def]
    """``probabilities`` (n, K), zero before, becomes the share of ``draws`` (m, d) whose best arm each arm is."""
    n, arm_count, dim = contexts.shape
    arms, zero, center, _, place = workspace(arm_count, dim)
    tile = lane_zeros(np.int64(4), arms.shape[1])
    count = draws.shape[0]
    wins = np.zeros(arm_count, dtype=np.int64)
    for s in range(n):
        left = gather(contexts, available, s, arms, place)
        length = padded_length(left)
        for j in range(dim if count > 3 else 0):
            for i in range(left, length):
                arms[j, i] = arms[j, 0]  # what is no arm must not be better than all arms of a tile
        for m in range(0, count - 3, 4):
            multiply_tile(tile, draws, m, arms, dim, length)
            for best in first_largest(tile, 4, length, TIE):
                wins[best] += 1
        for m in range(count // 4 * 4, count):
            add_rows(center, zero, 0, draws, m, arms, dim, length)
            wins[largest(center, left)] += 1
        for i in range(left):
            probabilities[s, place[i]] = wins[i] / count
            wins[i] = 0


@compiled
def layered_arms(  # type: ignore[no-untyped-def]
    contexts, available, estimates, roots, tails, thresholds, optimistic, exploit, probabilities, layers
):
    """Put 1 into ``probabilities`` (n, K), zero before, at the arm that the layers choose; ``layers`` says who."""
    n, arm_count, dim = contexts.shape
    room = workspace(arm_count, dim)
    for s in range(n):
        left = gather(contexts, available, s, room[0], room[4])
        chosen = pass_layers(
            room, left, estimates, roots, tails, thresholds, 1.0, False, optimistic, exploit, layers, s
        )
        probabilities[s, chosen] = 1.0
