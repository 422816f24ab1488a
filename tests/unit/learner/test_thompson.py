"""Thompson sampling against the printed algorithm, and on a grid."""

import math

import numpy as np
import pytest

from rareswitch.lab.reproduction.references.switching import WorldTable, thompson
from rareswitch.lab.worlds import make_world
from rareswitch.learner import BatchedThompsonSampling, ThompsonSampling
from reference.loop import steps
from reference.watch import watched

NOISE, HORIZON = 0.4, 800


@pytest.mark.parametrize("where", ["gaussian", "segments", "varying", "zipf", "plain"])
def test_thompson_steps_as_printed(where: str) -> None:
    world = make_world(where, dim=4, arms=6, noise=NOISE)
    learner = ThompsonSampling(
        dim=world.dim, arms=world.arms, horizon=HORIZON, noise=NOISE, scale=0.8, ridge=0.3, seed=11
    )
    expected = thompson(WorldTable.of(world, HORIZON, 2), ridge=0.3, scale=0.8 * NOISE, seed=11)
    found = watched(learner, world, 2)
    assert found.arms == expected.arms
    assert found.run.policies == HORIZON


def test_plays_of_no_plain_arm_more_than_double_within_a_batch() -> None:
    """The rule for plain arms: with λ + n plays of an arm, and determinants that are their product."""
    world = make_world("plain", arms=4, noise=0.5)
    learner = BatchedThompsonSampling(dim=4, arms=4, horizon=3000, noise=0.5, ridge=1.0)
    batches = 0
    for before, done in steps(learner, world, seed=2, most=200):
        plays = 1.0 + np.diag(before.sums[0].gram)
        grown = plays + np.diag(done.summary.stats[0].gram)
        # the decision with which the determinant doubles may go one beyond
        assert (grown - 1.0 <= 2.0 * plays + 1e-9).all()
        assert np.prod(grown / plays) >= 2.0 * (1 - 1e-6) or done.state.done
        batches += 1
    assert math.log2(3000) <= batches <= learner.switch_bound
