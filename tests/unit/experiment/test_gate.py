"""Gated updates: what is held out, what is promoted and refused, and that every look is counted once."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from rareswitch.core import id_keys
from rareswitch.decisions import DecisionLog
from rareswitch.design import Uniform
from rareswitch.errors import FileFormatError, ParameterError, StoreError, UnsuitableError
from rareswitch.evaluation import few_rewards
from rareswitch.evaluation.intervals import combined, term_of
from rareswitch.experiment import Advance, Experiment, Gate, GateReport, Rewards, copy_experiment, create
from rareswitch.experiment.gate import judge
from rareswitch.experiment.results import UpdateReport
from rareswitch.experiment.update import rejections
from rareswitch.experiment.versions import sign_json
from rareswitch.lab.worlds import make_world
from rareswitch.log import HeldOut
from rareswitch.planning import Wait
from rareswitch.policy import Policy, PosteriorDraws, new_key
from reference import trials
from reference.refusals import raises

pytestmark = pytest.mark.usefixtures("short_plans")
WORLD = make_world("gaussian", dim=3, arms=4, noise=0.5)
BATCH = 1600


def begun(**more: Any) -> Experiment:
    told: dict[str, Any] = {"dim": 3, "horizon": 20_000, "policies": 6, "seed": 7, "now": 0.0, "schedule": "by hand"}
    return create("memory:", "spring", **told | {"intercept": True} | more)


def play(trial: Experiment, count: int = BATCH, **more: Any) -> None:
    """The next decisions, with rewards."""
    trials.play(trial, WORLD, sum(one.decisions for one in trial.store.counts()), count, **more)


def poisoned(ids: Any, rewards: Any) -> Any:
    """What is learned from says the opposite of what is held out: the policy that is learned is the worst."""
    return np.where(HeldOut(0.3).among(id_keys(ids)), rewards, -rewards)


def told(outcome: Advance) -> GateReport:
    assert outcome.gate is not None
    return outcome.gate


def crash(trial: Experiment, verb: str, **settings: Any) -> None:
    """An update that ends where it calls this verb of the store."""

    def dies(*given: Any) -> Any:
        raise StoreError("gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial.store, verb, dies)
        raises(StoreError, "gone", trial.advance, now=0.0, **settings)
    assert trial.store.started(1)


def test_a_better_policy_is_promoted_and_what_was_held_out_is_learned_by_the_next_update() -> None:
    trial = begun()
    play(trial)
    outcome = trial.advance(now=0.0, gate=True)
    gate = told(outcome)
    held_out = int(HeldOut(0.3).among(id_keys(range(BATCH))).sum())
    assert (outcome.made, outcome.version, gate.promoted, gate.candidate) == (True, 2, True, trial.policy.id)
    assert (outcome.decided, outcome.learned, outcome.held_out) == (BATCH, BATCH - held_out, held_out)
    assert (gate.held_out, gate.tested, gate.look, gate.level) == (held_out, held_out, 1, 0.025)
    assert 0.0 < gate.bound < gate.gain
    assert f"Gate: promoted: gain {gate.gain:.3g} per decision (at least {gate.bound:.3g}) on" in str(outcome)
    assert f"{held_out} held out for the gate" in str(outcome)
    assert "without a reward" not in str(outcome)
    kept = msgspec.json.decode(trial.versions[1].row.report, type=UpdateReport)
    assert (kept.gate, kept.plan and kept.plan.gate) == (gate, Gate())
    assert outcome.as_dict()["gate"]["gain"] == gate.gain
    play(trial, 50)
    after = trial.advance(now=0.0)
    assert after.late == {1: BATCH}
    assert trial.versions[2].state.past[0].rewarded == BATCH
    play(trial, 50)
    assert trial.advance(now=0.0).late == {}  # once
    assert trial.verify().holds
    assert {entry.verdict for entry in trial.verify().policies} == {"same"}


def test_a_worse_policy_is_refused_and_the_old_one_goes_on() -> None:
    trial = begun()
    play(trial, paid=poisoned)
    before = trial.policy.id
    outcome = trial.advance(now=0.0, gate=True)
    gate = told(outcome)
    assert (outcome.made, outcome.version, outcome.policy_id, trial.store.head()) == (False, 1, before, 1)
    assert gate.gain < 0.0
    assert not gate.promoted
    assert str(outcome).splitlines() == [f"No update: policy 1 ({before[:12]}…) goes on.", f"Gate: {gate}"]
    assert str(gate).startswith("not promoted: gain -")
    assert str(gate).endswith("look 1 at level 0.025; the bound must be above 0.")
    assert not trial.store.started(1)
    assert [report.gate for report in rejections(trial.store, 1)] == [gate]
    assert trial.decide(WORLD.draw(1, seed=1).contexts[0], id="after", now=0.0).version == 1
    trial.advance(now=0.0)  # without a gate, whatever was refused
    assert trial.store.head() == 2
    assert trial.versions[1].report.learned[0].learned == BATCH


def test_looks_at_one_batch_are_counted_and_wait_for_it_to_grow() -> None:
    trial = begun()
    play(trial, paid=poisoned)
    first = told(trial.advance(now=0.0, gate=True))
    assert first.look == 1
    waits = trial.advance(now=0.0, gate=True)
    assert waits.gate is None
    assert waits.waits == (Wait(kind="gate", decisions=1600, needed=2400, more=800),)
    assert str(waits).endswith(
        "after 800 more decisions (the gate rejected a policy after 1,600 and looks again after 2,400)."
    )
    assert len(trial.store.refusals(1)) == 1
    again = told(trial.advance(now=0.0, gate=True, force=True))  # the same decisions, at a lower level
    assert (again.look, again.level) == (2, Gate().level_of(2))
    assert (first.gain, first.error) == (again.gain, again.error)
    assert again.bound < first.bound
    play(trial, 2 * BATCH)
    third = told(trial.advance(now=0.0, gate=True))
    assert (third.look, third.level, third.promoted) == (3, Gate().level_of(3), True)
    assert trial.store.head() == 2
    play(trial, paid=poisoned)
    assert told(trial.advance(now=0.0, gate=True)).look == 1  # of another policy


def test_levels_of_all_looks_add_up_to_the_level() -> None:
    levels = [Gate(level=0.1).level_of(look) for look in range(1, 10_000)]
    assert sum(levels) < 0.1
    assert sum(levels) == pytest.approx(0.1, rel=1e-3)


def test_what_cannot_be_told_is_refused_without_spending_a_look() -> None:
    trial = begun()
    play(trial, 60)
    outcome = trial.advance(now=0.0, gate=True)
    gate = told(outcome)
    assert (gate.promoted, gate.gain, gate.bound) == (False, None, None)
    assert "not promoted, not identifiable: " in str(outcome)
    assert "more decisions of the latest policy would answer" in gate.reasons[-1]  # which explores enough
    play(trial)
    assert told(trial.advance(now=0.0, gate=True)).look == 1
    assert len(trial.store.refusals(1)) == 1


def test_rewards_that_are_all_the_same_promote_nothing_however_much_may_be_lost() -> None:
    trial = begun(rewards=Rewards(default=0))
    contexts = WORLD.draw(BATCH, seed=7).contexts
    trial.decide_many(contexts, ids=range(BATCH), now=0.0)
    outcome = trial.advance(now=0.0, gate=Gate(loss=0.01))
    gate = told(outcome)
    assert (outcome.made, gate.promoted, gate.answered, gate.bound) == (False, False, False, None)
    assert f"not identifiable: All {gate.tested:,} rewards are 0: they do not vary" in str(gate)
    trial.reward_many(range(BATCH), WORLD.rewards(np.ones(BATCH), seed=7).tolist(), now=0.0)
    again = told(trial.advance(now=0.0, gate=Gate(loss=0.01), force=True))
    assert (again.look, again.bound is None) == (1, False)


def test_where_every_arm_is_possible_later_policies_can_be_judged_too() -> None:
    trial = begun(min_propensity=0.05)
    play(trial)
    assert told(trial.advance(now=0.0, gate=True)).promoted
    play(trial, 2 * BATCH)
    again = told(trial.advance(now=0.0, gate=Gate(loss=0.1)))
    assert (again.promoted, again.look) == (True, 1)
    assert -0.1 < again.bound < 0.0  # it is as good, which cannot be told from a little worse
    assert trial.verify().holds


@pytest.mark.parametrize("worse", [False, True])
def test_after_a_crash_the_very_same_update_comes_to_the_same_end(worse: bool) -> None:
    trial, twin = begun(), begun()
    for one in (trial, twin):
        play(one, paid=poisoned if worse else None)
    expected = twin.advance(now=0.0, gate=Gate(holdout=0.4))
    crash(trial, "refuse_update" if worse else "publish", gate=Gate(holdout=0.4))
    play(trial, 100)
    outcome = trial.advance(now=5.0)  # what was frozen has the gate
    assert told(outcome) == told(expected)
    assert (outcome.made, outcome.policy_id) == (not worse, expected.policy_id)
    assert len(trial.store.refusals(1)) == worse


def test_an_update_that_was_begun_without_a_gate_does_not_pass_beside_it() -> None:
    trial = begun()
    play(trial, paid=poisoned)
    crash(trial, "publish")
    outcome = trial.advance(now=0.0, gate=True)
    assert (outcome.made, told(outcome).promoted, trial.store.head()) == (False, False, 1)


@pytest.mark.parametrize("worse", [False, True])
def test_of_two_processes_one_is_heard(worse: bool, monkeypatch: Any) -> None:
    trial = begun()
    play(trial, paid=poisoned if worse else None)
    other, outcomes = Experiment(trial.store, trial.description, None), list[Advance]()
    verb = "refuse_update" if worse else "publish"
    kept = getattr(trial.store, verb)

    def outrun(*given: Any) -> Any:
        monkeypatch.setattr(trial.store, verb, kept)
        outcomes.append(other.advance(now=0.0, gate=True))
        return kept(*given)

    monkeypatch.setattr(trial.store, verb, outrun)
    outcomes.append(trial.advance(now=0.0, gate=True))
    assert told(outcomes[0]) == told(outcomes[1])
    assert [(one.made, one.elsewhere) for one in outcomes] == (
        [(False, False)] * 2 if worse else [(True, False), (False, True)]
    )
    assert (trial.store.head(), len(trial.store.refusals(1))) == ((1, 1) if worse else (2, 0))


def test_a_refusal_that_comes_after_another_process_let_one_pass_is_not_kept(monkeypatch: Any) -> None:
    trial = begun()
    play(trial, paid=poisoned)
    other, kept = Experiment(trial.store, trial.description, None), trial.store.refuse_update

    def outrun(*given: Any) -> None:
        monkeypatch.setattr(trial.store, "refuse_update", kept)
        other.advance(now=0.0, gate=True)
        play(other, 5 * BATCH)
        assert told(other.advance(now=0.0, gate=True)).promoted
        kept(*given)

    monkeypatch.setattr(trial.store, "refuse_update", outrun)
    outcome = trial.advance(now=0.0, gate=True)
    assert (outcome.elsewhere, outcome.version) == (True, 2)
    assert len(trial.store.refusals(1)) == 1


def test_only_decisions_whose_sets_were_kept_are_held_out() -> None:
    trial = begun(context_sample_rate=0.6)
    play(trial, 2 * BATCH)
    outcome = trial.advance(now=0.0, gate=True)
    held_out = int(HeldOut(0.3, context_sample_rate=0.6).among(id_keys(range(2 * BATCH))).sum())
    assert (outcome.held_out, told(outcome).held_out, told(outcome).tested) == (held_out,) * 3
    assert 0.15 * 2 * BATCH < held_out < 0.21 * 2 * BATCH


def test_decisions_of_which_only_the_chosen_arms_are_known_are_no_error() -> None:
    sizes: dict[str, Any] = {"dim": 3, "arms": 4, "horizon": 20_000, "policies": 6, "noise": 0.5}
    trial = create("memory:", "spring", learner="thompson-grid", schedule="by hand", seed=7, now=0.0, **sizes)
    play(trial)
    trial.store._write(lambda connection: connection.execute("DELETE FROM rareswitch_contexts"))
    gate = told(trial.advance(now=0.0, gate=True))
    assert (gate.promoted, gate.held_out, gate.tested) == (False, 0, 0)
    assert gate.reasons[0].startswith("No decision has both a reward and all the arms that were offered")


def test_rewards_count_as_they_do_for_learners() -> None:
    trial = begun(rewards=Rewards(window="10s", default=0.0))
    play(trial, now=0.0)
    play(trial, now=5.0)
    rounds = WORLD.draw(BATCH, seed=7, first=2 * BATCH)
    trial.decide_many(rounds.contexts, ids=list(range(2 * BATCH, 3 * BATCH)), now=0.0)  # no reward: the default
    gate = told(trial.preview(now=11.0, gate=True))
    among = HeldOut(0.3).among(id_keys(range(3 * BATCH)))
    assert gate.held_out == among.sum()
    assert gate.tested == among[:BATCH].sum() + among[2 * BATCH :].sum()


def test_signed_experiments_are_gated_too_and_copies_know_what_was_refused() -> None:
    key = new_key("hmac")
    trial = begun(key=key)
    play(trial, paid=poisoned)
    trial.advance(now=0.0, gate=True)
    play(trial, 2 * BATCH)
    assert told(trial.advance(now=0.0, gate=True)).look == 2
    play(trial, paid=poisoned)
    trial.advance(now=0.0, gate=True)
    copy = copy_experiment(trial, "memory:", key=key)
    assert [copy.store.refusals(number) for number in (1, 2)] == [trial.store.refusals(number) for number in (1, 2)]
    assert [len(copy.store.refusals(number)) for number in (1, 2)] == [1, 1]
    assert (copy.verify().holds, copy.signature) == (True, "checked")


def test_learners_that_use_a_batch_once_are_not_gated() -> None:
    trial = create("memory:", "spring", learner="batch-linucb-kw", dim=3, arms=4, horizon=2000, noise=0.5, seed=1)
    raises(UnsuitableError, r"batch-linucb-kw learns from each batch once.*would be lost", trial.advance, gate=True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"level": 0.0}, "level"),
        ({"level": math.nan}, "level"),
        ({"loss": -1.0}, "loss"),
        ({"holdout": 1.0}, "holdout"),
    ],
)
def test_gates_are_checked(given: dict[str, float], told: str) -> None:
    raises(ParameterError, told, Gate, **given)
    raises(ParameterError, r"gate must be True, or Gate\(.*got 0.05", begun().advance, gate=0.05)


def candidates() -> tuple[Policy, Policy]:
    """A policy that explores evenly, and one that plays by an estimate."""
    draws = PosteriorDraws(draws=np.array([[1.0, 0.5, -0.5], [0.5, 1.0, 0.0], [0.8, -0.2, 0.3]]))
    return Policy(dim=3, sampler=Uniform()), Policy(dim=3, sampler=draws)


def held_out(count: int, seed: int) -> tuple[DecisionLog, Any]:
    """Decisions of the first policy, with rewards that have a level; and what arms earn on average."""
    incumbent, _ = candidates()
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((count, 4, 3))
    decided = incumbent.decide(contexts, ids=range(count), seed=seed)
    means = 5.0 + contexts @ np.array([0.2, -0.1, 0.3])
    rewards = means[np.arange(count), decided.arms] + rng.standard_normal(count)
    return DecisionLog(
        arm_indices=decided.arms, propensities=decided.propensities, rewards=rewards, contexts=contexts
    ), means


def judged(log: DecisionLog, candidate: Policy, incumbent: Policy, slopes: Any, **settings: float) -> GateReport:
    """What a gate says at its first look, with the model of these slopes."""
    gate = Gate(**settings)
    return judge(
        *(gate, replace(log, batch_names=(incumbent.id,), policies={incumbent.id: incumbent})),
        candidate=candidate,
        incumbent=incumbent,
        predict=lambda x: x @ slopes,
        look=1,
    )


@pytest.mark.parametrize("model", ["none", "right", "wrong"])
def test_the_gain_is_what_the_policy_earns_more_whatever_the_model_says(model: str) -> None:
    incumbent, candidate = candidates()
    log, means = held_out(6000, seed=1)
    right = np.array([0.2, -0.1, 0.3])
    slopes = {"none": np.zeros(3), "right": right, "wrong": np.array([-2.0, 1.0, 1.0])}[model]
    gate = judged(log, candidate, incumbent, slopes)
    assert log.contexts is not None
    new, old = (policy.probabilities(log.contexts) for policy in (candidate, incumbent))
    truth = float(((new - old) * means).sum(axis=1).mean())
    assert abs(gate.gain - truth) <= 5.0 * gate.error  # a false alarm in two million runs
    assert gate.error < (0.06 if model == "wrong" else 0.03)  # the level of 5 is taken off


def test_changed_propensities_are_noticed() -> None:
    incumbent, candidate = candidates()
    log, _ = held_out(200, seed=1)
    changed = DecisionLog(
        arm_indices=log.arm_indices, propensities=log.propensities * 0.9, rewards=log.rewards, contexts=log.contexts
    )
    with pytest.raises(ParameterError, match="recorded propensities are not those of the policy"):
        judged(changed, candidate, incumbent, np.zeros(3))


@pytest.mark.parametrize("failures", [0.05, 0.5, 0.95])
def test_bounds_hold_where_a_few_decisions_weigh_much_and_rarely_fail(failures: float) -> None:
    """One in 40 has the weight 20.5; where 5 % fail too few of these weigh much, and there is no bound at all."""
    runs, count, level, rng = 1000, 1200, 0.05, np.random.default_rng(5)
    wrong = answered = 0
    for _ in range(runs):
        weights = np.where(rng.random(count) < 0.025, 20.5, 1.0 - 0.5 / 0.975)
        rewards = np.where(rng.random(count) < failures, 0.0, 1.0)
        if not few_rewards(rewards, weights):
            answered += 1
            term = term_of((weights - 1.0) * (rewards - rewards.mean()))
            wrong += combined([term], level=1.0 - 2.0 * level).low > 0.0
    assert answered == (runs if failures == 0.5 else 0)
    assert wrong <= answered * level + 4.0 * math.sqrt(runs * level * (1.0 - level))  # once in 30,000 runs


def test_a_policy_that_plays_as_the_incumbent_gains_nothing() -> None:
    incumbent, _ = candidates()
    log, _ = held_out(400, seed=2)
    for loss in (0.0, 0.1):
        gate = judged(log, incumbent, incumbent, np.ones(3), loss=loss)
        assert (gate.gain, gate.bound, gate.promoted) == (0.0, 0.0, loss > 0.0)


def test_what_the_incumbent_never_shows_is_never_promoted() -> None:
    """The model likes what it has never seen: what little the incumbent could not show would decide."""
    slopes = np.array([0.2, -0.1, 0.3])
    incumbent, candidate = (
        Policy(dim=3, sampler=PosteriorDraws(draws=(slopes + shift)[None])) for shift in (np.zeros(3), 1e-4)
    )
    contexts = np.random.default_rng(3).standard_normal((20_000, 4, 3))
    decided = incumbent.decide(contexts, ids=range(len(contexts)), seed=3)
    rewards = (contexts @ slopes)[np.arange(len(contexts)), decided.arms]
    log = DecisionLog(arm_indices=decided.arms, propensities=decided.propensities, rewards=rewards, contexts=contexts)
    gate = judged(log, candidate, incumbent, slopes + 1e-4)
    assert not gate.promoted
    assert not gate.answered
    assert "had probability 0: of that a gate knows nothing" in str(gate)


def without_gate(text: str) -> str:
    """What someone without the key writes: the same plan without its gate, and a hash that holds."""
    plan = json.loads(text)["content"] | {"gate": None}
    return sign_json(json.dumps(plan), f"plan/{EXPERIMENT_DIGEST['now']}/1", None)


def looser(text: str) -> str:
    """The signature as it was, the gate another."""
    return text.replace('"level":0.05', '"level":0.5')


#: The digest of the experiment under test, for plans that are forged for it.
EXPERIMENT_DIGEST: dict[str, str] = {}


@pytest.mark.parametrize(
    ("forge", "signed", "reason"),
    [
        (without_gate, True, "it is not signed"),
        (looser, True, "the signature does not match"),
        (looser, False, "it does not have the hash"),
        (lambda text: "garbage", True, "it is damaged: 'garbage'"),
        (lambda text: "garbage", False, "it is damaged: 'garbage'"),
        (lambda text: "[" * 100_000, False, "it is damaged"),
        (lambda text: "[1]", False, "it is damaged"),
        (lambda text: json.dumps(json.loads(text)["content"]), False, "it is damaged"),
    ],
)
def test_a_plan_that_was_not_frozen_so_is_refused_and_planned_anew(
    forge: Callable[[str], str], signed: bool, reason: str
) -> None:
    trial = begun(key=new_key("hmac") if signed else None)
    play(trial, paid=poisoned)
    store: Any = trial.store
    crash(trial, "refuse_update", gate=True)
    EXPERIMENT_DIGEST["now"] = trial._versions.experiment
    text, marks = store.start_update(1, "")
    store.abandon_update(1)
    assert store.start_update(1, forge(text)) == (forge(text), marks)
    with pytest.raises(FileFormatError, match=f"update that was begun after policy 1 is refused: {reason}.*Advance ag"):
        trial.advance(now=0.0)
    assert (store.head(), store.started(1)) == (1, False)
    outcome = trial.advance(now=0.0, gate=True)
    assert (outcome.made, told(outcome).promoted) == (False, False)


def test_the_plan_of_another_update_is_no_plan_of_this_one(monkeypatch: Any) -> None:
    trial = begun(key=new_key("hmac"))
    play(trial)
    store: Any = trial.store
    with monkeypatch.context() as patch:
        plans: list[str] = []
        start = store.start_update

        def noted(parent: int, plan: str) -> Any:
            plans.append(plan)
            return start(parent, plan)

        patch.setattr(store, "start_update", noted)
        assert trial.advance(now=0.0).made
    play(trial)
    assert store.start_update(2, plans[0])[0] == plans[0]
    raises(FileFormatError, "the signature does not match", trial.advance, now=0.0, gate=True)
