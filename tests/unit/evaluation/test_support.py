import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rareswitch.core import FloatArray
from rareswitch.decisions import DecisionLog
from rareswitch.evaluation.calibration import THRESHOLD, ArmTally, Calibration, binomial_tails
from rareswitch.evaluation.refusals import CARRIED, EFFECTIVE, faulty_batches, judged, needed
from rareswitch.evaluation.support import MOST_WEIGHT, Support, carried, overlap


def drawn(logging: FloatArray, seed: int | np.random.Generator) -> Any:
    """(n,) arms drawn with the probabilities of their rows."""
    coins = np.random.default_rng(seed).random(len(logging))
    return (coins[:, None] >= logging.cumsum(axis=1)).sum(axis=1).clip(max=logging.shape[1] - 1)


def support_of(candidate: FloatArray, logging: FloatArray, *, seed: int = 0, known: bool = True) -> Support:
    rows, arms = np.arange(len(logging)), drawn(logging, seed)
    weights = candidate[rows, arms] / logging[rows, arms]
    return Support.of(weights, candidate=candidate, logging=logging if known else None)


def always(arm: int, count: int, arms: int) -> FloatArray:
    return np.tile(np.eye(arms)[arm], (count, 1))


def mixed(share: float, count: int, arms: int = 2) -> FloatArray:
    """Arm 0 with that probability, the others alike."""
    return np.tile([share, *[(1.0 - share) / (arms - 1)] * (arms - 1)], (count, 1))


def batch_reasons(support: Support) -> tuple[str, ...]:
    return tuple(reason for *_, reason in faulty_batches([support]))


def test_sums_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    candidate, logging = rng.dirichlet(np.full(6, 0.3), 400), rng.dirichlet(np.full(6, 0.3), 400)
    logging[:50, 0] = 0.0
    candidate[60:90, 1] = 0.0
    seen = candidate <= MOST_WEIGHT * logging
    ratios = np.divide(candidate, logging, out=np.zeros_like(candidate), where=seen & (logging > 0.0))
    support = Support.of(np.ones(400), candidate=candidate, logging=logging)
    assert math.isclose(support.second, (candidate * ratios).sum(), rel_tol=1e-12)
    assert support.unsupported is not None
    assert math.isclose(support.unsupported, candidate[~seen].sum() / 400, rel_tol=1e-12)
    assert math.isclose(support.third, (candidate * ratios**2).sum(), rel_tol=1e-12)


def test_parts_add_up_to_the_whole() -> None:
    rng = np.random.default_rng(2)
    candidate, logging = rng.dirichlet(np.ones(4), 300), rng.dirichlet(np.ones(4), 300)
    weights, available = rng.random(300), rng.random((300, 4)) < 0.9
    available[0] = True
    parts = [slice(0, 100), slice(100, 101), slice(101, 300), slice(300, 300)]
    for mu in (logging, None):
        whole = Support.of(weights, candidate=candidate, logging=mu, available=available)
        total = Support.zero()
        for part in parts:
            total += Support.of(
                weights[part],
                candidate=candidate[part],
                logging=None if mu is None else mu[part],
                available=available[part],
            )
        assert (whole.count, whole.known, whole.arms) == (total.count, total.known, total.arms)
        for name in ("mean_weight", "mean_weight_error", "spread", "carried", "largest_share", "concentration"):
            assert math.isclose(getattr(whole, name), getattr(total, name), rel_tol=1e-12)


@pytest.mark.parametrize(("share", "count"), [(0.5, 400), (0.05, 4000)])
def test_an_arm_that_is_always_shown_rests_on_the_decisions_that_showed_it(share: float, count: int) -> None:
    support = support_of(always(0, count, 2), mixed(share, count))
    assert math.isclose(support.effective, share * count)
    assert math.isclose(support.carried, share * count)
    same = support_of(mixed(share, count), mixed(share, count))
    assert math.isclose(same.effective, count)
    assert math.isclose(same.carried, count)


def test_what_carries_is_never_more_than_what_is_effective() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        size = rng.uniform(0.2, 3.0)
        support = support_of(rng.dirichlet(np.ones(5), 200), rng.dirichlet(np.full(5, size), 200), seed=1)
        assert support.carried <= support.effective * (1.0 + 1e-9)
        assert support.effective <= 200.0


def test_a_few_decisions_that_carry_the_answer_are_too_few_however_large_the_effective_size() -> None:
    logging = np.repeat([[0.01, 0.99], [0.5, 0.5]], [10, 190], axis=0)
    support = Support.of(np.ones(200), candidate=mixed(0.5, 200), logging=logging)
    assert support.effective > 10.0 * CARRIED > CARRIED > support.carried
    assert "less than 1 of 200 decisions carry the answer" in batch_reasons(support)[0]


def test_a_sliver_of_rare_play_does_not_decide() -> None:
    count = 2000
    candidate, logging = mixed(0.5, count), mixed(0.5, count)
    candidate[0], logging[0] = (0.5, 0.5), (1e-9, 1.0 - 1e-9)
    assert judged([Support.of(np.ones(count), candidate=candidate, logging=logging)])[:2] == ((0,), ())


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (
            True,
            "27.3 % of its play is unsupported (probability 0 in the log, or below 1/20,000 of its own; mean weight ",
        ),
        (False, "The mean weight is 0.73 and should be 1"),
    ],
)
def test_play_that_could_not_be_shown_is_refused_with_its_share(known: bool, words: str) -> None:
    """Three of eleven arms were eliminated before; the mean weight says so, the usual effective size does not."""
    count, arms = 3000, 11
    logging = np.zeros((count, arms))
    logging[:, :8] = 1 / 8
    support = support_of(np.full((count, arms), 1 / arms), logging, known=known)
    kept, reasons, _ = judged([support])
    assert kept == ()
    assert reasons[0].startswith(words)
    if known:
        assert "min_propensity=0.02" in reasons[-1]
        assert (support.weights**2 / support.squares) == pytest.approx(count)
    else:
        assert support.unsupported is None
        assert "27.3 % of its play is unsupported, or propensities are wrong" in reasons[0]


def test_honest_logs_are_refused_by_the_mean_weight_as_rarely_as_it_says() -> None:
    """With and without all probabilities: 400 batches, chance 0.001 each; more than 5 have a chance below 1e-5."""
    for known in (True, False):
        refused = sum(
            "mean weight"
            in " ".join(batch_reasons(support_of(mixed(0.3, 500, 4), mixed(0.6, 500, 4), seed=seed, known=known)))
            for seed in range(400)
        )
        assert refused <= 5


@pytest.mark.parametrize("known", [True, False])
def test_weights_that_were_never_seen_are_missed_by_the_mean(known: bool) -> None:
    """An arm that comes once in 10,000 decisions, of 500: weights look harmless, all of them 0."""
    kept, reasons, _ = judged([support_of(always(0, 500, 2), mixed(1e-4, 500), known=known)])
    assert kept == ()
    assert ("less than 1 of 500 decisions carry the answer" if known else "mean weight is 0.00") in reasons[0]


def test_batches_that_cannot_answer_are_left_out() -> None:
    good = support_of(mixed(0.5, 400), mixed(0.4, 400))
    bad = support_of(mixed(0.5, 400), always(0, 400, 2))
    assert judged([bad, good])[:2] == ((1,), ())
    small = support_of(mixed(0.5, 60), mixed(0.4, 60))
    kept, reasons, _ = judged([bad, small])
    assert kept == (1,)
    assert reasons[0].startswith("In 1 of 2 batches, 50 % of its play")
    assert "In the 1 of 2 batches that can answer, the ESS of 60 decisions is 58" in reasons[1]
    assert "more decisions of the latest policy would answer" in reasons[2]


def test_batches_may_be_as_small_as_one_likes_where_enough_decisions_carry_all_of_them() -> None:
    """However finely the same decisions are divided, the same answer."""
    candidate, logging = always(0, 2000, 2), mixed(0.06, 2000)
    rows_of = np.array_split(np.arange(2000), 40)
    parts = [support_of(candidate[rows], logging[rows], seed=seed) for seed, rows in enumerate(rows_of)]
    assert max(part.carried for part in parts) < CARRIED
    assert carried(parts) == pytest.approx(120.0)
    assert judged(parts)[:2] == (tuple(range(40)), ())
    assert judged(parts, stationary=True)[:2] == (tuple(range(40)), ())
    rare = Support.of(np.ones(200), candidate=always(0, 200, 2), logging=mixed(1e-4, 200))
    good = support_of(always(0, 400, 2), mixed(0.5, 400))
    assert judged([good, rare])[:2] == (
        (0,),
        (),
    )  # few decisions would carry both: the batch that spoils it is left out


def test_what_is_said_to_be_needed_suffices() -> None:
    """Where the policy never shows what the candidate would but for the floor."""
    for arms, candidate in ((4, always(3, 1, 4)), (11, np.full((1, 11), 1 / 11)), (3, mixed(0.9, 1, 3)[:, ::-1])):
        options = needed(Support.of(np.ones(1), candidate=candidate))
        assert len(options) == 2
        for min_propensity, decisions in options:
            logging = np.full((decisions, arms), min_propensity)
            logging[:, 0] = 1.0 - (arms - 1) * min_propensity
            support = Support.of(np.ones(decisions), candidate=candidate.repeat(decisions, axis=0), logging=logging)
            assert support.effective >= EFFECTIVE
            assert support.carried >= CARRIED
            assert not batch_reasons(support)


@pytest.mark.parametrize(("informative", "decisions"), [(1.0, "200"), (0.0046, "8,700")])
def test_how_many_decisions_would_do_counts_the_rewards_that_are_needed(informative: float, decisions: str) -> None:
    """An ESS of 100, or 20 clicks of 0.46 %: twice as many decisions, as the arm is shown in half of them."""
    reasons = judged([support_of(always(0, 150, 2), mixed(0.5, 150))], informative=informative).reasons
    assert f"{decisions} more decisions of the latest policy would answer" in reasons[-1]


def test_tiny_logs_and_none() -> None:
    assert Support.zero().effective == 0.0
    kept, reasons, _ = judged([Support.zero()], left_out=7)
    assert kept == ()
    assert "7 decisions without one of them" in reasons[0]
    one = Support.of(np.ones(1), candidate=np.ones((1, 1)), logging=np.ones((1, 1)))
    assert one.mean_weight_error == math.inf
    assert judged([one]).reasons
    assert batch_reasons(one) == (f"1 decision is too few: {CARRIED:.0f} are needed.",)
    assert needed(one) == ()


def test_overlap_is_that_of_all_batches() -> None:
    parts = [support_of(mixed(0.5, 400), mixed(0.4, 400), seed=seed) for seed in range(2)]
    found = overlap(parts)
    assert found.decisions == 800
    assert found.unsupported == 0.0
    assert math.isclose(found.mean_weight, sum(part.weights for part in parts) / 800)
    assert abs(found.mean_weight - 1.0) <= 5 * found.mean_weight_error


def test_a_small_batch_that_missed_a_rare_arm_by_chance_is_used() -> None:
    """The candidate shows an arm in 2 % of cases that came in 1 %: no decision of 60 has it, and no weight shows it."""
    support = Support.of(np.full(60, 0.98 / 0.99), candidate=mixed(0.98, 60))
    assert support.mean_weight < 1.0
    assert not batch_reasons(support)
    missing = Support.of(np.full(60, 0.7), candidate=mixed(0.7, 60))
    assert "30 % of its play is unsupported" in batch_reasons(missing)[0]


def test_a_mean_weight_that_is_low_in_all_batches_is_noticed_though_each_may_be_by_chance() -> None:
    weights = np.repeat([2.0, 0.0], [175, 225])  # of mean 0.875, give or take 0.05
    batch = Support.of(weights, candidate=np.tile([1.0, 0.0], (400, 1)))
    assert judged([batch]).reasons == ()
    kept, reasons, _ = judged([batch] * 4)  # 5 standard errors
    assert kept == (0, 1, 2, 3)
    assert reasons[0].startswith("The mean weight is 0.88 and should be 1, give or take 0.025")


def test_the_error_of_a_mean_weight_is_that_of_known_probabilities() -> None:
    candidate, logging = np.tile([1.0, 0.0], (100, 1)), np.full((100, 2), 0.5)
    given = Support.of(np.repeat([2.0, 0.0], 50), candidate=candidate, logging=logging)
    assert given.mean_weight_error == pytest.approx(0.1)  # weights are 0 or 2, of variance 1


def logged(places: Any, recorded: FloatArray, **columns: Any) -> DecisionLog:
    own = recorded[np.arange(len(places)), places]
    return DecisionLog(
        arm_indices=places, propensities=own, rewards=np.zeros(len(places)), available=recorded >= 0.0, **columns
    )


def calibration_of(log: DecisionLog, probabilities: FloatArray | None) -> Calibration:
    tally = ArmTally()
    tally.add(log, probabilities)
    found = tally.calibration()
    assert found is not None
    return found


def checked(places: Any, recorded: FloatArray, *, known: bool) -> Calibration:
    return calibration_of(logged(places, recorded), recorded if known else None)


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
    return mixed(1.0 - 5 * 0.004, 600, 6)


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
        checked(drawn(mixed(0.5 * factor, 5000, 2), rng), mixed(0.5, 5000, 2), known=known).alarm for _ in range(20)
    )
    assert alarms == 20


@pytest.mark.parametrize("known", [True, False])
def test_an_arm_that_is_lost_is_found_where_the_others_share_what_it_lacks(known: bool) -> None:
    """Of 20 arms one comes half as often, 11 standard deviations; each of the others 2.6 % more often, 0.6 of them."""
    rng, right = np.random.default_rng(8), np.full((10_000, 20), 0.05)
    found = checked(
        drawn(np.where(np.arange(20) == 3, 0.025, 0.975 / 19) * np.ones((10_000, 1)), rng), right, known=known
    )
    assert found.stops
    assert min(found.arms, key=lambda arm: arm.deviation).arm == "3"


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_propensity_that_was_recorded_a_tenth_off_is_found(factor: float) -> None:
    rng = np.random.default_rng(4)
    right = mixed(0.4, 5000, 4)
    places, recorded = drawn(right, rng), right * [factor, 1.0, 1.0, 1.0]
    assert checked(places, recorded, known=False).alarm
    # with all probabilities a single decision is enough: they do not add up to 1
    assert checked(places[:1], recorded[:1], known=True).disagreeing == 1


def test_propensities_that_are_not_those_of_the_policy_are_found_at_once_and_rounded_ones_are_no_alarm() -> None:
    right = mixed(0.4, 3, 4)
    found = calibration_of(logged(np.array([0, 1, 2]), right * [1.1, 1.0, 1.0, 1.0]), right)
    assert (found.disagreeing, found.p_value, found.alarm) == (1, 0.0, True)
    rng = np.random.default_rng(5)
    logging = rng.dirichlet(np.ones(4) * 5, 2000)
    assert calibration_of(logged(drawn(logging, rng), logging.round(4)), logging).disagreeing == 0


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
            share = right[names.index(arm.arm)]
            assert math.isclose(arm.expected, 900 * share, rel_tol=1e-9)
            assert math.isclose(arm.deviation, (arm.shown - 900 * share) / math.sqrt(900 * share * (1.0 - share)))
        assert not first.alarm


def test_a_batch_in_which_an_arm_had_no_chance_is_no_shortfall() -> None:
    """Where only the propensities of chosen arms are known, an arm that was given up is not missed."""
    rng = np.random.default_rng(7)
    logging = np.concatenate([mixed(1 / 3, 500, 3), np.tile([0.5, 0.5, 0.0], (500, 1))])
    batches = np.arange(1000) // 500
    found = calibration_of(logged(drawn(logging, rng), logging, batches=batches, batch_names=("first", "second")), None)
    assert not found.alarm
    assert not found.exact


def plain(arms: list[int]) -> DecisionLog:
    return DecisionLog(arm_indices=np.array(arms), propensities=np.ones(len(arms)), rewards=np.zeros(len(arms)))


def test_an_arm_that_never_should_have_come_is_an_alarm_and_one_arm_or_nothing_no_check() -> None:
    assert calibration_of(plain([0] * 9 + [1]), np.tile([1.0, 0.0], (10, 1))).alarm
    assert ArmTally().calibration() is None
    tally = ArmTally()
    tally.add(plain([0, 0]), np.ones((2, 1)))
    assert tally.calibration() is None
