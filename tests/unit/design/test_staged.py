import math

import numpy as np
import pytest

from rareswitch.design import GOptimal, Uniform, information, staged_design, variation
from rareswitch.design.distributional import Form
from rareswitch.errors import ContextNormError, ParameterError
from rareswitch.lab.distributions import Anisotropic, ContextDistribution, Gaussian, OneBig
from rareswitch.lab.reproduction.references.designs import literal_algorithm_2
from reference.refusals import raises

SOURCES = [
    Gaussian(dim=1, arms=3),
    Gaussian(dim=2, arms=4),
    OneBig(dim=3, arms=4),
    Anisotropic(dim=4, arms=5, rare=0.05),
]


@pytest.mark.parametrize("form", ["argmax", "softmax"])
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_stages_are_those_of_the_literal_loop(source: ContextDistribution, form: Form) -> None:
    sets = source.draw(60, seed=1)
    play = information(GOptimal(), sets.contexts, sets.available)
    lengths, matrices = literal_algorithm_2(sets.contexts, play, regularization=1 / 50, form=form)
    found = staged_design(sets.contexts, sets.available, regularization=1 / 50, form=form)
    assert found.stage_lengths.tolist() == lengths
    np.testing.assert_allclose(found.stage_matrices, matrices, rtol=1e-9, atol=1e-9)
    kept = [length for length in lengths if length >= 60]
    np.testing.assert_allclose(found.policy.weights, np.array(kept) / max(1, sum(kept)))
    total = found.blocks * found.block_length
    for atom, stage in zip(found.policy.matrices, found.atom_stages, strict=True):
        np.testing.assert_allclose(atom, total * np.linalg.inv(matrices[stage]), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("form", ["argmax", "softmax"])
def test_virtual_copies_are_copies(form: Form) -> None:
    sets = OneBig(dim=2, arms=3).draw(15, seed=2)
    found = staged_design(sets.contexts, sets.available, regularization=1 / 50, form=form)
    copies = found.block_length // 15
    assert copies == 4
    play = information(GOptimal(), sets.contexts, sets.available)
    lengths, matrices = literal_algorithm_2(
        np.tile(sets.contexts, (copies, 1, 1)), play, regularization=1 / 50, form=form
    )
    assert found.stage_lengths.tolist() == lengths
    np.testing.assert_allclose(found.stage_matrices, matrices, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", ["argmax", "softmax"])
@pytest.mark.parametrize("dim", [2, 5, 10])
@pytest.mark.parametrize("lam", [0.1, 1e-3, 1e-6])
def test_what_the_paper_proves_is_seen(form: Form, dim: int, lam: float) -> None:
    sets = OneBig(dim=dim, arms=2 * dim, rare=0.02).draw(150, seed=3)
    found = staged_design(sets.contexts, sets.available, regularization=lam, form=form)
    assert len(found.stage_lengths) <= dim * math.log2(4 * dim + 1) + 1
    assert found.stage_lengths.sum() == found.blocks * found.block_length
    assert found.block_length > 1 / lam
    assert (found.policy.weights >= 1 / found.blocks - 1e-12).all()
    eigenvalues = np.linalg.eigvalsh(found.policy.matrices)
    assert eigenvalues.min() >= 1 / 3
    assert eigenvalues.max() <= 1 / lam * (1 + 1e-9)
    found_variation = variation(found.policy, sets.contexts, sets.available, regularization=lam)
    assert found_variation <= variation(Uniform(), sets.contexts, sets.available, regularization=lam)
    # the chain of inequalities in the proof of Theorems 3 and 4, with its constants
    stages_factor = {"argmax": 32, "softmax": 128}[form]
    play_variation = variation(GOptimal(), sets.contexts, sets.available, regularization=lam)
    proved = stages_factor * dim * math.log(4 * dim + 1) + 2 * len(found.stage_lengths) / found.blocks * play_variation
    assert found_variation <= proved


def test_in_one_dimension_the_policy_is_g_optimal_play() -> None:
    sets = Gaussian(dim=1, arms=3).draw(20, seed=1)
    policy = staged_design(sets.contexts, regularization=0.01).policy
    assert policy.g_optimal_share == 1.0
    np.testing.assert_array_equal(policy.probabilities(sets.contexts), GOptimal().probabilities(sets.contexts))


def test_bad_input_is_refused() -> None:
    contexts = Gaussian(dim=2, arms=3).draw(5, seed=1).contexts
    raises(ParameterError, "regularization", staged_design, contexts, regularization=0.0)
    raises(ParameterError, "form must be", staged_design, contexts, regularization=0.1, form="hardmax")
    long = contexts.copy()
    long[2, 1] *= 2
    raises(ContextNormError, "arm 1 of set 2 has norm 2", staged_design, long, regularization=0.1)


def test_padding_does_not_change_the_exponent_of_the_softmax() -> None:
    sets = Gaussian(dim=3, arms=5).draw(60, seed=1)
    padded = np.zeros((60, 8, 3))
    padded[:, :5] = sets.contexts
    available = np.arange(8) < np.full((60, 1), 5)
    alone, wide = staged_design(sets, regularization=0.01), staged_design(padded, available, regularization=0.01)
    assert alone.policy.exponent == wide.policy.exponent == math.log2(5)
    np.testing.assert_allclose(wide.stage_matrices, alone.stage_matrices, rtol=1e-12)
    told = staged_design(sets, regularization=0.01, arms=8).policy
    assert told.exponent == 3.0
