"""Sums over batches: what their intervals are, that they hold, and that those for every look contain them."""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from rareswitch.core import FloatArray
from rareswitch.evaluation.intervals import (
    BatchMean,
    bounded,
    combined,
    drift_p_value,
    hall_inverse,
    p_value_of,
    term_of,
)

SIZES = (60, 60, 120, 240)
#: A test that should pass does so with this probability, less one.
RISK = 1e-6
RNG = np.random.Generator


def adaptive_terms(draw: Callable[[int], FloatArray], rng: RNG) -> list[BatchMean]:
    """Arm 0 of two that are alike; each batch plays the one that did better so far 4 times in 5."""
    totals, plays, terms = np.zeros(2), np.full(2, 1e-9), list[BatchMean]()
    for size in SIZES:
        first = 0.5 if plays.sum() < 1.0 else 0.8 if totals[0] / plays[0] >= totals[1] / plays[1] else 0.2
        chosen, rewards = rng.random(size) < first, draw(size)
        terms.append(term_of(np.where(chosen, rewards / first, 0.0)).scaled(size / sum(SIZES)))
        totals += [rewards[chosen].sum(), rewards[~chosen].sum()]
        plays += [chosen.sum(), (~chosen).sum()]
    return terms


def test_a_sum_has_welchs_degrees_of_freedom() -> None:
    interval = combined([BatchMean(0.5, 0.01, 0.0, 399.0), BatchMean(1.0, 0.04, 0.0, 99.0)], level=0.95)
    freedom = 0.05**2 / (0.01**2 / 399.0 + 0.04**2 / 99.0)
    assert interval.value == pytest.approx(1.5)
    assert interval.high - interval.value == pytest.approx(stats.t.ppf(0.975, freedom) * math.sqrt(0.05))
    assert interval.value - interval.low == pytest.approx(interval.high - interval.value)
    assert (interval.kind, interval.level) == ("by batch", 0.95)


def test_a_p_value_is_students() -> None:
    assert p_value_of(BatchMean(-4.0, 4.0, 0.0, 5.0)) == pytest.approx(2.0 * stats.t.sf(2.0, 5.0))


def test_long_tails_leave_few_degrees_of_freedom() -> None:
    """Var(s²) = (m₄ − s⁴)/n: of exponential rows m₄ = 9 s⁴, so 2 s⁴/Var(s²) = n/4; uniform ones have n − 1."""
    places = (np.arange(40_000) + 0.5) / 40_000
    assert term_of(-np.log(places)).freedom == pytest.approx(10_000, rel=0.01)
    assert term_of(places).freedom == 39_999.0
    clicks = (np.arange(40_000) < 40).astype(float)  # of n p of them m₄ = s⁴/p
    assert term_of(clicks).freedom == pytest.approx(2 * 40, rel=0.01)


def test_one_batch_without_skewness_has_students_interval() -> None:
    rows = np.random.default_rng(1).random(25)
    expected = stats.ttest_1samp(rows, 0.0).confidence_interval(0.95)
    interval = combined([term_of(rows)._replace(third=0.0)], level=0.95)
    assert (interval.low, interval.high) == pytest.approx(expected)


@pytest.mark.parametrize("click", [0.1, 0.5])
def test_intervals_of_adaptive_logs_hold(click: float) -> None:
    rng, runs = np.random.default_rng(1000), 1000
    intervals = [
        combined(adaptive_terms(lambda size: (rng.random(size) < click).astype(float), rng), level=0.95)
        for _ in range(runs)
    ]
    held = sum(interval.low <= click <= interval.high for interval in intervals)
    assert stats.binom.ppf(RISK, runs, 0.935) <= held <= stats.binom.isf(RISK, runs, 0.975)


def test_halls_transformation_is_inverted() -> None:
    for skewness in (-0.8, 0.05, 0.5):
        for quantile in (-1.96, 1.96):
            error = hall_inverse(quantile, skewness)
            back = error + skewness * error**2 / 3.0 + skewness**2 * error**3 / 27.0 + skewness / 6.0
            assert back == pytest.approx(quantile)


def test_the_end_on_the_side_of_the_long_tail_is_halls_and_the_other_students() -> None:
    plain = combined([BatchMean(0.5, 0.01, 0.0, 1e9)], level=0.95)
    for sign in (1.0, -1.0):
        skewed = combined([BatchMean(0.5, 0.01, sign * 0.3 * 0.1**3, 1e9)], level=0.95)
        longer, other = (skewed.high - 0.5, 0.5 - skewed.low)[:: int(sign)]
        assert longer == pytest.approx(-0.1 * hall_inverse(-1.959964, 0.3), rel=1e-5)
        assert other == pytest.approx(plain.high - 0.5)


def test_rows_that_do_not_vary_say_nothing() -> None:
    for anytime in (False, True):
        interval = combined([term_of(np.zeros(50)), term_of(np.zeros(50))], level=0.95, anytime=anytime)
        assert (interval.value, interval.low, interval.high) == (0.0, -math.inf, math.inf)
    assert math.isinf(term_of(np.ones(1)).variance)


def lognormal(rng: RNG, size: int) -> FloatArray:
    """Revenue of mean 1: 6 % buy."""
    return np.asarray((rng.random(size) < 0.06) * np.exp(1.3 * rng.normal(size=size) - 0.845) / 0.06)


def test_intervals_for_every_look_are_rarely_ever_wrong_and_contain_those_for_one() -> None:
    rng, runs, looks = np.random.default_rng(1000), 300, 20
    wrong = {True: 0, False: 0}
    for _ in range(runs):
        terms = [term_of((rng.random(100) < 0.4).astype(float)) for _ in range(looks)]
        ever = {True: False, False: False}
        for look in range(1, looks + 1):
            pooled = [term.scaled(1.0 / look) for term in terms[:look]]
            often, once = (combined(pooled, level=0.95, anytime=anytime) for anytime in (True, False))
            assert often.low <= once.low < once.high <= often.high
            for anytime, interval in ((True, often), (False, once)):
                ever[anytime] |= not interval.low <= 0.4 <= interval.high
        wrong = {anytime: wrong[anytime] + ever[anytime] for anytime in wrong}
    bar = stats.binom.isf(RISK, runs, 0.05)
    assert wrong[True] <= bar < wrong[False]


def test_intervals_for_every_look_hold_for_revenue() -> None:
    rng, runs = np.random.default_rng(1001), 400
    wrong = 0
    for _ in range(runs):
        terms, ever = [term_of(lognormal(rng, 300)) for _ in range(6)], False
        for look in range(2, 7):  # before 20 buyers there is no answer
            interval = combined([term.scaled(1.0 / look) for term in terms[:look]], level=0.95, anytime=True)
            ever |= not interval.low <= 1.0 <= interval.high
        wrong += ever
    assert wrong <= stats.binom.isf(RISK, runs, 0.05)


def test_a_first_look_follows_the_formula_of_the_mixture() -> None:
    interval = combined([BatchMean(0.5, 1e-4, 0.0, 1e9)], level=0.95, anytime=True)
    # V = 1 and ρ = 2, in variances of the batch
    assert interval.high - 0.5 == pytest.approx(0.01 * math.sqrt(3.0 * math.log(1.5 / 0.05**2)), rel=1e-6)
    assert interval.kind == "anytime"


def test_batches_that_drifted_are_told_from_those_that_did_not() -> None:
    rng, alarms = np.random.default_rng(3), 0
    for _ in range(1000):
        terms = [term_of(rng.normal(size=20)) for _ in range(6)]
        alarms += drift_p_value(terms) < 0.01
    assert alarms <= stats.binom.isf(RISK, 1000, 0.0125)  # Welch's own error at six groups of 20 is below a quarter
    assert drift_p_value([term._replace(value=term.value + k) for k, term in enumerate(terms)]) < 1e-6


def test_drift_is_judged_by_welchs_analysis_of_variance() -> None:
    rng = np.random.default_rng(4)
    groups = [rng.normal(0.2 * k, 1.0 + k, size=10 + 3 * k) for k in range(5)]
    terms = [BatchMean(part.mean(), part.var(ddof=1) / len(part), 0.0, len(part) - 1.0) for part in groups]
    assert drift_p_value(terms) == pytest.approx(stats.f_oneway(*groups, equal_var=False).pvalue)


def test_drift_needs_two_batches_with_an_error() -> None:
    exact, certain = BatchMean(1.0, 0.01, 0.0, 1e12), BatchMean(5.0, 0.0, 0.0, 1e12)
    assert drift_p_value([exact]) == drift_p_value([exact, certain]) == 1.0
    assert drift_p_value([exact, exact._replace(value=1.2)]) == pytest.approx(stats.chi2.sf(2.0, 1), rel=1e-6)


def test_bounded_rewards_are_rarely_ever_missed_with_large_weights() -> None:
    rng = np.random.default_rng(1000)
    runs, rows, played, click = 300, 400, 0.1, 0.2
    wrong = 0
    for _ in range(runs):
        weights = (rng.random(rows) < played) / played
        rewards = np.where(rng.random(rows) < click, 3.0, -1.0)
        found = bounded(weights, rewards, low=-1.0, high=3.0)  # of all looks together: the narrowest so far
        wrong += not found.low <= 3.0 * click - (1.0 - click) <= found.high
    assert wrong <= stats.binom.isf(RISK, runs, 0.05)


def test_bounded_intervals_shrink_and_never_widen() -> None:
    rng = np.random.default_rng(5)
    rewards = (rng.random(4000) < 0.3).astype(float)
    found = [bounded(np.ones(many), rewards[:many], low=0.0, high=1.0) for many in (1, 100, 1000, 4000)]
    assert all(a.low <= b.low <= b.value <= b.high <= a.high for a, b in pairwise(found))
    assert found[0].low >= 0.0
    assert found[0].high <= 1.0
    assert found[-1].high - found[-1].low < 0.1


def test_bounded_is_the_same_upside_down() -> None:
    rng = np.random.default_rng(6)
    weights, rewards = rng.exponential(size=500), rng.random(500)
    up, down = (bounded(weights, one, low=0.0, high=1.0) for one in (rewards, 1.0 - rewards))
    assert (up.low, up.value, up.high) == pytest.approx((1.0 - down.high, 1.0 - down.value, 1.0 - down.low))


def test_bounds_that_contradict_each_other_are_those_of_the_last_row() -> None:
    rewards = np.repeat([1.0, 0.0], 3000)  # the value moved from 1 to 0
    found = bounded(np.ones(6000), rewards, low=0.0, high=1.0)
    assert found.low < found.high
    assert found.low <= found.value <= found.high


def test_no_weight_says_nothing() -> None:
    found = bounded(np.zeros(10), np.ones(10), low=0.0, high=1.0)
    assert (found.low, found.high) == (0.0, 1.0)
