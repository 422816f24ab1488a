"""Summaries: what is counted, what waits, what is sampled."""

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rareswitch.core import ContextSets, id_keys, sample_order
from rareswitch.decisions import DecisionLog
from rareswitch.errors import BatchError, ParameterError
from rareswitch.lab.worlds import make_world
from rareswitch.learner import (
    Foresight,
    LinUCBGrid,
    Sample,
    make_learner,
    sampled,
    state_to_bytes,
    summaries_from_bytes,
    summaries_to_bytes,
)
from rareswitch.learner.rule import first_half
from reference.loop import rows_of
from reference.refusals import raises

WORLD = make_world("varying", dim=3, arms=5, noise=0.5)
LEARNER = Foresight(dim=3, grid=[120, 500, 1000], intercept=False)
STATE = LEARNER.begin()
ROWS = rows_of(STATE, WORLD, 1)


def known(rewards: Any) -> Any:
    return replace(ROWS, rewards=rewards)


def test_missing_rewards_are_counted_and_left_out() -> None:
    rewards = np.where(np.arange(120) % 3 == 0, np.nan, ROWS.rewards)
    summary = LEARNER.summarize(STATE, known(rewards))
    assert (summary.decided, summary.rewarded, summary.missing) == (120, 80, 40)
    known_ones = ~np.isnan(rewards)
    x, r = ROWS.features[known_ones], rewards[known_ones]
    assert summary.stats[0].count == 80
    np.testing.assert_allclose(summary.stats[0].gram, x.T @ x)
    np.testing.assert_allclose(summary.stats[0].moment, x.T @ r)
    # what was offered is known all the same
    assert summary.sample is not None
    assert len(summary.sample) == 120
    assert repr(summary).endswith("120 decisions, 80 rewarded, 40 missing>")


def test_an_empty_part_counts_nothing() -> None:
    empty = LEARNER.summarize(STATE, ROWS.select(slice(0)))
    assert (empty.decided, empty.rewarded, empty.sample) == (0, 0, None)
    whole = LEARNER.summarize(STATE, ROWS)
    assert summaries_to_bytes([empty + whole]) == summaries_to_bytes([whole + empty]) == summaries_to_bytes([whole])


def test_summaries_of_two_policies_do_not_add() -> None:
    one = LEARNER.summarize(STATE, ROWS)
    with pytest.raises(BatchError, match=r"summaries of two policies cannot be added.*Give those of earlier policies"):
        one + replace(one, policy_id="f" * 64)
    with pytest.raises(TypeError):
        one + 1


@pytest.mark.parametrize("unit", ["seconds", "dates"])
def test_decisions_in_their_window_wait_even_if_their_reward_is_known(unit: str) -> None:
    """At 100 s, with a window of 30 s, the decisions after 70 s wait; rewards later than 30 s are expired."""
    times, came = np.arange(120.0), np.arange(120.0) + 5.0
    came[10:20] = times[10:20] + 31.0  # too late
    came[20:25] = times[20:25] + 30.0  # just in time
    rewards = ROWS.rewards.copy()
    rewards[40:50] = np.nan
    came[40:50] = np.nan
    now: Any = 100.0
    given: dict[str, Any] = {"times": times, "reward_times": came}
    if unit == "dates":
        given = {name: (1000 * part).astype("M8[ms]") for name, part in given.items()}
        given["reward_times"][40:50] = np.datetime64("NaT", "ms")
        now = np.datetime64(100, "s")
    summary = LEARNER.summarize(STATE, replace(known(rewards), **given), window=30.0, now=now)
    assert summary.decided == 120
    assert summary.waiting == 49  # from 71 s on: a window of exactly 30 s is over
    assert summary.expired == 10
    assert summary.rewarded == 120 - 49 - 10 - 10
    assert summary.missing == 69
    used = np.r_[0:10, 20:40, 50:71]
    np.testing.assert_allclose(summary.stats[0].moment, ROWS.features[used].T @ ROWS.rewards[used])


def test_now_is_the_latest_decision_by_default() -> None:
    rows = replace(ROWS, times=np.arange(120.0))
    assert LEARNER.summarize(STATE, rows, window=20.0).waiting == 20
    assert LEARNER.summarize(STATE, rows, window=0.0).waiting == 0
    assert LEARNER.summarize(STATE, rows, window=20.0, now=1e6).rewarded == 120
    assert LEARNER.summarize(STATE, rows.select(slice(0)), window=20.0).decided == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"window": -1.0}, "window must be a finite number at least 0"),
        ({"window": "long"}, "window must be a number"),
        ({"window": 1.0, "now": math.nan}, "now must be"),
        ({"window": 1.0, "now": "noon"}, "now must be a number"),
        ({"window": 1.0, "now": np.datetime64("NaT", "s")}, "now must be"),
        ({"now": 5.0}, "now says when an attribution window is looked at, and there is none: give window too"),
    ],
)
def test_bad_windows_are_explained(settings: dict[str, Any], words: str) -> None:
    raises(ParameterError, words, LEARNER.summarize, STATE, replace(ROWS, times=np.arange(120.0)), **settings)
    raises(ParameterError, "give the log its times", LEARNER.summarize, STATE, ROWS, window=1.0)


def test_sets_that_the_learner_is_not_for_are_refused() -> None:
    small = LinUCBGrid(dim=3, arms=4, horizon=1000)
    rows = rows_of(small.begin(), WORLD, 1)
    raises(BatchError, "made for at most 4 arms; got 5", small.summarize, small.begin(), rows)
    other = Foresight(dim=2, horizon=1000, intercept=False)
    with pytest.raises(BatchError, match="this state is of 3 features, and the learner is for 2"):
        other.summarize(replace(other.begin(), policy=STATE.policy), ROWS)
    bare = ROWS.without_offers()
    with pytest.raises(BatchError, match="this state is of 3 features, and the learner is for 2"):
        other.summarize(replace(other.begin(), policy=STATE.policy), bare)


def test_the_sample_has_the_smallest_hashes() -> None:
    learner = Foresight(dim=3, grid=[600, 1000, 2000], intercept=False)
    state = learner.begin()
    rows = rows_of(state, WORLD, 1)
    sample = learner.summarize(state, rows).sample
    expected = np.argsort(sample_order(rows.ids))[:200]
    np.testing.assert_array_equal(sample.keys, rows.ids[expected])
    assert rows.contexts is not None
    sets = ContextSets(rows.contexts, rows.available)[expected].packed()
    np.testing.assert_array_equal(sample.sets.contexts, sets.contexts)
    np.testing.assert_array_equal(sample.sets.available, sets.available)


def bound(tests: int, count: int) -> float:
    """Hoeffding, false alarm at most 1e-9 over all tests; it holds for samples without replacement too."""
    return math.sqrt(math.log(2 * tests / 1e-9) / (2 * count))


@pytest.mark.parametrize("kind", ["numbers", "names"])
def test_samples_and_halves_are_uniform(kind: str) -> None:
    """Over the order in which ids come, and over their last digits."""
    count, size = 20_000, 2000
    keys = id_keys(range(count) if kind == "numbers" else [f"d-{k}" for k in range(count)])
    one = ContextSets(np.zeros((count, 1, 1)), np.ones((count, 1), dtype=np.bool_))
    chosen = {tuple(key) for key in Sample.of(size, keys, one).keys.tolist()}
    places = np.array([k for k, key in enumerate(keys.tolist()) if tuple(key) in chosen])
    assert len(places) == size
    for group, groups in ((places // (count // 10), 10), (places % 7, 7), (places % 2, 2)):
        shares = np.bincount(group, minlength=groups) / size
        assert np.abs(shares - 1 / groups).max() <= bound(19, size)
    first = first_half(keys)
    assert abs(first.mean() - 0.5) <= bound(1, count)
    assert abs(first[places].mean() - 0.5) <= bound(1, size)  # the sample is not drawn by the same coin
    assert abs(first[:-1][first[1:]].mean() - 0.5) <= bound(1, count // 3)  # nor is a coin like its neighbour


def test_shares_are_nested() -> None:
    keys = id_keys(range(5000))
    for share in (0.0, 0.01, 0.3, 1.0):
        found = sampled(keys, share)
        assert abs(found.mean() - share) <= bound(4, 5000)
        assert (sampled(keys, min(1.0, 2 * share)) >= found).all()


def test_summaries_with_decisions_in_common_are_not_added() -> None:
    learner = Foresight(dim=3, horizon=300, intercept=False)
    state = learner.begin()
    contexts = np.random.default_rng(1).standard_normal((20, 4, 3))
    decisions = state.policy.decide(contexts, ids=range(20), seed=1)
    rows = DecisionLog.of(contexts, decisions, np.ones(20))
    whole, part = learner.summarize(state, rows), learner.summarize(state, rows.select(slice(10, None)))
    for other in (whole, part):
        with pytest.raises(BatchError, match="have decisions in common, which would count twice"):
            whole + other
    assert (learner.summarize(state, rows.select(slice(10))) + part).decided == 20


def test_a_summary_of_another_learner_with_the_same_policy_is_refused() -> None:
    """The first policies of these two are the same one, and one of them sums half of the decisions."""
    whole, half = (make_learner(name, dim=3, arms=5, horizon=500) for name in ("batch-linucb-kw", "batch-linucb-dg"))
    state = whole.begin()
    assert state.policy.id == half.begin().policy.id
    rows = rows_of(state, WORLD, 1)
    theirs = half.summarize(half.begin(), rows)
    raises(BatchError, "this summary was made by batch-linucb-dg", whole.next, state, theirs)
    with pytest.raises(BatchError, match="summaries of two learners cannot be added"):
        theirs + whole.summarize(state, rows)
    again = summaries_from_bytes(summaries_to_bytes([theirs]))[0]
    raises(BatchError, "this summary was made by batch-linucb-dg", whole.next, state, again)


def test_what_is_learned_cannot_be_written_to() -> None:
    learner = Foresight(dim=3, grid=[100, 200, 300], intercept=False)
    state = learner.begin()
    summary = learner.summarize(state, rows_of(state, WORLD, 1))
    state = learner.next(state, summary)
    rounds = WORLD.draw(5, seed=1)
    decisions = state.policy.decide(rounds.contexts, rounds.available, ids=range(5), seed=1)
    policy = state.policy
    arrays = [policy._estimates, policy._roots, summary.sample.keys, summary.sample.sets.contexts]
    arrays += [decisions.arms, decisions.propensities, decisions.survivors, decisions.ids, state.sums[0].gram]
    assert not any(array.flags.writeable for array in arrays)
    for part in (state.notes[0], state.rule_state):
        with pytest.raises(TypeError):
            part["noise"] = 7.0
    again = pickle.loads(pickle.dumps(state))
    assert state_to_bytes(again) == state_to_bytes(state)
    with pytest.raises(TypeError):
        again.notes[0]["noise"] = 7.0
