from fractions import Fraction

import numpy as np
import pytest

from rareswitch.core import FloatArray
from rareswitch.lanes import (
    add_products,
    add_row,
    add_rows,
    add_squares,
    compiled,
    dot_four,
    first_largest,
    fma,
    multiply_row,
    multiply_tile,
    padded_length,
)


@compiled
def call_fma(a, b, c):  # type: ignore[no-untyped-def]
    return fma(a, b, c)


@compiled
def call_dot_four(target, left, i, right, j, stop):  # type: ignore[no-untyped-def]
    dot_four(target, left, i, right, j, stop)


@compiled
def call_add_row(target, i, source, j, factor, start, stop):  # type: ignore[no-untyped-def]
    add_row(target, i, source, j, factor, start, stop)


@compiled
def call_add_rows(target, base, i, factors, j, source, rows, stop):  # type: ignore[no-untyped-def]
    add_rows(target, base, i, factors, j, source, rows, stop)


@compiled
def call_multiply_tile(target, factors, j, source, rows, stop):  # type: ignore[no-untyped-def]
    multiply_tile(target, factors, j, source, rows, stop)


@compiled
def call_first_largest(values, stop, slack):  # type: ignore[no-untyped-def]
    return first_largest(values, 4, stop, slack), first_largest(values, 1, stop, slack)


@compiled
def call_add_products(target, source, i, column, rows):  # type: ignore[no-untyped-def]
    add_products(target, source, i, column, rows)


@compiled
def call_multiply_row(target, i, left, j, right, k, stop):  # type: ignore[no-untyped-def]
    multiply_row(target, i, left, j, right, k, stop)


@compiled
def call_add_squares(target, i, source, j, factor, stop):  # type: ignore[no-untyped-def]
    add_squares(target, i, source, j, factor, stop)


def rounded_once(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def numbers(seed: int, rows: int, columns: int) -> FloatArray:
    return np.random.default_rng(seed).standard_normal((rows, columns))


def test_fma_rounds_once() -> None:
    for a, b in numbers(1, 50, 2):
        c = -a * b
        assert call_fma(a, b, c) == rounded_once(a, b, c) != 0.0


def test_the_order_of_a_dot_product_is_fixed() -> None:
    x, y = numbers(2, 3, 24), numbers(3, 6, 24)
    target = np.zeros((6, 3))
    call_dot_four(target, x, 2, y, 1, 24)
    for row in range(1, 5):
        sums = [0.0] * 8
        for c in range(24):
            sums[c % 8] = rounded_once(x[2, c], y[row, c], sums[c % 8])
        quads = [sums[k] + sums[k + 4] for k in range(4)]
        pairs = [quads[k] + quads[k + 2] for k in range(2)]
        assert target[row, 2] == pairs[0] + pairs[1]
    assert np.count_nonzero(target) == 4


def test_add_row_touches_its_range_alone() -> None:
    x, y = numbers(4, 3, 24), numbers(5, 3, 24)
    expected = x.copy()
    for c in range(8, 24):
        expected[1, c] = rounded_once(0.3, y[2, c], x[1, c])
    call_add_row(x, 1, y, 2, 0.3, 8, 24)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("columns", [8, 16, 24, 32, 56, 104])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_rows_are_added_in_order(columns: int, rows: int) -> None:
    target, base = numbers(6, 2, columns + 8), numbers(7, 2, columns + 8)
    factors, source = numbers(8, 3, 5), numbers(9, 5, columns + 8)
    expected = target.copy()
    for c in range(columns):
        total = base[1, c]
        for k in range(rows):
            total = rounded_once(factors[2, k], source[k, c], total)
        expected[1, c] = total
    call_add_rows(target, base, 1, factors, 2, source, rows, columns)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("columns", [8, 24, 56])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_tile_has_the_sums_of_its_rows(columns: int, rows: int) -> None:
    factors, source = numbers(8, 7, 5), numbers(9, 5, columns + 8)
    target, expected = numbers(6, 4, columns + 8), numbers(6, 4, columns + 8)
    for r in range(4):
        call_add_rows(expected, np.zeros_like(expected), r, factors, 2 + r, source, rows, columns)
    call_multiply_tile(target, factors, 2, source, rows, columns)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("columns", [8, 16, 56])
def test_the_first_largest_is_that_of_a_loop(columns: int) -> None:
    for seed in range(50):
        values = numbers(seed, 4, columns + 8)
        values[:, columns:] = 100.0  # beyond the range
        if seed % 2:
            values[:, :columns] = np.round(values[:, :columns])  # many ties
        if seed % 3 == 0:
            values[:, :columns] -= 50.0
        values[1, 3] = values[1, 5] = values[:, :columns].max() + 1.0
        values[1, 5] *= 1.0 + 1e-12
        tops = values[:, :columns].max(axis=1, keepdims=True)
        expected = (values[:, :columns] >= tops - 1e-9 * abs(tops)).argmax(axis=1).tolist()
        assert call_first_largest(values, columns, 1e-9) == (tuple(expected), tuple(expected[:1]))


def test_the_first_largest_of_anything_is_in_range() -> None:
    for odd in (np.nan, np.inf, -np.inf):
        for places in ([0], [5], [15], range(16)):
            values = numbers(1, 4, 16)
            values[:, list(places)] = odd
            assert set(call_first_largest(values, 16, 1e-9)[0]) <= set(range(16))


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_tile_of_products_is_summed_before_it_is_added(rows: int) -> None:
    target, source = numbers(13, 16, 16), numbers(14, 5, 16)
    expected = target.copy()
    for j in range(4, 8):
        for c in range(8, 16):
            total = 0.0
            for k in range(rows):
                total = rounded_once(source[k, j], source[k, c], total)
            expected[j, c] += total
    call_add_products(target, source, 4, 8, rows)
    np.testing.assert_array_equal(target, expected)


def test_products_and_squares() -> None:
    target, x, y = numbers(10, 2, 16), numbers(11, 2, 16), numbers(12, 2, 16)
    expected = target.copy()
    expected[1, :8] = x[0, :8] * y[1, :8]
    call_multiply_row(target, 1, x, 0, y, 1, 8)
    np.testing.assert_array_equal(target, expected)
    for c in range(16):
        expected[0, c] = rounded_once(x[1, c], x[1, c] * 0.7, target[0, c])
    call_add_squares(target, 0, x, 1, 0.7, 16)
    np.testing.assert_array_equal(target, expected)


def test_padding() -> None:
    assert [padded_length(n) for n in (1, 8, 9, 16)] == [8, 8, 16, 16]
