"""The table of decisions: what it is made of, copies, rewards that are known or not."""

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from rareswitch.core import ContextSets, id_keys
from rareswitch.decisions import DecisionLog
from rareswitch.design import Uniform
from rareswitch.errors import BatchError, EmptySetError, NonFiniteError, ParameterError, ShapeError
from rareswitch.learner import make_learner
from rareswitch.policy import Policy
from reference.refusals import raises

RNG = np.random.default_rng(3)
SETS = ContextSets(RNG.standard_normal((4, 3, 2)), np.ones((4, 3), dtype=np.bool_))


def made(**columns: Any) -> DecisionLog:
    """Four decisions; what is given stands in for the usual."""
    usual: dict[str, Any] = {
        "ids": [3, 1, 2, 0],
        "batch_names": ["p"],
        "features": np.eye(2)[[0, 1, 0, 1]],
        "propensities": [0.5] * 4,
        "rewards": [1.0, 2.0, 3.0, 4.0],
    }
    return DecisionLog(**usual | columns)


def joined(**columns: Any) -> DecisionLog:
    """Four rows, two of each of the ids 7 and 9, one log each."""
    usual: dict[str, Any] = {"ids": [7, 7, 9, 9], "features": np.eye(2)[[0, 0, 1, 1]], "propensities": [0.5] * 4}
    every = usual | columns
    rows: list[dict[str, Any]] = [
        {name: None if column is None else column[k : k + 1] for name, column in every.items()} for k in range(4)
    ]
    return DecisionLog.concatenate([DecisionLog(**row) for row in rows])


def masked(values: Any) -> Any:
    array = np.ma.masked_array(values)
    array[0] = np.ma.masked
    return array


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4]),
        ([True, False, True, False], [1, 0, 1, 0]),
        (np.array([1, 0, 1, 1], dtype=np.uint8), [1, 0, 1, 1]),
        ([None, 2.5, None, True], [np.nan, 2.5, np.nan, 1]),
        ([None] * 4, [np.nan] * 4),
        ([np.nan, 2.0, 3.0, np.float32(0.5)], [np.nan, 2, 3, 0.5]),
        ([np.True_, None, np.int64(3), 1], [1, np.nan, 3, 1]),
        (np.ma.masked_array([1.0, 2.0, 3.0, 4.0], mask=[False, True, False, False]), [1, np.nan, 3, 4]),
        (np.ma.masked_array([1, 2, 3, 4], mask=[False, True, False, False]), [1, np.nan, 3, 4]),
        (np.ma.masked_array([True, True, False, True], mask=[False, True, False, False]), [1, np.nan, 0, 1]),
        (np.ma.masked_array([1.0, np.nan, 3.0, 4.0]), [1, np.nan, 3, 4]),
    ],
)
def test_rewards_are_numbers_or_not_known(rewards: Any, expected: list[float]) -> None:
    found = made(rewards=rewards).rewards
    assert found.dtype == np.float64
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, expected)


def test_decisions_of_one_set_are_rows_too() -> None:
    policy = Policy(dim=2, sampler=Uniform())
    decision = policy.decide(np.eye(2), ids="request", seed=1)
    for reward in (1.0, True, None, [0.5], np.float64(2.0)):
        rows = DecisionLog.of(np.eye(2), decision, reward)
        assert len(rows) == 1
        np.testing.assert_array_equal(rows.ids, id_keys(["request"]))
        np.testing.assert_array_equal(rows.features, np.eye(2)[[int(decision.arms)]])


def test_decisions_and_sets_must_belong_together() -> None:
    policy = Policy(dim=2, sampler=Uniform())
    decisions = policy.decide(SETS, ids=range(4), seed=1)
    good = DecisionLog.of(SETS, decisions, [1.0, None, 0.0, True])
    np.testing.assert_array_equal(good.features, SETS.contexts[np.arange(4), decisions.arms])
    assert (good.policy_id, good.propensities.tolist()) == (policy.id, [1 / 3] * 4)
    raises(ShapeError, "2 context sets were given for 4 decisions", DecisionLog.of, SETS[:2], decisions, [0.0, 0.0])
    dead = np.ones((4, 3), dtype=np.bool_)
    dead[0, decisions.arms[0]] = False
    for sets, arms in ((dead, decisions.arms), (None, np.array([9, 0, 0, 0])), (None, np.array([-1, 0, 0, 0]))):
        with pytest.raises(ParameterError, match=r"arm_indices must be those of offered arms; row 0 .* arms"):
            DecisionLog.of(SETS.contexts, msgspec.structs.replace(decisions, arms=arms), np.zeros(4), sets)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"features": np.ones(4)}, ShapeError, r"features must have the shape \(any, any\); got \(4,\)"),
        ({"features": np.full((4, 2), np.nan)}, NonFiniteError, "features must be finite"),
        ({"features": np.ones((3, 2))}, ShapeError, "propensities must have the shape"),
        ({"propensities": [0.5, 0.5, 0.0, 0.5]}, ParameterError, "above 0 and at most 1; row 2"),
        ({"features": None}, ShapeError, "arm_indices must be there"),
        ({"contexts": SETS.contexts}, ShapeError, "arm_indices must be there"),
        ({"ids": [1, 2, 1, 3]}, ParameterError, r"ids must differ within a batch; rows \[0, 2\]"),
        ({"ids": [1, 2, 3]}, ShapeError, "4 sets take 4 ids; got 3"),
        ({"ids": [1, 2, 3, -4]}, ParameterError, "at least 0"),
        ({"ids": [1, 2, 3, ""]}, ParameterError, "1 to 128 bytes"),
        ({"ids": "abcd"}, ShapeError, "list"),
        ({"times": [1.0, 2.0]}, ShapeError, r"times must be seconds or datetime64 of shape \(4,\)"),
        ({"times": ["a", "b", "c", "d"]}, ShapeError, "times must be seconds or datetime64"),
        ({"times": [1.0, 2.0, 3.0, 1e15]}, ParameterError, "times must be seconds since 1970; row 3"),
        ({"reward_times": np.ones((4, 1))}, ShapeError, "reward_times must be"),
        ({"rewards": [1.0, 2.0]}, ShapeError, r"rewards must have shape \(4,\), one for each decision; got \(2,\)"),
        ({"rewards": [[1.0]] * 4}, ShapeError, r"got \(4, 1\)"),
        ({"rewards": [[1.0], [1.0, 2.0], [1.0], [1.0]]}, ShapeError, "got rows of several"),
        ({"rewards": [1.0, np.inf, 2.0, 3.0]}, NonFiniteError, "the one at index 1 is inf"),
        ({"rewards": [1.0, 2.0, -np.inf, None]}, NonFiniteError, "the one at index 2 is -inf"),
        (
            {"rewards": ["a", "b", "c", "d"]},
            ShapeError,
            "numbers or booleans, NaN or None where unknown; got dtype <U1",
        ),
        ({"rewards": ["1", None, "2", "3"]}, ShapeError, "got NoneType, str"),
        ({"rewards": [{}, None, 1, 2]}, ShapeError, "got NoneType, dict, int"),
        ({"rewards": None}, ShapeError, r"must have shape \(4,\)"),
        ({"times": [[1.0], [1.0, 2.0]]}, ShapeError, "times must be seconds or datetime64"),
        ({"features": masked(np.ones((4, 2)))}, ShapeError, "features must not be masked"),
        ({"features": [masked([1.0, 2.0])] * 4}, ShapeError, "features must not be masked"),
        ({"ids": masked([3, 1, 2, 0])}, ShapeError, "ids must not be masked"),
        ({"times": masked([3.0, 1.0, 2.0, 0.0])}, ShapeError, "times must not be masked"),
        ({"reward_times": masked(np.array(["2026-01-01"] * 4, dtype="M8[s]"))}, ShapeError, "reward_times must not be"),
    ],
)
def test_bad_rows_are_explained(given: dict[str, Any], error: type[Exception], words: str) -> None:
    raises(error, words, made, **given)


def test_names_and_numbers_are_different_ids() -> None:
    log = DecisionLog.concatenate([made(ids=["1", 1, "2", 2]), made(ids=["1", 1, "2", 2])])
    assert len(log) == 4
    assert log.rewards.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_copies_are_one_decision_and_a_reward_completes_its_row() -> None:
    for rewards, expected in (
        ([None, 2.0, None, 4.0], [2.0, 4.0]),
        ([2.0, None, None, 4.0], [2.0, 4.0]),
        ([2.0, 2.0, 4.0, None], [2.0, 4.0]),
        ([None, None, None, None], [np.nan, np.nan]),
        ([None, 2.0, None, None], [2.0, np.nan]),
    ):
        log = joined(rewards=rewards)
        assert log.ids[:, 0].tolist() == [7, 9]
        np.testing.assert_array_equal(log.rewards, expected)


@pytest.mark.parametrize(
    "columns",
    [
        {"rewards": [1.0, 1.5, 4.0, 4.0]},
        {"features": np.array([[1.0, 0.0], [1.0, 1e-300], [0.0, 1.0], [0.0, 1.0]]), "rewards": [1.0, 1.0, 4.0, 4.0]},
        {"propensities": [0.5, 0.25, 0.5, 0.5], "rewards": [1.0, 1.0, 4.0, 4.0]},
        {"contexts": SETS.contexts, "features": None, "arm_indices": [0] * 4, "rewards": [1.0, 1.0, 4.0, 4.0]},
        {
            "contexts": SETS.contexts[[0, 0, 1, 1]],
            "available": np.array([[True] * 3, [True, True, False]] * 2),
            "features": None,
            "arm_indices": [0] * 4,
            "rewards": [1.0, None, 4.0, None],
        },
        {"rewards": [None, 1.0, None, 0.0], "ids": [7, 9, 7, 9], "features": np.eye(2)[[0, 0, 0, 1]]},
    ],
    ids=["rewards", "features", "propensities", "sets", "masks", "features of rewarded rows"],
)
def test_rows_that_contradict_each_other_are_refused(columns: dict[str, Any]) -> None:
    raises(BatchError, r"[12] decisions? with rows that contradict .*; the first has rows \d, \d", joined, **columns)


def test_parts_are_joined() -> None:
    log = made(times=[1.0, 2.0, 3.0, 4.0], reward_times=[2.0, np.nan, 4.0, 5.0])
    for cut in range(1, 4):
        again = DecisionLog.concatenate([log.select(slice(cut)), log.select(slice(cut, None))])
        for name in ("ids", "features", "rewards", "times", "reward_times"):
            np.testing.assert_array_equal(getattr(again, name), getattr(log, name))
    assert DecisionLog.concatenate([log, replace(log, times=None)]).times is None
    raises(EmptySetError, None, DecisionLog.concatenate, [])
    parts: Any
    for parts in ([1], [made(), None]):
        raises(ShapeError, "joined from a list of them", DecisionLog.concatenate, parts)


def test_a_learner_takes_the_decisions_of_one_policy() -> None:
    log = made(batches=[0, 1, 0, 1], batch_names=["p", "q"])
    assert log.select(log.batches == 1).policy_id == "q"
    with pytest.raises(BatchError, match="decisions of 2 policies, each learned from alone"):
        _ = log.policy_id


def test_times_may_be_dates() -> None:
    dates = np.array(["1970-01-01T00:00:10", "1970-01-02", "1970-01-01", "1970-01-01T00:00:00.5"], dtype="M8[ms]")
    log = made(times=dates, reward_times=np.array(["NaT", "1970-01-01T00:01", "NaT", "NaT"], dtype="M8[s]"))
    assert log.times.tolist() == [10.0, 86_400.0, 0.0, 0.5]
    np.testing.assert_array_equal(log.reward_times, [np.nan, 60.0, np.nan, np.nan])


def test_a_window_needs_the_time_of_every_decision() -> None:
    raises(ParameterError, "needs to know when decisions were made", made().attributed, window=1.0)
    raises(NonFiniteError, "the one at index 1 is nan", made(times=[1.0, np.nan, 2.0, 3.0]).attributed, window=1.0)
    log = made(times=[0.0, 50.0, 0.0, 0.0], reward_times=[10.0, 55.0, 70.0, 1.0])
    for now in (100.0, np.datetime64("1970-01-01T00:01:40")):
        counted = log.attributed(window=60.0, now=now)
        np.testing.assert_array_equal(counted.rewards, [1.0, np.nan, np.nan, 4.0])
        np.testing.assert_array_equal(counted.waiting, [False, True, False, False])
        np.testing.assert_array_equal(counted.expired, [False, False, True, False])


def test_what_is_no_decisions_is_explained() -> None:
    with pytest.raises(ShapeError, match=r"decisions must be what policy\.decide returned; got NoneType"):
        DecisionLog.of(np.ones((2, 2, 2)), None, [1.0, 2.0])  # type: ignore[arg-type]


def test_an_array_that_is_used_again_does_not_change_the_log() -> None:
    contexts, rewards, available = np.ones((4, 3, 2)), np.ones(4), np.ones((4, 3), dtype=np.bool_)
    times, keys = np.arange(4.0), np.array([[k, 0] for k in range(4)], dtype=np.uint64)
    decisions = Policy(dim=2, sampler=Uniform()).decide(contexts, ids=range(4), seed=1)
    features, propensities, arms = np.ones((4, 2)), np.full(4, 0.5), np.zeros(4, dtype=np.int64)
    logs = [
        DecisionLog.of(contexts, decisions, rewards, available, times=times, reward_times=times),
        made(ids=keys, features=features, rewards=rewards, propensities=propensities, times=times),
        made(ids=keys, features=None, contexts=contexts, available=available, arm_indices=arms, rewards=rewards),
    ]
    for buffer in (contexts, rewards, times, features, propensities):
        buffer[:] = 99.0
    keys[:, 0] = 99
    arms[:] = 2
    available[:] = False
    for log in logs:
        np.testing.assert_array_equal(log.features, np.ones((4, 2)))
        assert (log.rewards == 1.0).all()
        assert (log.propensities < 1.0).all()
        assert log.available.all()
        assert log.ids[:, 0].tolist() == [0, 1, 2, 3]
        assert log.contexts is None or (log.contexts == 1.0).all()
        assert log.times is None or log.times.tolist() == [0.0, 1.0, 2.0, 3.0]
        arrays = [column for column in vars(log).values() if isinstance(column, np.ndarray)]
        assert not any(array.flags.writeable for array in arrays)


def test_a_masked_reward_is_not_known() -> None:
    assert np.isnan(made(rewards=masked([1.0, 2.0, 3.0, 4.0])).rewards).tolist() == [True, False, False, False]
    assert np.isnan(made(rewards=[1.0, np.ma.masked, True, None]).rewards).tolist() == [False, True, False, True]
    decisions = Policy(dim=2, sampler=Uniform()).decide(SETS, ids=range(4), seed=1)
    with pytest.raises(ShapeError, match="available must not be masked"):
        DecisionLog.of(SETS.contexts, decisions, np.ones(4), masked(np.ones((4, 3), dtype=np.bool_)))


def test_of_copies_with_other_times_the_earliest_counts_in_any_order() -> None:
    learner = make_learner("linucb-grid", dim=2, arms=3, horizon=100)
    state = learner.begin()
    for late in ([5.0, 500.0], [500.0, 5.0]):
        row: dict[str, Any] = {"features": [[1.0, 0.0]], "propensities": [0.5], "rewards": [1.0]}
        row |= {"ids": [1], "batch_names": [state.policy.id], "times": [0.0]}
        parts = [DecisionLog(**row, reward_times=[moment]) for moment in late]
        log = DecisionLog.concatenate(parts)
        assert learner.summarize(state, log, window=100.0, now=1000.0).rewarded == 1


@pytest.mark.parametrize("rewards", [[10**18, 1], [None, -(10**17)], np.array([1, 2**60]), np.array([0, 2**63], "u8")])
def test_whole_numbers_that_are_no_floats_are_refused(rewards: Any) -> None:
    with pytest.raises(NonFiniteError, match=r"beyond 2\^53 whole numbers lose some; got"):
        DecisionLog(propensities=[1.0] * 2, features=np.ones((2, 2)), rewards=rewards)
    log = DecisionLog(propensities=[1.0], features=np.ones((1, 2)), rewards=[2**53])
    assert log.rewards.tolist() == [2.0**53]


def test_offered_arms_that_cannot_be_squared_are_refused() -> None:
    contexts = np.ones((2, 3, 2))
    decisions = Policy(dim=2, sampler=Uniform()).decide(contexts, ids=range(2), seed=1)
    contexts[1, (decisions.arms[1] + 1) % 3] = 1e200
    raises(NonFiniteError, r"contexts must be at most 1e\+100 in size", DecisionLog.of, contexts, decisions, [1.0, 2.0])
