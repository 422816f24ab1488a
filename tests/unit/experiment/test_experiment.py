"""The experiment's loop over a store in memory: what holds in every store is in tests/conformance."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest

from rareswitch import Ed25519Key, Foresight
from rareswitch.errors import BatchError, ConflictError, ParameterError, RecordError, ShapeError, StoreError
from rareswitch.experiment import BatchStatus, Experiment, Rewarded, Rewards, create, open_experiment
from rareswitch.experiment.description import Description
from rareswitch.features import Features
from rareswitch.lab.worlds import make_world
from rareswitch.learner import geometric_grid
from rareswitch.planning import Periodic, Wait
from reference.refusals import raises

pytestmark = pytest.mark.usefixtures("short_plans")
HORIZON, WORLD = 400, make_world("gaussian", dim=3, arms=4, noise=0.5)
GRID = geometric_grid(HORIZON, 4, first=12)


def begun(**more: Any) -> Experiment:
    told: dict[str, Any] = {"dim": 3, "horizon": HORIZON, "grid": GRID, "seed": 7, "now": 0.0}
    return create("memory:", "spring", **told | more)


def play(trial: Experiment, first: int, count: int, *, pay: Callable[[int], bool] = lambda _: True) -> None:
    """Decisions number ``first`` and following; rewards of those that are paid, in the order of their numbers."""
    rounds, ids = WORLD.draw(count, seed=7, first=first), list(range(first, first + count))
    choices = trial.decide_many(rounds.contexts, ids=ids, now=float(first))
    means = rounds.means[np.arange(count), [choice.arm for choice in choices]]
    rewards = WORLD.rewards(means, seed=7, first=first)
    for number, reward in zip(ids, rewards.tolist(), strict=True):
        if pay(number):
            trial.reward(number, reward, now=float(number))


def play_unit(trial: Experiment, count: int) -> None:
    """Decisions among unit vectors, every other one with a reward of 1."""
    for number in range(count):
        trial.decide(np.eye(3), id=number, now=0.0)
        trial.reward(number, float(number % 2), now=0.0)


def earned(trial: Experiment) -> float:
    """The rewards that the first update learned from, summed."""
    stats = trial.versions[1].summaries[0].stats[0]
    return stats.reward_sum + stats.shift * stats.count


def test_an_update_before_its_time_is_not_made_and_says_what_it_waits_for() -> None:
    trial = begun()
    play(trial, 0, 5)
    outcome = trial.advance(now=5.0)
    assert (outcome.made, outcome.version) == (False, 1)
    assert outcome.waits == (Wait(kind="decisions", decisions=5, needed=12, more=7),)
    assert "No update: policy 1" in str(outcome)
    assert trial.advance(now=5.0, force=True).made


def test_one_id_has_one_answer() -> None:
    trial, contexts = begun(), np.eye(3)
    first = trial.decide(contexts, id="r", now=1.0)
    again = trial.decide(contexts, id="r", now=9.0)
    assert (first.repeated, again.repeated) == (False, True)
    assert msgspec.structs.replace(again, repeated=False) == first
    raises(ConflictError, "id 'r' was used before, for another request", trial.decide, contexts[::-1], id="r")
    raises(ConflictError, "another request", trial.decide, contexts, ["a", "b", "c"], id="r")
    assert trial.status(now=2.0).repeated_decisions == 3


def test_a_request_of_records_is_known_again_alone_and_among_others() -> None:
    arms = [{"a": {"price": 1.0}, "b": {"price": None}}, {"c": {"price": 2.0}}]
    features = Features.fit([{"age": 30.0}, {"age": 99.0}, {"age": None}, {"age": 31.0}], arms * 2)
    with create("memory:", "again", features=features, horizon=100, context_sample_rate=1.0) as trial:
        trial.decide_many([{"age": 31.0}, {"age": 99.0}], arms, ids=["few", "other"])
        assert trial.decide({"age": 31}, {"a": {"price": 1}, "b": {"price": np.nan}}, id="few").repeated
        assert trial.decide({"age": 99.0}, arms[1], id="other").repeated
        assert trial.audit("few", {"age": 31.0}, arms[0]).verdict == "matches"
        for record, offer in (({"age": 32.0}, arms[0]), ({"age": 31.0}, {"b": {"price": None}, "a": {"price": 1.0}})):
            raises(ConflictError, None, trial.decide, record, offer, id="few")
        with pytest.raises(ConflictError):  # also where both numbers are clipped
            trial.decide({"age": 1e9}, arms[1], id="other")


def test_an_id_that_is_refused_leaves_the_others_as_they_are() -> None:
    trial = begun()
    trial.decide(np.eye(3), id="old")
    sets = {"a": np.eye(3), "old": 0.5 * np.eye(3)}
    asked = [trial.request(contexts, id=name) for name, contexts in sets.items()]
    trial.store._queue._carry_out(asked)  # as when two threads ask at once
    assert [request.stored[0] is request.decisions[0] for request in asked] == [True, False]
    raises(ConflictError, None, trial.decide, sets["old"], id="old")
    with pytest.raises(
        ConflictError, match=r"id 'old' was used before.* The other 1 of this call were decided"
    ) as raised:
        trial.decide_many(np.stack([np.eye(3), 0.5 * np.eye(3)]), ids=["b", "old"])
    made, own = raised.value.each
    assert (made.id, made.repeated, type(own)) == ("b", False, ConflictError)


def test_the_answer_of_an_id_stays_when_the_policy_changes() -> None:
    trial = begun()
    before = trial.decide(np.eye(3), id="r")
    trial.reward("r", 0.5)
    play(trial, 0, 12)
    trial.advance(now=1.0)
    again = trial.decide(np.eye(3), id="r")
    assert (again.arm, again.version, again.policy_id) == (before.arm, 1, before.policy_id)
    assert trial.decide(np.eye(3), id="s").version == 2


def test_arms_are_named_and_may_be_missing() -> None:
    trial = begun()
    choice = trial.decide(np.eye(3), ["red", "green", "blue"], id=1)
    assert choice.arm in {"red", "green", "blue"}
    assert trial.decide(np.eye(3)[:1], ["green"], id=2).arm == "green"
    raises(RecordError, "offered once", trial.decide, np.eye(3), ["red", "green", "red"], id=3)
    raises(ShapeError, "set 0 has 3 vectors, and 2 arm ids", trial.decide, np.eye(3), ["red", "green"], id=3)
    raises(ShapeError, "vectors of 3 features; got 2", trial.decide, np.eye(2), id=3)


def test_numbers_and_their_texts_are_the_same_arms() -> None:
    features = Features.fit([{"age": float(k % 50)} for k in range(100)], [3, 4])
    trial = create("memory:", "spring", features=features, seed=1)
    first = trial.decide({"age": 31.0}, [3, 4], id="r")
    again = trial.decide({"age": 31.0}, ["3", "4"], id="r")
    assert again.repeated
    assert again.arm == str(first.arm)


def test_a_decision_whose_set_was_not_kept_is_audited_by_its_hash() -> None:
    trial = begun(context_sample_rate=1e-12)
    trial.decide(np.eye(3), id="r")
    assert trial.audit("r").verdict == "contexts needed"
    assert trial.audit("r", np.eye(3)).matches
    assert trial.audit("r", 0.5 * np.eye(3)).verdict == "other contexts"
    raises(ParameterError, "there is none of 99", trial.audit, 99)


def test_a_reward_is_kept_once_and_another_value_is_refused_unless_it_may_overwrite() -> None:
    trial = begun()
    trial.decide(np.eye(3), id="r")
    trial.reward("r", True)
    trial.reward("r", 1)
    raises(ConflictError, 'decision "r" has the reward 1 already, and 0 was given', trial.reward, "r", False)
    assert trial.audit("r").rewards == {"": 1.0}
    trial.reward("r", 0.25, overwrite=True)
    assert trial.audit("r").rewards == {"": 0.25}
    status = trial.status()
    assert (status.repeated_rewards, status.overwritten) == (1, 1)


def test_of_many_rewards_the_right_ones_are_kept_and_the_others_named() -> None:
    trial = begun()
    trial.reward("a", 1.0)
    with pytest.raises(ConflictError, match=r"1 of 3 rewards differ so\. 2 others of this call were kept"):
        trial.reward_many(["b", "a", "c"], [1.0, 2.0, 3.0])
    assert trial.status().unmatched == 3


@pytest.mark.parametrize("column", [np.array, lambda values: pd.Series(values, index=[1, 0])])
def test_columns_are_taken_by_place_and_not_by_their_index(column: Callable[[list[Any]], Any]) -> None:
    trial = begun(rewards=Rewards(several="sum"))
    x = np.tile(np.eye(3), (2, 1, 1))
    assert [choice.id for choice in trial.decide_many(x, ids=column(["a", "b"]))] == ["a", "b"]
    trial.reward_many(column(["a", "b"]), column([1.0, 2.0]), events=column(["first", "second"]))
    assert "Reward: 1 (first)." in str(trial.audit("a"))
    assert "Reward: 2 (second)." in str(trial.audit("b"))


@pytest.mark.parametrize("wrong", ["ab", 7, {0: 1, 1: 2}])
def test_what_is_no_list_is_refused(wrong: Any) -> None:
    trial = begun()
    raises(ShapeError, "ids must be a list", trial.decide_many, np.tile(np.eye(3), (2, 1, 1)), ids=wrong)
    raises(ShapeError, "values must be a list", trial.reward_many, ["a", "b"], wrong)


def test_texts_that_no_store_can_keep_are_refused() -> None:
    trial = begun(rewards=Rewards(several="sum"))
    raises(ParameterError, "id of an arm must be valid Unicode", trial.decide, np.eye(3), ["a", "b", "\ud800"], id="r")
    raises(ParameterError, "event must be valid Unicode", trial.reward, "r", 1.0, event="\ud800")


@pytest.mark.parametrize("arms", ["abc", [], {}])
def test_a_decision_needs_a_list_of_arms(arms: Any) -> None:
    features = Features.fit([{"age": k % 7} for k in range(30)], ["a", "b"], spare_arms=1)
    trial = create("memory:", "arms", features=features, seed=1, now=0.0)
    raises(ShapeError, "arms must be at least one, as a list of ids", trial.decide, {"age": 3}, arms, id="r")
    for k, column in enumerate((np.array(["a", "b"]), pd.Series(["a", "b"]), pl.Series(["a", "b"]))):
        assert trial.decide({"age": 3}, column, id=k).arm in ("a", "b")


@pytest.mark.parametrize("value", [np.nan, np.inf, "1", None, 1e101, 10**400, [1.0], Decimal("NaN")])
def test_what_is_no_reward_is_refused(value: Any) -> None:
    trial = begun()
    raises(ParameterError, "value must be a number", trial.reward, "r", value)
    assert trial.store.totals().rewards == 0
    vectors: Any = [[Decimal(1), 0, 0], [0, Decimal("0.5"), 0], [0, 0, 1]]
    trial.decide(vectors, id="r")
    trial.reward("r", Decimal("0.25"))
    assert trial.audit("r").rewards == {"": 0.25}


#: How rewards count; those of decisions 0 to 11, of the time 0, and 12 to 19, of 950: number, value, when and event;
#: decisions learned from, waiting, expired and clipped at the time 1000; and what those learned from earned.
REWARDED: dict[str, tuple[dict[str, Any], list[Any], tuple[int, ...], float]] = {
    "a window makes decisions wait, and late rewards expire": (
        {"window": "100s"},
        [(k, 0.1 * k, 500.0 if k == 0 else 50.0 if k < 12 else 960.0, None) for k in range(20)],
        (11, 8, 1, 0),
        6.6,
    ),
    "a default stands for rewards that never come, or too late": (
        {"window": "100s", "default": 0},
        [(0, 1.0, 50.0, None), (1, 1.0, 50.0, None), (2, 1.0, 50.0, None), (3, 1.0, 200.0, None)],
        (12, 8, 0, 0),
        3.0,
    ),
    "rewards are clipped": (
        {"clip": (-1, 2)},
        [(k, value, 0.0, None) for k, value in enumerate([0.5, 90.0, -3.0, 2.0, -1.0, 0.25])],
        (6, 0, 0, 2),
        0.5 + 2.0 - 1.0 + 2.0 - 1.0 + 0.25,
    ),
    "sums are clipped, and not their parts": (
        {"several": "sum", "clip": (0, 1)},
        [(k, value, 0.0, event) for k in range(12) for event, value in (("in", 1.75), ("back", -0.7 - 0.1 * k))],
        (12, 0, 0, 2),
        float(np.clip(1.05 - 0.1 * np.arange(12), 0.0, 1.0).sum()),
    ),
    "rewards are summed by their events, each once": (
        {"several": "sum"},
        [(k, 0.1 * (1 + k), 0.0, event) for k in range(12) for event in ("order-1", "order-2", "order-1")],
        (12, 0, 0, 0),
        0.2 * 78,
    ),
    "of summed rewards those within the window count, and of decision 0 all are late": (
        {"several": "sum", "window": "100s"},
        [(k, 0.1 * k - 0.2, 90.0, "a") for k in range(1, 12)] + [(k, 4.0, 150.0, "b") for k in range(12)],
        (11, 8, 1, 0),
        float((0.1 * np.arange(1, 12) - 0.2).sum()),
    ),
}


@pytest.mark.parametrize("case", REWARDED)
def test_rewards_count_as_they_were_described(case: str) -> None:
    settings, paid, counts, total = REWARDED[case]
    trial, sets = begun(rewards=Rewards(**settings)), WORLD.draw(20, seed=7).contexts
    trial.decide_many(sets[:12], ids=range(12), now=0.0)
    if "window" in settings:
        trial.decide_many(sets[12:], ids=range(12, 20), now=950.0)
    for number, value, moment, event in paid:
        trial.reward(number, value, event=event, now=moment)
    assert trial.status(now=1000.0).waiting == counts[1]
    outcome = trial.advance(now=1000.0)
    assert (outcome.learned, outcome.waiting, outcome.expired, outcome.clipped) == counts
    assert earned(trial) == pytest.approx(total)
    assert trial.status(now=1000.0).clipped == counts[-1]
    assert (f"{counts[-1]} clipped" in str(outcome)) == (counts[-1] > 0)
    assert sum(trial.audit(1).rewards.values()) == pytest.approx(
        sum({event: value for number, value, _, event in paid if number == 1}.values())
    )  # as they came
    assert Description.from_plain(json.loads(trial.description.to_text())).rewards == trial.description.rewards


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"clip": -5}, "lower bound below the upper one; got 5 and -5"),
        ({"clip": (1, 2, 3)}, "a number, or two bounds"),
        ({"clip": (2, "many")}, "the upper bound, must be a number"),
        ({"clip": 5, "kind": "binary"}, "need no clip"),
        ({"clip": 5, "default": 7}, "default=7 is outside of clip, -5 to 5"),
        ({"kind": "binary", "several": "sum"}, 'others come of several="sum"'),
        ({"kind": "binary", "default": 0.5}, r"others come of default=0\.5"),
        ({"kind": "clicks"}, "kind must be 'binary' or 'linear'; got 'clicks'"),
    ],
)
def test_rewards_that_do_not_fit_together_are_refused(settings: dict[str, Any], said: str) -> None:
    raises(ParameterError, said, Rewards, **settings)


def test_late_rewards_are_learned_from_at_the_next_update() -> None:
    late, prompt = begun(), begun()
    for trial in (late, prompt):
        play(trial, 0, 12, pay=(lambda number: number < 6) if trial is late else (lambda _: True))
        trial.advance(now=12.0)
    rounds = WORLD.draw(12, seed=7)
    arms = [late.audit(number).arm for number in range(12)]
    means = rounds.means[np.arange(12), [int(arm) for arm in arms]]
    for number, value in enumerate(WORLD.rewards(means, seed=7).tolist()):
        late.reward(number, value, now=20.0)
    play(late, 12, 26)
    outcome = late.advance(now=40.0, force=True)
    assert outcome.late == {1: 12}
    assert sum(batch.rewarded for batch in late.versions[-1].state.past) == 12 + 26
    assert late.versions[-1].state.past[0].stats[0].count == prompt.versions[-1].state.past[0].stats[0].count


def test_an_update_that_is_refused_looks_again_the_next_time() -> None:
    trial = begun()
    play(trial, 0, 12, pay=lambda _: False)
    assert trial.advance(now=1.0).waits == (Wait(kind="no rewards", decisions=12),)
    raises(BatchError, "none of the 12 decisions", trial.advance, now=1.0, force=True)
    assert not trial.status().started
    trial.reward(3, 1.0)
    trial.reward(4, 0.0)
    assert trial.advance(now=2.0).rewarded == 2


def test_a_run_whose_batches_are_over_goes_on_with_its_last_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = begun(grid=[6, 40], horizon=40)
    play(trial, 0, 6)
    trial.advance(now=1.0)
    play(trial, 6, 34)
    with monkeypatch.context() as patch:
        patch.setattr(trial.store, "slices", lambda *_, **__: pytest.fail("read"))
        outcome = trial.advance(now=2.0)
        assert (trial.status(now=2.0).due, trial.status(now=2.0).waits) == (False, outcome.waits)
    assert not outcome.made
    assert "no policy is planned after this one" in str(outcome)
    assert trial.decide(np.eye(3), id="more").version == 2
    assert trial.advance(now=2.0, forecast=[100, 200], force=True).made


@pytest.mark.parametrize(
    ("learner", "sets", "message"),
    [
        ("foresight", 1e101 * np.eye(3), "contexts must be at most 1e\\+100 in size"),
        ("batch-linucb", 2.0 * np.eye(3), "at most 1"),
        ("batch-linucb", np.vstack([np.eye(3), -np.eye(3)]), "arms must be at most 4, for which"),
    ],
)
def test_what_could_never_be_learned_from_is_not_decided(learner: str, sets: Any, message: str) -> None:
    trial = begun(learner=learner, arms=4, schedule="by hand")
    play_unit(trial, 30)
    raises(ValueError, message, trial.decide, sets, id="poison", now=0.0)
    assert trial.advance(now=1.0).made


def test_moments_that_are_no_dates_are_refused() -> None:
    for now in (pd.NaT, 9e11, -9e11, "monday", True, b"2026-03-02"):
        raises(ParameterError, "now must be", begun, now=now)
    dates = (datetime(2026, 3, 2), datetime(2026, 3, 2).date(), "2026-03-02", pd.Timestamp("2026-03-02"))
    assert {begun(now=now).description.created for now in dates} == {1772409600.0}
    trial = begun(now=datetime(2026, 3, 2, tzinfo=UTC))
    trial.decide(np.eye(3), id="r", now=datetime(2026, 3, 3, 12, 30))
    assert "2026-03-03 12:30" in str(trial.audit("r"))


def test_a_preview_changes_nothing() -> None:
    trial = begun()
    play(trial, 0, 12)
    before = trial.preview(now=1.0)
    assert before.preview
    assert f"Changes: none, this is a preview. Next would be policy 2 ({before.policy_id[:12]}…)." in str(before)
    assert trial.store.head() == 1
    assert not trial.status().started
    assert trial.advance(now=1.0).policy_id == before.policy_id


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"dim": None}, "dim must be given"),
        ({"learner": "oful"}, "its batches do not end when one likes"),
        ({"context_sample_rate": 1.5}, "context_sample_rate"),
        (
            {"context_sample_rate": 0},
            "context_sample_rate must be above 0: foresight plans its updates with context sets",
        ),
        ({"schedule": "best:policies=3,rate=9,end=1970-01-01"}, "no update would be made before the end"),
        ({"schedule": "best:policies=3,rate=20,end=1970-02-01,gap=60d"}, "no update would be made .* shorter gap"),
        ({"schedule": "best:policies=3,rate=20,end=1970-02-01,first=60d"}, "would be made .* shorter gap, first"),
        ({"schedule": "best:policies=3,decisions=5"}, "no update would be made .* more decisions"),
        (
            {"schedule": "best:policies=3,decisions=5000", "grid": None, "policies": 4},
            "best times for 3 policies, and the learner has policies=4",
        ),
        ({"schedule": [50]}, "at the last one the schedule ends, without an update: give at least two; got .50."),
        (
            {"schedule": "best:policies=3,rate=9,end=1970-01-08", "rewards": Rewards(window="8d")},
            "no update would be made .* attribution window",
        ),
        ({"schedule": Periodic(period="week", times=3, start="1960-01-01")}, "no update would be made .* more times"),
        ({"schedule": ["1970-01-08"]}, "a list holds the decisions in all .* 'by hand' and advance on these days"),
        ({"schedule": "best:rat=3"}, "takes each of policies, decisions"),
        ({"seed": -1}, "seed"),
        ({"rewards": "clicks"}, "rewards must be Rewards"),
        ({"baseline": 3}, "baseline must be True"),
        *(({"min_propensity": wrong}, "min_propensity must be a") for wrong in ("little", 2.0, 0.0, True)),
        ({"nonsense": 1}, "foresight does not take nonsense"),
        ({"key": Ed25519Key(public=b"p" * 32)}, "signing needs the private half"),
        ({"learner": "pure-exploitation", "arms": 2, "grid": None, "rewards": Rewards(kind="binary")}, "rewards"),
    ],
)
def test_a_wrong_setting_is_named(wrong: dict[str, Any], message: str) -> None:
    raises(ValueError, message, begun, **wrong)


@pytest.mark.parametrize("name", ["", "a/b", ".hidden", "x" * 65, None, "a b"])
def test_a_wrong_name_is_refused(name: Any) -> None:
    raises(ParameterError, "name must be a text", create, "memory:", name, dim=3)


def test_status_tells_all_of_it() -> None:
    trial = begun(rewards=Rewards(window=timedelta(days=1), default=0))
    play(trial, 0, 5)
    status = trial.status(now=10.0)
    assert status.decisions == 5
    assert not status.due
    text = str(status)
    assert "5 decisions with an open attribution window" in text
    assert "Rewards: one per decision, 1-day window, missing = 0." in text
    json.dumps(status.as_dict())


def test_status_is_of_one_moment_although_a_policy_is_published_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = begun()
    play(trial, 0, 12)

    def published(**told: Any) -> BatchStatus:
        if len(trial._versions.known) == 1:
            trial.advance(now=12.0)  # as another thread may
        return BatchStatus(**told)

    monkeypatch.setattr("rareswitch.experiment.status.BatchStatus", published)
    assert [batch.version for batch in trial.status(now=12.0).batches] == [1]
    assert [batch.version for batch in trial.status(now=12.0).batches] == [1, 2]


def test_a_store_that_was_taken_back_to_an_older_state_is_noticed() -> None:
    trial = begun()
    play(trial, 0, 12)
    trial.advance(now=12.0)
    trial.store._write(lambda connection: connection.execute("DELETE FROM rareswitch_versions WHERE number > 1"))
    raises(StoreError, "older state", trial.advance, now=13.0)


def test_fields_that_are_not_as_described_are_told_and_kept(tmp_path: Path) -> None:
    users = [{"age": float(k % 50), "device": ["ios", "web"][k % 2]} for k in range(100)]
    features = Features.fit(users, ["a", "b"])
    where = f"sqlite:///{tmp_path}/trial.db", "spring"
    shown = {"age": 3.0, "device": "ios", "shown": "a"}  # the field that names the baseline is not extra
    assert begun(dim=None, features=features, baseline="shown").decide(shown, ["a", "b"], id=1).cautions == ()
    with create(*where, features=features, horizon=100, seed=1) as trial:
        assert trial.decide(users[0], ["a", "b"], id=0).cautions == ()
        misspelt = {"age": 3.0, "devce": "ios"}
        told = (("devce", "extra"), ("device", "missing"))
        assert trial.decide(misspelt, ["a", "b"], id=1).cautions == told
        assert trial.decide(misspelt, ["a", "b"], id=1).cautions == told  # which is not counted again
        many = trial.decide_many([users[1], misspelt, {"age": 3.0, "device": "tv"}], ["a", "b"], ids=[2, 3, 4])
        assert [one.cautions for one in many] == [(), told, (("device", "unknown"),)]
    with open_experiment(*where) as trial:
        status = trial.status()
        assert status.fields == {"devce": {"extra": 2}, "device": {"missing": 2, "unknown": 1}}
        assert "2 decisions with the unknown field 'devce', which is not used" in str(status)
        assert "1 decision with an unknown value of 'device'" in str(status)


def test_experiments_expect_rewards_to_have_a_level() -> None:
    users = [{"age": float(k % 50)} for k in range(100)]
    features = Features.fit(users, ["red", "blue"], spare_arms=1)

    def learner(**settings: Any) -> Any:
        return create("memory:", "spring", features=features, **settings).description.learner

    assert learner().has_level
    assert not learner(intercept=False).has_level
    assert not learner(noise_bound=0.5, arms=3, horizon=100).has_level  # what is proved is so without one
    assert learner(learner="thompson-grid", horizon=100, arms=3).name == "thompson-grid"
    assert begun().description.learner.has_level  # type: ignore[attr-defined]


def test_an_arm_that_comes_late_is_shown_and_learned_about() -> None:
    users = [{"age": float(k % 50), "device": ("ios", "web")[k % 2]} for k in range(700)]
    features = Features.fit(users, ["red", "green", "blue"], spare_arms=1)
    trial = create("memory:", "spring", features=features, schedule=[100, 250, 400, 700], seed=1, now=0.0)
    shown = list[str]()
    for number, user in enumerate(users):
        arms = ["red", "green", "blue"] + ["late"] * (number >= 250)
        choice = trial.decide(user, arms, id=number, now=float(number))
        shown.append(choice.arm)
        # every third visitor clicks whatever is shown, and all click on the late one
        trial.reward(number, choice.arm == "late" or number % 3 == 0, now=float(number))
        if number % 50 == 49:
            trial.advance(now=float(number))
    assert shown[400:].count("late") > 250


@pytest.mark.parametrize(
    "told", [{"rewards": Rewards(kind="binary")}, {"learner": Foresight(dim=3, horizon=400, rewards="binary")}]
)
def test_binary_rewards_are_refused_when_they_are_not(told: dict[str, Any]) -> None:
    own = {"learner": told["learner"]} if "learner" in told else {"dim": 3, "horizon": HORIZON, **told}
    trial = create("memory:", "spring", seed=7, now=0.0, **own)
    assert trial.description.learner.rewards == trial.description.rewards.kind == "binary"  # type: ignore[attr-defined]
    assert Description.from_plain(json.loads(trial.description.to_text())).rewards.kind == "binary"
    raises(ParameterError, r"value must be 0 or 1.*got 0.5 for decision 'r'", trial.reward, "r", 0.5)
    trial.reward("r", True)
    assert trial.store.totals().rewards == 1


def test_a_request_with_too_many_arms_is_refused_and_the_limit_is_set_at_creation() -> None:
    for given, most in ((None, 1000), (3, 3)):
        trial = create("memory:", "spring", dim=2, max_arms=given)
        trial.decide(np.ones((most, 2)) / 2, id="most")
        told = rf"at most {most:,} in a request.*got {most + 1:,}\. Offer fewer.*max_arms"
        raises(ParameterError, told, trial.decide, np.ones((most + 1, 2)) / 2, id="more")
        raises(ParameterError, told, trial.decide_many, [np.ones((most + 1, 2)) / 2], ids=["more"])
        assert trial.status().decisions == 1
    many = create("memory:", "spring", learner="batch-linucb-kw", dim=2, arms=2000, horizon=10**6)
    assert many.description.max_arms == 2000
    raises(ParameterError, "max_arms", create, "memory:", "spring", dim=2, max_arms=0)


def test_a_preview_says_what_is_missing_and_that_it_is_not_due() -> None:
    for schedule in ("by hand", None):
        trial = begun(schedule=schedule)
        assert trial.preview(now=0.0).waits == (Wait(kind="no decisions"),)
    play(trial, 0, 6, pay=lambda _: False)
    assert [wait.kind for wait in trial.preview(now=10.0).waits] == ["no rewards"]
    play(trial, 6, 4)
    early = trial.preview(now=10.0)
    assert early.made
    assert "Not due. Next update: after 2 more decisions" in str(early)
    play(trial, 10, 2)
    assert "Not due" not in str(trial.preview(now=12.0))


def test_rewarded_is_one_number_and_what_is_learned_from_another() -> None:
    trial = begun(rewards=Rewards(window="1d", default=0.0))
    play(trial, 0, 12, pay=lambda number: number < 5)
    outcome = trial.advance(now=2 * 86400.0)
    status = trial.status(now=2 * 86400.0)
    assert (outcome.rewarded, outcome.learned, status.batches[0].rewarded) == (5, 12, 5)
    assert "Seen: batch 1, 12 decisions, 5 rewarded, 12 learned from." in str(outcome)


def test_a_reward_of_an_unknown_id_says_so_and_counts_when_the_decision_comes() -> None:
    trial = begun()
    play(trial, 0, 1, pay=lambda _: False)
    assert (trial.reward(0, 1.0).unmatched, trial.reward(0, 1.0).repeated) == (0, 1)
    early = trial.reward(7, 1.0)
    assert str(early) == "1 reward stored for an id that has not been decided: kept until it is."
    assert trial.reward_many([0, 7, 8], [1.0, 1.0, 1.0]) == Rewarded(rewards=3, repeated=2, unmatched=2)
    assert trial.reward(7, 2.0, overwrite=True).unmatched == 1
    play(trial, 7, 1, pay=lambda _: False)
    assert trial.reward(7, 2.0).unmatched == 0
    assert trial.status().batches[0].rewarded == 2
