import math

import numpy as np
import pytest

from rareswitch.lab.distributions import Anisotropic, ContextDistribution, Counterexample, Gaussian, OneBig


def test_gaussian_directions_are_isotropic() -> None:
    x = Gaussian(dim=3, arms=2).draw(20_000, seed=1).contexts.reshape(-1, 3)
    # entries of xxᵀ lie in [-1, 1]: Hoeffding over 9 entries, false alarm at most 1e-6
    bound = math.sqrt(2 * math.log(2 * 9 / 1e-6) / len(x))
    assert np.abs(x.T @ x / len(x) - np.eye(3) / 3).max() <= bound


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (OneBig(dim=4, arms=3, rare=0.1), 0.1),
        (Anisotropic(dim=4, arms=3, rare=0.1), 0.1),
        (Counterexample(dim=4, sample=5), 1 / 20),
    ],
    ids=str,
)
def test_rare_sets_are_as_rare_as_stated(source: ContextDistribution, expected: float) -> None:
    n = 20_000
    sets = source.draw(n, seed=2)
    basis = np.eye(4)[-1] if isinstance(source, Anisotropic) else np.eye(4)[0]
    share = (sets.contexts[:, 0] == basis).all(axis=1).mean()
    assert abs(share - expected) <= math.sqrt(math.log(2 / 1e-6) / (2 * n))


def test_long_vectors_avoid_the_rare_direction() -> None:
    x = OneBig(dim=4, arms=3, rare=0.2).draw(500, seed=3).contexts[:, 0]
    rare = (x == np.eye(4)[0]).all(axis=1)
    assert rare.any()
    assert not x[~rare, 0].any()
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1.0)


def test_the_counterexample_is_that_of_the_paper() -> None:
    source = Counterexample(dim=5, sample=500)
    assert source.masses.sum() == pytest.approx(1.0)
    assert source.masses[0] == 1 / 2500
    support = source.support
    assert support.available[0].tolist() == [True, False]
    epsilon = math.sqrt(5 / 500)
    np.testing.assert_allclose(support.contexts[3, 0], [epsilon, 0, 0, math.sqrt(1 - epsilon**2), 0])
    np.testing.assert_array_equal(support.contexts[3, 1], np.eye(5)[3])
