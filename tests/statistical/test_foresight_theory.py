"""The theorem of docs/reference/foresight.md: its steps and its bound, seen in seeded runs."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rareswitch.core import ContextSets
from rareswitch.design import GOptimal
from rareswitch.errors import ParameterError
from rareswitch.lab.worlds import make_world
from rareswitch.learner import Foresight, certified_cost, geometric_grid
from rareswitch.learner.confidence import self_normalized_intervals
from rareswitch.policy import Blend, Policy, PosteriorDraws, widest_intervals
from reference.loop import rows_of

FALSE_ALARM = 1e-6


def hoeffding(count: int, width: float) -> float:
    """How far a mean of ``count`` independent numbers in a range of this width is above its expectation, at most."""
    return width * math.sqrt(math.log(1 / FALSE_ALARM) / (2 * count))


def test_a_share_of_designed_decisions_makes_every_survivor_known() -> None:
    """Lemma 2, where all other decisions teach nothing at all: the arm they play is the zero vector."""
    dim, share, count, ridge, runs = 3, 0.3, 1000, 1.0, 400
    greedy = PosteriorDraws(draws=np.zeros((1, dim)))  # all arms tie, and the first is played
    policy = Policy(dim=dim, sampler=Blend(main=greedy, explorer=GOptimal(tol=1.0), share=share))
    world = make_world("anisotropic", dim=dim, arms=5, noise=0.5)
    widest = []
    for seed in range(runs):
        contexts = np.concatenate(
            [np.zeros((count + 1, 1, dim)), world.draw(count + 1, seed=seed, first=0).contexts], axis=1
        )
        arms = policy.decide(contexts[:count], ids=range(count), seed=seed).arms
        chosen = contexts[np.arange(count), arms]
        inverse = np.linalg.inv(ridge * np.eye(dim) + chosen.T @ chosen)
        widest.append(np.einsum("kd,de,ke->k", contexts[count], inverse, contexts[count]).max())
    bound = 2 * dim**2 * (1 + 1 / ridge) / (share * (count + 1))
    assert np.mean(widest) <= bound + hoeffding(runs, 1 / ridge)
    assert bound + hoeffding(runs, 1 / ridge) < 0.3 / ridge  # which says something


def theorem(learner: Foresight, lengths: list[int], most: float = math.inf) -> float:
    """The bound on the regret, with δ, σ, ‖θ‖, K and T as the learner was told, for vectors of length 1.

    A decision of a batch is counted at ``most`` at most.
    """
    assert learner.noise_bound is not None
    noise, norm, judges = learner.noise_bound, learner.norm_bound, len(lengths) - 1
    ridge = (noise / norm) ** 2
    alpha = noise * math.sqrt(2 * math.log(2 * learner.arms * learner.horizon * judges / learner.delta))
    alpha += math.sqrt(ridge) * norm
    total = 2 * norm * (lengths[0] + learner.delta * learner.horizon)
    for k, (before, length) in enumerate(pairwise(lengths)):
        share = 1.0 if k == 0 else learner.design_share
        cost = 4 * alpha * learner.dim * math.sqrt(2 * (1 + 1 / ridge) / (share * (before + 1)))
        total += length * min(most, cost)
    return total


def test_the_theorem_in_a_seeded_run() -> None:
    """Intervals hold, the best arm survives, the certificate is above the cost and the bound above the regret."""
    horizon = 100_000
    learner = Foresight(dim=2, arms=3, horizon=horizon, noise_bound=0.3, design_share=0.5, delta=1 / horizon)
    world = make_world("gaussian", dim=2, arms=3, noise=0.3)
    fresh = world.draw(2000, seed=1, first=horizon)  # of the same θ, and in no batch
    sets = ContextSets(fresh.contexts, np.ones((2000, 3), dtype=np.bool_))
    gaps = fresh.means.max(axis=1, keepdims=True) - fresh.means
    state, regret = learner.begin(), 0.0
    while not state.done:
        rows = rows_of(state, world, 1)
        rounds = world.draw(state.batch_sizes[0], seed=1, first=state.start)
        arms = state.policy.decide(rounds.contexts, ids=range(state.start, state.stop), seed=1).arms
        regret += float((rounds.means.max(axis=1) - rounds.means[np.arange(len(arms)), arms]).sum())
        summary = learner.summarize(state, rows)
        state = learner.next(state, summary)
        if state.done:
            break
        policy = state.policy
        newest = policy.eliminations[-1]
        alone = summary.stats[0].estimate(ridge=(learner.noise_bound / learner.norm_bound) ** 2)
        assert newest.estimate.tolist() == alone.tolist()  # of this batch: independence needs no data of others
        assert len(policy.eliminations) == state.policies - 1
        error = np.abs(fresh.contexts @ newest.estimate - fresh.means)
        assert (error <= np.linalg.norm(fresh.contexts @ newest.root.T, axis=2)).all()
        survivors = policy.survivors(sets)
        assert survivors[gaps == 0.0].all()
        cost = (policy.probabilities(sets) * gaps).sum(axis=1)
        measured = certified_cost(policy, sets)
        widest = widest_intervals(newest, ContextSets(fresh.contexts, survivors)).mean()
        assert cost.mean() <= measured <= 4 * widest
        # what the update printed is of 200 sets of its batch, these are 2000 others: numbers in [0, 4·widest]
        known = 4 * np.linalg.norm(fresh.contexts @ newest.root.T, axis=2).max()
        size = min(200, rounds.contexts.shape[0])
        assert abs(state.notes[-1]["certificate"] - measured) <= hoeffding(size, known) + hoeffding(2000, known)
    lengths = [batch.decided for batch in state.past]
    largest = 2 * learner.norm_bound  # what a decision can cost
    assert regret <= theorem(learner, lengths, most=largest)
    assert theorem(learner, lengths) == pytest.approx(0.74 * largest * horizon, rel=0.01)  # as the page says
    assert theorem(learner, lengths, most=largest) == pytest.approx(0.62 * largest * horizon, rel=0.01)


def test_the_multipliers_of_the_page() -> None:
    """Of intervals from a batch alone, and of pooled ones, at d = 10, K = 20, T = 10⁵, M = 8, σ = 0.5, S = L = 1."""
    dim, horizon, noise = 10, 100_000, 0.5
    alone = Foresight(dim=dim, arms=20, horizon=horizon, noise_bound=noise).proved_intervals(geometric_grid(horizon, 8))
    pooled = self_normalized_intervals("tight", dim=dim, horizon=horizon, noise=noise)
    assert alone.multiplier / noise == pytest.approx(7.35, abs=0.01)
    assert pooled.multiplier(dim * math.log1p(horizon / (dim * pooled.ridge))) / noise == pytest.approx(11.58, abs=0.01)


def test_arms_fall_by_estimated_intervals_only_where_no_bound_on_the_noise_is_known() -> None:
    world = make_world("gaussian", dim=2, arms=3, noise=0.3)
    policies = []
    for settings in ({"arms": 3, "noise_bound": 0.3}, {"arms": 3}, {"arms": 3, "noise_bound": 3.0}):
        learner = Foresight(dim=2, horizon=400, policies=2, design_share=0.5, **settings)
        state = learner.begin()
        policies.append(learner.next(state, learner.summarize(state, rows_of(state, world, 1))).policy)
    widths = [np.linalg.norm(policy.eliminations[-1].root) for policy in policies]
    assert len({policy.id for policy in policies}) == 3
    assert widths[2] > 3 * widths[0]


@pytest.mark.parametrize(
    "settings", [{}, {"arms": 3}, {"horizon": 100}, {"arms": 3, "horizon": 100, "intercept": True}]
)
def test_proved_intervals_need_to_know_for_what(settings: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="give arms and horizon too, and a constant feature"):
        Foresight(dim=2, noise_bound=0.3, **settings)
