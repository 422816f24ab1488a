import numpy as np
import pytest

from rareswitch.core import FloatArray
from rareswitch.lab.worlds import ActionsWorld, GaussianNoise, LowerBoundWorld, Rounds, make_world
from rareswitch.lab.worlds.linear import DriftingWorld, EndOfOptimismWorld, StarvingWorld


def regret_of_one_estimate(rounds: Rounds, learned: int) -> FloatArray:
    """Regret by round of greedy play with the min-norm θ that fits the first rounds without noise."""
    x, y = rounds.contexts, rounds.means
    theta, *_ = np.linalg.lstsq(x[:learned].reshape(-1, x.shape[2]), y[:learned].ravel(), rcond=None)
    chosen = (x @ theta).argmax(axis=1)
    return np.asarray(y.max(axis=1) - y[np.arange(len(y)), chosen])


def test_directions_turn_slowly_and_end_far_from_where_they_began() -> None:
    world = DriftingWorld(rounds=4000, dim=5, arms=3)
    along = world.directions(4000)
    np.testing.assert_allclose(np.linalg.norm(along, axis=1), 1.0)
    # a quarter turn from axis to axis in each of d - 1 parts
    np.testing.assert_allclose(np.linalg.norm(np.diff(along, axis=0), axis=1), np.pi / 2 * 4 / 4000, rtol=1e-5)
    np.testing.assert_allclose(along[::1000], np.eye(5)[:4], atol=1e-12)
    np.testing.assert_allclose(along[-1], np.eye(5)[4], atol=2e-3)
    assert np.abs(along[:2000] @ along[2000:].T).diagonal().max() < 1e-12
    np.testing.assert_array_equal(world.directions(7, first=3993), along[3993:])
    x = DriftingWorld(rounds=4000, dim=5, arms=3, blur=0.0).draw(4000, seed=1).contexts
    np.testing.assert_allclose(np.abs(np.einsum("tkd,td->tk", x, along)), np.linalg.norm(x, axis=2), atol=1e-12)


def test_new_coordinates_show_up_late() -> None:
    world = StarvingWorld(rounds=1001, dim=4, arms=3)
    rounds = world.draw(1001, seed=2)
    shown = (rounds.contexts != 0).any(axis=1)
    assert shown.argmax(axis=0).tolist() == [0, 251, 501, 751]
    assert (rounds.contexts[:, 0] == np.eye(4)[0] / 4).all()
    np.testing.assert_array_equal(np.abs(world.theta(2)), np.full(4, 0.5))
    assert len({tuple(np.sign(world.theta(seed))) for seed in range(30)}) > 8


@pytest.mark.parametrize("seed", range(5))
def test_early_knowledge_does_not_pay_later(seed: int) -> None:
    starving = StarvingWorld(rounds=2000, dim=4, arms=5).draw(2000, seed=seed)
    drifting = DriftingWorld(rounds=2000, dim=6, arms=5, blur=0.0).draw(2000, seed=seed)
    for rounds, learned, later in [(starving, 1000, 1000), (drifting, 400, 800)]:
        regret = regret_of_one_estimate(rounds, learned)
        assert regret[:learned].max() < 1e-9
        # random play costs what the best arm is better than the mean of all; early knowledge saves at most half of it
        assert regret[later:].mean() > (rounds.means.max(axis=1) - rounds.means.mean(axis=1))[later:].mean() / 2


def test_the_worst_arm_teaches_most() -> None:
    world = EndOfOptimismWorld(gap=0.05, noise=GaussianNoise(0.1))
    assert (world.arms, world.dim, world.noise_scale) == (3, 2, 0.1)
    rounds = world.draw(3, seed=4)
    np.testing.assert_allclose(rounds.means, [[1.0, 0.0, 0.95]] * 3, atol=1e-12)
    first, second, third = rounds.contexts[0]
    # what decides between the first and the third is along the second, and the others hardly measure it
    between = (first - third) / np.linalg.norm(first - third)
    assert abs(between @ second) > 0.8 > 0.5 > abs(between @ first)
    np.testing.assert_allclose(np.linalg.norm(EndOfOptimismWorld(gap=0.4).draw(1, seed=1).contexts[0, 2]), 1.0)


@pytest.mark.parametrize(("horizon", "stages"), [(17, 1), (64, 1), (65, 2), (255, 2), (16**2, 1), (16**4, 3)])
def test_default_stages(horizon: int, stages: int) -> None:
    world = make_world("lower-bound", dim=2, arms=2, noise=1.0, horizon=horizon)
    assert isinstance(world, LowerBoundWorld)
    assert world.stages == stages


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
