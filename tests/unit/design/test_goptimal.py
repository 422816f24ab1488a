import numpy as np
import pytest
from numpy.typing import ArrayLike

from rareswitch.design import GOptimal, g_optimal
from rareswitch.errors import (
    CertificateError,
    CertificateWarning,
    EmptySetError,
    NonFiniteError,
    ParameterError,
    ShapeError,
)
from rareswitch.lab.distributions import Gaussian
from rareswitch.lab.reproduction.references.certificate import exact_certificate, regularized_max_leverage
from rareswitch.lab.reproduction.references.degenerate import FAMILIES, degenerate_set
from reference.refusals import raises


@pytest.mark.parametrize("family", FAMILIES)
def test_certificates_of_degenerate_sets_hold_in_extended_precision(family: str) -> None:
    rng = np.random.default_rng(FAMILIES.index(family))
    for _ in range(25):
        arms, available = degenerate_set(rng, family)
        design = g_optimal(arms, available, tol=0.05)
        living = arms * available[:, None]
        leverage, rank, residual = exact_certificate(living, design.weights)
        assert design.rank == rank
        assert float(design.max_leverage) == pytest.approx(leverage, rel=1e-9)
        assert design.max_leverage <= 1.05 * rank * (1 + 1e-12)
        assert float(design.residual) == pytest.approx(residual, abs=1e-14)
        assert regularized_max_leverage(living, design.weights, 1e-20) <= 1.05 * arms.shape[1] + 1e-6
        assert design.weights.min() >= 0
        assert design.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert not design.weights[~available].any()


@pytest.mark.parametrize(("arms", "dim"), [(5, 5), (12, 4), (30, 3), (200, 6), (7, 9)])
@pytest.mark.parametrize("tol", [1.0, 0.05, 1e-3, 1e-6])
def test_leverages_are_those_of_the_weights(arms: int, dim: int, tol: float) -> None:
    contexts = Gaussian(dim=dim, arms=arms).draw(20, seed=arms).contexts
    design = g_optimal(contexts, tol=tol)
    for x, one in zip(contexts, map(design.__getitem__, range(20)), strict=True):
        inverse = np.linalg.pinv(x.T @ (x * one.weights[:, None]))
        truth = np.einsum("ki,ij,kj->k", x, inverse, x)
        if one.passes > 0:
            np.testing.assert_allclose(one.leverages, truth, rtol=1e-8)
            assert one.max_leverage == one.leverages.max()
        assert truth.max() <= one.max_leverage + 1e-8
        assert one.max_leverage <= (1 + tol) * min(arms, dim) + 1e-9
    assert not design.failed.size


def test_at_factor_two_small_sets_need_no_linear_algebra() -> None:
    contexts = Gaussian(dim=10, arms=20).draw(50, seed=1).contexts
    available = np.arange(20) < 7 + np.arange(50)[:, None] % 14
    design = g_optimal(contexts, available, tol=1.0)
    assert (design.passes == 0).all()
    np.testing.assert_array_equal(design.weights, available / available.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(design.max_leverage, available.sum(axis=1))
    assert (g_optimal(contexts, tol=0.99).passes > 0).all()
    assert (g_optimal(Gaussian(dim=10, arms=21).draw(5, seed=1).contexts, tol=1.0).passes > 0).all()


def test_known_optima() -> None:
    square = g_optimal([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [0.3, 0.2]], tol=1e-8)
    assert float(square.max_leverage) == pytest.approx(2.0, rel=1e-7)
    assert square.weights[3] == pytest.approx(0.0, abs=1e-7)
    # quadratic regression on [-1, 1]: one third on each of -1, 0, 1
    t = np.linspace(-1, 1, 21)
    parabola = g_optimal(np.stack([np.ones(21), t, t**2], axis=1), tol=1e-7)
    np.testing.assert_allclose(parabola.weights[[0, 10, 20]], 1 / 3, atol=1e-4)


def test_a_design_depends_on_its_own_set_alone() -> None:
    contexts = Gaussian(dim=4, arms=9).draw(37, seed=2).contexts
    together = g_optimal(contexts)
    threaded = g_optimal(contexts, threads=3)
    np.testing.assert_array_equal(together.weights, threaded.weights)
    for s in range(37):
        np.testing.assert_array_equal(together.weights[s], g_optimal(contexts[s]).weights)
    padded = np.concatenate([contexts, np.full((37, 5, 4), 7.0)], axis=1)
    available = np.arange(14) < 9
    np.testing.assert_array_equal(g_optimal(padded, np.tile(available, (37, 1))).weights[:, :9], together.weights)


def test_a_linear_map_does_not_change_leverages() -> None:
    x = Gaussian(dim=5, arms=12).draw(1, seed=3).contexts[0]
    skewed = x @ np.diag([1.0, 1e-3, 1e3, 1e-6, 10.0]) @ np.linalg.qr(np.vander(np.arange(1.0, 6.0)))[0]
    np.testing.assert_allclose(g_optimal(skewed, tol=1e-6).leverages, g_optimal(x, tol=1e-6).leverages, rtol=1e-4)


@pytest.mark.parametrize("tol", [0.05, 1e-3])
@pytest.mark.parametrize("shape", ["gaussian", "disc", "curve"])
def test_sets_of_many_arms(shape: str, tol: float) -> None:
    rng = np.random.default_rng(1)
    t = np.linspace(-1, 1, 20_000)
    arms = {
        "gaussian": rng.standard_normal((20_000, 3)),
        "disc": np.sqrt(t[:, None] + 1) * np.stack([np.cos(900 * t), np.sin(900 * t)], axis=1),
        "curve": np.stack([np.ones_like(t), t, t**2, t**3], axis=1),
    }[shape]
    design = g_optimal(arms, tol=tol)
    moment = arms.T @ (arms * design.weights[:, None])
    truth = np.einsum("ki,ij,kj->k", arms, np.linalg.inv(moment), arms).max()
    assert truth == pytest.approx(float(design.max_leverage), rel=1e-8)
    assert truth <= (1 + tol) * arms.shape[1]


def test_extreme_scales_lose_no_arm() -> None:
    arms = np.array([[1.0, 0.0], [1.0, 2e-101], [0.0, 0.9e-100]])
    leverage, rank, _ = exact_certificate(arms, g_optimal(arms).weights)
    assert rank == 2
    assert leverage == pytest.approx(float(g_optimal(arms).max_leverage))
    tiny = np.array([[1e-160, 0.0], [0.0, 1e-165], [3e-161, 2e-166]])
    assert g_optimal(tiny).rank == 2
    assert g_optimal(tiny).max_leverage <= 2.1
    assert g_optimal([[1e300, 0.0], [1e300, 1e300]]).rank == 2
    assert g_optimal(np.zeros((2, 3, 2))).rank.tolist() == [0, 0]  # and nothing is warned about


def test_what_rounding_hides_in_given_coordinates_is_found_in_those_of_the_span() -> None:
    design = g_optimal([[0.0, 5.96046448e-08], [3.13259455e-01, 2.46093750e-01]], tol=1e-6)
    np.testing.assert_allclose(design.leverages, 2.0, rtol=1e-9)


def test_one_of_many_keeps_its_fields() -> None:
    design = g_optimal(Gaussian(dim=2, arms=4).draw(3, seed=1))
    one = design[-1]
    np.testing.assert_array_equal(one.weights, design.weights[2])
    assert (one.max_leverage, one.rank, one.passes) == (design.max_leverage[2], design.rank[2], design.passes[2])
    for array in (design.weights, design.max_leverage, design.rank, design.residual, design.passes):
        assert not array.flags.writeable


def test_in_one_dimension_the_longest_arm_takes_all() -> None:
    arms = [[1.936], [-0.588], [1.864], [1.864], [-1.935]]
    assert g_optimal(arms).weights.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]


def test_other_number_types_and_layouts_are_accepted() -> None:
    x = Gaussian(dim=3, arms=5).draw(4, seed=4).contexts
    expected = g_optimal(x.astype(np.float32).astype(np.float64)).weights
    np.testing.assert_array_equal(g_optimal(np.asfortranarray(x.astype(np.float32))).weights, expected)
    assert g_optimal([[1, 0], [0, 2]]).rank == 2


def test_unmet_certificates_raise_for_one_set_and_are_named_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    from rareswitch.design import goptimal

    design_sets = goptimal.design_sets

    def fails_on_odd(contexts, available, tol, weights, leverages, *rest):  # type: ignore[no-untyped-def]
        design_sets(contexts, available, tol, weights, leverages, *rest)
        rest[-1][1::2] = goptimal.NOT_MET
        if len(contexts) == 1:
            rest[-1][:] = goptimal.NOT_MET

    monkeypatch.setattr(goptimal, "design_sets", fails_on_odd)
    contexts = Gaussian(dim=2, arms=3).draw(4, seed=5).contexts
    raises(CertificateError, "larger tol", g_optimal, contexts[0])
    with pytest.warns(CertificateWarning, match="2 of 4 designs could not be certified and are NaN: sets 1, 3"):
        design = g_optimal(contexts)
    assert design.failed.tolist() == [1, 3]
    assert [design[s].failed.size for s in range(4)] == [0, 1, 0, 1]
    assert np.isnan(design.weights[1]).all()
    assert not np.isnan(design.weights[0]).any()
    raises(CertificateError, r"no certified design for sets \[1, 3\]", GOptimal().probabilities, contexts)
    raises(CertificateError, "larger tol", GOptimal().probabilities, contexts[0])


def test_large_collections_are_solved_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from rareswitch.design import goptimal

    sets = Gaussian(dim=3, arms=8).draw(50, seed=5).contexts
    whole = g_optimal(sets).weights
    monkeypatch.setattr(goptimal, "_LARGEST_STEP", 7 * 24)
    np.testing.assert_array_equal(GOptimal().probabilities(sets), whole)
    np.testing.assert_array_equal(g_optimal(sets).weights, whole)
    np.testing.assert_array_equal(g_optimal(sets, threads=2).weights, whole)


@pytest.mark.parametrize(
    ("contexts", "available", "error", "words"),
    [
        ([[1.0, np.nan]], None, NonFiniteError, r"nan at index \(0, 1\)"),
        ([[1.0, np.inf]], None, NonFiniteError, "inf"),
        ([1.0, 2.0], None, ShapeError, r"\(arms, dim\)"),
        (np.zeros((1, 1, 1, 1)), None, ShapeError, r"\(1, 1, 1, 1\)"),
        ([["a", "b"]], None, ShapeError, "real numbers"),
        ([[1.0 + 1j]], None, ShapeError, "real numbers"),
        ([[1.0], [1.0, 2.0]], None, ShapeError, "from_ragged"),
        (np.zeros((0, 3)), None, EmptySetError, "at least one arm"),
        (np.zeros((3, 0)), None, EmptySetError, "one dimension"),
        (np.zeros((0, 3, 2)), None, EmptySetError, "at least one set"),
        (np.ones((2, 2, 2)), [[True, False], [False, False]], EmptySetError, "every arm of set 1"),
        ([[1.0], [2.0]], [1, 0], ShapeError, "booleans"),
        ([[1.0], [2.0]], [True], ShapeError, r"\(2,\)"),
    ],
)
def test_bad_contexts_are_refused(
    contexts: ArrayLike, available: ArrayLike | None, error: type[Exception], words: str
) -> None:
    raises(error, words, g_optimal, contexts, available)


@pytest.mark.parametrize("tol", [0.0, -1.0, np.nan, np.inf, 1e-9, "small"])
def test_bad_tolerances_are_refused(tol: float) -> None:
    raises(ParameterError, "tol must be", g_optimal, [[1.0]], tol=tol)
