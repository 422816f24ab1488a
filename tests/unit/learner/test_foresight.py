"""Foresight: scale-free beliefs, planned exploration, exact propensities with a floor."""

import math
from typing import Any

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.belief import Posterior, posterior
from rareswitch.belief.planning import SCALES, Prospect
from rareswitch.core import ContextSets, FloatArray, uniforms
from rareswitch.decisions import DecisionLog
from rareswitch.design import GOptimal
from rareswitch.errors import BatchError
from rareswitch.lab.worlds import Rounds, make_world
from rareswitch.learner import Foresight, geometric_grid
from rareswitch.learner import foresight as room
from rareswitch.learner.foresight import default_grid
from rareswitch.policy import Blend, PosteriorDraws
from reference.loop import after, rows_of, steps

WORLD = make_world("gaussian", dim=3, arms=5, noise=0.5)


def test_exploration_fades_and_the_last_batch_is_greedy() -> None:
    learner = Foresight(dim=4, horizon=20_000, intercept=False)
    state = after(learner, make_world("gaussian", dim=4, arms=8, noise=0.5), 7)
    assert [note["update"] for note in state.notes] == [1, 2, 3, 4, 5, 6, 7]
    scales = [note["scale"] for note in state.notes]
    assert all(scale in SCALES for scale in scales[:-1])
    assert max(scales[:2]) > max(scales[-3:-1])
    assert scales[-1] == 0.0
    assert ["cost" in note for note in state.notes] == [True] * 6 + [False]
    assert all(0.4 < note["noise"] < 0.6 for note in state.notes[1:])
    sampler = state.policy.sampler
    assert isinstance(sampler, Blend)
    assert isinstance(sampler.main, PosteriorDraws)
    assert sampler.main.draws.shape == (1, 4)


def test_every_surviving_arm_keeps_its_floor() -> None:
    world = make_world("gaussian", dim=3, arms=5, noise=0.5)
    learner = Foresight(dim=3, horizon=5000, design_share=0.05, intercept=False)
    probe = world.draw(50, seed=9).contexts
    for _, (_, _, state) in list(steps(learner, world, most=5000))[:-1]:
        share = 0.05 if state.policies < 8 else 0.005
        survivors = state.policy.survivors(probe)
        probabilities = state.policy.probabilities(probe)
        floors = share / survivors.sum(axis=1, keepdims=True)  # K ≤ 2d, where the design at factor 2 is uniform
        assert (probabilities >= floors - 1e-12)[survivors].all()
        assert not probabilities[~survivors].any()
        assert len(state.policy.eliminations) == state.policies - 1
        assert isinstance(state.policy.sampler, Blend)
        assert state.policy.sampler.share == pytest.approx(share, rel=1e-12)  # nothing will be learned from the last
    assert state.policies == 8


def test_without_a_floor_nothing_is_eliminated() -> None:
    policy = after(Foresight(dim=3, horizon=5000, design_share=0.0, intercept=False), WORLD, 1).policy
    assert policy.eliminations == ()
    assert isinstance(policy.sampler, PosteriorDraws)


class Sparse:
    """Plain arms that pay 0 or 1, most of them almost never."""

    dim = arms = 6
    chances = np.array([0.0, 0.01, 0.01, 0.01, 0.01, 0.08])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        return Rounds(contexts=np.repeat(np.eye(6)[None], count, axis=0), means=np.tile(self.chances, (count, 1)))

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return (uniforms(seed, "noise", first, len(means))[:, 0] < means).astype(np.float64)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_first_batch_that_pays_nothing_does_not_end_the_search(intercept: bool) -> None:
    silent = 0
    for seed in range(4):
        learner = Foresight(dim=6, horizon=6000, intercept=intercept, seed=seed)
        state = after(learner, Sparse(), 1, seed)
        if not state.sums[0].square_sum:
            silent += 1
            assert isinstance(state.policy.sampler, GOptimal)
            assert state.policy.eliminations == ()
        run = simulate(learner, Sparse(), seed=seed)
        assert run.regret < 0.5 * 6000 * (0.08 - Sparse.chances.mean())  # half of what chance loses
    assert silent


def test_few_decisions_eliminate_nothing() -> None:
    """With as many parameters as decisions the noise may look like nothing."""
    world = make_world("gaussian", dim=10, arms=5, noise=0.5)
    for seed in range(5):
        learner = Foresight(dim=10, horizon=1000, grid=(8, 11, 1000), intercept=True)
        assert after(learner, world, 1, seed).policy.eliminations == ()


def test_the_planner_is_told_what_lies_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is forecast at that moment."""
    asked: list[dict[str, Any]] = []

    def spy(belief: Posterior, sets: ContextSets, **settings: Any) -> Prospect:
        asked.append({"sets": len(sets), **settings})
        return Prospect(scale=0.7, cost=0.0, next_cost=0.0)

    monkeypatch.setattr(room, "best_prospect", spy)
    learner = Foresight(dim=3, grid=[50, 450, 1000, 3000], seed=6, design_share=0.0, intercept=False)
    state = learner.begin()
    for forecast in (None, None, (700, 900), None):
        state = learner.next(state, learner.summarize(state, rows_of(state, WORLD, 1)), forecast=forecast)
    told = [(a["lengths"], a["update"], a["seed"]) for a in asked]
    assert told == [((400, 550, 2000), 1, 6), ((550, 2000), 2, 6), ((700, 900), 3, 6)]
    assert [a["sets"] for a in asked] == [50, 200, 200]
    assert state.batch_sizes == (900,)


def test_draws_are_spread_as_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their standardised squares are χ² with 128·3 degrees: within six standard deviations (p < 1e-8)."""
    monkeypatch.setattr(room, "best_prospect", lambda *_, **__: Prospect(scale=0.7, cost=0.0, next_cost=0.0))
    state = after(Foresight(dim=3, horizon=3000, design_share=0.0, intercept=False), WORLD, 1)
    belief = posterior(state.sums[0])
    assert isinstance(state.policy.sampler, PosteriorDraws)
    away = state.policy.sampler.draws - belief.estimate
    squares = np.einsum("mi,ij,mj->m", away, belief.precision, away) / (0.7 * belief.noise) ** 2
    assert abs(squares.sum() - 384) <= 6 * math.sqrt(2 * 384)


@pytest.mark.parametrize(
    ("horizon", "policies"), [(h, u) for h in (2, 3, 7, 20, 100) for u in (None, 1, 2, 8, 50) if u is None or u <= h]
)
def test_any_horizon_and_any_number_of_updates(horizon: int, policies: int | None) -> None:
    world = make_world("varying", dim=6, arms=4, noise=0.5)
    run = simulate(Foresight(dim=6, horizon=horizon, policies=policies, intercept=False), world, seed=1)
    assert run.policies == (min(horizon, 8) if policies is None else policies)


def test_the_usual_grid() -> None:
    assert Foresight(dim=10, horizon=1e5).clock == geometric_grid(100_000, 8, first=45)  # type: ignore[arg-type]
    assert Foresight(dim=10, horizon=1000, policies=2).clock == geometric_grid(1000, 2, first=122)  # √(15·1000)


@pytest.mark.parametrize("dim", [1, 10, 40])
@pytest.mark.parametrize("horizon", [3000, 1_000_000])
@pytest.mark.parametrize("policies", [2, 3, 8, 20])
def test_the_first_batch_costs_least(dim: int, horizon: int, policies: int) -> None:
    """Of all numbers: blind decisions cost 1, and those after t decisions 1.5·d/t, while all grow by equal factors."""

    def cost(first: FloatArray) -> FloatArray:
        growth = (horizon / first) ** (1.0 / (policies - 1))
        return first + 1.5 * dim * (policies - 1) * (growth - 1.0)

    best = 1 + int(np.argmin(cost(np.arange(1.0, horizon))))
    assert default_grid(dim, horizon, policies).ends[0] in (best - 1, best)  # rounded down


def test_a_plan_needs_sets() -> None:
    learner = Foresight(dim=3, horizon=1000, intercept=False)
    state = learner.begin()
    rows = rows_of(state, WORLD, 1)
    bare = rows.without_offers()
    with pytest.raises(BatchError, match=r"foresight plans with a sample of the context sets .* and there are none"):
        learner.next(state, learner.summarize(state, bare))
    # a greedy last batch does not
    assert learner.next(state, learner.summarize(state, bare), forecast=[500]).batch_sizes == (500,)


def test_sets_with_many_arms_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(belief: Posterior, sets: ContextSets, **settings: Any) -> Prospect:
        seen.append(len(sets))
        return Prospect(scale=0.0, cost=0.0, next_cost=0.0)

    monkeypatch.setattr(room, "best_prospect", spy)
    world = make_world("gaussian", dim=2, arms=600, noise=0.5)
    after(Foresight(dim=2, grid=[100, 200, 400], intercept=False), world, 1)
    assert seen == [25]  # (1 << 23) numbers are 27 sets of 600 arms and 512 truths: every fourth of 100


@pytest.mark.parametrize("constant", [0.1, 0.7, 1.0, 3.3])
def test_rewards_that_are_all_equal_leave_nothing_but_rounding(constant: float) -> None:
    """Where rewards have a level, what rounding leaves of equal ones must not be taken for knowledge."""
    learner, theta = Foresight(dim=3, intercept=True), np.array([0.6, -0.3, 0.1])
    for first in (30, 37, 61, 100):
        rng, state = np.random.default_rng(first), learner.begin()
        for week, count in enumerate((first, 500, 500)):
            contexts = rng.standard_normal((count, 4, 3)) / 2
            decisions = state.policy.decide(contexts, ids=[f"{week}.{k}" for k in range(count)], seed=1)
            means = contexts[np.arange(count), decisions.arms] @ theta
            rewards = np.full(count, constant) if week == 0 else means + 0.3 * rng.standard_normal(count)
            state = learner.next(state, learner.summarize(state, DecisionLog.of(contexts, decisions, rewards)))
            assert week > 0 or not state.policy.eliminations
        # the best of four arms is worth 1.03·‖θ‖/2 = 0.35, with a spread of 0.24, so that the mean of 500 is known to
        # 0.011; a run that is stuck on what rounding left is worth no more than a random arm, 0
        assert means.mean() > 0.2
