"""The worlds of the field: what each of them promises beyond what all worlds do."""

import math

import numpy as np
import pytest
from scipy.stats import t as student

from rareswitch.core import IntArray
from rareswitch.lab import simulate
from rareswitch.lab.worlds import AdaptiveTrialWorld, GaussianNoise, make_world
from rareswitch.lab.worlds.clicks import LogisticBallWorld, RareClicksWorld
from rareswitch.lab.worlds.linear import (
    DisjointWorld,
    EquicorrelatedWorld,
    HeavyTailsWorld,
    LateGroupsWorld,
    MixDriftWorld,
    PlainWorld,
    TurningWorld,
)
from rareswitch.learner import BatchLinUCB

BALL, TRIAL = LogisticBallWorld(), AdaptiveTrialWorld()


def test_disjoint_arms_share_the_user_and_no_parameter() -> None:
    world = DisjointWorld(arms=4, features=8, noise=GaussianNoise(1.5))
    rounds, theta = world.draw(50, seed=2), world.theta(2).reshape(4, 8)
    blocks = rounds.contexts.reshape(50, 4, 4, 8)
    users = blocks[:, 0, 0]
    for arm in range(4):
        np.testing.assert_array_equal(blocks[:, arm, arm], users)
        np.testing.assert_allclose(rounds.means[:, arm], users @ theta[arm], atol=1e-12)
    assert np.count_nonzero(blocks) == 50 * 4 * 8
    assert (users[:, 0] <= 1 / 4).all()  # 1/√(2p), less where the vector was too long
    assert world.noise_scale == 1.5
    assert world.norm == pytest.approx(math.sqrt(32))


@pytest.mark.parametrize("seed", range(5))
def test_rates_of_rare_clicks_are_1_to_8_percent(seed: int) -> None:
    world = RareClicksWorld()
    rounds = world.draw(4000, seed=seed)
    odds = 1.2 * math.sqrt(2.0) * (rounds.contexts[:, :, :-1] @ world.theta(seed)) - 3.5
    np.testing.assert_allclose(rounds.means, 1 / (1 + np.exp(-odds)), rtol=1e-12)
    np.testing.assert_allclose(rounds.contexts[:, :, -1], 1 / math.sqrt(2.0))
    # the middle half of all arms; log-odds have mean −3.5 and a spread of about 1.2·‖θ‖/√p, which is near 1.2
    low, high = np.quantile(rounds.means, [0.25, 0.75])
    assert 0.009 < low < high < 0.09
    assert 0.01 < rounds.means.mean() < 0.08
    # the best of the arms is clicked so often that there is something to learn
    assert rounds.means.max(axis=1).mean() > 1.2 * rounds.means.mean()
    assert set(world.rewards(rounds.means[:, 0], seed=seed)) == {0.0, 1.0}


def test_heavy_tails_are_those_of_a_student_t() -> None:
    n, world = 50_000, HeavyTailsWorld()
    noise = np.sort(world.rewards(np.full(n, 0.25), seed=7) - 0.25) / 0.35
    # Dvoretzky-Kiefer-Wolfowitz, false alarm at most 1e-6
    bound = math.sqrt(math.log(2 / 1e-6) / (2 * n)) + 1 / n
    assert np.abs(student.cdf(noise, df=3) - np.arange(1, n + 1) / n).max() <= bound
    assert world.noise_scale == pytest.approx(0.35 * math.sqrt(3), abs=0.01)


def test_equicorrelated_arms_are_alike_and_few_features_matter() -> None:
    world = EquicorrelatedWorld()
    n, x = 5000, world.draw(5000, seed=1).contexts
    theta = world.theta(1)
    assert np.flatnonzero(theta).tolist() == [0, 1, 2, 3, 4, 5]
    # correlation of one feature in two arms, 0.85²/(0.85² + 0.5²); Fisher's z, false alarm at most 1e-6
    found = np.corrcoef(x[:, 0, 3], x[:, 1, 3])[0, 1]
    assert abs(np.arctanh(found) - np.arctanh(0.85**2 / (0.85**2 + 0.25))) <= 4.9 / math.sqrt(n - 3) + 0.02


def test_plain_arms_pay_0_to_1_on_average() -> None:
    means = np.array([PlainWorld().draw(1, seed=seed).means[0] for seed in range(200)])
    assert 0.0 < means.min() < means.max() < 1.0
    ranks = np.sort(means.ravel())
    bound = math.sqrt(math.log(2 / 1e-6) / (2 * ranks.size)) + 1 / ranks.size
    assert np.abs(ranks - np.arange(1, ranks.size + 1) / ranks.size).max() <= bound


def groups_of(world: LateGroupsWorld | MixDriftWorld, seed: int) -> IntArray:
    """The groups (rounds,) that the contexts show."""
    blocks = world.draw(world.rounds, seed=seed).contexts.reshape(world.rounds, world.arms, 4, 3)
    shown = np.linalg.norm(blocks, axis=3)
    np.testing.assert_allclose(shown.max(axis=2), 1.0)
    assert (shown > 0.0).sum() == world.rounds * world.arms  # all arms of a user are in the user's group
    return np.asarray(shown[:, 0].argmax(axis=1))


@pytest.mark.parametrize("rounds", [1000, 30_000])
def test_late_groups_appear_when_they_should(rounds: int) -> None:
    found = groups_of(LateGroupsWorld(rounds=rounds), seed=4)
    parts = np.split(found, [rounds // 10, 3 * rounds // 10, 6 * rounds // 10])
    for groups, part in enumerate(parts, start=1):
        # each group that has appeared has the same share: Hoeffding, false alarm at most 1e-6 in all
        bound = math.sqrt(math.log(2 * 20 / 1e-6) / (2 * len(part)))
        shares = np.bincount(part, minlength=4) / len(part)
        assert not shares[groups:].any()
        assert np.abs(shares[:groups] - 1 / groups).max() <= bound


def test_the_mix_of_groups_drifts_from_the_first_to_the_last() -> None:
    world = MixDriftWorld(rounds=20_000)
    shares = world.shares(20_000)
    np.testing.assert_allclose(shares[[0, -1]], [[0.97, 0.01, 0.01, 0.01], [0.01, 0.01, 0.01, 0.97]])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(world.shares(7, first=9000), shares[9000:9007])
    found = groups_of(world, seed=4)
    for part in np.split(np.arange(20_000), 10):
        bound = math.sqrt(math.log(2 * 40 / 1e-6) / (2 * len(part)))
        drawn = np.bincount(found[part], minlength=4) / len(part)
        assert np.abs(drawn - shares[part].mean(axis=0)).max() <= bound


def test_the_parameter_turns_evenly_by_its_angle() -> None:
    world = TurningWorld(rounds=5001, dim=6, arms=4, angle=1.0)
    theta = world.thetas(5001, seed=3)
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 1.0)
    np.testing.assert_allclose(theta @ theta[0], np.cos(np.linspace(0.0, 1.0, 5001)), atol=1e-12)
    rounds = world.draw(5001, seed=3)
    np.testing.assert_allclose(np.linalg.norm(rounds.contexts, axis=2), 1.0)
    np.testing.assert_allclose(rounds.means, np.einsum("nkd,nd->nk", rounds.contexts, theta), atol=1e-12)
    still = TurningWorld(rounds=10, dim=6, arms=4, angle=0.0).thetas(10, seed=3)
    np.testing.assert_array_equal(still, np.repeat(still[:1], 10, axis=0))


def test_the_logistic_ball_is_the_setting_that_was_published() -> None:
    assert make_world("logistic-ball", dim=3, arms=2) == BALL
    assert (BALL.dim, BALL.arms) == (5, 20)
    assert np.linalg.norm(BALL.theta(3)) == pytest.approx(5.0)


def test_means_of_the_logistic_ball_are_logistic_in_the_contexts() -> None:
    rounds = BALL.draw(50, seed=2)
    odds = np.log(rounds.means / (1.0 - rounds.means))
    np.testing.assert_allclose(odds, rounds.contexts @ BALL.theta(2), atol=1e-9)


def test_arms_are_uniform_in_the_ball() -> None:
    # ‖x‖^d is then uniform in [0, 1]: Dvoretzky-Kiefer-Wolfowitz, false alarm at most 1e-6
    powers = np.sort(np.linalg.norm(BALL.draw(2000, seed=1).contexts, axis=2).ravel() ** 5)
    n = len(powers)
    assert np.abs(powers - np.arange(1, n + 1) / n).max() <= math.sqrt(math.log(2 / 1e-6) / (2 * n)) + 1 / n


def test_every_arm_of_the_trial_sees_the_user_in_a_block_of_its_own() -> None:
    assert make_world("adaptive-trial", dim=3, arms=2, noise=9.0) == TRIAL
    blocks = TRIAL.draw(20, seed=1).contexts.reshape(20, 10, 10, 5)
    for arm in range(10):
        np.testing.assert_array_equal(blocks[:, arm, arm], blocks[:, 0, 0])
    assert np.count_nonzero(blocks) == 20 * 10 * 5


def test_users_and_parameters_have_the_moments_of_the_setting() -> None:
    n = 20_000
    users = 10.0 * TRIAL.draw(n, seed=1).contexts[:, 0, :5]
    # means of 5n normals and of their squares, whose variance is 2: six standard errors
    assert abs(users.mean() - 1.0) <= 6 / math.sqrt(5 * n)
    assert abs(((users - 1.0) ** 2).mean() - 1.0) <= 6 * math.sqrt(2 / (5 * n))
    thetas = np.array([TRIAL.theta(seed) for seed in range(400)]) / 10.0
    assert abs((thetas**2).mean() - 0.001) <= 6 * 0.001 * math.sqrt(2 / thetas.size)


def test_uniform_play_pays_what_was_published() -> None:
    # 0.1484 a decision over thousands of trials, whose standard deviation was 0.0264 (AExGym): six standard errors
    uniform = BatchLinUCB(dim=50, arms=10, horizon=500, noise=TRIAL.noise_scale)
    regrets = [simulate(uniform, TRIAL, seed=seed, cap=1).regret / 500 for seed in range(60)]
    assert abs(np.mean(regrets) - 0.1484) <= 6 * 0.0264 / math.sqrt(60)
