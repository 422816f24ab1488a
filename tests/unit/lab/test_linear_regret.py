"""Regret against the best linear policy in hindsight: the part that nobody can learn is not counted."""

import numpy as np
import pytest

from rareswitch import collaborate
from rareswitch.core import FloatArray, uniforms
from rareswitch.errors import InputError
from rareswitch.lab import simulate
from rareswitch.lab.simulate import unlearnable_regret
from rareswitch.lab.worlds import Rounds
from rareswitch.learner import OFUL, Foresight, LinUCB, StaleThompsonSampling
from reference.refusals import raises


class Crossed:
    """Two arms e_1 and e_2, and a third that is sometimes missing; which of the first two is better, nobody can tell.

    The first pays 1 in three rounds of four and otherwise 0, the second the other way round, the third 2 where it is.
    """

    dim, arms = 3, 3

    def __init__(self, linear: object = (1.0, 0.0, 2.0)) -> None:
        self.linear = linear

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        u = uniforms(seed, "crossed", first, count, 2)
        good, there = u[:, 0] < 0.75, u[:, 1] < 0.5
        means = np.stack([good, ~good, np.full(count, 2.0)], axis=1).astype(float)
        available = np.stack([np.ones(count), np.ones(count), there], axis=1).astype(bool)
        return Rounds(contexts=np.repeat(np.eye(3)[None], count, axis=0), means=means, available=available)

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return means

    def best_linear(self) -> object:
        return self.linear


@pytest.mark.parametrize("seed", [0, 1])
def test_what_the_best_linear_policy_loses_is_what_nobody_can_learn(seed: int) -> None:
    rounds = Crossed().draw(4000, seed=seed)
    lost = int(
        (~rounds.available[:, 2] & (rounds.means[:, 1] == 1.0)).sum()
    )  # where the first arm is played and pays 0
    assert 0 < lost == unlearnable_regret(Crossed(), 4000, seed=seed)
    # a policy that prefers the second loses the other rounds, and one that shuns the third loses more
    worse = unlearnable_regret(Crossed((0.0, 1.0, 2.0)), 4000, seed=seed)
    assert worse == int((~rounds.available[:, 2] & (rounds.means[:, 0] == 1.0)).sum())
    assert unlearnable_regret(Crossed((1.0, 0.0, 0.5)), 4000, seed=seed) > worse


@pytest.mark.parametrize("learner", [LinUCB, OFUL, StaleThompsonSampling])
def test_runs_know_both_regrets(learner: type[LinUCB]) -> None:
    run = simulate(learner(dim=3, arms=3, horizon=600), Crossed(), seed=2)
    lost = unlearnable_regret(Crossed(), 600, seed=2)
    assert lost > 0.0
    assert run.linear_regret == pytest.approx(run.regret - lost, abs=1e-9)
    assert run.summary()["linear_regret"] == run.linear_regret


def test_agents_that_share_a_run_know_both_regrets() -> None:
    learner = Foresight(dim=3, horizon=600, policies=4)
    alone = collaborate(learner, Crossed(), agents=1, seed=2).run
    assert alone.linear_regret < alone.regret
    assert collaborate(learner, Crossed(), agents=5, seed=2).run.linear_regret == alone.linear_regret


@pytest.mark.parametrize("linear", [(1.0, 2.0), ((1.0, 2.0, 3.0),), (1.0, np.nan, 0.0)])
def test_a_policy_that_is_none_is_refused(linear: object) -> None:
    raises(InputError, "the best linear policy of Crossed", unlearnable_regret, Crossed(linear), 10, seed=0)
