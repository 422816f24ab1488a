"""Older batches that count less."""

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest

from rareswitch.belief import Posterior
from rareswitch.belief.posterior import expanded, logistic, logistic_posterior
from rareswitch.core import FloatArray, Stats
from rareswitch.decisions import DecisionLog
from rareswitch.learner import Foresight, State, Summary
from rareswitch.learner.foresight import LOGISTIC
from rareswitch.learner.state import faded
from rareswitch.policy import Blend, PosteriorDraws
from reference.loop import rows_for

RNG = np.random.default_rng(4)
X = RNG.standard_normal((3, 200, 4, 2))


def remembered(batches: list[Stats], discount: float) -> Stats:
    return reduce(add, faded(batches, discount))


def batch(count: int) -> Stats:
    x = np.column_stack([RNG.standard_normal((count, 1)), np.ones(count)])
    return Stats.of(x, x[:, 0] + 9.0)


def test_sums_are_weighed_by_age() -> None:
    a, b, c = batch(10), batch(20), batch(40)
    found = remembered([a, b, c], 0.5)
    np.testing.assert_allclose(found.gram, 0.25 * a.gram + 0.5 * b.gram + c.gram)
    np.testing.assert_allclose(found.moment, 0.25 * a.moment + 0.5 * b.moment + c.moment)
    assert found.square_sum == pytest.approx(0.25 * a.square_sum + 0.5 * b.square_sum + c.square_sum)
    assert found.count == 2 + 10 + 40


def test_batches_that_have_faded_are_forgotten() -> None:
    found = remembered([batch(10), batch(20)], 0.01)
    assert found.count == 20
    all_of_them = remembered([batch(10), batch(20)], 1.0)
    assert all_of_them.count == 30


def after(learner: Foresight, thetas: list[list[float]], late: float | None = None, *, clicks: bool = False) -> State:
    """The state after a batch for each θ; rewards of the first may come late, with another value."""
    state, first = learner.begin(), None
    for k, theta in enumerate(thetas):
        made = state.policy.decide(X[k], ids=range(200 * k, 200 * k + 200), seed=1)
        paid = X[k][np.arange(200), made.arms] @ theta + 0.1 * RNG.standard_normal(200)
        if clicks:
            paid = (RNG.random(200) < logistic(paid)).astype(np.float64)
        rows = DecisionLog.of(X[k], made, paid)
        again: list[Summary] = []
        if late is not None and k == len(thetas) - 1 and first is not None:
            corrected = replace(first, rewards=first.rewards * late)
            again = [learner.summarize(state, corrected)]
        first = rows if first is None else first
        state = learner.next(state, learner.summarize(state, rows), late=again, forecast=[300])
    return state


def estimate(state: State) -> Any:
    sampler = state.policy.sampler
    sampler = sampler.main if isinstance(sampler, Blend) else sampler
    assert isinstance(sampler, PosteriorDraws)
    return sampler.draws.mean(axis=0)


def test_a_theta_that_has_changed_is_found_sooner() -> None:
    turned = [[1.0, 0.0], [0.0, 1.0]]
    whole, faded = (
        estimate(after(Foresight(intercept=False, dim=2, discount=discount), turned)) for discount in (1.0, 0.1)
    )
    assert np.abs(faded - [0.0, 1.0]).max() < 0.2 < np.abs(whole - [0.0, 1.0]).max()


def test_clicks_fade_too() -> None:
    """Half of the decisions made twice are these decisions, summed before there was a belief as well as at one."""

    def clicked(theta: list[float], point: FloatArray) -> list[Stats]:
        """Decisions once, and each of them twice and four times."""
        x = RNG.standard_normal((300, 2))
        r = (RNG.random(300) < logistic(x @ theta)).astype(np.float64)
        return [
            replace(Stats.of(y, s), expansion=expanded(y, s, point))
            for n in (1, 2, 4)
            for y, s in [(np.tile(x, (n, 1)), np.tile(r, n))]
        ]

    def believed(batches: list[Stats], discount: float) -> Posterior:
        found = logistic_posterior(faded(batches, discount), intercept=False)
        assert found is not None
        return found

    blind = clicked([1.0, 0.0], np.zeros(2))
    point = believed(blind[:1], 1.0).estimate
    then, now = clicked([0.5, 0.5], point), clicked([0.0, 1.0], point)
    whole, faint = believed([blind[0], then[0], now[0]], 1.0), believed([blind[2], then[1], now[0]], 0.5)
    np.testing.assert_allclose(faint.estimate, whole.estimate, rtol=1e-9)
    np.testing.assert_allclose(faint.precision, whole.precision, rtol=1e-9)
    assert np.abs(believed([blind[2], then[1], now[0]], 1.0).estimate - whole.estimate).max() > 0.05


def test_counts_that_are_rounded_leave_a_rate_below_1() -> None:
    """Of 10 and 89 decisions, all clicks, 2 and 44 are counted by the time that 2.5 and 44.5 clicks are left."""

    def clicked(clicks: int, count: int, point: FloatArray) -> Stats:
        x, r = RNG.standard_normal((count, 2)), (np.arange(count) < clicks).astype(np.float64)
        return replace(Stats.of(x, r), expansion=expanded(x, r, point))

    before = logistic_posterior([clicked(30, 40, np.zeros(2))], intercept=False)
    batches = [clicked(10, 10, np.zeros(2)), clicked(89, 89, np.zeros(2)), clicked(30, 40, before.estimate)]
    found = logistic_posterior(faded(batches, 0.5), intercept=False)
    assert np.isfinite(found.estimate).all()


def test_policies_rest_on_faded_clicks() -> None:
    learner = Foresight(dim=2, discount=0.5, rewards="binary", intercept=False)
    state = after(learner, [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], clicks=True)
    sums = [batch.stats[0] for batch in state.past]
    whole, faint = (logistic_posterior(faded(sums, discount), intercept=False) for discount in (1.0, 0.5))
    assert state.notes[-1]["link"] == "logistic"
    np.testing.assert_allclose(state.rule_state[LOGISTIC], faint.estimate)
    np.testing.assert_allclose(estimate(state), faint.estimate)
    assert np.abs(faint.estimate - [0.0, 1.0]).max() < np.abs(whole.estimate - [0.0, 1.0]).max()


def test_arms_are_not_eliminated_by_what_was() -> None:
    state = after(Foresight(intercept=False, dim=2, discount=0.1), [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert len(state.policy.eliminations) == 1
    assert len(after(Foresight(intercept=False, dim=2), [[1.0, 0.0], [0.0, 1.0]]).policy.eliminations) == 2


def test_late_rewards_of_faded_batches_count() -> None:
    learner = Foresight(intercept=False, dim=2, discount=0.5)
    plain, corrected = (estimate(after(learner, [[1.0, 0.0], [1.0, 0.0]], late=late)) for late in (1.0, 4.0))
    # of 300 decisions' weight a third now says 4: the mean is 2, where it was 1
    assert plain[0] == pytest.approx(1.0, abs=0.15)
    assert corrected[0] == pytest.approx(2.0, abs=0.3)


@pytest.mark.filterwarnings("ignore::rareswitch.errors.LevelWarning")
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("spread", "stays"), [(0.0, True), (0.02, False)])
def test_what_fades_does_not_hide_that_rewards_differ(spread: float, stays: bool, intercept: bool) -> None:
    """Counts that fade are rounded, so that the sums of weights do not say whether rewards are all alike."""
    learner = Foresight(dim=2, discount=0.5, rewards="linear", intercept=intercept)
    state, rng = learner.begin(), np.random.default_rng(1)
    for batch, count in enumerate((33, 101, 189)):
        x, paid = rng.standard_normal((count, 3, 2)), 3.3 + spread * rng.standard_normal(count)
        rows = rows_for(state, x, np.zeros(2), paid, first=1000 * batch)
        state = learner.next(state, learner.summarize(state, rows), forecast=[200, 400])
        assert (state.policy.sampler == learner.begin().policy.sampler) == stays
