from typing import Any

import numpy as np
import pytest

from rareswitch.errors import InputError
from rareswitch.lab.rivals import cheapest_allocation
from reference.refusals import raises


def cost(plays: Any, gaps: Any) -> float:
    others = np.isfinite(plays)
    return float(plays[others] @ gaps[others])


def worst(actions: Any, gaps: Any, plays: Any) -> float:
    """The largest 2·xᵀH⁻¹x/gap² of the worse actions, with the best one played ten billion times."""
    often = np.minimum(plays, 1e10)
    forms = np.einsum("kd,dk->k", actions, np.linalg.solve((actions.T * often) @ actions, actions.T))
    return float((2.0 * forms[gaps > 0.0] / gaps[gaps > 0.0] ** 2).max())


def test_plain_arms_are_played_two_over_the_squared_gap() -> None:
    gaps = np.array([0.3, 0.0, 0.05, 1.0])
    plays = cheapest_allocation(np.eye(4), gaps, tol=1e-3)
    assert np.isinf(plays[1])
    least = 2.0 / gaps[gaps > 0.0] ** 2
    assert (plays[gaps > 0.0] >= least * (1 - 1e-9)).all()
    assert cost(plays, gaps) <= 1.005 * float(least @ gaps[gaps > 0.0])


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_where_the_worst_action_teaches_most_it_is_played(dim: int) -> None:
    """Along each axis 0.16·h⁻¹ ≤ 0.2²/2 must hold: h = 8, at a cost of 1 a unit by the axis and 0.2/0.16 by its mix."""
    axes = np.eye(dim)
    actions = np.concatenate([axes, 0.8 * axes[0] + 0.4 * axes[1:]])
    gaps = 1.0 - actions[:, 0]
    plays = cheapest_allocation(actions, gaps, tol=0.01)
    assert 8.0 * (dim - 1) * (1 - 1e-9) <= cost(plays, gaps) <= 8.0 * (dim - 1) * 1.01


@pytest.mark.parametrize("seed", range(5))
def test_random_actions_keep_the_bounds_at_no_more_than_the_least_cost(seed: int) -> None:
    """A second solver, slow and general, finds nothing cheaper than 3 %."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((6, 3))
    means = actions @ rng.standard_normal(3)
    gaps = means.max() - means
    plays = cheapest_allocation(actions, gaps)
    assert worst(actions, gaps, plays) <= 1.0 + 1e-6
    others = gaps > 0.0
    start = cost(plays, gaps)

    def of(logarithms: Any) -> float:
        """The cost of plays exp(logarithms) after they are raised until all bounds are kept."""
        trial = np.full(len(gaps), 1e10)
        trial[others] = np.exp(logarithms)
        scale = worst(actions, gaps, trial)
        return float(np.log(scale * cost(np.where(others, trial, np.inf), gaps) / start))

    other = minimize(of, np.log(plays[others] + 1e-3), method="Nelder-Mead", options={"maxiter": 3000})
    assert other.fun >= np.log(0.97)


def test_actions_along_the_best_one_and_single_ones_need_no_plays() -> None:
    assert cheapest_allocation([[1.0, 0.0], [0.5, 0.0]], [0.0, 0.5]).tolist() == [np.inf, 0.0]
    assert cheapest_allocation([[0.0, 2.0]], [0.0]).tolist() == [np.inf]


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    actions, gaps = rng.standard_normal((9, 4)), np.append(0.0, rng.uniform(0.1, 1.0, 8))
    np.testing.assert_allclose(
        cheapest_allocation(7.0 * actions, gaps)[1:], cheapest_allocation(actions, gaps)[1:], rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize(
    ("actions", "gaps", "words"),
    [
        (np.eye(2), [0.0, 0.0], "gaps must be 0 for exactly one action"),
        (np.eye(2), [0.1, 0.2], "gaps must be 0 for exactly one action"),
        (np.eye(2), [0.0, -0.2], "gaps must be 0 for exactly one action"),
        (np.eye(2), [0.0], "gaps"),
        (np.ones(2), [0.0], r"actions must be \(arms, dim\)"),
        (np.empty((0, 2)), [], r"actions must be \(arms, dim\)"),
        (np.eye(2) * np.nan, [0.0, 1.0], "actions"),
    ],
)
def test_what_is_no_set_of_actions_with_one_best_is_refused(actions: Any, gaps: Any, words: str) -> None:
    raises(InputError, words, cheapest_allocation, actions, gaps)
