import numpy as np
import pytest

from rareswitch.design import GOptimal, Uniform, deviation, information, variation
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.lab.distributions import Gaussian, OneBig
from reference.refusals import raises


def test_tools_are_their_definitions() -> None:
    sets = OneBig(dim=3, arms=4).draw(30, seed=1)
    available = np.arange(4) < 1 + np.arange(30)[:, None] % 4
    lam = 0.01
    probabilities = GOptimal().probabilities(sets.contexts, available)
    matrix = np.zeros((3, 3))
    for x, p in zip(sets.contexts, probabilities, strict=True):
        for k in range(4):
            matrix += p[k] * np.outer(x[k], x[k]) / 30
    inverse = np.linalg.inv(lam * np.eye(3) + matrix)
    largest = [
        max(x[k] @ inverse @ x[k] for k in range(4) if a[k]) for x, a in zip(sets.contexts, available, strict=True)
    ]
    np.testing.assert_allclose(information(GOptimal(), sets.contexts, available), matrix, rtol=1e-12)
    assert variation(GOptimal(), sets.contexts, available, regularization=lam) == pytest.approx(np.mean(largest))
    assert deviation(GOptimal(), sets.contexts, available, regularization=lam) == pytest.approx(
        np.mean(np.sqrt(largest))
    )


def test_information_of_other_sets_can_be_given() -> None:
    sets = Gaussian(dim=2, arms=3).draw(10, seed=2)
    own = information(Uniform(), sets.contexts)
    expected = variation(Uniform(), sets.contexts, regularization=0.1)
    assert variation(GOptimal(), sets.contexts, regularization=0.1, matrix=own) == pytest.approx(expected)
    raises(ShapeError, "matrix", variation, Uniform(), sets.contexts, regularization=0.1, matrix=np.eye(3))
    raises(ParameterError, "regularization", variation, Uniform(), sets.contexts, regularization=0.0)


@pytest.mark.parametrize("dim", [2, 5, 10])
def test_known_bounds_on_the_variation(dim: int) -> None:
    """Lemma 4: V(uniform) ≤ dK, V(G-optimal) ≤ (1 + tol) d²; no policy is below d as λ → 0."""
    for source in (Gaussian(dim=dim, arms=2 * dim), OneBig(dim=dim, arms=2 * dim)):
        sets = source.draw(200, seed=3)
        uniform = variation(Uniform(), sets.contexts, regularization=1e-9)
        optimal = variation(GOptimal(), sets.contexts, regularization=1e-9)
        assert dim * (1 - 1e-6) <= uniform <= dim * 2 * dim
        assert dim * (1 - 1e-6) <= optimal <= 1.05 * dim**2
