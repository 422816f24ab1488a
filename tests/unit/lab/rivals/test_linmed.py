import math
from typing import Any

import numpy as np
import pytest

from rareswitch.design import GOptimal, g_optimal
from rareswitch.errors import ParameterError
from rareswitch.lab.distributions import Gaussian
from rareswitch.lab.rivals import EmpiricalDivergence, LinMEDGrid
from rareswitch.lab.worlds import make_world
from rareswitch.learner import make_learner
from reference.loop import after
from reference.refusals import raises

DIM, ARMS, NOISE = 3, 8, 0.5


def slow(x: Any, gram: Any, moment: Any, greedy: float, delta: float) -> Any:
    """The probabilities of one set as Algorithm 1 of the paper has them, with λ = σ²/S², S = 1, written out."""
    ridge = NOISE**2
    precision = gram + ridge * np.eye(DIM)
    estimate = np.linalg.solve(precision, moment)
    logarithm = np.log(np.linalg.det(precision) / ridge**DIM) + 2 * math.log(1 / delta)
    beta = (NOISE * math.sqrt(logarithm) + math.sqrt(ridge)) ** 2
    best = int((x @ estimate).argmax())
    agreement = np.ones(len(x))
    for a in range(len(x)):
        if a != best:
            between = x[best] - x[a]
            agreement[a] = math.exp(
                -((between @ estimate) ** 2) / (beta * between @ np.linalg.solve(precision, between))
            )
    # any design within the factor of 2 will do; this is the one of arms that can be played at all
    design = g_optimal(np.sqrt(agreement)[:, None] * x, agreement >= 1e-9, tol=1.0).weights
    weights = (1 - greedy) / 2 * design + (1 - greedy) / 2 / len(x) + greedy * (np.arange(len(x)) == best)
    return weights * agreement / (weights * agreement).sum()


@pytest.mark.parametrize("greedy", [0.5, 0.9, 0.99])
def test_propensities_are_those_of_the_paper(greedy: float) -> None:
    world = make_world("gaussian", dim=DIM, arms=ARMS, noise=NOISE)
    learner = LinMEDGrid(dim=DIM, arms=ARMS, horizon=2000, noise=NOISE, policies=4, greedy=greedy)
    for policies in (1, 2, 3):
        state = after(learner, world, policies)
        (total,) = state.sums
        sets = Gaussian(dim=DIM, arms=ARMS).draw(20, seed=4).contexts
        found = state.policy.probabilities(sets)
        expected = [slow(x, total.gram, total.moment, greedy, 0.01) for x in sets]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-14)


def test_arms_that_tie_share_the_weight_of_the_best() -> None:
    sampler = EmpiricalDivergence(estimate=np.array([1.0, 0.0]), root=0.1 * np.eye(2), greedy=0.8)
    found = sampler.probabilities([[0.5, 0.5], [0.5, -0.5], [-0.5, 0.0]])
    assert found[0] == pytest.approx(found[1])
    assert found[2] < 1e-12
    assert sampler.probabilities([[0.3, 0.1]]).tolist() == [1.0]


def test_without_any_doubt_the_best_looking_arm_is_played() -> None:
    certain = EmpiricalDivergence(estimate=np.array([1.0]), root=np.zeros((1, 1)), greedy=0.5)
    assert certain.probabilities([[0.5], [0.4]]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"greedy": 1.5}, "greedy"), ({"greedy": math.nan}, "greedy"), ({"g_optimal": 0.1}, "must be of type GOptimal")],
)
def test_bad_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    for name in ("linmed", "linmed-grid"):
        raises(ParameterError, words, make_learner, name, dim=2, arms=2, horizon=100, **settings)


def test_samplers_refuse_what_is_no_design_or_share() -> None:
    told: dict[str, Any] = {"estimate": np.ones(2), "root": np.eye(2)}
    raises(ParameterError, "design must be of type GOptimal", EmpiricalDivergence, **told, greedy=0.5, design=0.1)
    raises(ParameterError, "greedy", EmpiricalDivergence, **told, greedy=-0.1, design=GOptimal())
