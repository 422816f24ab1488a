import numpy as np
import pytest

from rareswitch import Stats
from rareswitch.errors import InputError, NonFiniteError, ParameterError, ShapeError


def test_statistics_are_their_definitions() -> None:
    rng = np.random.default_rng(1)
    x, r = rng.standard_normal((20, 3)), rng.standard_normal(20)
    stats = Stats.of(x, r)
    np.testing.assert_allclose(stats.gram, sum(np.outer(row, row) for row in x))
    np.testing.assert_allclose(stats.moment, sum(reward * row for reward, row in zip(r, x, strict=True)))
    assert stats.count == 20
    assert stats.square_sum == pytest.approx((r**2).sum())
    np.testing.assert_allclose(stats.estimate(ridge=0.5), np.linalg.solve(x.T @ x + 0.5 * np.eye(3), x.T @ r))


def test_statistics_are_frozen_copies() -> None:
    gram = np.eye(2)
    stats = Stats(gram=gram, moment=np.ones(2), count=1, square_sum=1.0)
    gram[0, 0] = 9.0
    assert stats.gram[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        stats.gram[0, 0] = 2.0


def test_zero_is_neutral() -> None:
    stats = Stats.of([[1.0, 2.0]], [3.0])
    total = Stats.zero(2) + stats
    np.testing.assert_array_equal(total.gram, stats.gram)
    assert total.count == 1
    np.testing.assert_array_equal(Stats.zero(2).estimate(ridge=1.0), [0.0, 0.0])


def test_bad_input_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"rewards must have shape \(2,\)"):
        Stats.of(np.ones((2, 1)), [1.0])
    with pytest.raises(ShapeError, match="features"):
        Stats.of([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(NonFiniteError, match="rewards"):
        Stats.of([[1.0]], [np.nan])
    with pytest.raises(ShapeError, match="cannot be added"):
        Stats.zero(2) + Stats.zero(3)
    with pytest.raises(ParameterError, match="ridge must be positive"):
        Stats.zero(2).estimate(ridge=0.0)
    with pytest.raises(InputError, match="gram"):
        Stats(gram=np.eye(3), moment=np.ones(2), count=0, square_sum=0.0)
    with pytest.raises(TypeError):
        Stats.zero(2) + 1  # type: ignore[operator]
