"""Learners by name, told how many policies they may deploy."""

import math

import pytest

from rareswitch import simulate
from rareswitch.errors import InputError, ParameterError
from rareswitch.lab import budgeted
from rareswitch.lab.worlds import make_world
from rareswitch.learner import LEARNERS, find_learner, make_learner, takes
from reference.refusals import raises


def test_unknown_learners_are_named() -> None:
    for ask in (find_learner, takes, make_learner):
        raises(InputError, "there is no learner 'lin-ucb'; the learners are foresight, batch-linucb", ask, "lin-ucb")


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("cap", [2, 5, 30])
def test_budgets_are_spread_over_the_run(name: str, cap: int) -> None:
    """A learner that plans for a cap switches at least once under it, and never uses up a small one early on."""
    place = {"base": "plain", "fixed-set-elimination": "fixed", "e4": "fixed"}.get(name, "gaussian")
    world = make_world(place, dim=3, arms=3, noise=0.3)
    found, plan = budgeted(name, policies=cap, dim=3, horizon=3000)
    assert found == {"linucb": "linucb-grid", "thompson": "thompson-grid", "linmed": "linmed-grid"}.get(name, name)
    assert bool(plan) == (name not in ("suplinucb", "suplinrel", "e4"))
    if plan:
        plan |= {"noise": 1.0} if "noise" in takes(found) else {}
        run = simulate(make_learner(found, dim=3, arms=3, horizon=3000, **plan), world, seed=1, cap=cap)
        assert 2 <= run.policies <= cap
        assert len(run.batch_ends) == run.policies
        assert run.batch_ends[run.policies - 2] >= 5 * cap


def test_large_budgets_are_no_budgets() -> None:
    assert budgeted("oful", policies=1000, dim=3, horizon=3000) == ("oful", {"growth": 2.0})
    assert math.isfinite(budgeted("oful", policies=1, dim=1000, horizon=10**6)[1]["growth"])
    assert budgeted("foresight", policies=100, dim=3, horizon=50) == ("foresight", {"policies": 50})
    raises(ParameterError, "policies must be at least 1", budgeted, "oful", policies=0, dim=3, horizon=3000)
