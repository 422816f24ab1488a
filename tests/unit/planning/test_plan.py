"""Plans: how many policies, when, and what fewer lose."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rareswitch import DecisionLog, create
from rareswitch.core import ContextSets, normals
from rareswitch.errors import ParameterError, RareswitchError, RecordError
from rareswitch.features import Features
from rareswitch.learner import Foresight
from rareswitch.planning import (
    Plan,
    RegretCurve,
    adaptive_cost,
    best_ends,
    cost,
    decisions_until_seen,
    plan,
    schedule_from_plain,
)
from rareswitch.planning.simulation import Truth, gain_of, prior_truths, regret_curves
from reference.refusals import raises

SIZES: dict[str, Any] = {"dim": 4, "arms": 5}
DATED: dict[str, Any] = {"rate": 400, "start": "2026-03-02", "end": "2026-05-11", **SIZES}


@pytest.fixture(scope="module")
def dated() -> Plan:
    return plan(
        **DATED, on="monday 10:00", zone="Europe/Berlin", delay="1d", click_rate=0.1, lift=0.5, min_propensity=0.02
    )


def contexts(count: int, *, dim: int = 4, arms: int = 5, seed: int = 1) -> np.ndarray:
    return normals(seed, "contexts", 0, count, arms * dim).reshape(count, arms, dim)


def test_a_curve_is_a_power_between_points_and_falls_as_one_over_n_beyond() -> None:
    curve = RegretCurve((10.0, 1000.0), (0.5, 0.05))
    assert curve.at(np.array([0.0, 9.0, 10.0, 100.0, 1000.0, 4000.0])) == pytest.approx(
        [1.0, 1.0, 0.5, 0.05 * 10**0.5, 0.05, 0.0125]
    )
    steps = np.arange(5000.0)
    assert curve.integral(5000.0) == pytest.approx(float(curve.at(steps).sum()), rel=0.01)
    assert curve.integral(7.0) == 7.0


def test_more_policies_never_lose_more_and_none_is_full_adaptivity() -> None:
    found = plan(5000, **SIZES)
    ratios = [option.ratio for option in found.options]
    assert all(after < before for before, after in pairwise(ratios))
    assert min(ratios) > 1.0
    assert found.options[0].regret.expected == pytest.approx(5000.0)
    for option in found.options:
        assert option.regret.low <= option.regret.expected <= option.regret.high
        assert [end.decisions for end in option.ends][-1] == 5000
        assert option.regret.expected == pytest.approx(option.ratio * found.adaptive)
    assert found.others[-1].ratio == ratios[0]


def test_the_status_of_an_experiment_says_what_its_plan_said(dated: Plan) -> None:
    trial = create("memory:", "x", dim=4, schedule=dated.schedule, seed=1, now=dated.start)
    price = trial.status(now=dated.start).price
    assert (price.ratio, price.best) == (dated.best.ratio, dated.best.floor)
    assert trial.description.schedule.ends(dated_progress(dated)) == dated.best.ends
    again = json.loads(json.dumps(dated.as_dict(), allow_nan=False))
    assert schedule_from_plain(again["schedule"]) == trial.description.schedule


def dated_progress(found: Plan) -> Any:
    from rareswitch.planning import DAY, Progress

    return Progress.beginning(found.start or 0.0, rate=(found.rate or 0.0) / DAY)


def test_an_experiment_by_counts_has_the_price_of_its_plan() -> None:
    found = plan(20_000, **SIZES, policies=6)
    assert found.recommended <= 6
    trial = create("memory:", "x", learner=Foresight(dim=4), schedule=found.schedule, seed=1)
    assert trial.status().price.ratio == found.best.ratio
    assert max(option.policies for option in found.options) == 6


def test_updates_are_at_meetings_and_what_is_lost_is_in_the_metric(dated: Plan) -> None:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    for option in dated.options[1:]:
        for end in option.ends[:-1]:
            at = datetime.fromtimestamp(end.at or 0.0, ZoneInfo("Europe/Berlin"))
            assert (at.weekday(), at.hour, at.minute) == (0, 10, 0)
    best = dated.best
    assert best.metric.expected == pytest.approx(0.05 * best.regret.expected, rel=0.25)  # 0.5 of 0.1 a decision
    assert best.floor <= best.ratio
    assert {other.kind for other in dated.others} == {"meeting", "never"}
    weekly = plan(**DATED)
    assert [(other.kind, other.policies) for other in weekly.others] == [("week", 10), ("never", 1)]
    assert dated.min_propensity.learning == pytest.approx(best.regret.expected, rel=1e-6)


def test_harder_problems_lose_more_and_take_longer_to_be_seen() -> None:
    easy, hard = (plan(20_000, **SIZES, mean=10.0, spread=5.0, lift=lift) for lift in (0.5, 0.1))
    assert hard.best.regret.expected > 3.0 * easy.best.regret.expected
    late, early = (found.detections[0].decisions for found in (hard, easy))
    assert late > 2 * early
    assert (*hard.gain, *easy.gain) == pytest.approx((0.2, 0.2, 1.0, 1.0))


def test_the_curve_without_a_plan_is_about_that_of_a_plan() -> None:
    """The numbers of docs/how-to/plan.md: the best arms earn about 0.9 standard deviations more."""
    for dim, arms, total, usual, planned in (
        (10, 20, 10_000, (1.44, 208), (1.38, 202)),
        (5, 8, 20_000, (1.59, 137), (1.51, 76)),
    ):
        ends = best_ends(total, 8, dim=dim)
        assert (cost(ends, dim=dim) / adaptive_cost(total, dim=dim), cost(ends, dim=dim)) == pytest.approx(
            usual, rel=0.01
        )
        option = plan(total, dim=dim, arms=arms, mean=1.0, spread=1.25**0.5, lift=1.0, policies=8).options[-1]
        assert option.policies == 8
        assert (option.ratio, option.regret.expected) == pytest.approx(planned, rel=0.02)


def test_a_sample_of_sets_is_planned_on() -> None:
    sets = contexts(300)
    fixed = np.repeat(sets[:1], 300, axis=0)
    assert plan(5000, sample=sets).source == "sample"
    many, one = (plan(5000, sample=which, seed=2).adaptive for which in (sets, fixed))
    assert one != pytest.approx(many, rel=0.01)
    ragged = ContextSets.from_ragged([sets[0], sets[1][:2]])
    assert plan(500, sample=ragged).arms == 5


def test_a_sample_of_records_is_encoded_and_a_missing_field_is_an_error() -> None:
    sample = [{"age": 20 + k % 50, "device": ("ios", "web")[k % 2]} for k in range(200)]
    features = Features.fit(sample, ["a", "b", "c"], missing="error")
    found = plan(5000, sample=sample, features=features, click_rate=0.1)
    assert (found.dim, found.arms, found.clicks) == (features.dim, 3, True)
    raises(RecordError, "device", plan, 5000, sample=[{"age": 30}], features=features)


@pytest.mark.parametrize("clicks", [False, True])
def test_a_log_says_how_hard_its_problem_is(clicks: bool) -> None:
    sets, theta = contexts(3000), np.array([1.0, -1.0, 0.5, 0.0])
    arms = np.arange(3000) % 5
    values = (sets @ theta)[np.arange(3000), arms]
    noise = normals(2, "noise", 0, 3000)[:, 0]
    rewards = (values + noise > 1.0).astype(float) if clicks else 3.0 + values + noise
    log = DecisionLog(arm_indices=arms, propensities=np.full(3000, 0.2), rewards=rewards, contexts=sets)
    found = plan(5000, log=log)
    assert (found.source, found.clicks) == ("log", clicks)
    assert found.mean == pytest.approx(rewards.mean())
    gain = gain_of(sets @ theta, np.ones((3000, 5), dtype=np.bool_)) / float(rewards.std())
    low, high = found.gain
    assert clicks or low < gain < high
    assert found.best.regret.expected < 200.0
    assert high < 1.3 * low


def test_scaled_truths_gain_what_they_should() -> None:
    sets = ContextSets(contexts(100), np.ones((100, 5), dtype=np.bool_))
    for truth in prior_truths(sets, (0.3, 0.3), noise=2.0, click_rate=None, seed=0):
        assert gain_of(truth.values(sets.contexts), sets.available) == pytest.approx(0.3)
    for truth in prior_truths(sets, (0.05, 0.05), noise=1.0, click_rate=0.1, seed=0):
        values = truth.values(sets.contexts)
        assert gain_of(values, sets.available) == pytest.approx(0.05, rel=0.01)
        assert values.mean() == pytest.approx(0.1, rel=0.01)


def test_curves_fall_as_one_over_n_where_arms_are_random_directions() -> None:
    """Of estimates with the covariance σ²/n, the loss of the better of two arms is σ²/n times a constant."""
    sets = ContextSets(contexts(2000, arms=2), np.ones((2000, 2), dtype=np.bool_))
    truth = Truth(np.array([1.0, 0.0, 0.0, 0.0]), 1.0)
    curves = regret_curves(sets, (truth,) * 40, total=40_000.0, seed=3)
    known, lost = curves.known[-6:], curves.regret[:, -6:].mean(axis=0)
    slope = np.polyfit(np.log(known), np.log(lost), 1)[0]
    assert -1.2 < slope < -0.8


def test_the_lift_is_seen_when_its_interval_says_so() -> None:
    """Against a holdout h of a greedy policy that knows all, two samples: (z + z')²/(h(1 - h)) decisions of σ²."""
    known = RegretCurve((1e-9,), (1e-9,))
    found = decisions_until_seen(ends=[1.0, 1e5], curve=known, arms=1e9, gain=0.1, holdout=0.2)
    assert found.decisions == pytest.approx((1.96 + 0.8416) ** 2 / 0.16 / 0.01, rel=0.05)
    # an arm of many is worth a fifth of the decisions where a fifth of the ids keeps it: 100 and 20 clicks are needed
    clear = decisions_until_seen(ends=[1.0, 1e5], curve=known, arms=1e9, gain=10.0, holdout=0.2)
    assert clear.decisions == pytest.approx(100.0 / 0.2, rel=0.05)
    rare = decisions_until_seen(ends=[1.0, 1e5], curve=known, arms=1e9, gain=10.0, holdout=0.2, informative=0.01)
    assert rare.decisions == pytest.approx(20.0 / 0.01 / 0.2, rel=0.05)
    blind = decisions_until_seen(ends=[1e5], curve=known, arms=5, gain=0.1, holdout=0.2)
    assert blind.decisions is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"decisions": 1}, "decisions must be between 2 and"),
        ({"decisions": 10, "policies": 11}, "policies must be at most the decisions, 10; got 11"),
        ({"rate": -1.0, "end": "2030-01-01"}, "rate must be a finite number above 0"),
        ({"rate": 5, "end": "2020-01-01"}, "end must be after the start"),
        ({"rate": 5, "start": "2026-11-24", "end": "2026-11-28", "on": "monday 10:00"}, "on must be a meeting between"),
        ({"rate": float("nan"), "end": "2030-01-01"}, "rate must be a finite number above 0"),
        ({"rate": 5, "end": "2030-01-01", "on": "mnday 10:00"}, "on must be weekdays with a time of day"),
        ({"rate": 5, "end": "2030-01-01", "zone": "Nowhere/Else"}, "zone must be a time zone"),
        ({"rate": 5, "end": "soon"}, "end must be a date"),
        ({"rate": 0.001, "start": "2026-01-01", "end": "2026-01-02"}, "rate and end must be such that"),
        ({"rate": 5}, "end, the last day, or decisions"),
        ({}, "decisions must be given"),
        ({"decisions": 50, "delay": "2d"}, "delay is for a plan with dates"),
        ({"decisions": 50, "click_rate": 1.0}, "click_rate must be a finite number"),
        ({"decisions": 50, "click_rate": 0.1, "mean": 2}, "click_rate says the mean and the spread"),
        ({"decisions": 50, "mean": 2}, "mean and spread of the metric belong together"),
        ({"decisions": 50, "mean": 0, "spread": 1}, "mean must not be 0"),
        ({"decisions": 50, "dim": None}, "dim must be given"),
        ({"decisions": 50, "dim": 10**6}, "dim must be between 1 and 1000"),
        ({"decisions": 50, "arms": 1}, "arms, the arms in a set, must be at least 2"),
        ({"decisions": 50, "contexts": "odd"}, "contexts must be fixed, stochastic or adversarial"),
        ({"decisions": 50, "holdout": 1.0}, "holdout must be a finite number"),
        ({"decisions": 50, "min_propensity": 0.9}, "a minimum propensity of 0.9 is for at most 1 arms"),
        ({"decisions": 50, "features": Features.fit([{"a": 1.0}, {"a": 2.0}], ["x"])}, "features encode a sample"),
        ({"decisions": 50, "sample": np.zeros((3, 2))}, "dim is what a sample says"),
        ({"decisions": 50, "log": [1], "dim": None}, "arms is what a log says"),
    ],
)
def test_bad_problems_are_explained(change: dict[str, Any], words: str) -> None:
    raises(ParameterError, words, plan, **SIZES | change)


def test_a_log_without_rewards_or_vectors_is_explained() -> None:
    shown: dict[str, Any] = {"arm_indices": [0, 1], "propensities": [0.5, 0.5]}
    raises(RareswitchError, "vectors of all offered arms", plan, 50, log=DecisionLog(rewards=[0.0, 1.0], **shown))
    with pytest.raises(ParameterError, match="log has no reward"):
        plan(50, log=DecisionLog(rewards=[None, None], contexts=contexts(2), **shown))
    with pytest.raises(ParameterError, match="log has equal rewards only"):
        plan(50, log=DecisionLog(rewards=[1.0, 1.0], contexts=contexts(2), **shown))


def test_endless_runs_are_planned_in_time() -> None:
    found = plan(10**12, **SIZES)
    assert found.best.regret.expected < 10_000.0
    assert found.recommended >= 8
    assert plan(rate=5, start="2026-01-01", end="9999-12-31", **SIZES).best.ends[-1].decisions > 10**7


@pytest.mark.parametrize("limit", ["gap", "delay"])
def test_where_no_update_would_be_in_time_one_policy_is_planned(limit: str) -> None:
    late: dict[str, Any] = {limit: "90d"}
    found = plan(rate=50, start="2026-01-01", end="2026-02-01", **SIZES, **late)
    assert found.recommended == 1
    assert found.best.ratio == found.best.floor == found.options[0].ratio


def test_every_part_of_a_plan_prints(dated: Plan) -> None:
    parts = [dated.detections[0], dated.others[0], dated.best, dated.best.regret, dated.min_propensity, dated.bounds]
    assert all(str(part) for part in [*parts, *dated.bounds.learners, *dated.bounds.adaptivity])


def test_every_meeting_is_what_meetings_are_compared_with(dated: Plan) -> None:
    habit = dated.others[0]
    assert (habit.kind, habit.policies) == ("meeting", 11)
    assert habit.ratio <= dated.options[-1].ratio


def test_a_cost_is_that_of_its_curve() -> None:
    curve = RegretCurve((5.0, 50.0), (0.8, 0.1))
    assert cost([10, 100], dim=3, curve=curve) == pytest.approx(10.0 + 90.0 * float(curve.at(np.array([10.0]))[0]))
    assert adaptive_cost(100.0, dim=3, curve=curve) < cost([10, 100], dim=3, curve=curve)
