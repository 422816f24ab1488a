import numpy as np

from rareswitch.core import absorb, inverse_root, log_growth, semidefinite_root

RNG = np.random.default_rng(1)


def test_inverse_roots() -> None:
    x = RNG.standard_normal((30, 5))
    precision = x.T @ x
    root = inverse_root(precision)
    assert not np.triu(root, 1).any()
    np.testing.assert_allclose(root.T @ root, np.linalg.inv(precision), atol=1e-12)


def test_roots_of_singular_matrices_do_not_depend_on_rounding() -> None:
    for rank in range(7):
        for axes in (np.eye(6), np.linalg.qr(RNG.standard_normal((6, 6))).Q):
            x = axes[RNG.permutation(6)[:rank]]
            matrix = x.T @ x
            root = semidefinite_root(matrix)
            assert not np.triu(root, 1).any()
            assert (np.diag(root) >= 0.0).all()
            assert np.count_nonzero(root.any(axis=1)) == rank
            np.testing.assert_allclose(root.T @ root, matrix, atol=1e-12)
            shaken = matrix * (1.0 + 1e-15 * RNG.standard_normal((6, 6)))
            np.testing.assert_allclose(semidefinite_root((shaken + shaken.T) / 2.0), root, atol=1e-11)


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
