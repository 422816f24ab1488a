"""What every world must do, run against each of them."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from rareswitch.errors import InputError
from rareswitch.lab.distributions import Gaussian, VaryingArms
from rareswitch.lab.worlds import (
    WORLDS,
    CoinNoise,
    GaussianNoise,
    LinearWorld,
    LowerBoundWorld,
    SequenceWorld,
    UniformNoise,
    World,
    make_world,
)
from reference.movielens import small_world
from reference.tables import small_tables

#: Worlds that are made of a file.
OF_FILES = ("movielens", "table", "choices")
EVERY: dict[str, World] = {
    name: make_world(name, dim=6, arms=5, noise=0.3, horizon=20_000) for name in WORLDS if name not in OF_FILES
}
EVERY |= {
    f"gaussian, {type(noise).__name__}": LinearWorld(source=Gaussian(dim=6, arms=5), noise=noise)
    for noise in (UniformNoise(0.3), CoinNoise(0.3))
}
SETS = VaryingArms(source=Gaussian(dim=6, arms=5)).draw(20_000, seed=4)
EVERY |= {
    "movielens": small_world(),
    **small_tables(),
    "sequence, array": SequenceWorld.from_array(SETS.contexts, SETS.available, noise=CoinNoise(0.3)),
    "sequence, function": SequenceWorld.from_function(lambda t: SETS.contexts[t], rounds=20_000),
    "lower bound, given signs": LowerBoundWorld(
        horizon=20_000, stages=5, dim=6, signs=np.ones((3, 5), dtype=np.int64), noise=GaussianNoise(0.5)
    ),
}
#: Worlds in which θ may be longer than 1.
LONG = {"adaptive-trial", "disjoint", "disjoint-noisy", "plain-20", "random-actions"}
every_world = pytest.mark.parametrize("world", EVERY.values(), ids=EVERY)


@every_world
def test_shapes_and_norms(world: World) -> None:
    rounds = world.draw(40, seed=1)
    assert rounds.contexts.shape == (40, world.arms, world.dim)
    assert rounds.means.shape == (40, world.arms)
    assert np.linalg.norm(rounds.contexts, axis=2).max() <= 1 + 1e-12
    assert np.isfinite(rounds.means).all()
    if rounds.available is not None:
        assert rounds.available.any(axis=1).all()


@every_world
def test_any_split_gives_the_same_rounds(world: World) -> None:
    whole = world.draw(30, seed=3)
    part = world.draw(11, seed=3, first=19)
    np.testing.assert_array_equal(whole.contexts[19:], part.contexts)
    np.testing.assert_allclose(whole.means[19:], part.means, rtol=1e-12, atol=1e-15)
    rewards = world.rewards(whole.means[:, 0], seed=3)
    np.testing.assert_array_equal(rewards[19:], world.rewards(whole.means[19:, 0], seed=3, first=19))


@pytest.mark.parametrize("name", [name for name in EVERY if "given" not in name and name != "random-actions"])
def test_seeds_make_other_worlds(name: str) -> None:
    # where contexts are the same, θ is another; the hard instances are few, and seeds may share one
    drawn = [EVERY[name].draw(30, seed=seed) for seed in range(9)]
    seen = {rounds.contexts.tobytes() + rounds.means.tobytes() for rounds in drawn}
    assert len(seen) == 9 or (name == "lower-bound" and len(seen) > 1)


@pytest.mark.parametrize("name", [name for name, world in EVERY.items() if hasattr(world, "rounds")])
def test_worlds_that_end_are_drawn_to_their_end_and_no_further(name: str) -> None:
    world: Any = EVERY[name]
    assert world.rounds == 20_000
    np.testing.assert_array_equal(
        world.draw(20_000, seed=3).contexts[-7:], world.draw(7, seed=3, first=19_993).contexts
    )
    with pytest.raises(InputError, match=r"has 20000 rounds.*rounds 19990 to 20000 were asked for.*Use a horizon"):
        world.draw(11, seed=3, first=19_990)


#: Its noise has no moments beyond the second; its distribution is tested where the world is.
sub_gaussian = [name for name in EVERY if name != "heavy-tails"]


@pytest.mark.parametrize("name", sub_gaussian)
def test_rewards_average_to_their_means(name: str) -> None:
    n, world = 20_000, EVERY[name]
    means = world.draw(n, seed=5).means[:, 0]
    errors = world.rewards(means, seed=5) - means
    # rewards of 0 or 1 have σ ≤ ½, others that of their noise: Hoeffding, false alarm at most 1e-6 over all worlds
    bound = max(0.5, getattr(world, "noise_scale", 0.5)) * math.sqrt(2 * math.log(2 * len(EVERY) / 1e-6) / n)
    assert abs(errors.mean()) <= bound


#: Clicks are logistic, and θ turns. Worlds that know their best linear policy are linear only by chance.
NOT_LINEAR = (
    "rare-clicks",
    "logistic-ball",
    "turning",
    *(name for name, world in EVERY.items() if hasattr(world, "best_linear")),
)


@pytest.mark.parametrize("name", [name for name in EVERY if name not in NOT_LINEAR])
def test_means_are_linear_in_the_contexts(name: str) -> None:
    rounds = EVERY[name].draw(20_000, seed=6)
    x, y = rounds.contexts.reshape(-1, EVERY[name].dim), rounds.means.ravel()
    theta, *_ = np.linalg.lstsq(x, y, rcond=None)
    np.testing.assert_allclose(x @ theta, y, atol=1e-9)
    if name not in LONG:
        assert np.linalg.norm(theta) <= 1 + 1e-9


@pytest.mark.parametrize("noise", [UniformNoise(0.4), CoinNoise(0.4)], ids=str)
def test_bounded_noises_stay_within_their_variance_proxy(noise: UniformNoise | CoinNoise) -> None:
    n, s = 50_000, 2.0
    values = noise.draw(n, seed=7)
    # E exp(s·ε) ≤ exp(s²σ²/2); exp(s·ε) lies in [exp(-sσ), exp(sσ)]: Hoeffding, false alarm at most 1e-6
    spread = math.exp(s * 0.4) - math.exp(-s * 0.4)
    bound = math.exp(s**2 * 0.4**2 / 2) + spread * math.sqrt(math.log(1 / 1e-6) / (2 * n))
    assert np.exp(s * values).mean() <= bound
    assert np.abs(values).max() <= 0.4


def test_gaussian_noise_is_normal() -> None:
    n = 50_000
    values = np.sort(GaussianNoise(0.4).draw(n, seed=7)) / 0.4
    # Dvoretzky-Kiefer-Wolfowitz, false alarm at most 1e-6
    bound = math.sqrt(math.log(2 / 1e-6) / (2 * n)) + 1 / n
    assert np.abs(ndtr(values) - np.arange(1, n + 1) / n).max() <= bound
