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


@compiled
def gather(contexts, alive, s, arms, place):  # type: ignore[no-untyped-def]
    """Lay the living arms of set s out as columns of ``arms`` (d, most); ``place`` says which they are; their count."""
    left = 0
    for i in range(contexts.shape[1]):
        if alive[s, i]:
            for j in range(contexts.shape[2]):
                arms[j, left] = contexts[s, i, j]
            place[left] = i
            left += 1
    return left


@compiled
def largest(values, left):  # type: ignore[no-untyped-def]
    """Index of the first largest of the first ``left`` entries of a row (1, most), up to a relative 1e-9.

    Unit vectors all have the same width at first: which of them is played must not hang on rounding.
    """
    top = values[0, 0]
    for i in range(1, left):
        top = max(top, values[0, i])
    bar = top - 1e-9 * abs(top)
    best = 0
    while values[0, best] < bar:
        best += 1
    return best


@compiled
def workspace(arm_count, dim):  # type: ignore[no-untyped-def]
    """Room for the arms of one set: columns (d, most), a zero row, two rows to compute in, and where arms came from."""
    most = padded_length(arm_count)
    place = np.zeros(arm_count, dtype=np.int64)
    return lane_zeros(dim, most), lane_zeros(1, most), lane_zeros(1, most), lane_zeros(1, most), place


@compiled
def highest(columns, zero, center, width, left, estimate, root, multiplier):  # type: ignore[no-untyped-def]
    """The column with the largest xᵀ·estimate + multiplier·‖root·x‖; ``estimate`` (1, d)."""
    dim, length = columns.shape[0], padded_length(left)
    triangular_squares(width, root, columns, dim, length)
    add_rows(center, zero, 0, estimate, 0, columns, dim, length)
    for i in range(length):
        center[0, i] += multiplier * math.sqrt(width[0, i])
    return largest(center, left)


@compiled
def highest_arms(contexts, alive, estimate, root, probabilities):  # type: ignore[no-untyped-def]
    """Put 1 into ``probabilities`` (n, K), zero before, at the largest xᵀ·estimate + ‖root·x‖ of each set."""
    n, arm_count, dim = contexts.shape
    columns, zero, center, width, place = workspace(arm_count, dim)
    factors = np.ascontiguousarray(estimate).reshape((1, dim))
    for s in range(n):
        left = gather(contexts, alive, s, columns, place)
        probabilities[s, place[highest(columns, zero, center, width, left, factors, root, 1.0)]] = 1.0


@compiled
def best_of_draws(contexts, alive, draws, probabilities):  # type: ignore[no-untyped-def]
    """``probabilities`` (n, K), zero before, becomes the share of ``draws`` (m, d) whose best arm each arm is."""
    n, arm_count, dim = contexts.shape
    arms, zero, center, _, place = workspace(arm_count, dim)
    row = lane_zeros(1, dim)
    for s in range(n):
        left = gather(contexts, alive, s, arms, place)
        length = padded_length(left)
        for m in range(draws.shape[0]):
            for j in range(dim):
                row[0, j] = draws[m, j]
            add_rows(center, zero, 0, row, 0, arms, dim, length)
            probabilities[s, place[largest(center, left)]] += 1.0
        for i in range(arm_count):
            probabilities[s, i] /= draws.shape[0]


@compiled
def inverse_gaps(contexts, alive, estimate, gamma, probabilities):  # type: ignore[no-untyped-def]
    """``probabilities`` (n, K), zero before, becomes 1/(living + γ·gap); the first best arm has the rest."""
    n, arm_count, dim = contexts.shape
    arms, zero, center, _, place = workspace(arm_count, dim)
    factors = np.ascontiguousarray(estimate).reshape((1, dim))
    for s in range(n):
        left = gather(contexts, alive, s, arms, place)
        add_rows(center, zero, 0, factors, 0, arms, dim, padded_length(left))
        best = largest(center, left)
        rest = 1.0
        for i in range(left):
            if i != best:
                share = 1.0 / (left + gamma * max(0.0, center[0, best] - center[0, i]))
                probabilities[s, place[i]] = share
                rest -= share
        probabilities[s, place[best]] = rest


@compiled
def layered_arms(  # type: ignore[no-untyped-def]
    contexts, alive, estimates, roots, tails, thresholds, optimistic, exploit, probabilities, layers
):
    """Put 1 into ``probabilities`` (n, K), zero before, at the arm that the layers choose; ``layers`` says who."""
    n, arm_count, dim = contexts.shape
    room = workspace(arm_count, dim)
    for s in range(n):
        left = gather(contexts, alive, s, room[0], room[4])
        chosen = pass_layers(
            room, left, estimates, roots, tails, thresholds, 1.0, False, optimistic, exploit, layers, s
        )
        probabilities[s, chosen] = 1.0


@compiled
def pass_layers(  # type: ignore[no-untyped-def]
    room, left, estimates, roots, tails, thresholds, multiplier, intervals, optimistic, exploit, layers, s
):
    """The arm that the layers choose of those in the workspace ``room``; ``layers[s]`` says who chose.

    With ``intervals`` the first layer eliminates before it is asked.
    """
    columns, zero, center, width, place = room
    dim, count = columns.shape[0], estimates.shape[0]
    for k in range(count):
        length = padded_length(left)
        add_rows(center, zero, 0, estimates, k, columns, dim, length)
        triangular_squares(width, roots[k], columns, dim, length)
        for i in range(length):
            width[0, i] = multiplier * math.sqrt(width[0, i])
        if tails.shape[0] > 0:
            tail = lane_zeros(1, length)
            triangular_squares(tail, tails[k], columns, dim, length)
            for i in range(length):
                width[0, i] += math.sqrt(tail[0, i])
        if intervals and k == 0:
            left = keep_intervals(center, width, left, columns, place)
        chosen = layer_choice(center, width, left, k, count, thresholds[k], optimistic, exploit, layers, s)
        if chosen >= 0:
            return place[chosen]
        left = layer_survivors(center, width, left, thresholds[k], optimistic, columns, place)
    return -1  # not reached: the last layer always chooses


@compiled
def layer_choice(  # type: ignore[no-untyped-def]
    center, width, left, layer, count, threshold, optimistic, exploit, layers, s
):
    """The column of the arm that this layer plays, or -1 if it passes the arms on; sets ``layers[s]``."""
    widest_one = largest(width, left)
    exploits = exploit > 0.0 and width[0, widest_one] <= exploit
    layers[s] = -1 if exploits else layer
    sure = width[0, widest_one] <= threshold
    if layer == count - 1 and not optimistic:
        return largest(center, left)
    if exploits or (sure and layer == count - 1):
        for i in range(left):
            width[0, i] += center[0, i]
        return largest(width, left)
    return -1 if sure else widest_one


@compiled
def layer_survivors(center, width, left, threshold, optimistic, arms, place):  # type: ignore[no-untyped-def]
    """Move the arms that a layer keeps to the front of ``arms`` and ``place``; how many they are."""
    if optimistic:
        for i in range(left):
            center[0, i] += width[0, i]
    bar = center[0, 0]
    for i in range(1, left):
        bar = max(bar, center[0, i])
    bar -= 2.0 * threshold
    kept = 0
    for i in range(left):
        if center[0, i] >= bar:
            place[kept] = place[i]
            for j in range(arms.shape[0]):
                arms[j, kept] = arms[j, i]
            kept += 1
    return kept


@compiled
def keep_intervals(center, width, left, columns, place):  # type: ignore[no-untyped-def]
    """Move the arms whose upper end reaches the highest lower end to the front; how many they are."""
    bar = center[0, 0] - width[0, 0]
    for i in range(1, left):
        bar = max(bar, center[0, i] - width[0, i])
    kept = 0
    for i in range(left):
        if center[0, i] + width[0, i] >= bar:
            place[kept] = place[i]
            center[0, kept] = center[0, i]
            width[0, kept] = width[0, i]
            for j in range(columns.shape[0]):
                columns[j, kept] = columns[j, i]
            kept += 1
    return kept
