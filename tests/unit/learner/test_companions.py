"""The algorithms the paper stands against: that each does what its authors say."""

import math
from typing import Any

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.design import Uniform
from rareswitch.distributions import Gaussian
from rareswitch.env import LinearWorld, make_world
from rareswitch.errors import InputError, ParameterError, UnsuitableError
from rareswitch.learner import (
    LEARNERS,
    BaSE,
    Falcon,
    Feedback,
    FixedSetElimination,
    Learner,
    PureExploitation,
    StaticGrid,
    budget_settings,
    doubling_grid,
    growing_grid,
    make_learner,
    paper_grid,
)
from rareswitch.policy import InverseGap, PosteriorDraws

NOISE = 0.3


def batch(learner: Learner, world: Any, seed: int) -> Feedback:
    """Play the current policy to its end."""
    count = learner.stop - learner.start
    rounds = world.draw(count, seed=seed, first=learner.start)
    decisions = learner.policy.decide(rounds.contexts, rounds.alive, seed=seed, first=learner.start)
    rewards = world.rewards(rounds.means[np.arange(count), decisions.arms], seed=seed, first=learner.start)
    feedback = Feedback.of(rounds.contexts, decisions, rewards, rounds.alive)
    learner.next(learner.summarize(feedback))
    return feedback


def test_pure_exploitation_is_greedy_on_pooled_least_squares() -> None:
    world = make_world("gaussian", dim=3, arms=5, noise=NOISE)
    learner = PureExploitation(dim=3, arms=5, horizon=500, batches=3, ridge=0.2)
    assert isinstance(learner.policy.sampler, Uniform)
    parts = []
    while learner.stop < 500:
        parts.append(batch(learner, world, 1))
        x = np.concatenate([part.features for part in parts])
        r = np.concatenate([part.rewards for part in parts])
        estimate = np.linalg.solve(x.T @ x + 0.2 * np.eye(3), x.T @ r)
        assert isinstance(learner.policy.sampler, PosteriorDraws)
        np.testing.assert_allclose(learner.policy.sampler.draws, estimate[None])
    assert learner.updates == 3


def test_falcon_weighs_by_the_last_epoch_alone() -> None:
    world = make_world("gaussian", dim=3, arms=5, noise=NOISE)
    learner = Falcon(dim=3, arms=5, horizon=500, noise=NOISE, delta=0.1, ridge=0.5)
    gammas = []
    for epoch in range(2, 8):
        part = batch(learner, world, 1)
        sampler = learner.policy.sampler
        assert isinstance(sampler, InverseGap)
        x = part.features
        np.testing.assert_allclose(
            sampler.estimate, np.linalg.solve(x.T @ x + 0.5 * np.eye(3), x.T @ part.rewards), atol=1e-12
        )
        error = (NOISE * (math.sqrt(3) + math.sqrt(2 * math.log(2 * epoch**2 / 0.1)))) ** 2 / len(x)
        assert sampler.gamma == pytest.approx(0.5 * math.sqrt(5 / error))
        gammas.append(sampler.gamma)
    assert gammas[-1] > 2 * gammas[0]


def test_inverse_gaps_by_hand() -> None:
    estimate = np.array([0.4, -0.2])
    x = np.random.default_rng(1).standard_normal((6, 2)) / 3
    alive = np.array([True, True, False, True, True, True])
    values = x @ estimate
    best = max(np.flatnonzero(alive), key=lambda i: values[i])
    expected = np.where(alive, 1 / (5 + 12.0 * (values[best] - values)), 0.0)
    expected[best] = 0.0
    expected[best] = 1 - expected.sum()
    np.testing.assert_allclose(InverseGap(estimate=estimate, gamma=12.0).probabilities(x, alive), expected)


@pytest.mark.parametrize("mode", ["paper", "tight", 1.5])
def test_base_drops_what_pooled_means_prove_worse(mode: Any) -> None:
    world = make_world("plain", dim=1, arms=6, noise=NOISE)
    learner = BaSE(dim=6, arms=6, horizon=20_000, noise=NOISE, confidence=mode, delta=0.1)
    means, counts = np.zeros(6), np.zeros(6)
    alive = np.ones(6, dtype=bool)
    while learner.stop < 20_000:
        part = batch(learner, world, 2)
        assert set(np.unique(part.arms)) <= set(np.flatnonzero(alive))
        for arm in range(6):
            mine = part.rewards[part.arms == arm]
            means[arm] = (means[arm] * counts[arm] + mine.sum()) / max(1, counts[arm] + len(mine))
            counts[arm] += len(mine)
        if mode == "paper":
            radius = np.full(6, 0.5 * NOISE * math.sqrt(12 * math.log(6 * 20_000) / counts[alive].min()))
        else:
            multiplier = NOISE * math.sqrt(2 * math.log(2 * 6 * 20_000 / 0.1)) if mode == "tight" else mode
            radius = multiplier / np.sqrt(counts)
        np.testing.assert_allclose(learner.policy.eliminations[-1].estimate, means)
        np.testing.assert_allclose(np.diag(learner.policy.eliminations[-1].root), radius)
        alive = alive & (means + radius >= (means - radius)[alive].max())
        np.testing.assert_array_equal(learner.policy.survivors(np.eye(6)), alive)
    assert alive.sum() < 6
    theta = world.theta(2)  # type: ignore[attr-defined]
    assert alive[theta.argmax()]


def test_base_is_for_plain_arms_alone() -> None:
    with pytest.raises(UnsuitableError, match="dim must equal arms; got 3 and 4"):
        BaSE(dim=3, arms=4, horizon=100)
    world = LinearWorld(source=Gaussian(dim=4, arms=4))
    with pytest.raises(UnsuitableError, match="the context of arm k must be the k-th unit vector"):
        simulate(BaSE(dim=4, arms=4, horizon=100), world, seed=1)


def test_fixed_set_elimination_keeps_the_best_action() -> None:
    world = make_world("fixed", dim=4, arms=9, noise=NOISE)
    learner = FixedSetElimination(dim=4, arms=9, horizon=30_000, noise=NOISE, batches=5)
    run = simulate(learner, world, seed=3)
    assert run.survivors[0] == 9.0
    assert run.survivors[-1] < 9.0
    first = world.draw(1, seed=3)
    assert learner.policy.survivors(first.contexts)[0, first.means[0].argmax()]
    lengths = np.diff([0, *run.batch_ends])
    ratios = lengths[1:] / lengths[:-1]
    assert ratios == pytest.approx(np.full(4, ratios.mean()), rel=0.1)


def test_fixed_set_elimination_is_for_one_set_alone() -> None:
    world = make_world("gaussian", dim=4, arms=5, noise=NOISE)
    with pytest.raises(UnsuitableError, match="one action set that never changes"):
        simulate(FixedSetElimination(dim=4, arms=5, horizon=100), world, seed=1)


@pytest.mark.parametrize("horizon", [2, 3, 4, 5, 100, 1000, 65_536])
def test_new_grids_are_whole_and_end_at_the_horizon(horizon: int) -> None:
    assert doubling_grid(horizon).horizon == horizon
    assert doubling_grid(horizon, 2) == paper_grid(horizon, 2)
    for batches in (1, 2, min(7, horizon)):
        grid = growing_grid(horizon, batches)
        assert isinstance(grid, StaticGrid)
        assert (grid.horizon, grid.batches) == (horizon, batches)


@pytest.mark.parametrize("name", ["stale-linucb", "stale-thompson"])
def test_stale_learners_take_a_grid_or_a_number(name: str) -> None:
    grid = StaticGrid(ends=(10, 50, 100))
    assert make_learner(name, dim=2, arms=3, horizon=100, grid=grid).stop == 10
    assert make_learner(name, dim=2, arms=3, horizon=100, batches=2).stop == 10
    with pytest.raises(ParameterError, match="not both"):
        make_learner(name, dim=2, arms=3, horizon=100, batches=2, grid=grid)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("cap", [2, 5, 30])
def test_budgets_are_spread_over_the_run(name: str, cap: int) -> None:
    """A learner that plans for a cap switches at least once under it, and never uses up a small one early on."""
    place = {"base": "plain", "fixed-set-elimination": "fixed"}.get(name, "gaussian")
    world = make_world(place, dim=3, arms=3, noise=NOISE)
    plan = budget_settings(name, updates=cap, dim=3, horizon=3000)
    assert bool(plan) == (name not in ("suplinucb", "suplinrel"))
    if plan:
        plan |= {"noise": 1.0} if "noise" in LEARNERS[name].takes else {}
        run = simulate(make_learner(name, dim=3, arms=3, horizon=3000, **plan), world, seed=1, cap=cap)
        assert 2 <= run.updates <= cap
        assert len(run.batch_ends) == run.updates
        assert run.batch_ends[run.updates - 2] >= 5 * cap


def test_large_budgets_are_no_budgets() -> None:
    assert budget_settings("oful", updates=1000, dim=3, horizon=3000) == {"growth": 2.0}
    assert math.isfinite(budget_settings("oful", updates=1, dim=1000, horizon=10**6)["growth"])


def test_unknown_learners_are_named() -> None:
    with pytest.raises(InputError, match=r"there is no learner 'lin-ucb'; the learners are foresight"):
        make_learner("lin-ucb", dim=2, arms=2, horizon=10)
