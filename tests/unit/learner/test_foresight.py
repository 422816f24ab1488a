"""Foresight: scale-free beliefs, planned exploration, exact propensities with a floor."""

import math
from typing import Any

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.contexts import ContextSets
from rareswitch.design import GOptimal
from rareswitch.distributions import Gaussian
from rareswitch.env import ClickWorld, Rounds, World, make_world
from rareswitch.errors import BatchError, ParameterError
from rareswitch.learner import Feedback, Foresight, Posterior, StaticGrid, foresight, geometric_grid, posterior
from rareswitch.learner.foresight import centred
from rareswitch.learner.planning import SCALES, Plan, Stage, plan, prospects
from rareswitch.linalg import inverse_root
from rareswitch.policy import Blend, PosteriorDraws
from rareswitch.rng import normals, uniforms
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray

RNG = np.random.default_rng(5)


class Rescaled:
    """A world in other units: features times a, rewards times b plus a level."""

    def __init__(self, world: World, features: float, rewards: float, level: float = 0.0) -> None:
        self.world, self.features, self.scale, self.level = world, features, rewards, level
        self.dim, self.arms = world.dim, world.arms

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        rounds = self.world.draw(count, seed=seed, first=first)
        means = self.scale * rounds.means + self.level
        return Rounds(contexts=self.features * rounds.contexts, means=means, alive=rounds.alive)

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        inner = (means - self.level) / self.scale
        return self.scale * self.world.rewards(inner, seed=seed, first=first) + self.level


def first_batch(learner: Foresight, world: World, seed: int = 1) -> None:
    count = learner.stop - learner.start
    rounds = world.draw(count, seed=seed, first=learner.start)
    decisions = learner.policy.decide(rounds.contexts, rounds.alive, seed=seed, first=learner.start)
    rewards = world.rewards(rounds.means[np.arange(count), decisions.arms], seed=seed, first=learner.start)
    learner.next(learner.summarize(Feedback.of(rounds.contexts, decisions, rewards, rounds.alive)))


def test_noise_and_prior_are_those_that_make_rewards_most_likely() -> None:
    """Against the density of the rewards themselves, on a finer grid around."""
    x = RNG.standard_normal((60, 3)) * [1.0, 0.5, 2.0]
    r = x @ RNG.standard_normal(3) + 0.8 * RNG.standard_normal(60)

    def negative_log_density(noise: float, prior: float) -> float:
        covariance = noise**2 * np.eye(60) + prior**2 * x @ x.T
        return float(np.linalg.slogdet(covariance)[1] + r @ np.linalg.solve(covariance, r))

    found = posterior(Stats.of(x, r))
    prior = found.noise / math.sqrt(found.ridge)
    best = negative_log_density(found.noise, prior)
    around = [0.7, 0.85, 1.0, 1.18, 1.4]
    assert best <= min(negative_log_density(a * found.noise, b * prior) for a in around for b in around) + 0.01
    np.testing.assert_allclose(found.estimate, np.linalg.solve(x.T @ x + found.ridge * np.eye(3), x.T @ r), rtol=1e-9)
    np.testing.assert_allclose(found.precision, x.T @ x + found.ridge * np.eye(3))


@pytest.mark.parametrize(("features", "rewards"), [(100.0, 1.0), (1.0, 1e-4), (1e-3, 1e3)])
def test_beliefs_follow_the_units(features: float, rewards: float) -> None:
    x = RNG.standard_normal((50, 4))
    r = x[:, 0] + RNG.standard_normal(50)
    one, other = posterior(Stats.of(x, r)), posterior(Stats.of(features * x, rewards * r))
    assert other.noise == pytest.approx(rewards * one.noise)
    assert other.ridge == pytest.approx(features**2 * one.ridge)
    np.testing.assert_allclose(
        other.estimate, rewards / features * one.estimate, rtol=1e-7, atol=1e-12 * rewards / features
    )


def test_data_that_tell_nothing_leave_the_prior_wide() -> None:
    x = RNG.standard_normal((400, 3))
    found = posterior(Stats.of(x, RNG.standard_normal(400)))
    assert found.ridge <= 10.0 * (x**2).sum() / 400 * 1.001


@pytest.mark.parametrize(
    ("x", "r"), [(np.zeros((5, 2)), np.ones(5)), (np.ones((5, 2)), np.zeros(5)), (np.eye(2)[[0, 0, 0]], np.ones(3))]
)
def test_degenerate_data_give_a_belief_all_the_same(x: Any, r: Any) -> None:
    found = posterior(Stats.of(x, r))
    assert np.isfinite(found.estimate).all()
    assert found.ridge > 0.0
    assert found.noise >= 0.0
    np.linalg.cholesky(found.precision)


def test_an_intercept_is_taken_out_exactly() -> None:
    x, r = RNG.standard_normal((30, 3)) + 2.0, RNG.standard_normal(30) + 7.0
    stats = centred(Stats.of(np.column_stack([x, np.ones(30)]), r))
    expected = Stats.of(x - x.mean(axis=0), r - r.mean())
    np.testing.assert_allclose(stats.gram, expected.gram, atol=1e-9)
    np.testing.assert_allclose(stats.moment, expected.moment, atol=1e-9)
    assert stats.square_sum == pytest.approx(expected.square_sum)
    assert stats.count == 29


@pytest.mark.parametrize(("features", "rewards"), [(50.0, 1.0), (1.0, 1e-3), (0.01, 200.0)])
def test_decisions_do_not_depend_on_units(features: float, rewards: float) -> None:
    world = make_world("varying", dim=3, arms=5, noise=0.4)
    one = simulate(Foresight(dim=3, horizon=2000), world, seed=2)
    other = simulate(Foresight(dim=3, horizon=2000), Rescaled(world, features, rewards), seed=2)
    assert other.regret == pytest.approx(rewards * one.regret, rel=1e-6)


def test_a_level_of_rewards_does_not_matter_with_an_intercept() -> None:
    world = make_world("gaussian", dim=3, arms=5, noise=0.4)
    one = simulate(Foresight(dim=3, horizon=2000, intercept=True), world, seed=2)
    raised = simulate(Foresight(dim=3, horizon=2000, intercept=True), Rescaled(world, 1.0, 1.0, 100.0), seed=2)
    assert raised.regret == pytest.approx(one.regret, rel=1e-6)
    lost = simulate(Foresight(dim=3, horizon=2000), Rescaled(world, 1.0, 1.0, 100.0), seed=2)
    assert lost.regret > 2.0 * one.regret


def test_clicks_are_learned() -> None:
    world = ClickWorld(source=Gaussian(dim=4, arms=8))
    run = simulate(Foresight(dim=5, horizon=5000), world, seed=1)
    chance = float((lambda m: (m.max(axis=1) - m.mean(axis=1)).sum())(world.draw(5000, seed=1).means))
    assert run.regret < 0.5 * chance
    assert run.updates == 8


def test_prospects_match_a_slow_look_ahead() -> None:
    """The same quantities by other means: fresh truths, all batches played decision by decision, many times.

    Both sides are Monte Carlo, over 512 truths and over 300, so they are compared to within five standard errors.
    """
    rng = np.random.default_rng(1)
    dim, lengths = 2, (60, 90, 400)
    belief = Posterior(estimate=np.array([0.3, 0.1]), precision=np.diag([20.0, 5.0]), noise=0.5, ridge=1.0)
    sets = Gaussian(dim=dim, arms=4).draw(200, seed=1)
    sample = ContextSets(sets.contexts, sets.alive)
    found = {p.scale: p.cost for p in prospects(belief, sample, lengths=lengths, seed=1, update=1)}
    root = np.linalg.cholesky(np.linalg.inv(belief.precision))
    for scale in (0.0, 1.0):
        costs = []
        for _ in range(300):
            truth = belief.estimate + 0.5 * root @ rng.standard_normal(dim)
            precision, moment, lost = belief.precision.copy(), belief.precision @ belief.estimate, 0.0
            for batch, length in enumerate(lengths[:-1]):
                estimate = np.linalg.solve(precision, moment)
                for _ in range(length):
                    x = sets.contexts[rng.integers(200)]
                    drawn = estimate if batch else estimate + scale * 0.5 * root @ rng.standard_normal(dim)
                    arm = int((x @ drawn).argmax())
                    lost += float((x @ truth).max() - x[arm] @ truth)
                    precision += np.outer(x[arm], x[arm])
                    moment = moment + (x[arm] @ truth + 0.5 * rng.standard_normal()) * x[arm]
            values = sets.contexts @ truth
            chosen = (sets.contexts @ np.linalg.solve(precision, moment)).argmax(axis=1)
            costs.append(lost + lengths[-1] * float((values.max(axis=1) - values[np.arange(200), chosen]).mean()))
        spread = np.std(costs, ddof=1) * (1 / math.sqrt(300) + 1 / math.sqrt(512))
        assert abs(np.mean(costs) - found[scale]) <= 5 * spread


def slow_prospects(belief: Posterior, sets: ContextSets, lengths: list[int], seed: int, update: int) -> list[float]:
    """The look-ahead truth by truth and batch by batch, with the same random numbers."""
    dim, truths = len(belief.estimate), 512
    if len(lengths) > 5:
        lengths = [*lengths[:4], sum(lengths[4:])]
    z = normals(seed, "plan", update, 1, (2 * truths + 64) * dim).reshape(-1, dim)
    values, vectors = np.linalg.eigh(belief.precision)
    root = inverse_root(belief.precision)
    np.testing.assert_allclose(root.T @ root, (vectors / values) @ vectors.T)
    halves = [sets.contexts[0::2], sets.contexts[1::2]]
    shocks = normals(seed, "plan later", update, len(lengths) - 1, truths * len(halves[0]))
    costs = []
    for scale in SCALES:
        draws = [belief.estimate + scale * belief.noise * row @ root for row in (z[-64:] if scale else z[-1:])]
        information = np.zeros((dim, dim))
        for x in halves[0]:
            for drawn in draws:
                arm = x[(x @ drawn).argmax()]
                information += lengths[0] / (len(halves[0]) * len(draws)) * np.outer(arm, arm)
        spread, axes = np.linalg.eigh(information)
        half_power = axes * np.sqrt(np.maximum(spread, 0.0))
        total = 0.0
        for j in range(truths):
            truth = belief.estimate + belief.noise * z[j] @ root
            for x in halves[0]:
                lost = sum(float((x @ truth).max() - x[(x @ drawn).argmax()] @ truth) for drawn in draws)
                total += lengths[0] * lost / (len(halves[0]) * len(draws)) / truths
            precision = belief.precision + information
            moment = belief.precision @ belief.estimate + information @ truth
            moment = moment + belief.noise * half_power @ z[truths + j]
            for later, length in enumerate(lengths[1:], start=1):
                here = halves[later % 2]
                estimate = np.linalg.solve(precision, moment)
                for s, x in enumerate(here):
                    arm = x[(x @ estimate).argmax()]
                    total += length / len(here) * float((x @ truth).max() - arm @ truth) / truths
                    if later < len(lengths) - 1:
                        share = length / len(here)
                        shock = shocks[later - 1].reshape(truths, -1)[j, s]
                        precision = precision + share * np.outer(arm, arm)
                        moment = moment + (share * arm @ truth + math.sqrt(share) * belief.noise * shock) * arm
        costs.append(total)
    return costs


def test_prospects_are_worked_out_exactly() -> None:
    """Six batches, of which the last two are played as one, and an odd number of sets."""
    belief = Posterior(estimate=np.array([0.2, 0.1]), precision=np.diag([9.0, 4.0]), noise=0.5, ridge=1.0)
    sets = Gaussian(dim=2, arms=3).draw(5, seed=1)
    sample, lengths = ContextSets(sets.contexts, sets.alive), [3, 9, 20, 50, 100, 300]
    found = prospects(belief, sample, lengths=lengths, seed=4, update=3)
    np.testing.assert_allclose([p.cost for p in found], slow_prospects(belief, sample, lengths, 4, 3), rtol=1e-8)


def test_a_greedy_batch_teaches_what_its_arms_teach() -> None:
    """One set whose best arm is in doubt: greedy play stays with it, however many batches follow.

    So the cost of never looking grows with their length, and does not fall when it is cut into more batches.
    """
    belief = Posterior(estimate=np.array([0.2, 0.1]), precision=np.diag([400.0, 4.0]), noise=0.5, ridge=1.0)
    sample = ContextSets(np.eye(2)[None].repeat(6, axis=0), np.ones((6, 2), dtype=np.bool_))
    one, many = (
        {p.scale: p.cost for p in prospects(belief, sample, lengths=lengths, seed=2, update=1)}
        for lengths in ((100, 10_000), (100, 2000, 3000, 5000))
    )
    assert many[0.0] == pytest.approx(one[0.0], rel=0.02)
    assert one[1.0] < 0.5 * one[0.0]
    assert plan(belief, sample, lengths=(100, 10_000), seed=2, update=1).scale > 0.0


def test_the_plan_is_the_cheapest_prospect() -> None:
    belief = Posterior(estimate=np.array([0.2, 0.0]), precision=np.diag([30.0, 2.0]), noise=0.5, ridge=1.0)
    sets = Gaussian(dim=2, arms=5).draw(50, seed=1)
    sample = ContextSets(sets.contexts, sets.alive)
    chosen = plan(belief, sample, lengths=(100, 10**6), seed=3, update=2)
    found = prospects(belief, sample, lengths=(100, 10**6), seed=3, update=2)
    assert [p.scale for p in found] == list(SCALES)
    assert chosen == found[int(np.argmin([p.cost for p in found]))]
    assert plan(belief, sample, lengths=(10**6, 1), seed=3, update=2).scale == 0.0  # nothing to explore for
    assert chosen.scale > 0.0


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_sets_are_enough_to_plan(count: int) -> None:
    belief = Posterior(estimate=np.array([0.2, 0.0]), precision=np.diag([30.0, 2.0]), noise=0.5, ridge=1.0)
    sets = Gaussian(dim=2, arms=5).draw(count, seed=1)
    found = plan(belief, ContextSets(sets.contexts, sets.alive), lengths=(10, 20, 40, 80), seed=3, update=2)
    assert math.isfinite(found.cost)


def test_exploration_fades_and_the_last_batch_is_greedy() -> None:
    learner = Foresight(dim=4, horizon=20_000)
    simulate(learner, make_world("gaussian", dim=4, arms=8, noise=0.5), seed=1)
    scales = [p.scale for p in learner.plans]
    assert len(scales) == 6
    assert max(scales[:2]) > max(scales[-2:])
    sampler = learner.policy.sampler
    assert isinstance(sampler, Blend)
    assert isinstance(sampler.main, PosteriorDraws)
    assert sampler.main.draws.shape == (1, 4)


def test_every_surviving_arm_keeps_its_floor() -> None:
    world = make_world("gaussian", dim=3, arms=5, noise=0.5)
    learner = Foresight(dim=3, horizon=5000, floor=0.05)
    probe = world.draw(50, seed=9).contexts
    while learner.updates < 8:
        first_batch(learner, world)
        share = 0.05 if learner.updates < 8 else 0.005
        survivors = learner.policy.survivors(probe)
        probabilities = learner.policy.probabilities(probe)
        floors = share / survivors.sum(axis=1, keepdims=True)  # K ≤ 2d, where the design at factor 2 is uniform
        assert (probabilities >= floors - 1e-12)[survivors].all()
        assert not probabilities[~survivors].any()
        assert len(learner.policy.eliminations) == learner.updates - 1


def test_without_a_floor_nothing_is_eliminated() -> None:
    learner = Foresight(dim=3, horizon=5000, floor=0.0)
    first_batch(learner, make_world("gaussian", dim=3, arms=5, noise=0.5))
    assert learner.policy.eliminations == ()
    assert isinstance(learner.policy.sampler, PosteriorDraws)


class Sparse:
    """Plain arms that pay 0 or 1, most of them almost never."""

    dim = arms = 6
    chances = np.array([0.0, 0.01, 0.01, 0.01, 0.01, 0.08])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        return Rounds(contexts=np.repeat(np.eye(6)[None], count, axis=0), means=np.tile(self.chances, (count, 1)))

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return (uniforms(seed, "noise", first, len(means))[:, 0] < means).astype(np.float64)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_first_batch_without_a_reward_does_not_end_the_search(intercept: bool) -> None:
    silent = 0
    for seed in range(8):
        learner = Foresight(dim=6, horizon=20_000, intercept=intercept, seed=seed)
        first_batch(learner, Sparse(), seed)
        if not learner.total.square_sum:
            silent += 1
            assert isinstance(learner.policy.sampler, GOptimal)
            assert learner.policy.eliminations == ()
        run = simulate(Foresight(dim=6, horizon=20_000, intercept=intercept, seed=seed), Sparse(), seed=seed)
        assert run.regret < 0.5 * 20_000 * (0.08 - Sparse.chances.mean())  # half of what chance loses
    assert silent


def test_few_decisions_eliminate_nothing() -> None:
    """With as many parameters as decisions the noise may look like nothing."""
    world = make_world("gaussian", dim=10, arms=5, noise=0.5)
    for seed in range(5):
        learner = Foresight(dim=10, horizon=1000, grid=StaticGrid(ends=(8, 11, 1000)), intercept=True)
        first_batch(learner, world, seed)
        assert learner.policy.eliminations == ()


def test_the_planner_is_told_what_lies_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def spy(belief: Posterior, sets: ContextSets, **settings: Any) -> Plan:
        asked.append({"sets": len(sets), **settings})
        return Plan(scale=0.7, cost=0.0)

    monkeypatch.setattr(foresight, "plan", spy)
    world = make_world("gaussian", dim=3, arms=5, noise=0.5)
    learner = Foresight(dim=3, grid=StaticGrid(ends=(50, 450, 1000, 3000)), horizon=3000, seed=6, floor=0.0)
    while learner.stop < 3000:
        first_batch(learner, world)
    told = [(a["lengths"], a["update"], a["seed"]) for a in asked]
    assert told == [([400, 550, 2000], 1, 6), ([550, 2000], 2, 6)]
    assert [a["sets"] for a in asked] == [50, 200]


def test_draws_are_spread_as_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their standardised squares are χ² with 128·3 degrees: within six standard deviations (p < 1e-8)."""
    monkeypatch.setattr(foresight, "plan", lambda *_, **__: Plan(scale=0.7, cost=0.0))
    world = make_world("gaussian", dim=3, arms=5, noise=0.5)
    learner = Foresight(dim=3, horizon=3000, floor=0.0)
    first_batch(learner, world)
    belief = posterior(learner.total)
    assert isinstance(learner.policy.sampler, PosteriorDraws)
    away = learner.policy.sampler.draws - belief.estimate
    squares = np.einsum("mi,ij,mj->m", away, belief.precision, away) / (0.7 * belief.noise) ** 2
    assert abs(squares.sum() - 384) <= 6 * math.sqrt(2 * 384)


def test_the_intervals_behind_the_floor() -> None:
    world = make_world("gaussian", dim=3, arms=5, noise=0.5)
    learner = Foresight(dim=3, horizon=3000, delta=0.1)
    first_batch(learner, world)
    belief = posterior(learner.total)
    grown = np.linalg.slogdet(belief.precision)[1] - 3 * math.log(belief.ridge)
    radius = belief.noise * (math.sqrt(2 * math.log(10) + grown) + math.sqrt(3))
    (elimination,) = learner.policy.eliminations
    np.testing.assert_allclose(elimination.root.T @ elimination.root, radius**2 * np.linalg.inv(belief.precision))
    np.testing.assert_allclose(elimination.estimate, belief.estimate)


def test_arms_that_do_not_exist_do_not_enter_the_plan() -> None:
    belief = Posterior(estimate=np.array([0.2, 0.1]), precision=np.diag([30.0, 4.0]), noise=0.5, ridge=1.0)
    sets = Gaussian(dim=2, arms=4).draw(60, seed=1)
    wider = np.concatenate([sets.contexts, np.full((60, 2, 2), 5.0)], axis=1)
    alive = np.arange(6) < np.full((60, 1), 4)
    few = prospects(belief, ContextSets(sets.contexts, sets.alive), lengths=(50, 200, 400), seed=1, update=1)
    many = prospects(belief, ContextSets(wider, alive), lengths=(50, 200, 400), seed=1, update=1)
    for one, other in zip(few, many, strict=True):
        assert one.cost == pytest.approx(other.cost)


def test_what_a_stage_pays_and_teaches() -> None:
    sets = Gaussian(dim=2, arms=4).draw(6, seed=1)
    truths, draws = RNG.standard_normal((3, 2)), RNG.standard_normal((8, 2))
    stage = Stage.of(ContextSets(sets.contexts, sets.alive), truths)
    regret, chosen = stage.exploit(truths)
    assert regret == 0.0
    arms = (sets.contexts @ truths.T).argmax(axis=1)
    np.testing.assert_array_equal(chosen[2], sets.contexts[np.arange(6), arms[:, 2]])
    lost, information = stage.explore(draws)
    slow_lost, slow_information = 0.0, np.zeros((2, 2))
    for x in sets.contexts:
        for drawn in draws:
            arm = x[(x @ drawn).argmax()]
            slow_information += np.outer(arm, arm) / 48
            slow_lost += sum(float((x @ t).max() - arm @ t) for t in truths) / (48 * 3)
    np.testing.assert_allclose(information, slow_information)
    assert lost == pytest.approx(slow_lost)


def test_a_forgotten_mask_is_noticed() -> None:
    world = make_world("varying", dim=3, arms=5, noise=0.5)
    learner = Foresight(dim=3, horizon=500)
    rounds = world.draw(learner.stop, seed=1)
    decisions = learner.policy.decide(rounds.contexts, rounds.alive, seed=1)
    with pytest.raises(BatchError, match="mask of living arms"):
        learner.summarize(Feedback.of(rounds.contexts, decisions, np.zeros(learner.stop)))


@pytest.mark.parametrize("horizon", [2, 3, 7, 20, 100])
@pytest.mark.parametrize("updates", [1, 2, 8, 50])
def test_any_horizon_and_any_number_of_updates(horizon: int, updates: int) -> None:
    world = make_world("varying", dim=6, arms=4, noise=0.5)
    run = simulate(Foresight(dim=6, horizon=horizon, updates=updates), world, seed=1)
    assert run.updates == min(horizon, updates)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"updates": 0}, "updates must be at least 1"),
        ({"floor": 1.5}, "floor must be"),
        ({"delta": 0.0}, "delta must be"),
        ({"dim": 0}, "dim must be"),
        ({"horizon": 1}, "horizon must be"),
        ({"grid": geometric_grid(50, 3)}, "the grid ends at 50"),
        ({"grid": geometric_grid(100, 3), "updates": 3}, "not both"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_settings_are_explained(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Foresight(**{"dim": 3, "horizon": 100} | bad)
