"""Policies that earned more are gone back to where learning has made things worse."""

import numpy as np
import pytest

from rareswitch import simulate
from rareswitch.design import GOptimal
from rareswitch.env import ClassificationWorld
from rareswitch.learner import Foresight
from rareswitch.learner.fallback import Earned, half_and_half
from rareswitch.policy import Blend, Policy, PosteriorDraws
from rareswitch.stats import Stats


def drawn(*draws: float) -> PosteriorDraws:
    return PosteriorDraws(draws=np.array(draws)[:, None])


def test_what_a_batch_earned() -> None:
    policy = Policy(dim=1, sampler=Blend(main=drawn(1.0, 2.0), explorer=GOptimal(), share=0.1))
    found = Earned.of(policy, Stats.of([[1.0]] * 4, [1.0, 0.0, 1.0, 1.0]))
    assert found is not None
    assert (found.mean, found.error) == pytest.approx((0.75, np.sqrt(0.75 * 0.25 / 4)))
    assert found.draws.ravel().tolist() == [1.0, 2.0]
    again = Earned.kept(found.to_keep)
    assert again is not None
    assert (again.mean, again.error) == (found.mean, found.error)
    assert Earned.kept({}) is None


def test_shifts_of_rewards_do_not_matter() -> None:
    policy, x, r = Policy(dim=2, sampler=PosteriorDraws(draws=np.ones((1, 2)))), [[1.0, 1.0], [2.0, 1.0]], [9.0, 10.0]
    plain, shifted = (Earned.of(policy, Stats.of(x, r, shift=shift)) for shift in (0.0, 9.0))
    assert plain is not None
    assert shifted is not None
    assert (plain.mean, plain.error) == pytest.approx((shifted.mean, shifted.error))


def test_halves_are_spread_over_both() -> None:
    found = half_and_half(np.arange(8.0)[:, None], np.array([[9.0]]), 8)
    assert found.ravel().tolist() == [0.0, 2.0, 4.0, 6.0, 9.0, 9.0, 9.0, 9.0]


def masked() -> ClassificationWorld:
    """Three classes along a line: one against the rest, the middle one cannot be told by a line."""
    rng = np.random.default_rng(5)
    labels = np.repeat(np.arange(3), 400)
    x = np.column_stack([1.5 * (labels - 1) + 0.35 * rng.standard_normal(1200), rng.standard_normal((1200, 2))])
    features = np.column_stack([np.ones(1200), x / np.linalg.norm(x, axis=1).max()])
    return ClassificationWorld(name="masked", features=features, labels=labels)


def test_learning_that_made_things_worse_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same run with and without: on this seed the last policy would cost thousands of decisions."""
    world, learner = masked(), Foresight(dim=12, horizon=30_000, seed=1001)
    with_it = simulate(learner, world, seed=1001).regret
    monkeypatch.setattr(Earned, "beats", lambda *_: False)
    assert with_it < 0.6 * simulate(learner, world, seed=1001).regret
