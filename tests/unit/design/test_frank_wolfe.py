import numpy as np
import pytest

from rareswitch.design import GOptimal, frank_wolfe_design, information, staged_design, variation
from rareswitch.errors import CertificateError, ParameterError
from rareswitch.lab.distributions import Anisotropic, ContextDistribution, Counterexample, Gaussian, OneBig
from reference.refusals import raises

SOURCES = [
    Gaussian(dim=6, arms=12),
    OneBig(dim=6, arms=12),
    OneBig(dim=6, arms=12, rare=0.02),
    Anisotropic(dim=6, arms=12),
    Counterexample(dim=6, sample=300),
]


@pytest.mark.parametrize("source", SOURCES, ids=str)
@pytest.mark.parametrize(("g_optimal_share", "tol"), [(0.2, 0.05), (0.0, 0.05), (0.5, 1e-3)])
def test_the_certificate_holds(source: ContextDistribution, g_optimal_share: float, tol: float) -> None:
    sets = source.draw(300, seed=1)
    found = frank_wolfe_design(
        sets.contexts, sets.available, regularization=1e-5, g_optimal_share=g_optimal_share, tol=tol
    )
    measured = variation(found.policy, sets.contexts, sets.available, regularization=1e-5)
    assert found.variation == pytest.approx(measured, rel=1e-9)
    assert found.variation <= found.bound
    assert found.bound == pytest.approx((1 + tol) * 6 / (1 - g_optimal_share))
    assert found.policy.g_optimal_share >= g_optimal_share
    # what it stopped at, V ≤ (1 + tol)·tr(M⁻¹F), from the policy alone: (1 - floor)·F = I(π) - floor·I(π^G)
    played = information(found.policy, sets.contexts, sets.available)
    learned = played - g_optimal_share * information(GOptimal(), sets.contexts, sets.available)
    slope = np.trace(np.linalg.solve(1e-5 * np.eye(6) + played, learned)) / (1 - g_optimal_share)
    assert found.variation <= (1 + tol) * slope * (1 + 1e-9)


@pytest.mark.parametrize("source", SOURCES[1:4], ids=str)
def test_it_needs_few_atoms_and_beats_algorithm_2(source: ContextDistribution) -> None:
    sets = source.draw(300, seed=2)
    fresh = source.draw(1000, seed=3)
    found = frank_wolfe_design(sets.contexts, sets.available, regularization=1e-5)
    staged = staged_design(sets.contexts, sets.available, regularization=1e-5, form="argmax")
    assert 4 * len(found.policy.weights) <= len(staged.policy.weights)

    def v(policy: object) -> float:
        return variation(policy, fresh.contexts, fresh.available, regularization=1e-5)  # type: ignore[arg-type]

    assert v(found.policy) < v(staged.policy) < v(GOptimal())


def test_a_tight_certificate_approaches_the_least_variation() -> None:
    sets = OneBig(dim=5, arms=8).draw(200, seed=4)
    found = frank_wolfe_design(sets.contexts, sets.available, regularization=1e-9, g_optimal_share=0.0, tol=1e-4)
    assert 5 * (1 - 1e-6) <= found.variation <= 5 * (1 + 1e-4)


def test_where_g_optimal_play_is_good_enough_it_is_the_policy() -> None:
    sets = Gaussian(dim=5, arms=10).draw(500, seed=5)
    policy = frank_wolfe_design(sets.contexts, regularization=1e-5).policy
    assert policy.g_optimal_share == 1.0
    np.testing.assert_array_equal(policy.probabilities(sets.contexts), GOptimal().probabilities(sets.contexts))


def test_running_out_of_iterations_is_an_error() -> None:
    sets = OneBig(dim=5, arms=8).draw(100, seed=6)
    with pytest.raises(CertificateError, match="within 1 iterations"):
        frank_wolfe_design(sets.contexts, regularization=1e-5, max_iterations=1)


@pytest.mark.parametrize(
    "bad", [{"g_optimal_share": 1.0}, {"g_optimal_share": -0.1}, {"tol": 0.0}, {"regularization": 0.0}]
)
def test_bad_parameters_are_refused(bad: dict[str, float]) -> None:
    arguments = {"regularization": 1e-3} | bad
    raises(ParameterError, next(iter(bad)), frank_wolfe_design, np.ones((2, 2, 2)), **arguments)
