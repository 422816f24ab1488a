"""Estimators against sums written out, and what makes them right: rows that they may not see."""

import numpy as np
import pytest

from rareswitch.decisions import DecisionLog
from rareswitch.evaluation.intervals import term_of
from rareswitch.evaluation.scoring import (
    ESTIMATORS,
    ArmMeans,
    Columns,
    CrossFitted,
    Estimator,
    Given,
    halves,
    row_scores,
)

RNG = np.random.default_rng(5)


def columns(count: int = 50) -> Columns:
    weights = RNG.exponential(size=count) * (RNG.random(count) < 0.7)
    return Columns(RNG.normal(size=count), weights, RNG.normal(size=count), RNG.normal(size=count))


def written_out(name: Estimator, given: Columns) -> float:
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
def test_estimates_are_the_sums_of_their_definitions(name: Estimator) -> None:
    given = columns()
    assert abs(row_scores(name, given).mean() - written_out(name, given)) < 1e-12


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_error_of_an_estimate_is_that_of_the_jackknife(name: Estimator) -> None:
    given = columns(400)
    without = np.array([row_scores(name, Columns(*(np.delete(part, k) for part in given))).mean() for k in range(400)])
    jackknife = np.sqrt(399 / 400 * ((without - without.mean()) ** 2).sum())
    assert abs(term_of(row_scores(name, given)).variance ** 0.5 / jackknife - 1.0) < 0.02  # up to terms of order 1/n


def test_where_all_weights_are_1_an_estimate_is_what_was_earned() -> None:
    rewards = RNG.normal(size=30)
    for name in ESTIMATORS:
        given = Columns(rewards, np.ones(30), RNG.normal(size=30), RNG.normal(size=30))
        np.testing.assert_array_equal(row_scores(name, given), rewards)


def test_snips_without_weight_is_nothing() -> None:
    assert np.isnan(row_scores("snips", Columns(np.ones(3), np.zeros(3), np.zeros(3), np.zeros(3)))).all()


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
            Given(wrong).predict(log)
