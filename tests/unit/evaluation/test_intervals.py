"""Pooled values of batches: what they are, that their intervals hold, and what batches that know little do to them."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from rareswitch.core import FloatArray
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.evaluation.intervals import iid, moved, pooled, usable

NAN, INF = math.nan, math.inf
SIZES = (60, 60, 120, 240)
#: A test that should pass does so with this probability, less one.
RISK = 1e-6


class Run(NamedTuple):
    """What an adaptive log says of one arm, batch by batch: (B,) each."""

    values: FloatArray
    errors: FloatArray
    counts: FloatArray
    spreads: FloatArray


def adaptive_logs(runs: int, click: float, seed: int) -> list[Run]:
    """Two arms with equal clicks; each batch plays the arm that did better so far 4 times in 5; arm 0 is asked for."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(runs):
        totals, plays, parts = np.zeros(2), np.full(2, 1e-9), []
        for size in SIZES:
            first = 0.5 if plays.sum() < 1.0 else 0.8 if totals[0] / plays[0] >= totals[1] / plays[1] else 0.2
            chosen = rng.random(size) < first
            rewards = (rng.random(size) < click).astype(float)
            scores = np.where(chosen, rewards / first, 0.0)
            parts.append((scores.mean(), scores.std(ddof=1) / math.sqrt(size), size, 1.0 / first))
            totals += [rewards[chosen].sum(), rewards[~chosen].sum()]
            plays += [chosen.sum(), (~chosen).sum()]
        made.append(Run(*np.array(parts, dtype=np.float64).T))
    return made


def test_each_batch_has_the_weight_of_its_effective_decisions() -> None:
    found = pooled([1.0, 2.0], [0.1, 0.2], counts=[400, 200], spreads=[1.0, 2.0])
    variances = (np.array([20.0, 10.0]) / 30.0 * [0.1, 0.2]) ** 2
    error, freedom = math.sqrt(variances.sum()), variances.sum() ** 2 / (variances**2 / [399.0, 99.0]).sum()
    assert found.value == pytest.approx(4.0 / 3.0)
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, freedom) * error)
    assert found.value - found.low == pytest.approx(found.high - found.value)
    assert (found.kind, found.level) == ("batch-studentised", 0.95)


def test_one_batch_has_students_interval() -> None:
    scores = np.random.default_rng(1).random(25)
    found = pooled([scores.mean()], [scores.std(ddof=1) / 5.0], counts=[25])
    expected = stats.ttest_1samp(scores, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize("click", [0.1, 0.5])
def test_intervals_of_adaptive_logs_hold(click: float) -> None:
    runs = adaptive_logs(1000, click, seed=1000)
    intervals = [pooled(run.values, run.errors, counts=run.counts, spreads=run.spreads) for run in runs]
    held = sum(one.low <= click <= one.high for one in intervals)
    assert held >= stats.binom.ppf(RISK, len(runs), 0.935)
    assert held <= stats.binom.isf(RISK, len(runs), 0.97)


def test_an_interval_is_longer_where_the_estimate_is_skewed() -> None:
    """Johnson's: t + |γ|(2t² + 1)/6 on the side of the long tail, with γ the skewness of the pooled value."""
    columns: dict[str, Any] = {"counts": [10_000, 10_000], "spreads": [1.0, 1.0]}
    plain = pooled([0.5, 0.5], [0.1, 0.1], **columns)
    error, half = 0.1 / math.sqrt(2.0), plain.high - 0.5
    third = 2.0 * 0.1**3 * 0.3  # of two alike of skewness 0.3: 0.3/√2 together
    student = half / error
    more = 0.3 / math.sqrt(2.0) * (2.0 * student**2 + 1.0) / 6.0 * error
    for sign in (1.0, -1.0):
        found = pooled([0.5, 0.5], [0.1, 0.1], thirds=[sign * third / 2.0] * 2, **columns)
        longer, other = (found.high - 0.5, 0.5 - found.low)[:: int(sign)]
        assert longer == pytest.approx(half + more)
        assert other == pytest.approx(half)


def test_a_batch_without_spread_in_its_scores_does_not_make_the_value_certain() -> None:
    alone = pooled([0.3], [0.02], counts=[400])
    beside = pooled([0.3, 0.0], [0.02, 0.0], counts=[400, 400])
    assert beside.value == pytest.approx(0.15)
    # half of the pooled variance, 0.02²/2, of the two batches alike
    assert usable([0.3, 0.0], [0.02, 0.0], [400, 400]).errors[1] == pytest.approx(0.02 / 2.0)
    assert beside.high - beside.low >= (alone.high - alone.low) / 2.0


def test_scores_that_are_all_alike_say_nothing() -> None:
    found = pooled([0.0, 0.0], [0.0, 0.0], counts=[50, 50])
    assert (found.value, found.low, found.high) == (0.0, -INF, INF)
    naive = iid([0.0], [0.0], [50])
    assert (naive.low, naive.high) == (-INF, INF)


def test_batches_without_an_estimate_or_an_error_are_left_out() -> None:
    with_them = pooled([0.5, NAN, 0.7], [0.1, NAN, INF], counts=[50, 50, 1], spreads=[1.0, 2.0, 1.0])
    assert with_them == pooled([0.5], [0.1], counts=[50])
    nothing = pooled([NAN], [NAN], counts=[5])
    assert math.isnan(nothing.value)
    assert (nothing.low, nothing.high) == (-INF, INF)


def test_the_naive_interval_is_that_of_all_rows() -> None:
    rng = np.random.default_rng(2)
    parts = [rng.normal(size=30), 1.0 + rng.normal(size=70), rng.normal(size=1)]
    values = [part.mean() for part in parts]
    errors = [part.std(ddof=1) / math.sqrt(len(part)) for part in parts[:2]] + [INF]
    rows = np.concatenate(parts)
    found = iid(values, errors, [30, 70, 1])
    half = stats.norm.ppf(0.975) * rows.std(ddof=1) / math.sqrt(101)
    assert (found.value, found.high - found.value) == pytest.approx((rows.mean(), half))
    assert found.kind == "i.i.d."


def test_batches_that_moved_are_told_from_those_that_did_not() -> None:
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(1000):
        scores = rng.normal(size=(6, 20))
        values, errors = scores.mean(axis=1), scores.std(axis=1, ddof=1) / math.sqrt(20)
        alarms += moved(values, errors, counts=[20] * 6) < 0.01
    assert alarms <= stats.binom.isf(RISK, 1000, 0.0125)  # Welch's own error at six groups of 20 is below a quarter
    assert moved(values + np.arange(6), errors, counts=[20] * 6) < 1e-6


def test_moving_needs_two_batches_with_an_error() -> None:
    assert moved([1.0], [0.1]) == 1.0
    assert moved([1.0, 5.0], [0.1, 0.0]) == 1.0
    assert moved([1.0, 5.0], [0.1, NAN]) == 1.0
    assert moved([1.0, 1.2], [0.1, 0.1]) == pytest.approx(stats.chi2.sf(2.0, 1))


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, NAN, "high"])
def test_a_level_is_between_0_and_1(level: float) -> None:
    with pytest.raises(ParameterError, match="level"):
        pooled([1.0], [0.1], counts=[10], level=level)


def test_columns_must_fit() -> None:
    with pytest.raises(ShapeError, match=r"values \(2,\), errors \(1,\)"):
        pooled([1.0, 2.0], [0.1], counts=[10, 10])
    with pytest.raises(ShapeError, match="errors must be numbers"):
        pooled([1.0], ["small"], counts=[10])  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="counts and spreads above 0"):
        pooled([1.0], [0.1], counts=[0])
    with pytest.raises(ParameterError, match="errors must be at least 0"):
        pooled([1.0], [-0.1], counts=[10])
