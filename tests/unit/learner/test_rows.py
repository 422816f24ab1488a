"""Rows: in any order, with copies, with rewards that are known or not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rareswitch.core import ContextSets, id_keys
from rareswitch.design import Uniform
from rareswitch.errors import BatchError, NonFiniteError, ParameterError, ShapeError
from rareswitch.learner import Rows, in_seconds, make_learner
from rareswitch.policy import Policy

RNG = np.random.default_rng(3)
SETS = ContextSets(RNG.standard_normal((4, 3, 2)), np.ones((4, 3), dtype=np.bool_))


def made(**given: Any) -> Rows:
    """Four rows; what is given stands in for the usual."""
    usual = {
        "ids": [3, 1, 2, 0],
        "policy_id": "p",
        "features": np.eye(2)[[0, 1, 0, 1]],
        "rewards": [1.0, 2.0, 3.0, 4.0],
    }
    return Rows(**usual | given)


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
        rows = Rows.of(np.eye(2), decision, reward)
        assert len(rows) == 1
        np.testing.assert_array_equal(rows.ids, id_keys(["request"]))
        np.testing.assert_array_equal(rows.features[0], np.eye(2)[int(decision.arms)])


def test_decisions_and_sets_must_belong_together() -> None:
    policy = Policy(dim=2, sampler=Uniform())
    decisions = policy.decide(SETS, ids=range(4), seed=1)
    good = Rows.of(SETS, decisions, [1.0, None, 0.0, True])
    np.testing.assert_array_equal(good.features, SETS.contexts[np.arange(4), decisions.arms])
    assert (good.policy_id, good.sets) == (policy.id, good.sets)
    with pytest.raises(ShapeError, match="2 context sets were given for 4 decisions"):
        Rows.of(SETS[:2], decisions, [0.0, 0.0])
    dead = np.ones((4, 3), dtype=np.bool_)
    dead[0, decisions.arms[0]] = False
    with pytest.raises(ShapeError, match="an arm that is not available: these are not the sets it was made on"):
        Rows.of(SETS.contexts, decisions, np.zeros(4), dead)
    with pytest.raises(ShapeError, match=r"an arm outside of 0 … 2: these are other sets"):
        Rows.of(SETS, replace(decisions, arms=np.array([0, 9, 0, 0])), np.zeros(4))
    with pytest.raises(ShapeError, match="an arm outside"):
        Rows.of(SETS, replace(decisions, arms=np.array([0, -1, 0, 0])), np.zeros(4))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (
            {"features": np.ones(4)},
            ShapeError,
            r"features must have shape \(n, dim\); got \(4,\). For one row pass row",
        ),
        ({"features": np.full((4, 2), np.nan)}, NonFiniteError, "features must be finite"),
        ({"features": np.ones((3, 2))}, ShapeError, "each set needs one id: 3 sets take 3 ids; got 4"),
        ({"ids": [1, 2, 3]}, ShapeError, "4 sets take 4 ids; got 3"),
        ({"ids": [1, 2, 3, -4]}, ParameterError, "at least 0"),
        ({"ids": [1, 2, 3, ""]}, ParameterError, "1 to 128 bytes"),
        ({"ids": "abcd"}, ShapeError, "list"),
        ({"sets": SETS[:3]}, ShapeError, r"3 context sets are for as many rows of 0 … 3; got 4 places"),
        ({"sets": SETS[:1], "places": [4]}, ShapeError, "places"),
        ({"sets": SETS[:1], "places": [-1]}, ShapeError, "places"),
        ({"times": [1.0, 2.0]}, ShapeError, r"times must be seconds or datetime64 of shape \(4,\)"),
        ({"times": ["a", "b", "c", "d"]}, ShapeError, "times must be seconds or datetime64"),
        ({"times": [1.0, np.nan, 2.0, 3.0]}, NonFiniteError, "times must be known for every row; the one at index 1"),
        ({"times": np.array(["2026-01-01", "NaT", "2026", "2026"], dtype="M8[s]")}, NonFiniteError, "times must be"),
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
        ({"rewards": [1j, 2, 3, 4]}, ShapeError, "complex128"),
        ({"rewards": [{}, None, 1, 2]}, ShapeError, "got NoneType, dict, int"),
        ({"rewards": None}, ShapeError, r"must have shape \(4,\)"),
        ({"rewards": 1.0}, ShapeError, r"must have shape \(4,\)"),
        ({"rewards": np.array(["2026-01-01"] * 4, dtype="M8[s]")}, ShapeError, "datetime64"),
        ({"policy_id": None}, ShapeError, "policy_id must be the id of the policy that decided, a text; got None"),
        ({"sets": np.ones((4, 3, 2))}, ShapeError, "sets must be ContextSets; got ndarray. Pass ContextSets"),
        ({"places": ["a", "b"]}, ShapeError, "places must be whole numbers, one for each context set"),
        ({"places": [0.5, 1.0]}, ShapeError, "places must be whole numbers"),
        ({"times": [[1.0], [1.0, 2.0]]}, ShapeError, "times must be seconds or datetime64"),
        ({"features": masked(np.ones((4, 2)))}, ShapeError, "features must not be masked"),
        ({"features": [masked([1.0, 2.0])] * 4}, ShapeError, "features must not be masked"),
        ({"ids": masked([3, 1, 2, 0])}, ShapeError, "ids must not be masked"),
        ({"times": masked([3.0, 1.0, 2.0, 0.0])}, ShapeError, "times must not be masked"),
        ({"reward_times": masked(np.array(["2026-01-01"] * 4, dtype="M8[s]"))}, ShapeError, "reward_times must not be"),
        ({"sets": SETS, "places": masked([0, 1, 2, 3])}, ShapeError, "places must not be masked"),
    ],
)
def test_bad_rows_are_explained(given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        made(**given)


def test_rows_cannot_be_written_to() -> None:
    mine = np.ones((4, 2))
    rows = made(features=mine)
    for part in (rows.ids, rows.features, rows.rewards):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 0


def test_folding_sorts_by_the_keys() -> None:
    folded = made(sets=SETS, times=[10.0, 20.0, 30.0, 40.0]).folded()
    assert folded.ids[:, 0].tolist() == [0, 1, 2, 3]
    assert folded.rewards.tolist() == [4.0, 2.0, 3.0, 1.0]
    assert folded.times is not None
    assert folded.times.tolist() == [40.0, 20.0, 30.0, 10.0]
    assert folded.sets is not None
    np.testing.assert_array_equal(folded.sets.contexts, SETS.contexts[[3, 1, 2, 0]])
    assert folded.folded() is folded


def test_names_and_numbers_are_different_ids() -> None:
    folded = made(ids=["1", 1, "2", 2]).folded()
    assert len(folded) == 4
    assert sorted(folded.rewards.tolist()) == [1.0, 2.0, 3.0, 4.0]
    assert folded.ids[:2, 1].tolist() == [0, 0]  # numbers before names
    with pytest.raises(BatchError, match="1 decision with rows that contradict"):
        made(ids=["a", "b", "a", "c"]).folded()


def test_copies_are_one_decision_and_a_reward_completes_its_row() -> None:
    for rewards, expected in (
        ([None, 2.0, None, 4.0], [2.0, 4.0]),
        ([2.0, None, None, 4.0], [2.0, 4.0]),
        ([2.0, 2.0, 4.0, None], [2.0, 4.0]),
        ([None, None, None, None], [np.nan, np.nan]),
        ([None, 2.0, None, None], [2.0, np.nan]),
    ):
        rows = made(ids=[7, 7, 9, 9], features=np.eye(2)[[0, 0, 1, 1]], rewards=rewards)
        folded = rows.folded()
        assert folded.ids[:, 0].tolist() == [7, 9]
        np.testing.assert_array_equal(folded.rewards, expected)


@pytest.mark.parametrize("place", [0, 1])
def test_a_set_beside_either_copy_counts(place: int) -> None:
    rows = made(
        ids=[7, 7, 9, 9],
        features=np.eye(2)[[0, 0, 1, 1]],
        rewards=[None, 2.0, 4.0, None],
        sets=SETS[:1],
        places=np.array([place]),
    )
    folded = rows.folded()
    assert folded.rewards.tolist() == [2.0, 4.0]
    assert folded.places is not None
    assert folded.places.tolist() == [0]
    assert folded.sets is not None
    np.testing.assert_array_equal(folded.sets.contexts, SETS.contexts[:1])


@pytest.mark.parametrize(
    "given",
    [
        {"rewards": [1.0, 1.5, 4.0, 4.0]},
        {"features": np.array([[1.0, 0.0], [1.0, 1e-300], [0.0, 1.0], [0.0, 1.0]]), "rewards": [1.0, 1.0, 4.0, 4.0]},
        {"sets": SETS, "rewards": [1.0, 1.0, 4.0, 4.0]},
        {
            "sets": ContextSets(SETS.contexts[[0, 0, 1, 1]], np.array([[True] * 3, [True, True, False]] * 2)),
            "rewards": [1.0, None, 4.0, None],
        },
        {"rewards": [None, 1.0, None, 0.0], "ids": [7, 9, 7, 9], "features": np.eye(2)[[0, 0, 0, 1]]},
    ],
    ids=["rewards", "features", "sets", "masks", "features of rewarded rows"],
)
def test_rows_that_contradict_each_other_are_refused(given: dict[str, Any]) -> None:
    usual = {"ids": [7, 7, 9, 9], "features": np.eye(2)[[0, 0, 1, 1]]}
    with pytest.raises(BatchError, match=r"[12] decisions? with rows that contradict .*; the first has rows \d, \d"):
        made(**usual | given).folded()


def test_parts_of_rows_and_rows_of_parts() -> None:
    rows = made(
        sets=SETS[:2], places=np.array([3, 1]), times=[1.0, 2.0, 3.0, 4.0], reward_times=[2.0, np.nan, 4.0, 5.0]
    )
    for cut in range(1, 4):
        joined = Rows.concatenate([rows[:cut], rows[cut:]])
        for name in ("ids", "features", "rewards", "times", "reward_times"):
            np.testing.assert_array_equal(getattr(joined, name), getattr(rows, name))
        shown = {int(p): s for p, s in zip(joined.places, joined.sets.contexts[:, 0, 0], strict=True)}  # type: ignore[union-attr,arg-type]
        assert shown == {3: SETS.contexts[0, 0, 0], 1: SETS.contexts[1, 0, 0]}
    assert rows[np.array([0, 2])].sets is None
    assert rows[:0].features.shape == (0, 2)
    with pytest.raises(BatchError, match="policy by policy; these are of several"):
        Rows.concatenate([rows, replace(rows, policy_id="q")])
    with pytest.raises(BatchError, match="or none"):
        Rows.concatenate([])
    assert Rows.concatenate([rows, replace(rows, times=None)]).times is None


def test_times_may_be_dates() -> None:
    dates = np.array(["1970-01-01T00:00:10", "1970-01-02", "1970-01-01", "1970-01-01T00:00:00.5"], dtype="M8[ms]")
    missing = np.array(["NaT", "1970-01-01T00:01", "NaT", "NaT"], dtype="M8[s]")
    rows = made(times=dates, reward_times=missing)
    assert rows.times is not None
    assert rows.reward_times is not None
    assert in_seconds(rows.times).tolist() == [10.0, 86_400.0, 0.0, 0.5]
    np.testing.assert_array_equal(in_seconds(rows.reward_times), [np.nan, 60.0, np.nan, np.nan])


def test_sets_that_contradict_each_other_are_named_by_their_rows() -> None:
    sets = ContextSets(np.array([[[1.0]], [[1.0]], [[2.0]]]), np.ones((3, 1), dtype=np.bool_))
    rows = Rows(ids=[7, 4, 7], policy_id="a", features=np.ones((3, 1)), rewards=np.zeros(3), sets=sets)
    with pytest.raises(BatchError, match=r"1 decision .* the first has rows 0, 2, with rewards 0\.0, 0\.0\."):
        rows.folded()


def test_what_is_no_rows_or_decisions_is_explained() -> None:
    for parts in (5, [1], [made(), None]):
        with pytest.raises(ShapeError, match="joined from a list of Rows"):
            Rows.concatenate(parts)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"decisions must be what policy\.decide returned; got NoneType"):
        Rows.of(np.ones((2, 2, 2)), None, [1.0, 2.0])  # type: ignore[arg-type]


def test_an_array_that_is_used_again_does_not_change_the_rows() -> None:
    contexts, rewards, available = np.ones((4, 3, 2)), np.ones(4), np.ones((4, 3), dtype=np.bool_)
    times, keys = np.arange(4.0), np.array([[k, 0] for k in range(4)], dtype=np.uint64)
    decisions = Policy(dim=2, sampler=Uniform()).decide(contexts, ids=range(4), seed=1)
    sets = ContextSets(contexts, available)
    places = np.arange(4)
    features = np.ones((4, 2))
    rows = [
        Rows.of(contexts, decisions, rewards, available, times=times, reward_times=times),
        Rows.of(sets, decisions, rewards),
        made(ids=keys, features=features, rewards=rewards, sets=sets, places=places, times=times),
        made(ids=keys, features=features[::-1], sets=sets[:4], rewards=rewards),
    ]
    for buffer in (contexts, rewards, times, features):
        buffer[:] = 99.0
    keys[:, 0] = 99
    places[:] = 0
    available[:] = False
    for one in rows:
        assert (one.features == 1.0).all()
        assert (one.rewards == 1.0).all()
        assert one.ids[:, 0].tolist() == [0, 1, 2, 3]
        assert one.sets is not None
        assert (one.sets.contexts == 1.0).all()
        assert one.sets.available.all()
        assert one.places is not None
        assert one.places.tolist() == [0, 1, 2, 3]
        assert one.times is None or one.times.tolist() == [0.0, 1.0, 2.0, 3.0]
        held = (one.features, one.rewards, one.places, one.sets.contexts, one.sets.available, one[::2].features)
        assert not any(array.flags.writeable for array in held)


def test_what_nobody_can_write_to_is_not_copied() -> None:
    contexts = np.ones((4, 3, 2))
    contexts.flags.writeable = False
    sets = ContextSets(contexts, np.ones((4, 3), dtype=np.bool_))
    rows = made(sets=sets)
    assert rows.sets is not None
    assert np.shares_memory(rows.sets.contexts, contexts)
    assert np.shares_memory(replace(rows, policy_id="q").features, rows.features)


def test_a_masked_reward_is_not_known() -> None:
    assert np.isnan(made(rewards=masked([1.0, 2.0, 3.0, 4.0])).rewards).tolist() == [True, False, False, False]
    assert np.isnan(made(rewards=[1.0, np.ma.masked, True, None]).rewards).tolist() == [False, True, False, True]
    decisions = Policy(dim=2, sampler=Uniform()).decide(SETS, ids=range(4), seed=1)
    with pytest.raises(ShapeError, match="available must not be masked"):
        Rows.of(SETS.contexts, decisions, np.ones(4), masked(np.ones((4, 3), dtype=np.bool_)))


def test_seconds_and_dates_are_told_apart() -> None:
    dates = np.array(["2026-03-01"] * 4, dtype="M8[s]")
    with pytest.raises(
        ShapeError, match=r"times are datetime64\[us\] and reward_times float64: they cannot be compared"
    ):
        made(times=dates, reward_times=np.arange(4.0))
    unknown = made(times=dates, reward_times=np.full(4, np.nan)).reward_times
    assert np.isnat(unknown).all()
    with pytest.raises(ShapeError, match="some rows have times in seconds and some as datetime64"):
        Rows.concatenate([made(times=dates), made(times=np.arange(4.0))])


def test_of_copies_with_other_times_the_earliest_counts_in_any_order() -> None:
    learner = make_learner("linucb-grid", dim=2, arms=3, horizon=100)
    state = learner.begin()
    for late in ([5.0, 500.0], [500.0, 5.0]):
        rows = Rows(
            ids=[1, 1],
            policy_id=state.policy.id,
            features=[[1.0, 0.0]] * 2,
            rewards=[1.0, 1.0],
            times=[0.0, 0.0],
            reward_times=late,
        )
        assert learner.summarize(state, rows, window=100.0, now=1000.0).rewarded == 1


@pytest.mark.parametrize("rewards", [[10**18, 1], [None, -(10**17)], np.array([1, 2**60]), np.array([0, 2**63], "u8")])
def test_whole_numbers_that_are_no_floats_are_refused(rewards: Any) -> None:
    with pytest.raises(NonFiniteError, match=r"beyond 2\^53 whole numbers lose some; got"):
        Rows(ids=[1, 2], policy_id="p", features=np.ones((2, 2)), rewards=rewards)
    assert Rows(ids=[1], policy_id="p", features=np.ones((1, 2)), rewards=[2**53]).rewards.tolist() == [2.0**53]


def test_offered_arms_that_cannot_be_squared_are_refused() -> None:
    contexts = np.ones((2, 3, 2))
    decisions = Policy(dim=2, sampler=Uniform()).decide(contexts, ids=range(2), seed=1)
    contexts[1, (decisions.arms[1] + 1) % 3] = 1e200
    with pytest.raises(NonFiniteError, match=r"contexts must be at most 1e\+100 in size"):
        Rows.of(contexts, decisions, [1.0, 2.0])
