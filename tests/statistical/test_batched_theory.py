"""What the paper proves of the batched family, seen in seeded runs."""

import numpy as np
import pytest

from rareswitch.core import ContextSets
from rareswitch.lab.reproduction.theory import covers, least_exploration, played_batches
from rareswitch.lab.worlds import make_world
from rareswitch.learner import make_learner
from rareswitch.policy import widest_intervals

NAMES = ["batch-linucb", "batch-linucb-kw", "batch-linucb-dg", "batch-linucb-dg-certified"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "place", ["gaussian", "anisotropic", "segments", "zipf", "fixed", "one-big", "counterexample", "varying", "clicks"]
)
def test_the_step_behind_theorem_1(name: str, place: str) -> None:
    """Where intervals cover: the best arm survives, and regret is at most 4 times the widest surviving interval."""
    world = make_world(place, dim=4, arms=6, noise=0.1)
    noise = 0.5 if place == "clicks" else 0.1
    checked = eliminated = 0
    for seed in range(3):
        learner = make_learner(name, dim=world.dim, arms=world.arms, horizon=2000, noise=noise, ridge=0.1)
        played = list(played_batches(learner, world, seed))
        if not all(covers(batch.policy, batch.rounds) for batch in played):
            continue
        for policy, rounds, decisions, _ in played[1:]:
            available = rounds.sets.available
            best = np.where(available, rounds.means, -np.inf)
            surviving = policy.survivors(rounds.sets.contexts, available)
            assert surviving[np.arange(len(best)), best.argmax(axis=1)].all()
            widths = widest_intervals(policy.eliminations[-1], ContextSets(rounds.sets.contexts, surviving))
            assert (rounds.regrets(decisions.arms) <= 4 * widths + 1e-12).all()
            checked += 1
            eliminated += int((available & ~surviving).sum())
    assert checked
    # where gaps are wider than intervals can get in 2000 decisions, arms must have been eliminated
    if place in ("gaussian", "fixed", "segments"):
        assert eliminated


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["gaussian", "one-big", "segments"])
def test_the_exploration_lemma(name: str, place: str) -> None:
    """As in the reproduction, with the paper's widths at few decisions, but for δ/T² a batch."""
    world = make_world(place, dim=4, arms=6, noise=0.1)
    for seed in range(3):
        learner = make_learner(name, dim=4, arms=6, horizon=2000, noise=0.1, confidence="paper", delta=0.05)
        assert least_exploration(learner, world, seed) >= 0
