"""The SupLin family against the printed algorithms, decision by decision."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.core import FloatArray, context_sets
from rareswitch.errors import ParameterError, UnsuitableError
from rareswitch.lab.reproduction.references.switching import (
    SlowSteps,
    WorldTable,
    algorithm_6,
    ridge_intervals,
    sup_linear,
    truncated_intervals,
)
from rareswitch.lab.rivals import SupLinRel
from rareswitch.lab.worlds import make_world
from rareswitch.learner import RarelySwitchSupLinUCB, SupLinUCB
from rareswitch.learner.rule import LayerModels
from rareswitch.policy import Elimination, Layered, Policy
from reference.loop import rows_of
from reference.refusals import raises
from reference.watch import NOISE, PLACES, Watched, place, sized, watched

HORIZON = 1000


def compare(found: Watched, expected: SlowSteps, horizon: int = HORIZON) -> None:
    assert found.arms == expected.arms
    assert found.switches == [t for t in expected.switches if t < horizon]


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("growth", [1.5, 2.0, 16.0])
def test_rarely_switch_is_algorithm_6(where: str, growth: float) -> None:
    world = place(where)
    found = watched(sized(RarelySwitchSupLinUCB, world, growth=growth, confidence=0.8), world, 3)
    compare(found, algorithm_6(WorldTable.of(world, HORIZON, 3), growth=growth, first=lambda _: 0.8, multiplier=0.8))
    assert all(stats.count > 10 for stats in found.state.sums)  # each layer has had its say


@pytest.mark.parametrize("mode", ["paper", "tight"])
def test_rarely_switch_has_the_widths_of_its_mode(mode: Any) -> None:
    world = place("gaussian")
    d, k, horizon = 4, 6, HORIZON
    if mode == "paper":
        first: Callable[[FloatArray], float] = lambda _: 2 * math.sqrt(d * math.log(2 * horizon / 0.1))  # noqa: E731
        multiplier = 10 * math.sqrt(math.log(2 * d * k * horizon / 0.1))
    else:

        def first(precision: FloatArray) -> float:
            return NOISE * math.sqrt(2 * math.log(2 / 0.1) + np.linalg.slogdet(precision)[1]) + 1.0

        # κ_0 = 2 layers judge an arm, with probability δ/2 of failing, and each is frozen so many times at most
        frozen = 1 + math.floor(d * math.log2(1 + horizon / d))
        over_arms = math.sqrt(2 * math.log(2 * k * horizon * 2 / 0.05))
        over_net = min(
            math.sqrt(2 * (math.log(2 * 2 * frozen / 0.05) + d * math.log(1 + 2 / e))) / (1 - e)
            for e in np.arange(0.05, 0.96, 0.05)
        )
        multiplier = NOISE * min(over_arms, over_net) + 1.0
        assert over_arms < over_net
        many: Any = RarelySwitchSupLinUCB(dim=d, arms=10**6, horizon=horizon, noise=NOISE, delta=0.1)
        assert many.parts.rule.level.multiplier == pytest.approx(NOISE * over_net + 1.0)
    compare(
        watched(sized(RarelySwitchSupLinUCB, world, confidence=mode, delta=0.1), world, 1),
        algorithm_6(WorldTable.of(world, horizon, 1), growth=2.0, first=first, multiplier=multiplier),
    )


@pytest.mark.parametrize("where", PLACES)
def test_suplinucb_steps_as_printed(where: str) -> None:
    world = place(where)
    found = watched(sized(SupLinUCB, world, confidence=0.25, ridge=0.7), world, 2)
    expected = sup_linear(WorldTable.of(world, HORIZON, 2), ridge_intervals(0.7, 0.25))
    assert found.arms == expected.arms
    assert found.run.policies == 1 + sum(t < HORIZON for t in expected.switches)
    assert sum(stats.count > 0 for stats in found.state.sums) >= 3


@pytest.mark.parametrize("where", ["gaussian", "varying"])
def test_suplinrel_steps_as_printed(where: str) -> None:
    world = place(where)
    found = watched(sized(SupLinRel, world, 400, confidence=0.2, norm=0.3), world, 2)
    compare(found, sup_linear(WorldTable.of(world, 400, 2), truncated_intervals(0.2, 0.3)), 400)
    assert sum(stats.count > 0 for stats in found.state.sums) >= 2


@pytest.mark.parametrize("dim", [2, 3, 5])
@pytest.mark.parametrize("growth", [2.0, 4.0, 16.0])
def test_switches_stay_below_the_explicit_bound(dim: int, growth: float) -> None:
    horizon, arms = 10_000, 2 * dim
    for where in ("gaussian", "plain", "starving"):
        world = make_world(where, dim=dim, arms=dim if where == "plain" else arms, noise=NOISE, horizon=horizon)
        learner = sized(RarelySwitchSupLinUCB, world, horizon, growth=growth, confidence=0.2)
        kappa = math.ceil(math.log2(world.dim))
        bound = (kappa + 1) * (1 + world.dim * math.log(1 + horizon / world.dim, growth))
        assert learner.switch_bound <= bound + 1e-6
        assert simulate(learner, world, seed=1).policies <= learner.switch_bound


def test_a_learner_without_widths_learns_all_the_same() -> None:
    found = watched(sized(RarelySwitchSupLinUCB, place("gaussian"), confidence=0.0), place("gaussian"), 1)
    assert found.state.sums[-1].count > 0
    assert found.run.policies > 10


def test_the_published_constants_of_the_suplin_family() -> None:
    sizes: dict[str, Any] = {"dim": 3, "arms": 5, "horizon": 1000, "delta": 0.1}
    tests = 2 * 5 * 1000 / 0.1
    assert SupLinUCB(**sizes, confidence="paper").intervals().multiplier == pytest.approx(
        1 + math.sqrt(0.5 * math.log(tests))
    )
    assert SupLinRel(**sizes, confidence="paper").intervals().multiplier == pytest.approx(math.sqrt(math.log(tests)))
    assert SupLinRel(**sizes, noise=0.3).intervals().multiplier == pytest.approx(
        0.3 * math.sqrt(2 * math.log(tests * 7))
    )
    raises(ParameterError, "suplinrel truncates in place of a ridge", SupLinRel, **sizes, ridge=1.0)
    assert SupLinRel(**sizes, norm=1.0) != SupLinRel(**sizes, norm=2.0)


def test_layers_must_fit_together() -> None:
    with pytest.raises(ValueError, match="estimates must be"):
        Layered(estimates=np.zeros((2, 3)), roots=np.zeros((2, 3, 3)), thresholds=np.ones(1))
    with pytest.raises(ValueError, match="roots must be lower triangular"):
        Layered(estimates=np.zeros((1, 3)), roots=np.ones((1, 3, 3)), thresholds=np.ones(1))


@pytest.mark.parametrize("kind", [SupLinUCB, RarelySwitchSupLinUCB])
def test_layers_need_the_arms_that_were_offered(kind: Any) -> None:
    """Of every decision: which layer it teaches hangs on the arms that it did not choose."""
    world = place("varying")
    learner = sized(kind, world)
    state = learner.begin()
    rows = rows_of(state, world, 1, count=10)
    assert sum(stats.count for stats in learner.summarize(state, rows).stats) == 10
    raises(UnsuitableError, "each row must have its context set", learner.summarize, state, rows.without_offers())


def test_layers_are_taught_by_the_arms_that_survive() -> None:
    """The second arm is eliminated; with it, the first layer would be unsure and learn."""
    sampler = Layered(
        estimates=np.zeros((2, 2)),
        roots=np.array([np.diag([0.1, 2.0]), np.diag([0.1, 0.1])]),
        thresholds=np.array([0.5, 0.05]),
    )
    verdict = Elimination(estimate=np.array([1.0, -1.0]), root=0.1 * np.eye(2))
    policy, sets = Policy(dim=2, sampler=sampler, eliminations=(verdict,)), context_sets(np.eye(2)[None])
    assert sampler.layers(sets).tolist() == [0]
    assert LayerModels(dim=2, layers=2).taught(policy, sets).tolist() == [1]
