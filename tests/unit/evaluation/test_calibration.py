import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rareswitch.core import FloatArray
from rareswitch.decisions import DecisionLog
from rareswitch.evaluation.calibration import THRESHOLD, ArmTally, Calibration, binomial_tails


def drawn(logging: FloatArray, rng: np.random.Generator) -> Any:
    coins = rng.random(len(logging)) * logging.sum(axis=1)
    return (coins[:, None] >= logging.cumsum(axis=1)).sum(axis=1).clip(max=logging.shape[1] - 1)


def logged(places: Any, recorded: FloatArray, **columns: Any) -> DecisionLog:
    own = recorded[np.arange(len(places)), places]
    return DecisionLog(
        arm_indices=places, propensities=own, rewards=np.zeros(len(places)), available=recorded >= 0.0, **columns
    )


def checked(places: Any, recorded: FloatArray, *, known: bool) -> Calibration:
    tally = ArmTally()
    tally.add(logged(places, recorded), recorded if known else None)
    found = tally.calibration()
    assert found is not None
    return found


def same(share: float, count: int, arms: int) -> FloatArray:
    return np.tile([share, *[(1.0 - share) / (arms - 1)] * (arms - 1)], (count, 1))


@pytest.mark.parametrize(("mean", "events"), [(0.3, 400), (3.0, 20), (9.0, 10), (50.0, 100)])
def test_tails_are_those_of_a_binomial_where_all_events_are_alike(mean: float, events: int) -> None:
    counts = np.arange(events + 1.0)
    share = mean / events
    variance = mean * (1.0 - share)
    moments = [np.full(events + 1, one) for one in (mean, variance, variance * (1.0 - 2.0 * share), float(events))]
    upper, lower = binomial_tails(counts, *moments)
    np.testing.assert_allclose(upper, stats.binom.sf(counts - 1, events, share), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(lower, stats.binom.cdf(counts, events, share), rtol=1e-9)


def test_tails_of_unlike_events_are_close() -> None:
    """Against the exact distribution, by convolution: within factors of 0.6 and 1.1 down to chances of 1e-4."""
    rng = np.random.default_rng(1)
    for size in (0.2, 1.0, 5.0):
        shares = rng.beta(size, 3.0 * size, 60)
        exact = np.ones(1)
        for share in shares:
            exact = np.convolve(exact, [1.0 - share, share])
        counts = np.arange(61.0)
        varies = shares * (1.0 - shares)
        sums = shares.sum(), varies.sum(), (varies * (1.0 - 2.0 * shares)).sum(), 60.0
        whole = [np.full(61, total) for total in sums]
        upper, lower = binomial_tails(counts, *whole)
        above, below = exact[::-1].cumsum()[::-1], exact.cumsum()
        for found, right in ((upper, above), (lower, below)):
            there = (right > 1e-4) & (right < 0.1)
            assert (found[there] >= 0.6 * right[there]).all()
            assert (found[there] <= 1.1 * right[there]).all()


def test_what_is_certain_must_come() -> None:
    one = np.ones(1)
    certain = 5.0 * one, 0.0 * one, 0.0 * one, 9.0 * one
    assert [float(tail[0]) for tail in binomial_tails(5.0 * one, *certain)] == [1.0, 1.0]
    assert binomial_tails(6.0 * one, *certain)[0][0] == 0.0
    assert binomial_tails(4.0 * one, *certain)[1][0] == 0.0


def contextual(rng: np.random.Generator) -> FloatArray:
    return rng.dirichlet(np.ones(6), 600)


def peaked(rng: np.random.Generator) -> FloatArray:
    return rng.dirichlet(np.full(6, 0.1), 600)


def eliminating(rng: np.random.Generator) -> FloatArray:
    kept = rng.random((600, 6)) < 0.6
    kept[:, 0] |= ~kept.any(axis=1)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def rare(rng: np.random.Generator) -> FloatArray:
    return same(1.0 - 5 * 0.004, 600, 6)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("made", [contextual, peaked, eliminating, rare])
def test_honest_logs_raise_no_alarm(made: Any, known: bool) -> None:
    """At most 1 % of 300; more than 12 have a chance below 1e-4 at that rate."""
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(300):
        logging = made(rng)
        alarms += checked(drawn(logging, rng), logging, known=known).alarm
    assert stats.binom.sf(12, 300, THRESHOLD) < 1e-4
    assert alarms <= 12


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_an_arm_that_comes_a_tenth_more_or_less_often_is_found(factor: float, known: bool) -> None:
    """Of two arms, 5,000 decisions are 7 standard deviations: one of 20 goes unnoticed with a chance below 1e-3."""
    rng = np.random.default_rng(3)
    alarms = sum(
        checked(drawn(same(0.5 * factor, 5000, 2), rng), same(0.5, 5000, 2), known=known).alarm for _ in range(20)
    )
    assert alarms == 20


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_propensity_that_was_recorded_a_tenth_off_is_found(factor: float) -> None:
    rng = np.random.default_rng(4)
    right = same(0.4, 5000, 4)
    places, recorded = drawn(right, rng), right * [factor, 1.0, 1.0, 1.0]
    assert checked(places, recorded, known=False).alarm
    # with all probabilities a single decision is enough: they do not add up to 1
    assert checked(places[:1], recorded[:1], known=True).disagreeing == 1


def test_propensities_that_are_not_those_of_the_policy_are_found_at_once() -> None:
    right = same(0.4, 3, 4)
    tally = ArmTally()
    tally.add(logged(np.array([0, 1, 2]), right * [1.1, 1.0, 1.0, 1.0]), right)
    found = tally.calibration()
    assert (found.disagreeing, found.p_value, found.alarm) == (1, 0.0, True)


def test_rounded_propensities_are_no_alarm() -> None:
    rng = np.random.default_rng(5)
    logging = rng.dirichlet(np.ones(4) * 5, 2000)
    tally = ArmTally()
    tally.add(logged(drawn(logging, rng), logging.round(4)), logging)
    found = tally.calibration()
    assert found.disagreeing == 0


def test_arms_are_told_by_their_ids_wherever_they_stand_and_chunks_add_up() -> None:
    rng = np.random.default_rng(6)
    names, right = ("a", "b", "c"), np.array([0.5, 0.3, 0.2])
    codes = np.array([rng.permutation(3) for _ in range(900)])
    logging = right[codes]
    places = drawn(logging, rng)
    for known in (True, False):
        whole = ArmTally()
        whole.add(logged(places, logging, arms=names, codes=codes), logging if known else None)
        parts = ArmTally()
        other = np.array([2, 0, 1])  # the second chunk has another order of names
        for part, order, called in ((slice(0, 400), np.arange(3), names), (slice(400, 900), other, ("b", "c", "a"))):
            chunk = logged(places[part], logging[part], arms=called, codes=order[codes[part]])
            parts.add(chunk, logging[part] if known else None)
        first, second = whole.calibration(), parts.calibration()
        assert {arm.arm: arm.shown for arm in first.arms} == {arm.arm: arm.shown for arm in second.arms}
        assert math.isclose(first.p_value, second.p_value, rel_tol=1e-9)
        chosen = codes[np.arange(900), places]
        for arm in first.arms:
            assert arm.shown == (chosen == names.index(arm.arm)).sum()
            assert math.isclose(arm.expected, 900 * right[names.index(arm.arm)], rel_tol=1e-9)
        assert not first.alarm


def test_a_batch_in_which_an_arm_had_no_chance_is_no_shortfall() -> None:
    """Where only the propensities of chosen arms are known, an arm that was given up is not missed."""
    rng = np.random.default_rng(7)
    logging = np.concatenate([same(1 / 3, 500, 3), np.tile([0.5, 0.5, 0.0], (500, 1))])
    batches = np.arange(1000) // 500
    tally = ArmTally()
    tally.add(logged(drawn(logging, rng), logging, batches=batches, batch_names=("first", "second")))
    found = tally.calibration()
    assert not found.alarm
    assert not found.exact


def test_an_arm_that_never_should_have_come_is_an_alarm() -> None:
    logging = np.tile([1.0, 0.0], (10, 1))
    tally = ArmTally()
    tally.add(DecisionLog(arm_indices=np.array([0] * 9 + [1]), propensities=np.ones(10), rewards=np.zeros(10)), logging)
    found = tally.calibration()
    assert found.alarm


def test_one_arm_or_nothing_is_no_check() -> None:
    assert ArmTally().calibration() is None
    tally = ArmTally()
    tally.add(
        DecisionLog(arm_indices=np.zeros(2, np.int64), propensities=np.ones(2), rewards=np.zeros(2)), np.ones((2, 1))
    )
    assert tally.calibration() is None
