"""The algorithms the paper stands against: that each does what its authors say."""

import math
from typing import Any

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.design import Uniform
from rareswitch.errors import ParameterError, UnsuitableError
from rareswitch.lab.distributions import Gaussian
from rareswitch.lab.rivals import BaSE, Falcon, FixedSetElimination, InverseGap, PureExploitation
from rareswitch.lab.worlds import LinearWorld, make_world
from rareswitch.policy import PosteriorDraws
from reference.loop import rows_of, steps
from reference.refusals import raises

NOISE = 0.3


def test_pure_exploitation_is_greedy_on_pooled_least_squares() -> None:
    world = make_world("gaussian", dim=3, arms=5, noise=NOISE)
    learner = PureExploitation(dim=3, arms=5, horizon=500, policies=3, ridge=0.2)
    assert isinstance(learner.begin().policy.sampler, Uniform)
    parts = []
    for _, done in list(steps(learner, world, most=500))[:-1]:
        parts.append(done.rows)
        x = np.concatenate([part.features for part in parts])
        r = np.concatenate([part.rewards for part in parts])
        estimate = np.linalg.solve(x.T @ x + 0.2 * np.eye(3), x.T @ r)
        assert isinstance(done.state.policy.sampler, PosteriorDraws)
        np.testing.assert_allclose(done.state.policy.sampler.draws, estimate[None])
    assert done.state.policies == 3


def test_falcon_weighs_by_the_last_epoch_alone() -> None:
    world = make_world("gaussian", dim=3, arms=5, noise=NOISE)
    learner = Falcon(dim=3, arms=5, horizon=500, noise=NOISE, delta=0.1, ridge=0.5)
    gammas = []
    for epoch, (_, (part, _, state)) in enumerate(list(steps(learner, world, most=500))[:6], 2):
        sampler = state.policy.sampler
        assert isinstance(sampler, InverseGap)
        x = part.features
        assert x is not None
        np.testing.assert_allclose(
            sampler.estimate, np.linalg.solve(x.T @ x + 0.5 * np.eye(3), x.T @ part.rewards), atol=1e-12
        )
        error = (NOISE * (math.sqrt(3) + math.sqrt(2 * math.log(2 * epoch**2 / 0.1)))) ** 2 / len(x)
        assert sampler.gamma == pytest.approx(0.5 * math.sqrt(5 / error))
        gammas.append(sampler.gamma)
    assert gammas[-1] > 2 * gammas[0]


def test_inverse_gaps_by_hand() -> None:
    estimate = np.array([0.4, -0.2])
    x = np.random.default_rng(1).standard_normal((6, 2)) / 3
    available = np.array([True, True, False, True, True, True])
    values = x @ estimate
    best = max(np.flatnonzero(available), key=lambda i: values[i])
    expected = np.where(available, 1 / (5 + 12.0 * (values[best] - values)), 0.0)
    expected[best] = 0.0
    expected[best] = 1 - expected.sum()
    np.testing.assert_allclose(InverseGap(estimate=estimate, gamma=12.0).probabilities(x, available), expected)


@pytest.mark.parametrize("mode", ["paper", "tight", 1.5])
def test_base_drops_what_pooled_means_prove_worse(mode: Any) -> None:
    world = make_world("plain", dim=1, arms=6, noise=NOISE)
    learner = BaSE(dim=6, arms=6, horizon=20_000, noise=NOISE, confidence=mode, delta=0.1)
    means, counts = np.zeros(6), np.zeros(6)
    available = np.ones(6, dtype=bool)
    for _, (part, _, state) in list(steps(learner, world, 2, most=20_000))[:-1]:
        arms = part.features.argmax(axis=1)
        assert set(np.unique(arms)) <= set(np.flatnonzero(available))
        for arm in range(6):
            mine = part.rewards[arms == arm]
            means[arm] = (means[arm] * counts[arm] + mine.sum()) / max(1, counts[arm] + len(mine))
            counts[arm] += len(mine)
        if mode == "paper":
            radius = np.full(6, 0.5 * NOISE * math.sqrt(12 * math.log(6 * 20_000) / counts[available].min()))
        else:
            multiplier = NOISE * math.sqrt(2 * math.log(2 * 6 * 20_000 / 0.1)) if mode == "tight" else mode
            radius = multiplier / np.sqrt(counts)
        np.testing.assert_allclose(state.policy.eliminations[-1].estimate, means)
        np.testing.assert_allclose(np.diag(state.policy.eliminations[-1].root), radius)
        available = available & (means + radius >= (means - radius)[available].max())
        np.testing.assert_array_equal(state.policy.survivors(np.eye(6)), available)
    assert available.sum() < 6
    theta = world.theta(2)  # type: ignore[attr-defined]
    assert available[theta.argmax()]


def test_base_is_for_plain_arms_alone() -> None:
    raises(UnsuitableError, "dim must equal arms; got 3 and 4", BaSE, dim=3, arms=4, horizon=100)
    world = LinearWorld(source=Gaussian(dim=4, arms=4))
    with pytest.raises(UnsuitableError, match="the context of arm k must be the k-th unit vector"):
        simulate(BaSE(dim=4, arms=4, horizon=100), world, seed=1)
    with pytest.raises(ParameterError, match="confidence must be a finite number at least 0"):
        BaSE(dim=4, arms=4, horizon=100, confidence=-0.5)


def test_a_set_that_changes_between_batches_is_noticed() -> None:
    """Each batch has one set, and the next another one."""
    one, other = (make_world("fixed", dim=4, arms=5, noise=NOISE) for _ in range(2))
    learner = FixedSetElimination(dim=4, arms=5, horizon=1000, policies=4)
    state = learner.begin()
    state = learner.next(state, learner.summarize(state, rows_of(state, one, 1)))
    with pytest.raises(UnsuitableError, match="one action set that never changes"):
        learner.next(state, learner.summarize(state, rows_of(state, other, 2)))
