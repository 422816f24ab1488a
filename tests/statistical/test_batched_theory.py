"""What the paper proves of the batched family, seen in seeded runs."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rareswitch.core import ContextSets, FloatArray
from rareswitch.design import information
from rareswitch.lab.worlds import ClickWorld, LinearWorld, Rounds, make_world
from rareswitch.learner import BatchLinUCB, Learner, make_learner, paper_grid
from rareswitch.policy import Policy, widest_intervals
from reference.loop import rows_of

NAMES = ["batch-linucb", "batch-linucb-kw", "batch-linucb-dg", "batch-linucb-dg-certified"]


def batches(
    learner: Learner, world: LinearWorld | ClickWorld, seed: int
) -> Iterator[tuple[Policy, Rounds, FloatArray, Policy]]:
    """Each batch's policy, rounds, expected rewards of the chosen arms, and the policy after it."""
    state = learner.begin()
    while not state.done:
        policy, count, rows = state.policy, state.batch_sizes[0], rows_of(state, world, seed)
        rounds = world.draw(count, seed=seed, first=state.start)
        ids = range(state.start, state.stop)
        arms = policy.decide(rounds.contexts, rounds.available, ids=ids, seed=seed).arms
        state = learner.next(state, learner.summarize(state, rows))
        yield policy, rounds, rounds.means[np.arange(count), arms], state.policy


def covered(policy: Policy, rounds: Rounds) -> bool:
    """Whether all intervals of all arms, eliminated or not, hold the expected reward."""
    for elimination in policy.eliminations:
        error = np.abs(rounds.contexts @ elimination.estimate - rounds.means)
        width = np.linalg.norm(rounds.contexts @ elimination.root.T, axis=2)
        if (error > width * (1 + 1e-12)).any():
            return False
    return True


def test_tight_intervals_cover_at_their_level() -> None:
    delta, runs, failures = 0.2, 400, 0
    world = make_world("gaussian", dim=2, arms=3, noise=1.0)
    assert isinstance(world, LinearWorld)
    for seed in range(runs):
        learner = BatchLinUCB(dim=2, arms=3, horizon=64, delta=delta, noise=1.0, grid=paper_grid(64))
        failures += not all(covered(policy, rounds) for policy, rounds, *_ in batches(learner, world, seed))
    # Hoeffding, false alarm at most 1e-6
    assert failures / runs <= delta + math.sqrt(math.log(1 / 1e-6) / (2 * runs))


def test_intervals_that_are_too_narrow_do_not_cover() -> None:
    """The check above can fail: with a fifth of the multiplier it does."""
    world = make_world("gaussian", dim=2, arms=3, noise=1.0)
    assert isinstance(world, LinearWorld)
    failures = 0
    for seed in range(200):
        level = BatchLinUCB(dim=2, arms=3, horizon=64, delta=0.2, noise=1.0).intervals(3).multiplier
        learner = BatchLinUCB(dim=2, arms=3, horizon=64, confidence=level / 5)
        failures += not all(covered(policy, rounds) for policy, rounds, *_ in batches(learner, world, seed))
    assert failures / 200 > 0.2 + math.sqrt(math.log(1 / 1e-6) / (2 * 200))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "place", ["gaussian", "anisotropic", "segments", "zipf", "fixed", "one-big", "counterexample", "varying", "clicks"]
)
def test_the_step_behind_theorem_1(name: str, place: str) -> None:
    """Where intervals cover: the best arm survives, and regret is at most 4 times the widest surviving interval."""
    world = make_world(place, dim=4, arms=6, noise=0.1)
    assert isinstance(world, LinearWorld | ClickWorld)
    noise = 0.5 if place == "clicks" else 0.1
    checked = eliminated = 0
    for seed in range(3):
        learner = make_learner(name, dim=world.dim, arms=world.arms, horizon=2000, noise=noise, ridge=0.1)
        played = list(batches(learner, world, seed))
        if not all(covered(policy, rounds) for policy, rounds, *_ in played):
            continue
        for policy, rounds, chosen, _ in played[1:]:
            available = np.ones(rounds.means.shape, dtype=bool) if rounds.available is None else rounds.available
            best = np.where(available, rounds.means, -np.inf)
            kept = policy.survivors(rounds.contexts, available)
            assert kept[np.arange(len(best)), best.argmax(axis=1)].all()
            widths = widest_intervals(policy.eliminations[-1], ContextSets(rounds.contexts, kept))
            assert (best.max(axis=1) - chosen <= 4 * widths + 1e-12).all()
            checked += 1
            eliminated += int((available & ~kept).sum())
    assert checked
    # where gaps are wider than intervals can get in 2000 decisions, arms must have been eliminated
    if place in ("gaussian", "fixed", "segments"):
        assert eliminated


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["gaussian", "one-big", "segments"])
def test_the_exploration_lemma(name: str, place: str) -> None:
    """Lemma 2: Λ_k ≽ (n_k/16)·((ln T/n_k)·I + the sampler's information on fresh sets), but for δ/T² a batch."""
    world = make_world(place, dim=4, arms=6, noise=0.1)
    assert isinstance(world, LinearWorld)
    horizon, delta = 2000, 0.05
    for seed in range(3):
        learner = make_learner(name, dim=4, arms=6, horizon=horizon, noise=0.1, confidence="paper", delta=delta)
        fresh = world.draw(4000, seed=seed, first=10**6)
        rule: Any = learner.parts.rule
        for policy, rounds, _, after in batches(learner, world, seed):
            if len(after.eliminations) == len(policy.eliminations):
                continue  # the last batch is not learned from
            elimination = after.eliminations[-1]
            inverse = elimination.root.T @ elimination.root / rule.intervals.multiplier**2
            # DG's estimates rest on half of the batch, and its ridge is twice as large: the lemma for n_k/2
            size = len(rounds.contexts) / (2 if "dg" in name else 1)
            explored = information(policy.sampler, fresh.contexts, policy.survivors(fresh.contexts, fresh.available))
            bound = size / 16 * (math.log(horizon) / size * np.eye(4) + explored)
            assert np.linalg.eigvalsh(np.linalg.inv(inverse) - bound).min() >= 0
