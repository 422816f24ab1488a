"""Compiled steps over the arms of one set: laid out as columns, and one of them chosen.

Policies decide by them, and so do the simulator's compiled runs.
"""

import math

import numpy as np

from rareswitch.core.stats import TIE
from rareswitch.lanes import add_rows, compiled, first_largest, lane_zeros, padded_length, triangular_squares

__all__ = ["gather", "highest", "keep_intervals", "largest", "pass_layers", "workspace"]


@compiled
def gather(contexts, available, s, arms, indices):  # type: ignore[no-untyped-def]
    """Copy the available arms of set s to the columns of ``arms`` (d, most), indices to ``indices``; their count."""
    left = 0
    for i in range(contexts.shape[1]):
        if available[s, i]:
            for j in range(contexts.shape[2]):
                arms[j, left] = contexts[s, i, j]
            indices[left] = i
            left += 1
    return left


@compiled
def largest(values, left):  # type: ignore[no-untyped-def]
    """Index of the first largest of the first ``left`` entries of a row (1, most), up to a relative 1e-9.

    Unit vectors all have the same width at first: which of them is played must not depend on rounding.
    """
    length = padded_length(left)
    for i in range(left, length):
        values[0, i] = values[0, 0]  # what is no arm must not be larger
    return first_largest(values, 1, length, TIE)[0]


@compiled
def workspace(arm_count, dim):  # type: ignore[no-untyped-def]
    """Room for the arms of one set: columns (d, most), a zero row, two rows to compute in, and where arms came from."""
    most, unit = padded_length(arm_count), np.int64(1)  # a literal would have machine code of its own
    indices = np.zeros(arm_count, dtype=np.int64)
    return lane_zeros(dim, most), lane_zeros(unit, most), lane_zeros(unit, most), lane_zeros(unit, most), indices


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
def pass_layers(  # type: ignore[no-untyped-def]
    room, left, estimates, roots, tails, thresholds, multiplier, intervals, optimistic, exploit, layers, s
):
    """The arm that the layers choose of those in the workspace ``spare_arms``; ``layers[s]`` says who chose.

    With ``intervals`` the first layer eliminates before it is asked.
    """
    columns, zero, center, width, indices = room
    dim, count = columns.shape[0], estimates.shape[0]
    for k in range(count):
        length = padded_length(left)
        add_rows(center, zero, 0, estimates, k, columns, dim, length)
        triangular_squares(width, roots[k], columns, dim, length)
        for i in range(length):
            width[0, i] = multiplier * math.sqrt(width[0, i])
        if tails.shape[0] > 0:
            tail = lane_zeros(np.int64(1), length)
            triangular_squares(tail, tails[k], columns, dim, length)
            for i in range(length):
                width[0, i] += math.sqrt(tail[0, i])
        if intervals and k == 0:
            left = keep_intervals(center, width, left, columns, indices)
        chosen = layer_choice(center, width, left, k, count, thresholds[k], optimistic, exploit, layers, s)
        if chosen >= 0:
            return indices[chosen]
        left = layer_survivors(center, width, left, thresholds[k], optimistic, columns, indices)
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
def layer_survivors(center, width, left, threshold, optimistic, arms, indices):  # type: ignore[no-untyped-def]
    """Move the arms that a layer keeps to the front of ``arms`` and ``indices``; returns their number."""
    for i in range(left):
        width[0, i] = width[0, i] if optimistic else 0.0
    bar = center[0, 0] + width[0, 0]
    for i in range(1, left):
        bar = max(bar, center[0, i] + width[0, i])
    return keep_above(bar - 2.0 * threshold, center, width, left, arms, indices)


@compiled
def keep_intervals(center, width, left, columns, indices):  # type: ignore[no-untyped-def]
    """Move the arms whose upper end reaches the highest lower end to the front; returns their number."""
    bar = center[0, 0] - width[0, 0]
    for i in range(1, left):
        bar = max(bar, center[0, i] - width[0, i])
    return keep_above(bar, center, width, left, columns, indices)


@compiled
def keep_above(bar, center, width, left, columns, indices):  # type: ignore[no-untyped-def]
    """Move the arms whose center + width is at least the bar to the front; returns their number."""
    count = 0
    for i in range(left):
        if center[0, i] + width[0, i] >= bar:
            if count < i:
                indices[count] = indices[i]
                center[0, count] = center[0, i]
                width[0, count] = width[0, i]
                for j in range(columns.shape[0]):
                    columns[j, count] = columns[j, i]
            count += 1
    return count
