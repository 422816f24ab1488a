"""When the next policy is due: growing determinants and lessons, by features alone."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import OFUL, DeterminantGrowth, Learner, make_learner
from reference.loop import rows_of
from reference.refusals import raises

NOISE = 0.4
LOOKING = ["oful", "rarely-switch-suplinucb", "suplinucb"]


def place() -> World:
    return make_world("gaussian", dim=4, arms=6, noise=NOISE)


def sized(name: str, horizon: int = 400, **settings: Any) -> Learner:
    return make_learner(name, dim=4, arms=6, horizon=horizon, noise=NOISE, **settings)


@pytest.mark.parametrize("growth", [1.0, 0.5, -2.0, math.nan, math.inf, "2", True])
@pytest.mark.parametrize("name", ["oful", "rarely-switch-suplinucb"])
def test_growth_factors_of_at_most_one_are_refused(name: str, growth: Any) -> None:
    with pytest.raises(ParameterError, match="growth, the factor C by which determinants grow, must be a number above"):
        sized(name, growth=growth)
    raises(ParameterError, "factor, the factor C", DeterminantGrowth, horizon=100, factor=growth)


def test_the_clock_never_looks_at_rewards() -> None:
    """Other rewards for the same decisions, or none at all: due at the same time."""
    learner, world = sized("oful", growth=1e6), place()
    state = learner.begin()
    rounds = world.draw(200, seed=1)
    due = learner.due(state, rounds.contexts, state.policy.decide(rounds.contexts, ids=range(200), seed=1))
    rows = rows_of(state, world, 1, count=3)
    later = state.policy.decide(rounds.contexts[3:], ids=range(3, 200), seed=1)
    for reward in (0.0, 1.0):
        rewarded = replace(rows, rewards=np.full(3, reward))
        assert learner.due(state, rounds.contexts[3:], later, learner.summarize(state, rewarded)) == due - 3


@pytest.mark.parametrize("name", LOOKING)
def test_a_policy_before_its_time_is_taken_too(name: str) -> None:
    """A batch that the user closes early: nothing is frozen anew where too little was learned."""
    settings = {} if name == "suplinucb" else {"growth": 1e6}
    learner, world = sized(name, 5000, confidence=1e-3, **settings), place()
    state = learner.begin()
    rounds = world.draw(4, seed=1)
    decisions = state.policy.decide(rounds.contexts, ids=range(4), seed=1)
    if name != "suplinucb":
        assert learner.due(state, rounds.contexts, decisions) is None
    summary = learner.summarize(state, rows_of(state, world, 1, count=4))
    found = learner.next(state, summary)
    assert (found.policies, found.start, found.stop) == (2, 4, 5000)
    if name == "rarely-switch-suplinucb":
        assert found.policy.edition == 1  # it decides as before, and is another batch's policy
        assert (found.policy.sampler.roots == state.policy.sampler.roots).all()  # type: ignore[attr-defined]


def test_due_wants_a_set_for_each_decision() -> None:
    learner, world = sized("oful"), place()
    state, rounds = learner.begin(), world.draw(5, seed=1)
    decisions = state.policy.decide(rounds.contexts, ids=range(5), seed=1)
    raises(ShapeError, "3 context sets were given for 5 decisions", learner.due, state, rounds.contexts[:3], decisions)


def test_exact_ties_of_the_determinant_count_as_grown() -> None:
    """Unit vectors double the determinant to the last bit, or would but for rounding."""
    world = make_world("plain", dim=1, arms=1, noise=NOISE)
    run = simulate(OFUL(dim=1, arms=1, horizon=1100, noise=1.0), world, seed=1)
    assert run.batch_ends[:-1].tolist() == [2**k - 1 for k in range(1, 11)]  # 1 + n doubles
