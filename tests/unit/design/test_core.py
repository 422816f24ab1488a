import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rareswitch.core import ContextSets, FloatArray
from rareswitch.design import GOptimal, Sampler, core_identification, core_learning, staged_design, variation
from rareswitch.design.distributional import Form
from rareswitch.errors import ParameterError
from rareswitch.lab.distributions import Counterexample, Gaussian
from rareswitch.lab.reproduction.references.designs import literal_core
from reference.refusals import raises

DIM, SAMPLE, LAM = 10, 100, 1e-6
# the event of Section 6: the rare set is seen once among γ = 100
UNLUCKY = np.repeat(np.arange(DIM), [1] + [11] * (DIM - 1))


def chain(seed: int) -> ContextSets:
    """Each set shows one direction and a little of the next, rarer one: pruning the rarest uncovers the one before."""
    rng = np.random.default_rng(seed)
    dim, rows = 6, np.arange(40)
    at = np.minimum(rng.geometric(0.45, 40) - 1, dim - 1)
    x = np.zeros((40, 2, dim))
    x[rows, 0, at] = 1.0
    x[rows, 1, at] = math.sqrt(0.91)
    x[rows, 1, np.minimum(at + 1, dim - 1)] += 0.3
    x /= np.maximum(1.0, np.linalg.norm(x, axis=2, keepdims=True))
    return ContextSets(x, np.ones((40, 2), dtype=np.bool_))


@pytest.mark.parametrize(("seed", "power", "expected"), [(80, 2.4, 3), (0, 1.3, 2), (0, 6.0, 1)])
def test_the_core_is_that_of_the_literal_loop(seed: int, power: float, expected: int) -> None:
    sets = chain(seed)
    play = GOptimal().probabilities(sets.contexts, sets.available)
    indices, iterations = literal_core(sets.contexts, play, 1e-4, 6**power)
    core = core_identification(sets.contexts, sets.available, regularization=1e-4, power=power)
    assert core.indices.tolist() == indices.tolist()
    assert core.iterations == iterations == expected
    assert core.threshold == pytest.approx(6**power)


def unlucky_and_true(dim: int, sample: int) -> tuple[ContextSets, ContextSets]:
    """The sample of γ sets in which the rare one is seen once, and the distribution as dγ sets: d - 1 divides γ - 1."""
    support = Counterexample(dim=dim, sample=sample).support
    counts = [(size - 1) // (dim - 1) for size in (sample, dim * sample)]
    seen, whole = (support[np.repeat(np.arange(dim), [1] + [count] * (dim - 1))] for count in counts)
    assert (len(seen.contexts), len(whole.contexts)) == (sample, dim * sample)
    return seen, whole


def variation_of(policy: Sampler, sets: ContextSets) -> float:
    return variation(policy, sets.contexts, sets.available, regularization=1e-9)


class PlaysTheAxes:
    """The policy of the paper's argument, written by hand: e_i in Y_i, the second arm wherever there is one."""

    def probabilities(self, contexts: Any, available: Any = None) -> FloatArray:
        return np.eye(2)[np.where(available[:, 1], 1, 0)]


@pytest.mark.parametrize(("dim", "sample"), [(10, 100), (12, 122)])
def test_the_counterexample_misleads_the_policy_of_the_papers_argument(dim: int, sample: int) -> None:
    """Section 6: V = 2d on the unlucky sample, d² + d - 1 on the distribution."""
    seen, whole = unlucky_and_true(dim, sample)
    assert variation_of(PlaysTheAxes(), seen) == pytest.approx(2 * dim, rel=0.06)
    assert variation_of(PlaysTheAxes(), whole) == pytest.approx(dim**2 + dim - 1, rel=0.01)


@pytest.mark.parametrize("form", ["argmax", "softmax"])
@pytest.mark.parametrize(("dim", "sample"), [(10, 100), (12, 122)])
def test_algorithm_2_is_not_misled_by_the_counterexample(dim: int, sample: int, form: Form) -> None:
    """Its stages play either arm of Y_i, and one shows e_1: V stays at d without a core or a G-optimal half."""
    seen, whole = unlucky_and_true(dim, sample)
    naive = staged_design(seen.contexts, seen.available, regularization=LAM, form=form).policy
    assert dim <= variation_of(naive, whole) <= 1.05 * dim
    assert variation_of(replace(naive, g_optimal_share=0.0), whole) <= 2 * dim, "the hand-written one has d² + d - 1"


def test_the_core_prunes_the_rare_set_at_a_small_power_and_nothing_at_the_papers() -> None:
    seen, whole = unlucky_and_true(DIM, SAMPLE)
    papers = core_learning(seen.contexts, seen.available, regularization=LAM)  # c = 6
    assert (len(papers.core.indices), papers.core.iterations) == (SAMPLE, 1)
    pruned = core_learning(seen.contexts, seen.available, regularization=LAM, power=1.4)
    assert pruned.core.indices.tolist() == list(range(1, SAMPLE))
    for learned in (papers, pruned):
        assert variation_of(learned.policy, whole) <= 1.1 * DIM


def test_core_learning_is_the_softmax_policy_of_the_core() -> None:
    sets = Counterexample(dim=DIM, sample=SAMPLE).support[UNLUCKY]
    learned = core_learning(sets.contexts, sets.available, regularization=1e-3, power=1.4)
    core = sets[learned.core.indices]
    alone = staged_design(core.contexts, core.available, regularization=1e-3, form="softmax")
    np.testing.assert_array_equal(learned.policy.weights, alone.policy.weights)
    np.testing.assert_array_equal(learned.policy.matrices, alone.policy.matrices)


def test_an_empty_core_is_an_error_that_names_the_power() -> None:
    sets = Gaussian(dim=4, arms=3).draw(30, seed=1)
    raises(ParameterError, "power", core_identification, sets.contexts, regularization=1e-3, power=0.1)


@pytest.mark.parametrize("power", [1.0, 6.0])
def test_one_dimension_has_no_rare_direction_to_leave_out(power: float) -> None:
    """d^c is 1 there, which arms of different lengths cannot all meet."""
    sets = np.random.default_rng(1).uniform(-1.0, 1.0, (200, 4, 1))
    core = core_identification(sets, regularization=1 / 2000, power=power)
    assert len(core.indices) == 200
    assert core_learning(sets, regularization=1 / 2000, power=power).policy.g_optimal_share == 1.0
