"""What holds for an experiment in every store."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.errors import ConflictError, ExistsError, ParameterError, StoreError
from rareswitch.experiment import Experiment, Rewards, create
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import Foresight, State
from rareswitch.store import Marks
from reference import trials
from reference.refusals import raises
from reference.rows import STORES

pytestmark = pytest.mark.usefixtures("short_plans")
HORIZON, BATCH = 200, 12
WORLD = make_world("gaussian", dim=3, arms=4, noise=0.5)
CLICKS = make_world("clicks", dim=3, arms=4, noise=0.5)
Begin = Callable[..., Experiment]


@pytest.fixture(params=STORES)
def begin(request: pytest.FixtureRequest, store_url: Callable[[str], str]) -> Begin:
    """Begins an experiment in a store of each kind."""
    url = store_url(request.param)

    def begun(**more: Any) -> Experiment:
        told: dict[str, Any] = {"dim": 3, "horizon": HORIZON, "policies": 4, "seed": 7, "now": 0.0}
        trial = create(url, uuid4().hex, **told | more)
        request.addfinalizer(trial.close)
        return trial

    return begun


def play(trial: Experiment, first: int, stop: int, world: World = WORLD) -> None:
    trials.play(trial, world, first, stop - first)


def test_an_experiment_that_is_there_is_opened_if_its_settings_are_those(store_url: Callable[[str], str]) -> None:
    url, asked = store_url("sqlite"), partial(create, dim=2, horizon=100, exist_ok=True)
    with asked(url, "again", policies=4) as trial:
        first = trial.decide([[1.0, 0.0], [0.0, 1.0]], id="r1")
    with asked(url, "again", policies=4) as trial:  # another moment, and no seed
        assert trial.decide([[1.0, 0.0], [0.0, 1.0]], id="r1").arm == first.arm
        assert trial.status().decisions == 1
    with pytest.raises(ExistsError, match=r"'again' .* created with other settings \(policies, seed\)"):
        asked(url, "again", policies=5, seed=12345)
    raises(ExistsError, "already", asked, url, "again", policies=4, exist_ok=False)


@pytest.mark.parametrize("world", [WORLD, CLICKS], ids=["linear", "clicks"])
def test_the_loop_learns_exactly_what_the_simulator_learns(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    learner, made, learn = Foresight(dim=world.dim, horizon=HORIZON, policies=4), list[str](), Foresight.next

    def recorded(self: Foresight, *given: Any, **more: Any) -> State:
        made.append((state := learn(self, *given, **more)).policy.id)
        return state

    with monkeypatch.context() as patch:
        patch.setattr(Foresight, "next", recorded)
        simulate(learner, world, seed=7)
    trial, first = begin(dim=world.dim), 0
    for stop in learner.clock.ends[:-1]:  # type: ignore[attr-defined]
        play(trial, first, stop, world)
        assert trial.advance(now=0.0).made
        first = stop
    assert [policy.id for policy in trial.policies][1:] == made[:3]
    assert all(trial.audit(number).matches for number in range(first))


#: How rewards come: in which order, how often each, how many before their decisions, and when by the clock.
ARRIVALS: dict[str, dict[str, Any]] = {
    "in order": {},
    "shuffled": {"seed": 1},
    "three times each": {"seed": 2, "times": 3},
    "before their decisions": {"seed": 3, "times": 2, "before": BATCH + 3},
    "early by the clock": {"seed": 4, "now": -1e9},
    "late by the clock": {"seed": 5, "now": 1e9, "times": 2, "before": 5},
}


def pay(trial: Experiment, events: list[tuple[int, float]], now: float) -> None:
    """Some at a time, of which some may be the same."""
    for at in range(0, len(events), 7):
        numbers, values = zip(*events[at : at + 7], strict=True)
        trial.reward_many(numbers, values, now=now)


def learned_when(trial: Experiment, *, seed: int = 0, times: int = 1, before: int = 0, now: float = 0.0) -> list[str]:
    """The policies of two batches whose rewards arrive so."""
    for first in (0, BATCH):
        rounds, ids = WORLD.draw(BATCH, seed=7, first=first), list(range(first, first + BATCH))
        values = WORLD.rewards(rounds.means[:, 0], seed=7, first=first).tolist()
        events = list(zip(ids, values, strict=True)) * times
        if seed:
            random.Random(seed).shuffle(events)
        pay(trial, events[:before], now)
        order = random.Random(seed).sample(range(BATCH), BATCH) if seed else list(range(BATCH))
        trial.decide_many(rounds.contexts[order], ids=[ids[k] for k in order], now=0.0)
        pay(trial, events[before:], now)
        assert trial.advance(now=0.0).rewarded == BATCH
    return [policy.id for policy in trial.policies]


def test_rewards_may_come_in_any_order_and_number_and_at_any_time(begin: Begin) -> None:
    learned = {how: learned_when(begin(schedule=BATCH), **told) for how, told in ARRIVALS.items()}
    assert learned == dict.fromkeys(ARRIVALS, learned["in order"])
    assert len(set(learned["in order"])) == 3


@pytest.mark.parametrize("rewards", [Rewards(), Rewards(several="sum")], ids=["overwritten", "summed"])
def test_what_changes_while_an_update_learns_is_learned_by_the_next_one(
    rewards: Rewards, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = begin(schedule=BATCH, rewards=rewards)
    event = ["order"] * BATCH if rewards.sums else None
    start = trial.store.start_update

    def interfered(parent: int, plan: str) -> tuple[str, Marks] | None:
        frozen = start(parent, plan)
        if parent == 2:
            trial.reward(3, 5.0, event="more" if rewards.sums else None, overwrite=True, now=0.0)
        return frozen

    monkeypatch.setattr(trial.store, "start_update", interfered)
    late = []
    for first in (0, BATCH, 2 * BATCH):
        ids = list(range(first, first + BATCH))
        trial.decide_many(WORLD.draw(BATCH, seed=7, first=first).contexts, ids=ids, now=0.0)
        trial.reward_many(ids, [0.1 * (number % 7) for number in ids], events=event, now=0.0)
        late.append(trial.advance(now=0.0).late)
    assert 1 in late[2]
    stats: Any = trial.versions[-1].state.past[0].stats[0]
    assert stats.reward_sum + stats.shift * BATCH == pytest.approx(
        sum(0.1 * (number % 7) for number in range(BATCH)) + 5.0 - (0.0 if rewards.sums else 0.3)
    )


def test_a_gate_refuses_and_lets_pass_in_every_store_alike(begin: Begin) -> None:
    trial, memory = (
        begin(schedule="by hand", horizon=20_000),
        create("memory:", "twin", dim=3, horizon=20_000, policies=4, seed=7, now=0.0, schedule="by hand"),
    )
    outcomes = []
    for one in (trial, memory):
        play(one, 0, 80)  # too few to tell
        first = one.advance(now=0.0, gate=True)
        play(one, 80, 1600)
        second = one.advance(now=0.0, gate=True)
        play(one, 1600, 1700)
        third = one.advance(now=0.0)
        assert (first.made, second.made, third.made, third.late) == (False, True, True, {1: 1600})
        assert len(one.store.refusals(1)) == 1
        assert one.verify().holds
        outcomes.append((first.gate, second.gate, [policy.id for policy in one.policies]))
    assert outcomes[0] == outcomes[1]


def test_of_two_that_learn_the_same_one_says_that_it_made_the_policy(begin: Begin, monkeypatch: Any) -> None:
    trial = begin(schedule=BATCH)
    play(trial, 0, BATCH)
    other = Experiment(trial.store, trial.description, None)
    publish, told = trial.store.publish, list[Any]()

    def outrun(version: Any) -> Any:
        monkeypatch.setattr(trial.store, "publish", publish)
        told.append(other.advance(now=0.0))
        return publish(version)

    monkeypatch.setattr(trial.store, "publish", outrun)
    monkeypatch.setattr("rareswitch.experiment.update.time.perf_counter", lambda: 0.0)  # equally fast, too
    outcome = trial.advance(now=0.0)
    assert [(one.made, one.elsewhere) for one in (*told, outcome)] == [(True, False), (False, True)]
    assert told[0].policy_id == outcome.policy_id
    assert trial.store.head() == 2


@pytest.mark.parametrize("broken", [KeyboardInterrupt(), StoreError("the disk is full.")], ids=["Ctrl-C", "no room"])
@pytest.mark.parametrize("verb", ["slices", "publish"])
def test_an_update_that_was_begun_is_brought_to_its_end_though_none_is_due(
    verb: str, broken: BaseException, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, whole = begin(schedule=BATCH), begin(schedule=BATCH)

    def breaks(*given: Any, **more: Any) -> Any:
        raise broken

    for one in (trial, whole):
        play(one, 0, BATCH - 2)
    with monkeypatch.context() as patch:
        patch.setattr(trial.store, verb, breaks)
        raises(type(broken), None, trial.advance, now=0.0, force=True)
    assert trial.status(now=0.0).started
    play(trial, 100, 101)
    trial.reward(3, 77.0, overwrite=True)
    made = trial.advance(now=0.0)
    assert (made.made, made.decided) == (True, BATCH - 2)
    assert made.policy_id == whole.advance(now=0.0, force=True).policy_id
    assert not trial.advance(now=0.0).made


def test_deferred_decisions_count_when_they_are_activated_as_if_they_were_made_then(begin: Begin) -> None:
    plain, deferred = begin(), begin()
    play(plain, 0, BATCH)
    rounds, ids = WORLD.draw(2 * BATCH, seed=7, first=0), list(range(2 * BATCH))
    choices = deferred.decide_many(rounds.contexts, ids=ids, deferred=True, now=0.0)
    assert all(choice.deferred for choice in choices)
    means = rounds.means[np.arange(2 * BATCH), [choice.arm for choice in choices]]
    rewards = WORLD.rewards(means, seed=7, first=0).tolist()
    half = BATCH // 2
    assert deferred.reward_many(ids[:half], rewards[:half], now=0.0).unmatched == half  # before they are activated
    status = deferred.status()
    assert (status.decisions, status.deferred, status.unmatched) == (0, 2 * BATCH, half)
    assert (deferred.activate(*ids[:half]).repeated, deferred.activate(*ids[: half + 1]).repeated) == (0, half)
    shown = deferred.decide(rounds.contexts[half + 1], id=half + 1, now=0.0)  # the same request, to be shown now
    assert (shown.repeated, shown.deferred, shown.arm) == (True, False, choices[half + 1].arm)
    for number in ids[half + 2 : BATCH]:
        deferred.activate(number)
    deferred.reward_many(ids[half:BATCH], rewards[half:BATCH], now=0.0)
    assert deferred.advance(force=True, now=1.0).policy_id == plain.advance(force=True, now=1.0).policy_id
    status = deferred.status()
    assert (status.batches[0].decisions, status.batches[0].rewarded) == (BATCH, BATCH)
    assert (status.deferred, status.unmatched) == (BATCH, 0)
    waiting, active = deferred.audit(BATCH), deferred.audit(0)
    assert (waiting.verdict, waiting.deferred, waiting.activated) == ("matches", True, None)
    assert active.verdict == "matches"
    assert active.activated is not None
    again = deferred.decide(rounds.contexts[BATCH], id=BATCH, deferred=True)
    assert (again.arm, again.version, again.deferred) == (choices[BATCH].arm, 1, True)
    raises(ConflictError, "used before", deferred.decide, rounds.contexts[0], id=BATCH)
    raises(ParameterError, "none of 'no' in this experiment; the other 1", deferred.activate, 0, "no")
    assert deferred.activate().decisions == 0


def test_what_is_activated_while_an_update_learns_is_learned_by_the_next_one(begin: Begin, monkeypatch: Any) -> None:
    trial, late = begin(), list(range(100, 100 + BATCH))
    play(trial, 0, BATCH)
    trial.decide_many(WORLD.draw(BATCH, seed=7, first=100).contexts, ids=late, deferred=True, now=0.0)
    trial.reward_many(late, [1.0] * BATCH, now=0.0)
    began = trial.store.start_update
    monkeypatch.setattr(trial.store, "start_update", lambda *frozen: (began(*frozen), trial.activate(*late))[0])
    outcome = trial.advance(force=True, now=1.0)
    assert (outcome.made, outcome.decided) == (True, BATCH)
    monkeypatch.undo()
    play(trial, 12, 24)
    outcome = trial.advance(force=True, now=2.0)
    assert (outcome.decided, outcome.late) == (BATCH, {1: 2 * BATCH})


def test_of_two_that_activate_the_same_one_does(begin: Begin) -> None:
    trial, ids = begin(), list(range(40))
    trial.decide_many(WORLD.draw(40, seed=7, first=0).contexts, ids=ids, deferred=True, now=0.0)
    trial.reward_many(ids, [1.0] * 40, now=0.0)
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda order: trial.activate(*order), [ids, ids[::-1]] * 2))
    assert sum(outcome.decisions - outcome.repeated for outcome in outcomes) == 40
    assert (trial.status().batches[0].rewarded, trial.status().deferred) == (40, 0)
    assert len({row.key for page in trial.store.rows(0, trial.store.marks()) for row, _ in page}) == 40
