import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rareswitch.core import ContextSets, normals
from rareswitch.errors import BatchError, ParameterError
from rareswitch.lab.rivals import RHO
from rareswitch.lab.rivals.rho import ResidualHorizon, Stakes, ascend
from rareswitch.lab.worlds import make_world
from rareswitch.policy import PosteriorDraws
from reference.loop import after, rows_of
from reference.refusals import raises

COUNT, ARMS, DIM = 30, 4, 3


def problem(*, learned: float = 50.0, now: float = 50.0, later: float = 500.0, dead: bool = False) -> ResidualHorizon:
    x = normals(1, "sets", 0, COUNT, ARMS * DIM).reshape(COUNT, ARMS, DIM)
    available = np.ones((COUNT, ARMS), dtype=np.bool_)
    available[::3, 1] = not dead
    estimate = np.array([0.2, 0.0, -0.1])
    parameters = np.concatenate([estimate[None], estimate + normals(2, "draws", 0, 9, DIM)])
    return ResidualHorizon.of(
        ContextSets(x, available),
        parameters,
        estimate=estimate,
        precision=np.diag([3.0, 2.0, 1.0]),
        noise=0.7,
        shocks=normals(3, "shocks", 0, COUNT, ARMS * 16).reshape(COUNT, ARMS, 16),
        stakes=Stakes(learned=learned, now=now, later=later),
    )


def slow_value(found: ResidualHorizon, weights: Any) -> float:
    """The formula of the class, a set and an arm at a time."""
    stakes, precision = found.stakes, found.precision
    information = np.zeros((DIM, DIM))
    now = later = 0.0
    for s in range(COUNT):
        for m, arm in enumerate(found.chosen[s]):
            x = found.contexts[s, arm]
            information += stakes.learned * weights[m] * np.outer(x, x) / COUNT
            now += weights[m] * found.means[s, arm] / COUNT
    c = found.noise**2 * (np.linalg.inv(precision) - np.linalg.inv(precision + information))
    for s in range(COUNT):
        there = np.flatnonzero(np.isfinite(found.means[s]))
        for j in range(found.shocks.shape[2]):
            reach = [
                found.means[s, k] + found.shocks[s, k, j] * math.sqrt(found.centred[s, k] @ c @ found.centred[s, k])
                for k in there
            ]
            later += max(reach) / COUNT / found.shocks.shape[2]
    return stakes.now * now + stakes.later * later


@pytest.mark.parametrize("dead", [False, True])
def test_the_value_is_the_formula(dead: bool) -> None:
    found = problem(dead=dead)
    weights = np.arange(1.0, 11.0) / 55.0
    assert found.value(weights)[0] == pytest.approx(slow_value(found, weights), rel=1e-9)


@pytest.mark.parametrize("dead", [False, True])
def test_the_gradient_is_the_slope_of_the_value(dead: bool) -> None:
    found = problem(dead=dead)
    weights, step = np.arange(1.0, 11.0) / 55.0, 1e-6
    slopes = [
        (found.value(weights + step * unit)[0] - found.value(weights - step * unit)[0]) / (2 * step)
        for unit in np.eye(10)
    ]
    np.testing.assert_allclose(found.value(weights)[1], slopes, rtol=1e-4, atol=1e-3)


def test_what_teaches_nothing_for_later_is_played_greedily() -> None:
    found = problem(later=0.0)
    weights = ascend(found)
    greedy, _ = found.value(np.eye(10)[0])
    assert found.value(weights)[0] == pytest.approx(greedy, rel=1e-2)


def test_the_more_is_at_stake_later_the_less_is_paid_now() -> None:
    """And the ascent ends above equal weights and above greedy play."""
    paid = []
    for later in (10.0, 100.0, 5000.0):
        found = problem(learned=5.0, now=5.0, later=later)
        weights = ascend(found)
        value, gradient = found.value(weights)
        assert weights.sum() == pytest.approx(1.0)
        assert value > max(found.value(np.full(10, 0.1))[0], found.value(np.eye(10)[0])[0] - 1e-2 * abs(value))
        # nothing that is left to gain by moving weight is worth more than a thousandth
        assert float(gradient.max() - weights @ gradient) <= 1e-3 * abs(value) + 0.05
        paid.append(float(weights @ found.means[np.arange(COUNT)[:, None], found.chosen].mean(axis=0)))
    assert paid[0] > paid[1] > paid[2]


def test_the_last_batch_is_greedy_unless_a_weight_looks_past_it() -> None:
    world = make_world("gaussian", dim=4, arms=5)
    told: dict[str, Any] = {"dim": 4, "arms": 5, "noise": 0.5, "grid": [20, 40, 60]}
    for weight, one in ((None, True), (1.0, True), (0.1, False)):
        sampler = after(RHO(horizon=60, weight=weight, **told), world, 2).policy.sampler
        assert isinstance(sampler, PosteriorDraws)
        assert (len(sampler.draws) == 1) == one


def test_it_needs_a_sample_of_sets() -> None:
    learner = RHO(dim=4, arms=5, horizon=600, noise=0.5)
    state = learner.begin()
    rows = rows_of(state, make_world("gaussian", dim=4, arms=5), 1)
    summary = learner.summarize(state, rows)
    with pytest.raises(BatchError, match="rho plans with a sample of the context sets"):
        learner.next(state, replace(summary, sample=None))


def test_bad_weights_are_refused() -> None:
    for wrong in (-0.1, 1.1, math.nan, "much"):
        raises(ParameterError, "weight must be", RHO, dim=2, arms=2, horizon=100, weight=wrong)
