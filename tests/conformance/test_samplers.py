"""What every sampling policy must do, run against each of them."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from rareswitch.core import codec
from rareswitch.design import (
    GOptimal,
    MixedArgmax,
    MixedSoftmax,
    Sampler,
    Uniform,
    core_learning,
    frank_wolfe_design,
    staged_design,
)
from rareswitch.lab.distributions import Gaussian, OneBig
from rareswitch.lab.rivals import Allocation, EmpiricalDivergence, InverseGap
from rareswitch.policy import Baseline, Blend, Layered, Optimistic, Policy, PosteriorDraws
from reference.refusals import raises

DIM, ARMS = 4, 7
_SOURCE = OneBig(dim=DIM, arms=ARMS)
_LEARNED_FROM = _SOURCE.draw(80, seed=1).contexts
_MATRICES = np.stack([np.diag([1.0, 2.0, 3.0, 4.0]), np.full((DIM, DIM), 0.1) + np.eye(DIM)])
_ESTIMATES = np.random.default_rng(2).standard_normal((3, DIM)) / 2
_ROOTS = 0.3 * np.tril(np.random.default_rng(3).standard_normal((3, DIM, DIM)))

SAMPLERS: dict[str, Sampler] = {
    "uniform": Uniform(),
    "g-optimal": GOptimal(),
    "g-optimal factor 2": GOptimal(tol=1.0),
    "argmax": MixedArgmax(weights=np.ones(1), matrices=_MATRICES[:1], g_optimal_share=0.0),
    "mixed-argmax": MixedArgmax(weights=np.array([0.3, 0.7]), matrices=_MATRICES),
    "mixed-softmax": MixedSoftmax(weights=np.array([0.3, 0.7]), matrices=_MATRICES),
    "algorithm 2": staged_design(_LEARNED_FROM, regularization=0.01, form="argmax").policy,
    "core learning": core_learning(_LEARNED_FROM, regularization=0.01).policy,
    "certified mixture": frank_wolfe_design(_LEARNED_FROM, regularization=0.01).policy,
    "optimistic": Optimistic(estimate=_ESTIMATES[0], root=_ROOTS[0]),
    "posterior draws": PosteriorDraws(draws=_ESTIMATES),
    "blend": Blend(main=PosteriorDraws(draws=_ESTIMATES), explorer=GOptimal(tol=1.0), share=0.1),
    "inverse gap": InverseGap(estimate=_ESTIMATES[1], gamma=20.0),
    "empirical divergence": EmpiricalDivergence(estimate=_ESTIMATES[0], root=_ROOTS[0], greedy=0.9),
    "allocation": Allocation(weights=np.array([0.25, 0.0, 0.5, 0.125, 0.0, 0.125, 0.0])),
    "layered": Layered(estimates=_ESTIMATES, roots=_ROOTS, thresholds=np.array([0.5, 0.2, 0.1])),
    "layered optimism": Layered(
        estimates=_ESTIMATES,
        roots=_ROOTS,
        tails=0.1 * _ROOTS,
        thresholds=np.array([0.5, 0.2, 0.1]),
        optimistic=True,
        exploit=0.15,
    ),
}
every_sampler = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)


def masked_sets() -> tuple[Any, Any]:
    contexts = np.concatenate(
        [
            _SOURCE.draw(20, seed=2).contexts,
            Gaussian(dim=DIM, arms=ARMS).draw(20, seed=2).contexts,
            np.zeros((1, ARMS, DIM)),
            np.ones((1, ARMS, DIM)),
        ]
    )
    available = np.arange(ARMS) < 1 + np.arange(len(contexts))[:, None] % ARMS
    return contexts, np.random.default_rng(1).permuted(available, axis=1)


@every_sampler
def test_probabilities_live_on_the_living_arms(sampler: Sampler) -> None:
    contexts, available = masked_sets()
    probabilities = sampler.probabilities(contexts, available)
    assert probabilities.shape == available.shape
    assert (probabilities >= 0).all()
    assert not probabilities[~available].any()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@every_sampler
def test_a_set_is_answered_the_same_alone_and_among_others(sampler: Sampler) -> None:
    contexts, available = masked_sets()
    together = sampler.probabilities(contexts, available).copy()
    np.testing.assert_array_equal(sampler.probabilities(contexts, available), together)
    for s in range(len(contexts)):
        np.testing.assert_array_equal(sampler.probabilities(contexts[s], available[s]), together[s])
    np.testing.assert_array_equal(sampler.probabilities(contexts[11:17], available[11:17]), together[11:17])


@every_sampler
def test_dead_arms_do_not_matter(sampler: Sampler) -> None:
    contexts, available = masked_sets()
    other = np.where(available[:, :, None], contexts, 0.77)
    np.testing.assert_array_equal(sampler.probabilities(other, available), sampler.probabilities(contexts, available))


@every_sampler
def test_padding_does_not_matter(sampler: Sampler) -> None:
    contexts, available = masked_sets()
    wider = np.pad(contexts, ((0, 0), (0, 9), (0, 0)), constant_values=0.3)
    padded = sampler.probabilities(wider, np.pad(available, ((0, 0), (0, 9))))
    np.testing.assert_array_equal(padded[:, :ARMS], sampler.probabilities(contexts, available))
    assert not padded[:, ARMS:].any()


@every_sampler
def test_samplers_are_frozen(sampler: Sampler) -> None:
    assert dataclasses.is_dataclass(sampler)
    for entry in dataclasses.fields(sampler):
        value = getattr(sampler, entry.name)
        raises(dataclasses.FrozenInstanceError, None, setattr, sampler, entry.name, value)
        assert not isinstance(value, np.ndarray) or not value.flags.writeable


def test_every_sampler_that_files_know_is_here() -> None:
    made = {type(sampler) for sampler in SAMPLERS.values()}
    # a baseline answers for requests that name an arm: tests/unit/policy/test_baseline.py
    assert made == {kind for kind in codec.KINDS.values() if hasattr(kind, "probabilities")} - {Policy, Baseline}
