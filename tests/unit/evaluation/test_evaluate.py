"""Values with intervals from logs of several policies, or the reason why there are none."""

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from rareswitch.core import FloatArray, IntArray
from rareswitch.decisions import DecisionLog
from rareswitch.design import Uniform
from rareswitch.errors import EmptySetError, FileFormatError, ParameterError
from rareswitch.evaluation import Always, evaluate, lift_of
from rareswitch.evaluation.intervals import bounded, combined, term_of
from rareswitch.experiment import Rewards, create
from rareswitch.log import export_parts
from rareswitch.policy import Baseline, Blend, Policy, PosteriorDraws
from reference.logged import Chunked, decided_by
from reference.refusals import raises

COUNT, ARMS, DIM = 6000, 4, 3
THETA = np.array([0.3, -0.2, 0.1])


def logged(policies: list[Policy], *, seed: int = 1, count: int = COUNT, **more: Any) -> DecisionLog:
    """What policies decided, as many decisions each, in a world with rewards 0 or 1."""
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(count, ARMS, DIM))
    contexts /= np.maximum(1.0, np.linalg.norm(contexts, axis=2, keepdims=True))
    baselines = rng.integers(ARMS, size=count) if any(one.needs_baseline for one in policies) else None

    def clicked(arms: IntArray) -> FloatArray:
        return (rng.random(count) < means(contexts)[np.arange(count), arms]).astype(float)

    return decided_by(policies, contexts, clicked, baselines=baselines, **more)


def means(contexts: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 + contexts @ THETA)


def truth(probabilities: Callable[[np.ndarray], np.ndarray]) -> float:
    """Of a candidate, over so many contexts that its error (sd below 0.15 by context) is below 0.0005 at 5 sigma."""
    contexts = np.random.default_rng(99).normal(size=(400_000, ARMS, DIM))
    contexts /= np.maximum(1.0, np.linalg.norm(contexts, axis=2, keepdims=True))
    return float((probabilities(contexts) * means(contexts)).sum(axis=1).mean())


UNIFORM = Policy(dim=DIM, sampler=Uniform())
SOFT = Policy(
    dim=DIM, sampler=Blend(main=PosteriorDraws(draws=np.array([THETA, -THETA])), explorer=Uniform(), share=0.4)
)
GREEDY = Policy(dim=DIM, sampler=PosteriorDraws(draws=THETA[None]))


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
def test_values_are_near_the_truth(estimator: Any) -> None:
    """By Bernstein: weights are at most 4 (uniform) and 10 (soft), so scores are; 1e-6 for each of six checks."""
    found = evaluate(logged([UNIFORM, SOFT]), {"greedy": GREEDY, "uniform": "uniform"}, estimator=estimator)
    for name, policy in (("greedy", GREEDY), ("uniform", UNIFORM)):
        interval = found[name].interval
        span, log = 10.0, math.log(2e6)
        bound = math.sqrt(2 * span * log / (COUNT / 2)) + span * log / (3 * COUNT / 2)
        assert abs(interval.value - truth(policy.probabilities)) < bound
        widths = {other: one.high - one.low for other, one in found[name].others.items()}
        assert widths["dr"] < widths["ips"]
        assert interval.low < interval.value < interval.high


def test_a_log_of_a_greedy_policy_answers_nothing_about_uniform_play() -> None:
    """The mean weight is far below 1, whether or not the policy is at hand: a number would look right and be wrong."""
    log = logged([GREEDY])
    for one in (log, replace(log, policies={})):
        value = evaluate(one, "uniform")["uniform"]
        assert not value.answered
        assert value.others == {}
        assert all(np.isnan(batch.value) and batch.interval is None for batch in value.batches)
        assert "75 % of its play is unsupported" in value.refusals[0]
        # without the policy propensities may be wrong, which more exploration does not mend
        assert ("min_propensity" in value.refusals[-1]) == (one is log)


def test_recorded_propensities_must_be_those_of_the_policy() -> None:
    log = logged([SOFT])
    wrong = np.where(log.arm_indices == 0, log.propensities * 0.9, log.propensities)
    found = evaluate(replace(log, propensities=wrong), GREEDY)
    assert not found.values[0].answered
    assert "not those of the policy" in found.values[0].refusals[0]


def test_rows_without_reward_are_left_out_and_told_of() -> None:
    log = logged([UNIFORM])
    gone = np.where(np.arange(COUNT) % 3 == 0, np.nan, log.rewards)
    found = evaluate(replace(log, rewards=gone), [GREEDY, np.full((COUNT, ARMS), 0.25)])
    kept = evaluate(log.select(~np.isnan(gone)), [GREEDY, np.full((COUNT - COUNT // 3, ARMS), 0.25)])
    assert found.rewarded == COUNT - COUNT // 3
    for one, other in zip(found.values, kept.values, strict=True):
        assert one.interval == other.interval
        assert any("no reward" in caution for caution in one.cautions)


def test_chunks_make_no_difference() -> None:
    log = logged([UNIFORM, SOFT])
    whole, parts = (evaluate(one, [GREEDY, "uniform", "logged"]) for one in (log, Chunked(log, 700)))
    for one, other in zip(whole.values, parts.values, strict=True):
        assert abs(one.interval.value - other.interval.value) < 1e-12
        assert abs(one.interval.low - other.interval.low) < 1e-12


def test_what_was_logged_is_worth_what_was_earned() -> None:
    log = logged([UNIFORM])
    found = evaluate(log, "logged")
    assert found["logged"].others["ips"].value == pytest.approx(log.rewards.mean(), abs=1e-12)
    assert found.earned.value == pytest.approx(log.rewards.mean(), abs=1e-12)
    assert abs(found.gains[0].interval.value) < 1e-12


def test_the_lift_over_the_baseline() -> None:
    """A policy that plays the best arm half of the time, against a baseline that is uniform, with its truth."""
    mixed = Policy(dim=DIM, sampler=Blend(main=Baseline(), explorer=PosteriorDraws(draws=THETA[None]), share=0.5))
    day = 86400.0
    log = logged([mixed], times=1.7e9 + np.arange(COUNT) * 21 * day / COUNT)
    so_far, *weeks = lift_of(log)
    want = 0.5 * (truth(GREEDY.probabilities) - truth(UNIFORM.probabilities))
    assert so_far.value - so_far.other == pytest.approx(so_far.interval.value, abs=1e-12)
    # weights are at most 2, the difference of scores at most 3 in size: Bernstein at 1e-6
    bound = math.sqrt(2 * 2.0 * math.log(2e6) / COUNT) + 3 * math.log(2e6) / (3 * COUNT)
    assert abs(so_far.interval.value - want) < bound
    assert len(weeks) in (3, 4)
    assert [week.name for week in weeks] == sorted(week.name for week in weeks)
    assert sum(week.decisions for week in weeks) == so_far.decisions == COUNT


def test_weeks_begin_on_monday_at_midnight_utc() -> None:
    half = COUNT // 2
    moments = [datetime(2026, 3, 8, 23, 59, 59, tzinfo=UTC), datetime(2026, 3, 9, tzinfo=UTC)]
    mixed = Policy(dim=DIM, sampler=Blend(main=Baseline(), explorer=Uniform(), share=0.5))
    times = np.repeat([one.timestamp() for one in moments], [half, COUNT - half])
    weeks = lift_of(logged([mixed], times=times))[1:]
    told = [("week of 2026-03-02", half), ("week of 2026-03-09", COUNT - half)]
    assert [(week.name, week.decisions) for week in weeks] == told


def test_a_few_decisions_of_the_policy_before_do_not_cost_the_week() -> None:
    mixed = [Policy(dim=DIM, sampler=Blend(main=Baseline(), explorer=Uniform(), share=one)) for one in (0.5, 0.6)]
    half, monday = COUNT // 2, datetime(2026, 3, 9, tzinfo=UTC).timestamp()
    so_far, _, week = lift_of(logged(mixed, times=monday + np.arange(COUNT) - half + 4.0))
    assert so_far.decisions == COUNT
    assert (week.name, week.decisions) == ("week of 2026-03-09", half)
    assert week.interval is not None


def test_a_baseline_that_later_policies_do_not_show_is_compared_with_a_caveat() -> None:
    first = Policy(dim=DIM, sampler=Blend(main=Baseline(), explorer=Uniform(), share=0.2))
    so_far = lift_of(logged([first, GREEDY]))[0]
    assert so_far.interval is not None
    assert "batch 1" in so_far.assumes
    assert lift_of(logged([GREEDY])) == ()


def test_wrong_questions() -> None:
    log = logged([UNIFORM], count=200)
    for wrong, text in (
        ({"estimator": "magic"}, "estimator"),
        ({"level": 1.0}, "level"),
        ({"level": 95}, "level"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"bounds": (0.2, 1)}, "bounds"),
        ({"bounds": 3}, "bounds"),
        ({"candidates": Always("red")}, "places"),
    ):
        raises(ParameterError, text, evaluate, log, **{"candidates": "uniform", **wrong})
    with pytest.raises(ParameterError, match="none of the 200 decisions of this log has a reward"):
        evaluate(replace(log, rewards=np.full(200, np.nan)))
    raises(EmptySetError, None, evaluate, log.select(slice(0, 0)))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"arms": ["a", "b"], "codes": [[0, 1, 0]]}, r"row 0 .* offers 'a' twice"),
        ({"behavior_probs": [[0.5, 0.6]]}, "sum to 1"),
        ({"behavior_probs": [[0.5, -0.5]]}, "sum to 1"),
        ({"times": [1.8e12]}, "Divide milliseconds by 1000"),
        ({"arm_indices": [0] * 2, "propensities": [0.5] * 2, "rewards": [1.0] * 2, "ids": ["x"] * 2}, r"rows \[0, 1\]"),
    ],
)
def test_logs_that_cannot_be_are_refused(more: dict[str, Any], words: str) -> None:
    row: dict[str, Any] = {"arm_indices": [0], "propensities": [0.5], "rewards": [1.0]}
    raises(ParameterError, words, DecisionLog, **row | more)
    missing = {"arms": ["a", "b"], "codes": [[0, 1, 0]], "available": np.array([[True, True, False]])}
    assert len(DecisionLog(**row | missing)) == 1
    two = {name: 2 * values for name, values in row.items()}
    assert len(DecisionLog(**two, ids=["x", "x"], batches=[0, 1], batch_names=["p", "q"])) == 2


def plain_log(count: int = 2000, **more: Any) -> dict[str, Any]:
    """Columns of a log of three arms, each shown a third of the time."""
    places = np.random.default_rng(1).integers(3, size=count)
    batches, names = np.arange(count) * 4 // count, ("1", "2", "3", "4")
    told = {"arm_indices": places, "propensities": np.full(count, 1 / 3), "arms": ["a", "b", "c"], "batches": batches}
    return told | {"batch_names": names, "rewards": np.random.default_rng(2).random(count) < 0.3} | more


def test_all_intervals_are_wider_for_one_who_looks_often() -> None:
    log = DecisionLog(**plain_log(baselines=np.zeros(2000, dtype=np.int64)))
    once, often = evaluate(log, Always("b")), evaluate(log, Always("b"), anytime=True)
    for one, wide in zip(once.values + once.gains + once.lift, often.values + often.gains + often.lift, strict=True):
        assert wide.interval.kind == "anytime"
        assert wide.interval.high - wide.interval.low > 1.3 * (one.interval.high - one.interval.low)
    assert often.earned.high - often.earned.low > 1.3 * (once.earned.high - once.earned.low)


def test_intervals_for_every_look_contain_those_for_one_also_where_clicks_became_more() -> None:
    """Bounds of earlier rows stay: where clicks become more late, they alone would end below the interval for one."""
    clicks = np.random.default_rng(9).random(24_000) < np.repeat([0.5, 0.7], [20_000, 4000])
    value = evaluate(two_arms(clicks), "uniform", anytime=True).values[0]
    once = value.others["dr"]
    exact = bounded(np.ones(24_000), clicks.astype(float), low=0.0, high=1.0)
    assert value.interval.low == exact.low < once.low
    assert value.interval.high == once.high > exact.high


def test_snips_is_one_ratio_over_all_batches() -> None:
    log = logged([UNIFORM, SOFT])
    chances = log.probabilities_of(GREEDY)[np.arange(COUNT), log.arm_indices]
    weights = chances / log.propensities
    value = evaluate(log, {"it": GREEDY}).values[0].others["snips"].value
    assert value == pytest.approx(float(weights @ log.rewards / weights.sum()), abs=1e-12)


def two_arms(rewards: np.ndarray, **more: Any) -> DecisionLog:
    """Red and blue by turns, half and half."""
    columns = {"arm_indices": np.arange(len(rewards)) % 2, "propensities": np.full(len(rewards), 0.5)}
    return DecisionLog(**{**columns, "rewards": rewards, "arms": ["red", "blue"], **more})


def width(log: DecisionLog, candidate: Any, **how: Any) -> float:
    interval = evaluate(log, {"it": candidate}, **how)["it"].interval
    return interval.high - interval.low


def test_what_an_arm_earns_that_is_never_shown_does_not_matter() -> None:
    rng = np.random.default_rng(11)
    baskets = (rng.random(900) < 0.05) * np.exp(rng.normal(3.0, 1.0, size=900))
    scale = np.where(np.arange(900) % 2 == 1, 1.0, 0.0)
    widths = [width(two_arms(np.where(scale > 0, by * baskets, baskets)), Always("red")) for by in (1.0, 20.0, 200.0)]
    assert max(widths) < 1.05 * min(widths)


def rare_log(seed: int, batches: int = 6) -> DecisionLog:
    """Clicks; a batch that shows both arms alike, then some in which the second is at its least probability."""
    rng = np.random.default_rng(seed)
    sizes, chances = [900, *[840] * (batches - 1)], [0.5, *[0.01] * (batches - 1)]
    chance = np.repeat(chances, sizes)
    arms = (rng.random(len(chance)) < chance).astype(int)
    return DecisionLog(
        arm_indices=arms,
        propensities=np.where(arms == 1, chance, 1.0 - chance),
        rewards=rng.random(len(chance)) < 0.1,
        arms=["red", "blue"],
        behavior_probs=np.column_stack([1.0 - chance, chance]),
        batches=np.repeat(np.arange(batches), sizes),
        batch_names=[*map(str, range(batches))],
    )


def test_later_batches_narrow_what_is_stationary() -> None:
    """By √(450/492) = 0.956 on average: widths follow the share of clicks that came, whose errors are alike."""
    ratios = [
        width(rare_log(seed), Always("blue"), pooling="stationary") / width(rare_log(seed, 1), Always("blue"))
        for seed in range(12)
    ]
    assert abs(np.mean(ratios) - 0.956) < 4 * 0.07 / math.sqrt(12)
    assert 'pooling="stationary"' in " ".join(str(evaluate(rare_log(1), Always("blue"))).split())


def test_value_and_gain_agree_under_drift() -> None:
    """Two batches of 500 and 8,000, of means 0 and 1; the candidates are the policy that logged, and another."""
    rng = np.random.default_rng(5)
    batches = np.repeat([0, 1], [500, 8000])
    log = two_arms(batches + rng.normal(size=8500), batches=batches, batch_names=["a", "b"])
    found = evaluate(log, ["uniform", Always("red"), "logged"])
    for value, gain in zip(found.values, found.gains, strict=True):
        assert value.interval.value == pytest.approx(found.earned.value + gain.interval.value, abs=1e-12)
    own = found.gains[0].interval
    assert (own.value, own.low, own.high) == (0.0, 0.0, 0.0)


def test_a_gain_is_as_sure_as_the_differences_of_its_rows() -> None:
    """Of a candidate that nearly does what was done the gain is known far better than the value."""
    rng = np.random.default_rng(6)
    log = two_arms(rng.exponential(size=2000), behavior_probs=np.full((2000, 2), 0.5))
    found = evaluate(log, {"it": np.tile([0.51, 0.49], (2000, 1))}, estimator="ips")
    rows = np.where(log.arm_indices == 0, 0.51, 0.49) / 0.5 * log.rewards - log.rewards
    gain, own = found.gains[0].interval, combined([term_of(rows)], level=0.95)
    assert (gain.low, gain.high) == pytest.approx((own.low, own.high))
    assert gain.high - gain.low < 0.05 * (found["it"].interval.high - found["it"].interval.low)


def test_unsupported_play_makes_the_interval_longer_by_its_share_of_the_range() -> None:
    rng, count = np.random.default_rng(2), 4000
    places = rng.integers(2, size=count)
    logging = np.tile([0.5, 0.5, 0.0], (count, 1))
    log = DecisionLog(
        arm_indices=places,
        propensities=np.full(count, 0.5),
        rewards=rng.random(count) < 0.3,
        arms=["a", "b", "c"],
        behavior_probs=logging,
    )
    without, some = (np.tile([(1 - p) / 2, (1 - p) / 2, p], (count, 1)) for p in (0.0, 0.008))
    assert width(log, some) == pytest.approx(0.992 * width(log, without) + 2 * 0.008, rel=0.01)
    evaluation = evaluate(log, {"it": some})
    found, gain = evaluation["it"], evaluation.gains[0].interval
    # it earns 0.992 of what was earned, which is known to 4 · 0.008 · 0.46/√4000 = 0.0002
    assert gain.high - gain.low == pytest.approx(2 * 0.008, abs=0.0003)
    assert any("probability 0" in caution for caution in found.cautions)
    assert any("given as probabilities" in caution for caution in found.cautions)
    far = evaluate(replace(log, rewards=100.0 + rng.normal(size=count)), {"it": some})
    assert all(other.low < 100.0 < other.high for other in far["it"].others.values())  # IPS takes what is missed for 0


def test_a_weight_beyond_all_others_counts_as_unsupported() -> None:
    """One decision showed red by a chance of a millionth, where 20 of 4,000 had it: it would outweigh all others."""
    rng, chance = np.random.default_rng(7), np.where(np.arange(4000) < 20, 1e-6, 0.5)
    shown = np.where(np.arange(4000) < 20, 1, np.arange(4000) % 2)
    shown[0] = 0
    propensities, both = np.where(shown == 0, chance, 1.0 - chance), np.column_stack([chance, 1.0 - chance])
    rewards = rng.normal(1.0, 1.0, size=4000)
    columns = {"arm_indices": shown, "propensities": propensities, "behavior_probs": both}
    value = evaluate(two_arms(rewards, **columns), Always("red")).values[0]
    assert value.overlap.unsupported == pytest.approx(20 / 4000)
    assert abs(value.interval.value - 1.0) < 5 * math.sqrt(2 / 4000)


def test_bounds_are_kept_and_a_lift_over_next_to_nothing_has_no_percentage() -> None:
    rng = np.random.default_rng(3)
    clicks = evaluate(two_arms((rng.random(4000) < 0.012).astype(float)), Always("red"), bounds=(0.0, 1.0))
    assert clicks["always red"].interval.low >= 0.0
    few = np.random.default_rng(0)
    orders = (few.random(1000) < 0.08) * few.lognormal(0.0, 2.0, size=1000)  # a few of them are nearly all
    apart, within = (evaluate(two_arms(orders), Always("red"), bounds=b).values[0].interval for b in (None, (0, 1000)))
    assert (within.low, within.high) == (0.0, apart.high)
    assert apart.low < 0.0
    rare = {
        "propensities": np.where(np.arange(6000) % 50 == 0, 0.02, 0.98),
        "arm_indices": np.minimum(np.arange(6000) % 50, 1),
    }
    rated = two_arms(np.random.default_rng(1).random(6000) < 0.8, **rare)  # clicks: bounds are found
    assert evaluate(rated, Always("red"), estimator="ips", anytime=True).values[0].interval.high == 1.0
    rewards = np.where(np.arange(4000) % 2 == 0, 0.0, 1.0) + rng.normal(size=4000)
    lift = evaluate(two_arms(rewards, baselines=np.zeros(4000, dtype=int)), "uniform").lift[0]
    assert lift.interval.low > 0.0
    assert lift.relative is None


def test_a_relative_gain_has_fiellers_interval() -> None:
    """The shares e for which gain − e · earned, of these rows, is not further from 0 than its error allows."""
    rng = np.random.default_rng(4)
    log = two_arms(np.arange(2000) % 2 + rng.exponential(size=2000))
    relative = evaluate(log, {"blue": Always("blue")}, estimator="ips").gains[0].relative
    value = np.where(log.arm_indices == 1, 2.0, 0.0) * log.rewards
    for end in (relative.low, relative.high):
        rows = value - log.rewards - end * log.rewards
        assert abs(rows.mean()) == pytest.approx(1.959964 * rows.std(ddof=1) / math.sqrt(2000), rel=1e-5)
    assert relative.low < relative.value < relative.high
    assert relative.value == pytest.approx(value.mean() / log.rewards.mean() - 1.0)


def test_several_candidates_hold_together() -> None:
    log, names = logged([UNIFORM]), [f"c{k}" for k in range(5)]
    together = evaluate(log, dict.fromkeys(names, GREEDY))
    alone = evaluate(log, dict.fromkeys(names, GREEDY), simultaneous=False)
    assert together["c0"].interval.low < alone["c0"].interval.low
    assert "hold together" in str(together)
    assert together.earned == alone.earned
    assert together.questions == 5


def test_rules_on_records_and_tables_are_candidates() -> None:
    """Both are the same as probabilities; decisions without a record say nothing."""
    rng, count = np.random.default_rng(8), 3000
    ages = rng.integers(18, 80, size=count)
    ids = [f"r{k}" for k in range(count)]
    log = two_arms((rng.random(count) < 0.3).astype(float), ids=ids)
    records = {one: {"age": int(age)} for one, age in zip(ids, ages, strict=True)}
    chances = np.where(ages[:, None] > 40, [0.0, 1.0], [1.0, 0.0])
    by_rule = evaluate(log, {"it": lambda record, arms: arms[record["age"] > 40]}, records=records)["it"]
    by_table = evaluate(log, {"it": {k: "blue" if r["age"] > 40 else "red" for k, r in records.items()}})["it"]
    assert by_rule.interval == by_table.interval == evaluate(log, {"it": chances})["it"].interval
    part = {one: records[one] for one in ids[:2000]}
    assert evaluate(log, {"it": lambda record, arms: arms[0]}, records=part)["it"].overlap.decisions == 2000
    raises(ParameterError, "shows 'green' in row 0", evaluate, log, {"it": {"r0": "green"}})
    raises(ParameterError, "records must be a dict", evaluate, log, "uniform", records=[1])


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        (Rewards(default=0), "there is no window"),
        (Rewards(window="1h", default=0), "left out until the window of their rewards is over"),
        (Rewards(window="1h"), "Rewards(default=0)"),
        (Rewards(window="1h"), "50 of 1,500 decisions are left out, as their reward came after its window"),
        (Rewards(window="1h"), "550 of 1,500 decisions have no reward"),
    ],
)
def test_what_missing_rewards_mean_is_said(rewards: Rewards, words: str) -> None:
    trial = create("memory:", "spring", dim=2, horizon=5000, seed=1, rewards=rewards)
    ids = [f"r{k}" for k in range(1500)]
    trial.decide_many(np.tile(np.eye(2), (1000, 1, 1)), ids=ids[:1000], now=0.0)
    trial.reward_many(ids[:400], [float(k % 2) for k in range(400)], now=10.0)
    trial.reward_many(ids[400:450], [1.0] * 50, now=6000.0)
    trial.decide_many(np.tile(np.eye(2), (500, 1, 1)), ids=ids[1000:], now=7000.0)
    assert words in " ".join(evaluate(trial.logged(now=7200.0), "uniform").values[0].cautions)


def test_results_are_data() -> None:
    found = evaluate(logged([UNIFORM, GREEDY]), {"greedy": GREEDY, "never": Always("3")})
    frame = found.to_frame()
    assert frame.candidate.tolist() == ["greedy", "never"]
    assert frame.value[0] == found["greedy"].interval.value
    assert found.plot().axes


def test_rewards_may_be_huge() -> None:
    rewards = np.random.default_rng(3).random(2000)
    small, huge = (evaluate(DecisionLog(**plain_log(rewards=rewards * by)), Always("b")) for by in (1.0, 1e99))
    one, other = small["always b"].interval, huge["always b"].interval
    assert (other.low / 1e99, other.high / 1e99) == pytest.approx((one.low, one.high))


def test_rewards_of_an_export_count_as_in_its_experiment(tmp_path: Any) -> None:
    """A reward that never came is a 0 where the experiment says so, also for who reads the exported log."""
    trial = create("memory:", "spring", dim=2, policies=3, horizon=600, seed=1, rewards=Rewards(window="1h", default=0))
    ids = [f"r{k}" for k in range(600)]
    trial.decide_many(np.tile(np.eye(2), (600, 1, 1)), ids=ids, now=1000.0)
    trial.reward_many(ids[::4], [20.0] * 150, now=1010.0)
    trial.decide([[1.0, 0.0], [0.0, 1.0]], id="late", now=9000.0)
    told = trial.description.rewards
    export_parts(trial.store, tmp_path, policies=[trial.policy.id], window=told.window, default=told.default)
    stored, exported = evaluate(trial), evaluate(tmp_path)  # both as of the last decision, of a simulated clock
    assert stored.earned.value == exported.earned.value == 5.0
    assert stored["uniform"].interval == exported["uniform"].interval
    assert "1 of 601 decisions are left out until" in " ".join(stored["uniform"].cautions)


def test_a_policy_under_another_edition_is_the_same_policy() -> None:
    """What it was learned from would flatter it under any name."""
    renamed = replace(GREEDY, edition=7)
    found = evaluate(logged([UNIFORM, SOFT, GREEDY]), {"greedy": GREEDY, "renamed": renamed})
    assert found["greedy"].interval == found["renamed"].interval
    assert found["renamed"].overlap.decisions == COUNT // 3


def test_arms_that_come_too_often_stop_the_evaluation() -> None:
    """Recorded as 0.5 each where one comes in 0.6 of 6,000 decisions: 15 standard deviations."""
    rng = np.random.default_rng(4)
    places = (rng.random(COUNT) < 0.4).astype(int)
    columns: dict[str, Any] = {"arm_indices": places, "propensities": np.full(COUNT, 0.5), "rewards": rng.random(COUNT)}
    both = np.full((COUNT, 2), 0.5)
    found = evaluate(DecisionLog(arms=["a", "b"], behavior_probs=both, **columns), ["uniform", Always("a")])
    assert found.calibration.stops
    assert not any(value.answered for value in found.values)
    absent = evaluate(DecisionLog(arms=["a", "b"], **columns), Always("c")).values[0].refusals
    assert absent == (
        f"None of the {COUNT:,} decisions says anything about this candidate: they do not offer 'c' (but a, b).",
    )
    marked = evaluate(DecisionLog(arms=["a", "b"], estimated="by hand", **columns), "uniform")
    assert marked.calibration is None  # what was estimated fits by construction
    raises(FileFormatError, "only Parquet", evaluate, ["one.csv", "other.csv"])
