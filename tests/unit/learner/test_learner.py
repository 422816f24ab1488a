"""The loop: batches as they come, rewards that come late, and what still holds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rareswitch.core import Stats
from rareswitch.decisions import DecisionLog
from rareswitch.errors import BatchError
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import (
    BatchLinUCB,
    Foresight,
    Learner,
    State,
    make_learner,
    state_from_bytes,
    state_to_bytes,
    takes,
)
from rareswitch.planning import known_regret, proved_rate
from reference.loop import after, rows_of, step
from reference.refusals import raises

STALE = ["linucb-grid", "thompson-grid", "linmed-grid"]
POOLED = ["foresight", *STALE, "pure-exploitation", "base", "oful", "batched-thompson"]
FRESH = [
    *("batch-linucb", "batch-linucb-kw", "batch-linucb-dg", "batch-linucb-dg-certified"),
    *("falcon", "fixed-set-elimination", "rarely-switch-suplinucb"),
]
STEPPING = ["linucb", "thompson", "linmed", "suplinucb", "suplinrel"]


def world(name: str = "") -> World:
    return make_world(
        {"base": "plain", "fixed-set-elimination": "fixed", "e4": "fixed"}.get(name, "gaussian"),
        dim=4,
        arms=4,
        noise=0.4,
    )


def made(name: str, **settings: Any) -> Learner:
    usual = {"dim": 4, "arms": 4, "horizon": 600, "policies": 4, "noise": 0.4} | settings
    return make_learner(name, **{key: value for key, value in usual.items() if key in takes(name)})


def incomplete(rows: DecisionLog, every: int = 3) -> DecisionLog:
    """The rows without every third reward."""
    return replace(rows, rewards=np.where(np.arange(len(rows)) % every == 0, np.nan, rows.rewards))


def batches(name: str, first: Any = incomplete) -> tuple[Learner, DecisionLog, State, DecisionLog]:
    """A learner, all rows of its first batch, the state after ``first`` of them, and the rows of the second batch."""
    learner, here = made(name), world(name)
    state = learner.begin()
    waiting = ("oful", "batched-thompson", "rarely-switch-suplinucb")
    count = 40 if name in waiting else None  # closed by hand: these clocks wait
    rows = rows_of(state, here, 1, count=count)
    state = learner.next(state, learner.summarize(state, first(rows)))
    return learner, rows, state, rows_of(state, here, 1, count=50)


@pytest.mark.parametrize("name", POOLED)
def test_late_rewards_count_as_if_they_had_been_there(name: str) -> None:
    """The policy is that of a run which had them all when the first batch ended, and played the same policy since."""
    learner, rows, state, second = batches(name)
    summary, late = learner.summarize(state, second), learner.summarize(state, rows)
    assert (late.decided, late.rewarded, late.sample) == (len(rows), len(rows), None)
    found = learner.next(state, summary, late=[late])
    in_time = replace(state, sums=late.stats, past=(replace(state.past[0], rewarded=len(rows), stats=late.stats),))
    expected = learner.next(in_time, summary)
    assert state_to_bytes(found) == state_to_bytes(expected)
    assert found.policy.id != learner.next(state, summary).policy.id
    np.testing.assert_allclose(
        found.sums[0].moment[:4], rows.features.T @ rows.rewards + second.features.T @ second.rewards
    )


@pytest.mark.parametrize("name", POOLED)
def test_late_rewards_count_once_however_often_they_are_given(name: str) -> None:
    learner, rows, state, second = batches(name)
    summary, late = learner.summarize(state, second), learner.summarize(state, rows)
    once = learner.next(state, summary, late=[late])
    with pytest.raises(BatchError, match=r"late has batch 1 twice\. Add the parts of a batch first"):
        learner.next(state, summary, late=[late, late])
    third = learner.summarize(once, rows_of(once, world(name), 1, count=30))
    assert state_to_bytes(learner.next(once, third, late=[late])) == state_to_bytes(learner.next(once, third))


@pytest.mark.parametrize("name", POOLED)
def test_late_rows_of_several_batches_may_come_after_the_state_was_kept(name: str) -> None:
    learner, rows, state, second = batches(name)
    state = state_from_bytes(state_to_bytes(state))
    then = learner.next(state, learner.summarize(state, incomplete(second)))
    then = state_from_bytes(state_to_bytes(then))
    third = rows_of(then, world(name), 1, count=30)
    late = [learner.summarize(then, part) for part in (second, rows)]
    found = learner.next(then, learner.summarize(then, third), late=late)
    assert [(batch.decided, batch.rewarded) for batch in found.past] == [
        (len(p), len(p)) for p in (rows, second, third)
    ]
    everything = Stats.of(
        np.concatenate([p.features for p in (rows, second, third)]),
        np.concatenate([p.rewards for p in (rows, second, third)]),
    )
    np.testing.assert_allclose(found.sums[0].gram[:4, :4], everything.gram)
    np.testing.assert_allclose(found.sums[0].moment[:4], everything.moment)


def test_decisions_that_turn_up_late_move_the_count() -> None:
    """A shard of the log that was not there when the batch was learned from."""
    learner, rows, state, second = batches("linucb-grid", first=lambda rows: rows.select(slice(10)))
    assert state.start == 10
    found = learner.next(state, learner.summarize(state, second), late=[learner.summarize(state, rows)])
    assert found.start == len(rows) + 50
    assert found.past[0].decided == len(rows)


@pytest.mark.parametrize("name", [*POOLED, *FRESH])
def test_fewer_rows_than_were_counted_are_refused(name: str) -> None:
    """Late rows alone would stand in for the whole batch."""
    learner, rows, state, second = batches(name)
    summary = learner.summarize(state, second)
    before = state_to_bytes(state)
    unknown = np.isnan(incomplete(rows).rewards)
    unknown[1] = True  # one reward that was there before
    for few in (rows.select(unknown), replace(rows, rewards=np.where(unknown, np.nan, rows.rewards))):
        with pytest.raises(
            BatchError, match=r"batch 1 was learned from with .* give all of them, the old and the late"
        ):
            learner.next(state, summary, late=[learner.summarize(state, few)])
    assert state_to_bytes(state) == before


@pytest.mark.parametrize("name", FRESH)
def test_late_rewards_are_only_counted_where_a_proof_needs_fresh_batches(name: str) -> None:
    learner, rows, state, second = batches(name)
    summary, late = learner.summarize(state, second), learner.summarize(state, rows)
    assert not any(stats.count for stats in late.stats)
    without, found = learner.next(state, summary), learner.next(state, summary, late=[late])
    assert found.policy.id == without.policy.id
    assert found.start == without.start
    assert [batch.late for batch in found.past] == [len(rows) - state.past[0].rewarded, 0]
    assert found.past[0].late > 0
    assert [batch.late for batch in without.past] == [0, 0]
    assert state_to_bytes(state_from_bytes(state_to_bytes(found))) == state_to_bytes(found)


@pytest.mark.parametrize("name", [*POOLED, *FRESH])
def test_late_summaries_of_another_run_are_refused(name: str) -> None:
    learner, rows, state, second = batches(name)
    summary, late = learner.summarize(state, second), learner.summarize(state, rows)
    with pytest.raises(BatchError, match="which this run never had"):
        learner.next(state, summary, late=[replace(late, policy_id="f" * 64)])
    raises(BatchError, "this is the current one: give it as the summary", learner.next, state, summary, late=[summary])
    raises(BatchError, r"late must be a list of summaries; got a Summary", learner.next, state, summary, late=late)
    with pytest.raises(BatchError, match="next takes summaries, as summarize makes them of rows; got DecisionLog"):
        learner.next(state, second)  # type: ignore[arg-type]
    raises(BatchError, "summarize takes a DecisionLog; got list", learner.summarize, state, [])
    with pytest.raises(BatchError, match="a state is what begin, next and state_from_bytes return; got bytes"):
        learner.next(state_to_bytes(state), summary)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", STEPPING)
def test_learners_of_every_step_take_nothing_late(name: str) -> None:
    learner, here = made(name), world()
    rows, summary, state = step(learner, learner.begin(), here)
    raises(BatchError, "updated at every step does not tell batches apart", learner.summarize, state, rows)
    now = learner.summarize(state, rows_of(state, here, 1, count=1))
    raises(BatchError, "updated at every step does not tell batches apart", learner.next, state, now, late=[summary])


@pytest.mark.parametrize("name", [*POOLED, *FRESH, *STEPPING])
@pytest.mark.parametrize("count", [7, 90])
def test_a_batch_ends_when_the_user_says_so(name: str, count: int) -> None:
    """Shorter or longer than planned: all of it counts, and the batches to come stay as long as they were."""
    learner, here = made(name), world(name)
    state = learner.begin()
    assert state.batch_sizes[0] != count
    summary = learner.summarize(state, rows_of(state, here, 1, count=count))
    found = learner.next(state, summary)
    assert (found.policies, found.start) == (2, count)
    if not learner.clock.every_step:
        assert [batch.decided for batch in found.past] == [count]
        if not learner.clock.uses_features:
            assert found.batch_sizes == state.batch_sizes[1:]
    again = learner.next(found, learner.summarize(found, rows_of(found, here, 1, count=count)))
    assert (again.policies, again.start) == (3, 2 * count)


@pytest.mark.parametrize("name", [*POOLED, *FRESH, *STEPPING])
def test_a_batch_without_a_reward_is_refused_and_nothing_changes(name: str) -> None:
    learner, here = made(name), world(name)
    state = after(learner, here, 1)
    before = state_to_bytes(state)
    rows = rows_of(state, here, 1, count=1 if learner.clock.every_step else 20)
    silent = learner.summarize(state, replace(rows, rewards=np.full(len(rows), np.nan)))
    assert (silent.decided, silent.rewarded) == (len(rows), 0)
    with pytest.raises(
        BatchError, match=f"none of the {len(rows)} decisions of this batch has a reward.*policy can go on"
    ):
        learner.next(state, silent)
    assert state_to_bytes(state) == before
    assert learner.next(state, learner.summarize(state, rows)).policies == 3


@pytest.mark.parametrize("name", [*POOLED, *FRESH])
def test_sums_of_other_features_are_refused(name: str) -> None:
    learner, _, state, second = batches(name)
    summary = learner.summarize(state, second)
    wider = replace(summary, stats=tuple(Stats.zero(9) for _ in summary.stats))
    raises(BatchError, "these sums were made by a learner with other features than", learner.next, state, wider)
    with pytest.raises(BatchError, match="these sums were made by a learner with other features than"):
        learner.next(replace(state, sums=wider.stats), summary)


def played(learner: Learner, *counts: int, forecast: Any = None) -> State:
    state = learner.begin()
    for count in counts:
        state = learner.next(
            state, learner.summarize(state, rows_of(state, world(), 1, count=count)), forecast=forecast
        )
    return state


def test_policies_that_decide_alike_have_ids_of_their_own() -> None:
    """Arms without features teach nothing: each policy decides as all before it, and the rows of each are its own."""
    learner = make_learner("linucb-grid", dim=3, arms=5, horizon=40, grid=[10, 20, 40])
    state, contexts = learner.begin(), np.zeros((10, 5, 3))
    policies = [state.policy]
    for batch in range(2):
        decisions = state.policy.decide(contexts, ids=range(10 * batch, 10 * batch + 10), seed=1)
        state = learner.next(state, learner.summarize(state, DecisionLog.of(contexts, decisions, np.zeros(10))))
        policies.append(state.policy)
    assert [policy.edition for policy in policies] == [0, 1, 2]
    assert len({policy.id for policy in policies}) == 3


def test_what_holds_is_said() -> None:
    """As planned; off the plan, within its horizon; past its horizon; for a learner without a bound."""
    learner = BatchLinUCB(dim=4, arms=4, horizon=600, policies=3, delta=0.1)
    first, second, third = learner.begin().batch_sizes
    for state in (learner.begin(), played(learner, first, second), played(learner, first, second, third)):
        assert str(known_regret(learner, state)) == "regret √(dK·ln K)·T^0.571, stochastic"
    shorter = str(known_regret(learner, played(learner, first, second - 5)))
    assert f"({first}, {second - 5} decisions for {first}, {second})" in shorter
    assert "all intervals hold together with probability 0.9" in shorter
    longer = str(known_regret(learner, played(learner, first, second + 5)))
    assert f"made for 600 decisions in 3 batches, and there are {605} in 3" in longer
    assert "a larger probability than 0.1" in longer
    more = str(known_regret(learner, played(learner, first, 5, 5, forecast=[5, 5])))
    assert "made for 600 decisions in 3 batches" in more


def test_learners_that_look_hold_whenever_they_change() -> None:
    for name in ("oful", "rarely-switch-suplinucb"):
        learner = made(name)
        assert str(known_regret(learner, played(learner, 5, 9))) == f"regret {proved_rate(learner)}"
    kept_back = Foresight(dim=4, arms=4, horizon=600, noise_bound=0.3, reserve=2)
    first, second, *_ = kept_back.begin().batch_sizes
    assert str(known_regret(kept_back, played(kept_back, first, second))) == f"regret {proved_rate(kept_back)}"
    early = str(
        known_regret(kept_back, played(kept_back, first, second - 5))
    )  # what is proved is not of batches chosen by features
    assert f"({first}, {second - 5} decisions for {first}, {second})" in early
    assert "No rate is proved" in early
    nothing = Foresight(dim=4, arms=4, horizon=600, reserve=2)  # without a bound there is nothing to take back
    assert str(known_regret(nothing, played(nothing, first, second - 5))) == "no bound is known"
    stepping = made("linucb")
    assert str(known_regret(stepping, played(stepping, 3))) == "regret d√T, adversarial"
    stale = made("linucb-grid")
    assert str(known_regret(stale, stale.begin())) == "no bound is known"
    off = str(known_regret(stale, played(stale, 3)))
    assert "No rate is proved for other batches" in off
