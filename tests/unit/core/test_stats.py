from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from rareswitch import Stats
from rareswitch.errors import InputError, NonFiniteError, ParameterError, ShapeError
from reference.refusals import raises


def test_statistics_are_their_definitions() -> None:
    rng = np.random.default_rng(1)
    x, r = rng.standard_normal((20, 3)), rng.standard_normal(20)
    stats = Stats.of(x, r)
    np.testing.assert_allclose(stats.gram, sum(np.outer(row, row) for row in x))
    np.testing.assert_allclose(stats.moment, sum(reward * row for reward, row in zip(r, x, strict=True)))
    assert stats.count == 20
    assert stats.square_sum == pytest.approx((r**2).sum())
    np.testing.assert_allclose(stats.estimate(ridge=0.5), np.linalg.solve(x.T @ x + 0.5 * np.eye(3), x.T @ r))


@pytest.mark.parametrize("dim", [1, 7, 8, 20])
def test_the_order_of_the_sums_is_fixed(dim: int) -> None:
    """Row after row with one rounding each, 128 rows at a time: the same bits on every machine."""
    rng = np.random.default_rng(2)
    x, r = rng.standard_normal((300, dim)), rng.standard_normal(300)
    stats = Stats.of(x, r)

    def summed(left: list[float], right: list[float]) -> float:
        total = 0.0
        for first in range(0, 300, 128):
            panel = 0.0
            for a, b in zip(left[first : first + 128], right[first : first + 128], strict=True):
                panel = float(Fraction(a) * Fraction(b) + Fraction(panel))
            total += panel
        return total

    columns, rewards = x.T.tolist(), r.tolist()
    last = columns[-1]
    assert stats.gram[0].tolist() == [summed(columns[0], column) for column in columns]
    assert stats.gram[:, -1].tolist() == [summed(column, last) for column in columns]
    assert stats.moment[-1] == summed(last, rewards)
    assert stats.square_sum == summed(rewards, rewards)


def test_statistics_are_frozen_copies() -> None:
    gram = np.eye(2)
    stats = Stats(gram=gram, moment=np.ones(2), count=1, square_sum=1.0)
    gram[0, 0] = 9.0
    assert stats.gram[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        stats.gram[0, 0] = 2.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Stats.of(np.ones((2, 1)), [1.0]), ShapeError, r"rewards must have shape \(2,\)"),
        (lambda: Stats.of([1.0, 2.0], [1.0, 2.0]), ShapeError, "features"),
        (lambda: Stats.of([[1.0]], [np.nan]), NonFiniteError, "rewards"),
        (lambda: Stats.zero(2) + Stats.zero(3), ShapeError, "cannot be added"),
        (lambda: Stats.zero(2).estimate(ridge=0.0), ParameterError, "ridge must be positive"),
        (lambda: Stats(gram=np.eye(3), moment=np.ones(2), count=0, square_sum=0.0), InputError, "gram"),
        (lambda: Stats.zero(2) + 1, TypeError, "unsupported"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], error: type[Exception], words: str) -> None:
    raises(error, words, call)
