"""LinUCB and OFUL against the printed algorithms, decision by decision, and LinUCB on a grid."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from rareswitch.core import FloatArray
from rareswitch.lab.reproduction.references.switching import WorldTable, optimist
from rareswitch.learner import OFUL, LinUCB, LinUCBGrid
from rareswitch.policy import Optimistic
from reference.loop import rows_of
from reference.watch import NOISE, PLACES, place, sized, watched

HORIZON = 1000


def tight(ridge: float, delta: float) -> Callable[[FloatArray], float]:
    def multiplier(precision: FloatArray) -> float:
        grown = np.linalg.slogdet(precision / ridge)[1]
        return float(NOISE * math.sqrt(2 * math.log(1 / delta) + grown) + math.sqrt(ridge))

    return multiplier


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("growth", [1.2, 2.0, 8.0])
def test_oful_changes_when_the_determinant_has_grown(where: str, growth: float) -> None:
    world = place(where)
    expected = optimist(WorldTable.of(world, HORIZON, 5), ridge=0.5, growth=growth, multiplier=lambda _: 0.7)
    found = watched(sized(OFUL, world, growth=growth, confidence=0.7, ridge=0.5), world, 5)
    assert found.arms == expected.arms
    assert found.switches == [t for t in expected.switches if t < HORIZON]


@pytest.mark.parametrize("where", PLACES)
def test_linucb_steps_as_printed(where: str) -> None:
    world = place(where)
    expected = optimist(WorldTable.of(world, HORIZON, 2), ridge=0.3, growth=1.0, multiplier=tight(0.3, 0.1))
    found = watched(sized(LinUCB, world, delta=0.1, ridge=0.3), world, 2)
    assert found.arms == expected.arms
    assert found.run.policies == HORIZON


def test_a_stale_learner_is_optimistic_about_all_that_came_before() -> None:
    world = place("varying")
    learner = sized(LinUCBGrid, world, delta=0.1, ridge=0.3, policies=4)
    state, rows = learner.begin(), []
    for _ in range(3):
        rows.append(rows_of(state, world, 1))
        state = learner.next(state, learner.summarize(state, rows[-1]))
        x, r = np.concatenate([part.features for part in rows]), np.concatenate([part.rewards for part in rows])
        precision = x.T @ x + 0.3 * np.eye(4)
        sampler = state.policy.sampler
        np.testing.assert_allclose(sampler.estimate, np.linalg.solve(precision, x.T @ r))
        multiplier = tight(0.3, 0.1)(precision)
        np.testing.assert_allclose(sampler.root.T @ sampler.root, multiplier**2 * np.linalg.inv(precision))


def test_ties_are_ties_to_the_last_digits_only() -> None:
    for gap, expected in ((1e-8, 1), (1e-11, 0)):
        sampler = Optimistic(estimate=np.array([1.0, 1.0 + gap]), root=np.zeros((2, 2)))
        assert sampler.probabilities(np.eye(2) / 2).argmax() == expected
