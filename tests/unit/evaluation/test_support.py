import math
from typing import Any

import numpy as np
import pytest

from rareswitch.core import FloatArray
from rareswitch.evaluation.refusals import CARRIED, EFFECTIVE, faulty_batches, needed, refusals
from rareswitch.evaluation.support import MOST_WEIGHT, Support, carried, overlap


def drawn(logging: FloatArray, seed: int) -> Any:
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
    assert refusals([Support.of(np.ones(count), candidate=candidate, logging=logging)]) == ((0,), ())


def test_play_that_could_not_be_shown_is_refused_with_its_share() -> None:
    """Three of eleven arms were eliminated before; the mean weight says so, the usual effective size does not."""
    count, arms = 3000, 11
    logging = np.zeros((count, arms))
    logging[:, :8] = 1 / 8
    support = support_of(np.full((count, arms), 1 / arms), logging)
    kept, reasons = refusals([support])
    assert kept == ()
    assert reasons[0].startswith(
        "27.3 % of its play is unsupported (probability 0 in the log, or below 1/20,000 of its own; mean weight 0.73"
    )
    assert "min_propensity=0.02" in reasons[-1]
    assert (support.weights**2 / support.squares) == pytest.approx(count)


def test_the_same_without_the_probabilities_of_all_arms() -> None:
    count, arms = 3000, 11
    logging = np.zeros((count, arms))
    logging[:, :8] = 1 / 8
    support = support_of(np.full((count, arms), 1 / arms), logging, known=False)
    assert support.unsupported is None
    kept, reasons = refusals([support])
    assert kept == ()
    assert reasons[0].startswith("The mean weight is 0.73 and should be 1")
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
    kept, reasons = refusals([support_of(always(0, 500, 2), mixed(1e-4, 500), known=known)])
    assert kept == ()
    assert ("less than 1 of 500 decisions carry the answer" if known else "mean weight is 0.00") in reasons[0]


def test_batches_that_cannot_answer_are_left_out() -> None:
    good = support_of(mixed(0.5, 400), mixed(0.4, 400))
    bad = support_of(mixed(0.5, 400), always(0, 400, 2))
    assert refusals([bad, good]) == ((1,), ())
    small = support_of(mixed(0.5, 60), mixed(0.4, 60))
    kept, reasons = refusals([bad, small])
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
    assert refusals(parts) == (tuple(range(40)), ())
    assert refusals(parts, stationary=True) == (tuple(range(40)), ())
    rare = Support.of(np.ones(200), candidate=always(0, 200, 2), logging=mixed(1e-4, 200))
    good = support_of(always(0, 400, 2), mixed(0.5, 400))
    assert refusals([good, rare]) == ((0,), ())  # few decisions would carry both: the batch that spoils it is left out


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


def test_tiny_logs_and_none() -> None:
    assert Support.zero().effective == 0.0
    kept, reasons = refusals([Support.zero()], left_out=7)
    assert kept == ()
    assert "7 decisions without one of them" in reasons[0]
    one = Support.of(np.ones(1), candidate=np.ones((1, 1)), logging=np.ones((1, 1)))
    assert one.mean_weight_error == math.inf
    assert refusals([one])[1]
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
    assert refusals([batch])[1] == ()
    kept, reasons = refusals([batch] * 4)  # 5 standard errors
    assert kept == (0, 1, 2, 3)
    assert reasons[0].startswith("The mean weight is 0.88 and should be 1, give or take 0.025")


def test_the_error_of_a_mean_weight_is_that_of_known_probabilities() -> None:
    candidate, logging = np.tile([1.0, 0.0], (100, 1)), np.full((100, 2), 0.5)
    given = Support.of(np.repeat([2.0, 0.0], 50), candidate=candidate, logging=logging)
    assert given.mean_weight_error == pytest.approx(0.1)  # weights are 0 or 2, of variance 1
