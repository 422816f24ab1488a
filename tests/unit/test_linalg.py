import numpy as np

from rareswitch.linalg import absorb, half_power, inverse_root, log_growth, lower_triangular

RNG = np.random.default_rng(1)


def test_inverse_roots_and_triangles() -> None:
    x = RNG.standard_normal((30, 5))
    precision = x.T @ x
    root = inverse_root(precision)
    assert not np.triu(root, 1).any()
    np.testing.assert_allclose(root.T @ root, np.linalg.inv(precision), atol=1e-12)
    singular = RNG.standard_normal((5, 5)) * np.array([1.0, 1.0, 0.0, 0.0, 0.0])[:, None]
    lower = lower_triangular(singular)
    assert not np.triu(lower, 1).any()
    np.testing.assert_allclose(lower.T @ lower, singular.T @ singular, atol=1e-12)


def test_half_powers_of_singular_matrices() -> None:
    x = RNG.standard_normal((2, 4))
    half = half_power(x.T @ x)
    np.testing.assert_allclose(half @ half.T, x.T @ x, atol=1e-12)


def test_absorbing_a_vector_is_adding_its_square() -> None:
    x = RNG.standard_normal((30, 5))
    precision = x.T @ x
    root = inverse_root(precision)
    for _ in range(4):
        new = RNG.standard_normal(5)
        growth = absorb(root, new, np.empty(5), np.empty(5))
        grown = precision + np.outer(new, new)
        np.testing.assert_allclose(growth, np.linalg.det(grown) / np.linalg.det(precision))
        np.testing.assert_allclose(root, inverse_root(grown), atol=1e-12)
        precision = grown


def test_log_growth_is_of_the_determinant() -> None:
    precision = np.diag([2.0, 3.0, 10.0])
    assert np.isclose(log_growth(precision, 2.0), np.log(60.0 / 8.0))
    assert log_growth(np.eye(3) * (2.0 - 1e-12), 2.0) == 0.0  # not less, by rounding
