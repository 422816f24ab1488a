"""What a policy costs: by a belief, against a loop over sets and arms, and at most."""

import math

import numpy as np
import pytest

from rareswitch.belief import Posterior
from rareswitch.belief.posterior import Link
from rareswitch.core import ContextSets
from rareswitch.learner.foresight import believed_cost, certified_cost
from rareswitch.policy import Elimination, Policy, PosteriorDraws

RNG = np.random.default_rng(8)
CONTEXTS, ALIVE = RNG.standard_normal((40, 5, 3)), np.arange(5) < RNG.integers(1, 6, size=(40, 1))
POINT, PRECISION = RNG.standard_normal(4), np.diag([5.0, 3.0, 2.0, 4.0]) + 0.5


@pytest.mark.parametrize("clicks", [False, True])
def test_what_is_believed_of_each_arm_is_weighed_by_its_propensity(clicks: bool) -> None:
    link = Link(point=POINT, precision=PRECISION) if clicks else None
    belief = Posterior(estimate=POINT[:3], precision=PRECISION[:3, :3], noise=1.0, ridge=1.0, link=link)
    policy = Policy(dim=3, sampler=PosteriorDraws(draws=RNG.standard_normal((16, 3))))
    sets = ContextSets(CONTEXTS, ALIVE)
    lost = 0.0
    for x, available, chances in zip(CONTEXTS, ALIVE, policy.probabilities(sets), strict=True):
        values = [float(arm @ POINT[:3]) for arm in x[available]]
        if clicks:
            values = [1.0 / (1.0 + math.exp(-value - POINT[3])) for value in values]
        lost += (
            sum(chance * (max(values) - value) for chance, value in zip(chances[available], values, strict=True)) / 40
        )
    assert believed_cost(policy, sets, belief) == pytest.approx(lost, rel=1e-12)
    assert lost > 0.0
    best = Policy(dim=3, sampler=PosteriorDraws(draws=POINT[None, :3]))
    assert believed_cost(best, sets, belief) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("later", "cost"), [(1.3, 0.1), (1.5, None)])
def test_intervals_that_contradict_each_other_certify_nothing(later: float, cost: float | None) -> None:
    """One arm that is worth 1 ± 0.2 by one update, and by the next 1.3 ± 0.2 or 1.5 ± 0.2."""
    found = tuple(Elimination.of(np.array([value]), np.eye(1), 0.2) for value in (1.0, later))
    policy = Policy(dim=1, sampler=PosteriorDraws(draws=np.ones((1, 1))), eliminations=found)
    measured = certified_cost(policy, ContextSets.from_ragged([np.ones((1, 1))]))
    assert measured == (None if cost is None else pytest.approx(cost))  # 1.1 to 1.2, or nothing
