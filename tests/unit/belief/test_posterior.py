"""Scales that are read off the statistics: they follow the units, and make the rewards most likely."""

import math
from typing import Any

import numpy as np
import pytest

from rareswitch.belief import Posterior, posterior
from rareswitch.belief.posterior import innovation, vague_where_unknown
from rareswitch.core import Stats

RNG = np.random.default_rng(5)


def test_noise_and_prior_are_those_that_make_rewards_most_likely() -> None:
    """Against the density of the rewards themselves, on a finer grid around."""
    x = RNG.standard_normal((60, 3)) * [1.0, 0.5, 2.0]
    r = x @ RNG.standard_normal(3) + 0.8 * RNG.standard_normal(60)

    def negative_log_density(noise: float, prior: float) -> float:
        covariance = noise**2 * np.eye(60) + prior**2 * x @ x.T
        return float(np.linalg.slogdet(covariance)[1] + r @ np.linalg.solve(covariance, r))

    found = posterior(Stats.of(x, r))
    prior = found.noise / math.sqrt(found.ridge)
    best = negative_log_density(found.noise, prior)
    around = [0.7, 0.85, 1.0, 1.18, 1.4]
    assert best <= min(negative_log_density(a * found.noise, b * prior) for a in around for b in around) + 0.01
    np.testing.assert_allclose(found.estimate, np.linalg.solve(x.T @ x + found.ridge * np.eye(3), x.T @ r), rtol=1e-9)
    np.testing.assert_allclose(found.precision, x.T @ x + found.ridge * np.eye(3))


@pytest.mark.parametrize(("features", "rewards"), [(100.0, 1.0), (1.0, 1e-4), (1e-3, 1e3)])
def test_beliefs_follow_the_units(features: float, rewards: float) -> None:
    x = RNG.standard_normal((50, 4))
    r = x[:, 0] + RNG.standard_normal(50)
    one, other = posterior(Stats.of(x, r)), posterior(Stats.of(features * x, rewards * r))
    assert other.noise == pytest.approx(rewards * one.noise)
    assert other.ridge == pytest.approx(features**2 * one.ridge)
    np.testing.assert_allclose(
        other.estimate, rewards / features * one.estimate, rtol=1e-7, atol=1e-12 * rewards / features
    )


def test_data_that_tell_nothing_leave_the_prior_wide() -> None:
    x = RNG.standard_normal((400, 3))
    found = posterior(Stats.of(x, RNG.standard_normal(400)))
    assert found.ridge <= 10.0 * (x**2).sum() / 400 * 1.001


@pytest.mark.parametrize(
    ("x", "r"), [(np.zeros((5, 2)), np.ones(5)), (np.ones((5, 2)), np.zeros(5)), (np.eye(2)[[0, 0, 0]], np.ones(3))]
)
def test_degenerate_data_give_a_belief_all_the_same(x: Any, r: Any) -> None:
    found = posterior(Stats.of(x, r))
    assert np.isfinite(found.estimate).all()
    assert found.ridge > 0.0
    assert found.noise >= 0.0
    np.linalg.cholesky(found.precision)


def test_a_prior_that_was_wrong_is_no_surprise_and_a_parameter_that_changed_is() -> None:
    """The first of two features was seen in 400 decisions, the second never; then a batch is of both."""
    belief = Posterior(estimate=np.array([1.0, 0.0]), precision=np.diag([401.0, 1.0]), noise=1.0, ridge=1.0)
    before = vague_where_unknown(belief, known=400)
    gram = 100.0 * np.eye(2)
    new, changed = gram @ [1.0, 5.0], gram @ [3.0, 0.0]
    assert innovation(belief, gram, new, noise=1.0).wrong
    assert not innovation(before, gram, new, noise=1.0).wrong
    assert innovation(before, gram, changed, noise=1.0).wrong
    np.testing.assert_array_equal(before.estimate, belief.estimate)


def test_a_belief_of_features_that_are_all_zero_stays_finite() -> None:
    belief = Posterior(estimate=np.zeros(2), precision=3.0 * np.eye(2), noise=1.0, ridge=3.0)
    np.testing.assert_allclose(vague_where_unknown(belief, known=50).precision, 0.03 * np.eye(2))
