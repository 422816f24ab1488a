import math

import numpy as np

from rareswitch.lab import simulate
from rareswitch.lab.worlds import AdaptiveTrialWorld, make_world
from rareswitch.learner import BatchLinUCB

WORLD = AdaptiveTrialWorld()


def test_its_name_makes_it_whatever_sizes_are_asked_for() -> None:
    assert make_world("adaptive-trial", dim=3, arms=2, noise=9.0) == WORLD


def test_every_arm_sees_the_user_in_a_block_of_its_own() -> None:
    blocks = WORLD.draw(20, seed=1).contexts.reshape(20, 10, 10, 5)
    for arm in range(10):
        np.testing.assert_array_equal(blocks[:, arm, arm], blocks[:, 0, 0])
    assert np.count_nonzero(blocks) == 20 * 10 * 5


def test_users_and_parameters_have_the_moments_of_the_setting() -> None:
    n = 20_000
    users = 10.0 * WORLD.draw(n, seed=1).contexts[:, 0, :5]
    # means of 5n normals and of their squares, whose variance is 2: six standard errors
    assert abs(users.mean() - 1.0) <= 6 / math.sqrt(5 * n)
    assert abs(((users - 1.0) ** 2).mean() - 1.0) <= 6 * math.sqrt(2 / (5 * n))
    thetas = np.array([WORLD.theta(seed) for seed in range(400)]) / 10.0
    assert abs((thetas**2).mean() - 0.001) <= 6 * 0.001 * math.sqrt(2 / thetas.size)


def test_uniform_play_pays_what_was_published() -> None:
    # 0.1484 a decision over thousands of trials, whose standard deviation was 0.0264 (AExGym): six standard errors
    uniform = BatchLinUCB(dim=50, arms=10, horizon=500, noise=WORLD.noise_scale)
    regrets = [simulate(uniform, WORLD, seed=seed, cap=1).regret / 500 for seed in range(60)]
    assert abs(np.mean(regrets) - 0.1484) <= 6 * 0.0264 / math.sqrt(60)
