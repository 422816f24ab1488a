"""Compiled steps from codes to vectors."""

import math

import numpy as np

from rareswitch.core import LARGEST_SCALE
from rareswitch.lanes import compiled


@compiled
def place_values(raw, specs, scales, columns, numbers, events):  # type: ignore[no-untyped-def]
    """Column and number of each code, both (entries, m), of codes ``raw`` (entries, m).

    ``specs`` are rows (form, first entry, entries, unknown, missing) of fields, ``scales`` rows (center, divisor).
    ``events`` (fields, m), zero before, becomes 1 where a value was clipped, 2 where it is missing, and 3 where it is
    unknown. Returns the number of events, or -1 - f where a number of field f is infinite or too large.
    """
    total = 0
    for f in range(specs.shape[0]):
        form, first, entries, unknown, missing = specs[f, 0], specs[f, 1], specs[f, 2], specs[f, 3], specs[f, 4]
        center, divisor = scales[f, 0], scales[f, 1]
        for i in range(raw.shape[1]):
            absent = False
            for r in range(first, first + entries):
                absent |= math.isnan(raw[r, i])
            if absent:
                for r in range(first, first + entries):
                    columns[r, i], numbers[r, i] = 0, 0.0
                columns[first, i], numbers[first, i] = max(missing, 0), 1.0
                events[f, i] = 2
                total += 1
                continue
            for r in range(first, first + entries):
                if not abs(raw[r, i]) <= LARGEST_SCALE:
                    return -1 - f
            if form == 0:
                value = (raw[first, i] - center) / divisor
                if abs(value) > 1.0:
                    value = 1.0 if value > 0.0 else -1.0
                    events[f, i] = 1
                columns[first, i], numbers[first, i] = 0, value
            elif form == 1:
                place = int(raw[first, i])
                if place >= unknown:
                    events[f, i] = 3
                columns[first, i], numbers[first, i] = place, 1.0
            else:
                square = 0.0
                for r in range(first, first + entries):
                    square += raw[r, i] * raw[r, i]
                length = math.sqrt(square)
                if length > divisor:
                    events[f, i] = 1
                for r in range(first, first + entries):
                    columns[r, i], numbers[r, i] = r - first, raw[r, i] / max(length, divisor)
            total += events[f, i] > 0
    return total


@compiled
def assemble(  # type: ignore[no-untyped-def]
    context_columns, context_numbers, arm_columns, arm_numbers, rows, terms, scale, vectors
):
    """Fill vectors (n, K, d), which are zero before, with the products that the terms name.

    ``rows`` (n, K), or (1, K) for all sets, says which column of the arms' entries belongs to an arm, -1 where there is
    none. ``terms`` are rows (first column of the vector, then of two factors each: side, first entry, entries; columns
    of the second factor); side 0 is the context, 1 the arm, and a factor without entries is 1.
    """
    for s in range(vectors.shape[0]):
        for i in range(rows.shape[1]):
            row = rows[s % rows.shape[0], i]
            if row < 0:
                continue
            for t in range(terms.shape[0]):
                start = terms[t, 0]
                for e in range(max(terms[t, 3], 1)):
                    column, number = 0, scale
                    if terms[t, 3] > 0 and terms[t, 1] == 0:
                        column, number = (
                            context_columns[terms[t, 2] + e, s],
                            scale * context_numbers[terms[t, 2] + e, s],
                        )
                    elif terms[t, 3] > 0:
                        column, number = arm_columns[terms[t, 2] + e, row], scale * arm_numbers[terms[t, 2] + e, row]
                    if terms[t, 6] == 0:
                        vectors[s, i, start + column] += number
                    for k in range(terms[t, 6]):
                        if terms[t, 4] == 0:
                            inner, other = context_columns[terms[t, 5] + k, s], context_numbers[terms[t, 5] + k, s]
                        else:
                            inner, other = arm_columns[terms[t, 5] + k, row], arm_numbers[terms[t, 5] + k, row]
                        vectors[s, i, start + column * terms[t, 7] + inner] += number * other


@compiled
def fill(  # type: ignore[no-untyped-def]
    context, specs, scales, events, arm, arm_specs, arm_scales, arm_events, rows, terms, scale, vectors
):
    """Fill vectors (n, K, d) from the codes of contexts (entries, n) and of arms (entries, m).

    Specs, scales and events of both are those of :func:`place_values`. Returns the number of events, or -1 - f where
    field f, counted from the context's on to the arms', holds a number that is infinite or too large.
    """
    columns, numbers = np.empty(context.shape, np.int64), np.empty(context.shape)
    total = place_values(context, specs, scales, columns, numbers, events)
    if total < 0:
        return total
    arm_columns, arm_numbers = np.empty(arm.shape, np.int64), np.empty(arm.shape)
    more = place_values(arm, arm_specs, arm_scales, arm_columns, arm_numbers, arm_events)
    if more < 0:
        return more - specs.shape[0]
    assemble(columns, numbers, arm_columns, arm_numbers, rows, terms, scale, vectors)
    return total + more
