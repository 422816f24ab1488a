"""Estimators against sums written out, and what makes them right: rows that they may not see."""

import math
from typing import Any

import numpy as np
import pytest

from rareswitch.evaluation.estimators import ESTIMATORS, Columns, Estimator, Moments, estimate, paired
from rareswitch.evaluation.models import ArmMeans, CrossFitted, Given, halves
from rareswitch.log import DecisionLog

RNG = np.random.default_rng(5)


def columns(count: int = 50) -> Columns:
    weights = RNG.exponential(size=count) * (RNG.random(count) < 0.7)
    return Columns(RNG.normal(size=count), weights, RNG.normal(size=count), RNG.normal(size=count))


def written_out(name: str, given: Columns) -> float:
    total, below = 0.0, 0.0
    rows = [*zip(*(part.tolist() for part in given), strict=True)]
    for reward, weight, predicted, expected in rows:
        if name in ("ips", "snips"):
            total += weight * reward
            below += weight
        else:
            total += expected + weight * (reward - predicted)
    return total / (below if name == "snips" else len(rows))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimates_are_the_sums_of_their_definitions(name: str) -> None:
    given = columns()
    found = estimate(name, given)  # type: ignore[arg-type]
    assert abs(found.value - written_out(name, given)) < 1e-12
    assert abs(found.pulls.mean()) < 1e-12


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_pull_of_a_row_is_what_the_estimate_moves_without_it(name: str) -> None:
    given = columns(400)
    found = estimate(name, given)  # type: ignore[arg-type]
    without = np.array([estimate(name, Columns(*(np.delete(p, k) for p in given))).value for k in range(400)])  # type: ignore[arg-type]
    jackknife = np.sqrt(399 / 400 * ((without - without.mean()) ** 2).sum())
    assert abs(found.error / jackknife - 1.0) < 0.02  # equal up to terms of order 1/n


@pytest.mark.parametrize("name", ["ips", "snips", "dr"])
def test_rare_rewards_with_large_weights_cannot_hide(name: Any) -> None:
    """Where none of the heavy decisions had a click, the error is still that of rewards that do not know weights."""
    weights = np.repeat([100.0, 0.5], [10, 990])
    rewards = np.zeros(1000)
    rewards[500:600] = 1.0
    found = estimate(name, Columns(rewards, weights, np.full(1000, 0.1), np.full(1000, 0.1)))
    told = float((weights**2).mean()) * {"ips": 0.1, "snips": 0.0, "dr": 0.09}[name]
    if name == "snips":
        told = float((weights**2).mean() * ((rewards - found.value) ** 2).mean())
    if name == "ips":
        told -= found.value**2
    assert found.error == pytest.approx(math.sqrt(told / 2.0 / 1000.0))
    assert found.error > 2.0 * found._replace(least=0.0).error
    assert found.skew > 10.0 * found._replace(third=0.0).skew


def test_known_moments_of_weights_take_the_place_of_those_that_came() -> None:
    rows = Columns(np.tile([0.0, 1.0], 50), np.ones(100), np.full(100, 0.5), np.full(100, 0.5))
    assert estimate("dr", rows, moments=Moments(9.0, 27.0)).error == pytest.approx(math.sqrt(9.0 * 0.25 / 2.0 / 100.0))


def test_a_single_row_has_no_error_to_speak_of() -> None:
    assert estimate("ips", Columns(*(np.ones(1) for _ in range(4)))).error == np.inf


def test_snips_without_weight_is_nothing() -> None:
    assert np.isnan(estimate("snips", Columns(np.ones(3), np.zeros(3), np.zeros(3), np.zeros(3))).value)


def batched_log(rewards: np.ndarray) -> DecisionLog:
    count = len(rewards)
    contexts = np.random.default_rng(3).normal(size=(count, 3, 2))
    return DecisionLog(
        arm_indices=np.arange(count) % 3,
        propensities=np.full(count, 1 / 3),
        rewards=rewards,
        contexts=contexts,
        batches=np.arange(count) * 3 // count,
        batch_names=("x", "y", "z"),
    )


@pytest.mark.parametrize("vectors", [True, False])
def test_predictions_rest_on_earlier_batches_and_the_other_half_alone(vectors: bool) -> None:
    """A reward that moves a prediction of its own half, or of an earlier batch, would bias the estimate."""
    rewards = RNG.normal(size=300)

    def predicted(changed: np.ndarray) -> np.ndarray:
        log = batched_log(changed)
        model = CrossFitted(2, 3) if vectors else ArmMeans(3)
        model.add(log)
        return model.predict(log).arms

    log = batched_log(rewards)
    before, half = predicted(rewards), halves(log)
    assert set(half.tolist()) == {0, 1}
    for batch in range(3):
        for side in (0, 1):
            mine = (log.batches == batch) & (half == side)
            after = predicted(np.where(mine, rewards + 100.0, rewards))
            moved = np.abs(after - before).max(axis=1) > 1e-9
            may = (log.batches > batch) | ((log.batches == batch) & (half != side))
            assert not moved[~may].any()
            assert moved[may].all()


def test_a_linear_world_is_predicted() -> None:
    log = batched_log(np.zeros(3000))
    assert log.features is not None
    assert log.contexts is not None
    theta = np.array([2.0, -1.0])
    log = batched_log(log.features @ theta + 1e6)  # a level costs no digits
    model = CrossFitted(2, 3)
    model.add(log)
    found = model.predict(log)
    np.testing.assert_allclose(found.arms, log.contexts @ theta + 1e6, atol=0.1)  # up to the ridge
    np.testing.assert_array_equal(found.chosen, found.arms[np.arange(3000), log.arm_indices])


def test_given_predictions_are_checked() -> None:
    log = batched_log(np.zeros(6))
    assert Given(np.ones((6, 3))).predict(log).chosen.tolist() == [1.0] * 6
    for wrong in (np.ones((6, 2)), np.full((6, 3), np.nan), "q"):
        with pytest.raises(ValueError, match="model"):
            Given(wrong).predict(log)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_difference_from_what_was_earned_is_that_of_every_row(name: Estimator) -> None:
    rng = np.random.default_rng(5)
    rewards, weights = rng.random(500), rng.exponential(size=500)
    given = Columns(rewards, weights, rng.random(500), rng.random(500))
    moments = Moments(float((weights**2).mean()), float((weights**3).mean()))
    alone, both = estimate(name, given), paired(name, given, 0.7, 0.4, moments=moments)
    assert both.value == pytest.approx(0.7 * alone.value - 0.4 * rewards.mean())
    np.testing.assert_allclose(both.pulls, 0.7 * alone.pulls - 0.4 * (rewards - rewards.mean()), atol=1e-12)


def test_who_does_nearly_what_was_done_differs_by_little_for_certain() -> None:
    rng = np.random.default_rng(5)
    weights = (rng.random(5000) < 0.97) / 0.97  # one arm, shown in 97 of 100 decisions
    rewards, moments = np.asarray(rng.random(5000) < 0.1, dtype=np.float64), Moments(1 / 0.97, 1 / 0.97**2)
    given = Columns(rewards, weights, np.full(5000, 0.1), np.full(5000, 0.1))
    alone, both = estimate("dr", given, moments=moments), paired("dr", given, 1.0, 1.0, moments=moments)
    assert both.error < 0.25 * alone.error  # √(0.03) of it is 0.17
