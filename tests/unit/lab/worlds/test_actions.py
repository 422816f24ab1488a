import numpy as np
import pytest

from rareswitch.lab.worlds import ActionsWorld, GaussianNoise, make_world


def test_the_end_of_optimism_in_more_dimensions() -> None:
    world = make_world("end-of-optimism:5", noise=1.0)
    contexts = world.draw(3, seed=7, first=11).contexts
    assert contexts.shape == (3, 9, 5)
    np.testing.assert_array_equal(contexts[0, :5], np.eye(5))
    mixed = np.zeros((4, 5))
    mixed[:, 0] = 0.8
    mixed[range(4), range(1, 5)] = 0.4
    np.testing.assert_allclose(contexts[2, 5:], mixed, atol=1e-15)
    np.testing.assert_allclose(world.draw(1, seed=3).means, [[1, 0, 0, 0, 0, 0.8, 0.8, 0.8, 0.8]])


@pytest.mark.parametrize(("arms", "dim"), [(9, 5), (50, 20)])
def test_published_random_actions_pay_what_was_published(arms: int, dim: int) -> None:
    world = make_world(f"random-actions:{arms}x{dim}", noise=1.0)
    actions = np.random.RandomState(1).uniform(0, 1, (dim, arms))  # as the published program draws them
    actions[:, 0] = np.eye(dim)[0]
    rounds = world.draw(2, seed=5)
    np.testing.assert_allclose(rounds.means, [actions[0]] * 2, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(rounds.contexts, axis=2).max(), 1.0)
    ratio = np.linalg.norm(actions, axis=0) / np.linalg.norm(rounds.contexts[0], axis=1)
    np.testing.assert_allclose(ratio, ratio[0])
    assert isinstance(world, ActionsWorld)
    np.testing.assert_allclose(world.theta(5), ratio[0] * np.eye(dim)[0])


def test_seeds_differ_in_the_noise_alone() -> None:
    world = ActionsWorld.random(4, 3, noise=GaussianNoise(0.5))
    first, second = world.draw(5, seed=1), world.draw(5, seed=2)
    np.testing.assert_array_equal(first.means, second.means)
    assert (world.noise_scale, world.arms, world.dim) == (0.5, 4, 3)
    assert (world.rewards(first.means[:, 0], seed=1) != world.rewards(first.means[:, 0], seed=2)).all()
