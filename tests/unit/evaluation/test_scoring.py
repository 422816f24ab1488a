"""Candidates are probabilities over the arms that were offered, or an error that says what is wrong."""

from typing import Any

import numpy as np
import pytest

from rareswitch.decisions import DecisionLog
from rareswitch.design import Uniform
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.evaluation import Always
from rareswitch.evaluation.candidates import named_candidates, played
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
from rareswitch.features import Arms, Features, Number
from rareswitch.policy import Baseline, Blend, Policy, PosteriorDraws
from reference.refusals import raises


def log(**more: object) -> DecisionLog:
    columns: dict[str, object] = {
        "arm_indices": [0, 1, 0],
        "propensities": [0.5, 0.25, 1.0],
        "rewards": [1.0, 0.0, 2.0],
        "available": np.array([[True, True, False], [True, True, True], [True, False, False]]),
        "contexts": np.eye(3)[None].repeat(3, axis=0),
        "arms": ["a", "b", "c", "d"],
        "codes": [[0, 1, -1], [3, 2, 0], [1, -1, -1]],
    }
    return DecisionLog(**columns | more)  # type: ignore[arg-type]


def test_always_finds_its_arm_wherever_it_stands() -> None:
    found = played("a", Always("a"), log())
    np.testing.assert_array_equal(found.probabilities, [[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    assert found.applies.tolist() == [True, True, False]
    unknown = played("z", Always("z"), log())
    assert not unknown.applies.any()


def test_always_of_arms_without_ids_is_a_place() -> None:
    plain = log(arms=None, codes=None)
    assert played("1", Always("1"), plain).probabilities[1].tolist() == [0, 1, 0]
    raises(ParameterError, "0 to 2", played, "9", Always("9"), plain)


def test_baseline_is_for_decisions_that_name_one() -> None:
    found = played("baseline", "baseline", log(baselines=[1, -1, 0]))
    assert found.applies.tolist() == [True, False, True]
    np.testing.assert_array_equal(found.probabilities, [[0, 1, 0], [0, 0, 0], [1, 0, 0]])
    none = played("baseline", "baseline", log())
    assert not none.applies.any()


def test_a_policy_decides_about_the_vectors() -> None:
    greedy = Policy(dim=3, sampler=PosteriorDraws(draws=np.array([[0.0, 1.0, 2.0]])))
    found = played("greedy", greedy, log())
    np.testing.assert_array_equal(found.probabilities, [[0, 1, 0], [0, 0, 1], [1, 0, 0]])


def test_a_policy_is_judged_by_what_came_after_it_was_learned() -> None:
    second = Policy(dim=3, sampler=PosteriorDraws(draws=np.array([[0.0, 1.0, 2.0]])))
    batches = {"batches": [0, 1, 2], "batch_names": ("first", second.id, "third")}
    found = played("second", second, log(**batches))
    assert found.applies.tolist() == [False, True, True]
    np.testing.assert_array_equal(found.probabilities, [[0, 0, 0], [0, 0, 1], [1, 0, 0]])


def test_a_policy_that_plays_the_baseline_is_for_decisions_that_name_one() -> None:
    policy = Policy(dim=3, sampler=Blend(main=Baseline(), explorer=Uniform(), share=0.3))
    found = played("first", policy, log(baselines=[1, -1, 0]))
    assert found.applies.tolist() == [True, False, True]
    np.testing.assert_allclose(found.probabilities, np.array([[0.15, 0.85, 0], [0, 0, 0], [1, 0, 0]]))


def test_functions_and_arrays_are_checked() -> None:
    right = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(played("f", lambda contexts, available: right, log()).probabilities, right)
    np.testing.assert_array_equal(played("p", right, log()).probabilities, right)
    for wrong, error, text in (
        (right[:, :2], ShapeError, r"\(3, 3\)"),
        (right * 0.9, ParameterError, "sum to 1"),
        (np.where(right == 0.5, np.nan, right), ParameterError, "row 0"),
        (right[:, ::-1], ParameterError, "offered"),
        ("no", None, ""),
    ):
        if error is not None:
            raises(error, text, played, "p", wrong, log())


def test_candidates_are_named_by_what_they_are() -> None:
    assert list(named_candidates(["uniform", Always("3"), "uniform"])) == ["uniform", "always 3", "uniform (2)"]
    assert list(named_candidates({"mine": lambda contexts, available: available})) == ["mine"]
    several: list[Any] = ["unifrom", 3.0, [], {}, {"x": None}]
    for wrong in several:
        raises(ParameterError, None, named_candidates, wrong)


def test_a_policy_needs_vectors_of_its_size() -> None:
    raises(ShapeError, "2 features", played, "p", Policy(dim=2, sampler=Uniform()), log())
    raises(ParameterError, "vectors", played, "p", Policy(dim=3, sampler=Uniform()), log(contexts=None))


def test_vectors_of_other_features_are_refused() -> None:
    made, other = (
        Features(fields=[Number("age", mean=mean, scale=10, alone=False)], arms=Arms(ids=["a", "b"], own=["age"]))
        for mean in (40, 50)
    )
    mine, foreign = (Policy(dim=made.dim, sampler=Uniform(), features=one) for one in (made, other))
    given = log(contexts=np.zeros((3, 3, made.dim)), batch_names=[mine.id], policies={mine.id: mine})
    assert played("mine", mine, given).probabilities[2].tolist() == [1, 0, 0]
    assert played("plain", Policy(dim=made.dim, sampler=Uniform()), given).applies is None
    raises(ParameterError, "other features than the policies of the log", played, "foreign", foreign, given)


RNG = np.random.default_rng(5)


def columns(count: int = 50) -> Columns:
    weights = RNG.exponential(size=count) * (RNG.random(count) < 0.7)
    return Columns(RNG.normal(1.0, size=count), weights, RNG.normal(size=count), RNG.normal(size=count))


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
        return model.predict(log)

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
    theta = np.array([2.0, -1.0])
    log = batched_log(log.features @ theta + 1e6)  # a level costs no digits
    model = CrossFitted(2, 3)
    model.add(log)
    np.testing.assert_allclose(model.predict(log), log.contexts @ theta + 1e6, atol=0.1)  # up to the ridge


def test_given_predictions_are_checked() -> None:
    log = batched_log(np.zeros(6))
    np.testing.assert_array_equal(Given(np.ones((6, 3))).predict(log), np.ones((6, 3)))
    for wrong in (np.ones((6, 2)), np.full((6, 3), np.nan), "q"):
        raises(ValueError, "model", Given(wrong).predict, log)
