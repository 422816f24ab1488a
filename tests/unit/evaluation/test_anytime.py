"""Intervals for every look: that they are rarely ever wrong, and what they refuse."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from rareswitch.evaluation.intervals import bounded

#: A test that should pass does so with this probability, less one.
RISK = 1e-6


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
