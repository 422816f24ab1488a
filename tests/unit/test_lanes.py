from fractions import Fraction

import numpy as np

from rareswitch.lanes import add_row, compiled, dot_rows, fma, padded


@compiled
def call_dot(left, i, right, j, stop):  # type: ignore[no-untyped-def]
    return dot_rows(left, i, right, j, stop)


@compiled
def call_add(target, i, source, j, factor, start, stop):  # type: ignore[no-untyped-def]
    add_row(target, i, source, j, factor, start, stop)


@compiled
def call_fma(a, b, c):  # type: ignore[no-untyped-def]
    return fma(a, b, c)


def rounded_once(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def test_fma_rounds_once() -> None:
    rng = np.random.default_rng(1)
    for a, b in rng.standard_normal((50, 2)):
        c = -a * b
        assert call_fma(a, b, c) == rounded_once(a, b, c) != 0.0


def test_the_order_of_a_dot_product_is_fixed() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((3, 24)), rng.standard_normal((2, 24))
    sums = [0.0] * 8
    for c in range(24):
        sums[c % 8] = rounded_once(x[2, c], y[1, c], sums[c % 8])
    quads = [sums[k] + sums[k + 4] for k in range(4)]
    pairs = [quads[k] + quads[k + 2] for k in range(2)]
    assert call_dot(x, 2, y, 1, 24) == pairs[0] + pairs[1]


def test_add_row_touches_its_range_alone() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((3, 24)), rng.standard_normal((3, 24))
    expected = x.copy()
    for c in range(8, 24):
        expected[1, c] = rounded_once(0.3, y[2, c], x[1, c])
    call_add(x, 1, y, 2, 0.3, 8, 24)
    np.testing.assert_array_equal(x, expected)


def test_padding() -> None:
    assert [padded(n) for n in (1, 8, 9, 16)] == [8, 8, 16, 16]
