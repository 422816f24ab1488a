"""Clicks: a logistic belief of sums that add up, in the state, in files and in the plan."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from rareswitch.belief import Posterior, posterior
from rareswitch.belief.planning import prospects
from rareswitch.belief.posterior import (
    LEVEL_SPREAD,
    PASSES,
    Link,
    Search,
    expanded,
    logistic,
    logistic_belief,
    logistic_posterior,
    next_point,
)
from rareswitch.core import ContextSets, FloatArray, Stats, normals, uniforms
from rareswitch.core.codec import pack, unpack
from rareswitch.errors import BatchError, FileFormatError, LevelWarning, ParameterError, ShapeError, UnsuitableError
from rareswitch.lab.worlds import Rounds
from rareswitch.learner import (
    Foresight,
    State,
    Summary,
    state_from_bytes,
    state_to_bytes,
    summaries_from_bytes,
    summaries_to_bytes,
)
from rareswitch.learner.foresight import HELD_OUT, LINEAR, LOGISTIC
from rareswitch.learner.state import centred
from reference.loop import after, rows_of, step
from reference.refusals import raises

THETA = np.array([3.0, -2.0, 1.0])


class Logits:
    """Clicks with the logit level + xᵀθ, x normal."""

    dim, arms = 3, 5

    def __init__(self, level: float = 0.0, length: float = 1.0) -> None:
        self.level, self.length = level, length

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        x = normals(seed, "items", first, count, self.arms * self.dim).reshape(count, self.arms, self.dim) / 2.0
        return Rounds(contexts=x, means=logistic(self.level + self.length * (x @ THETA)))

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return (uniforms(seed, "noise", first, len(means))[:, 0] < means).astype(np.float64)


def clicks(x: FloatArray, level: float = 0.0) -> FloatArray:
    return (np.random.default_rng(3).random(len(x)) < logistic(x @ THETA[: x.shape[1]] + level)).astype(np.float64)


def fitted(x: FloatArray, r: FloatArray, earlier: list[Stats], point: FloatArray, *, intercept: bool) -> Stats:
    """The sums of a batch after all passes over its rows, the first one at a point."""
    search = Search()
    while True:
        batch = replace(Stats.of(x, r), expansion=expanded(x, r, point))
        step = next_point(earlier, batch, search, intercept=intercept)
        if step is None:
            return batch
        point, search = step


def in_batches(x: FloatArray, r: FloatArray, ends: list[int], *, intercept: bool = False) -> Iterator[Posterior]:
    """The belief after each batch, whose first pass is at the belief before it."""
    batches: list[Stats] = []
    point = np.zeros(x.shape[1])
    for first, stop in pairwise([0, *ends]):
        batches.append(fitted(x[first:stop], r[first:stop], batches, point, intercept=intercept))
        belief = logistic_posterior(batches, intercept=intercept)
        assert belief is not None
        assert belief.link is not None
        point = belief.link.point
        yield belief


def likeliest(x: FloatArray, r: FloatArray, ridge: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mode of the logistic posterior, and its precision, of all rows at once."""
    theta = np.zeros(x.shape[1])
    for _ in range(100):
        rates = logistic(x @ theta)
        precision = (x * (rates * (1.0 - rates))[:, None]).T @ x + np.diag(ridge)
        theta = theta + 0.5 * np.linalg.solve(precision, x.T @ (r - rates) - ridge * theta)
    return theta, precision


@pytest.mark.parametrize("level", [0.0, -3.0])
def test_the_belief_of_sums_is_near_the_posterior_of_all_rows(level: float) -> None:
    """Off by a fraction of its own spread, where the first batch alone, or the linear estimate, is off by many."""
    x = np.column_stack([np.random.default_rng(1).standard_normal((9000, 3)) / 2.0, np.ones(9000)])
    r = clicks(x[:, :3], level)
    *_, found = in_batches(x, r, [100, 400, 1600, 9000], intercept=True)
    assert found.noise == 1.0
    mode, precision = likeliest(x, r, np.append(np.full(3, found.ridge), 1.0 / LEVEL_SPREAD**2))
    off = found.link.point - mode
    assert off @ precision @ off / 4.0 < 0.1  # its mean over the posterior is 1
    np.testing.assert_allclose(found.link.precision, precision, atol=0.15 * np.abs(precision).max())
    np.testing.assert_allclose(found.estimate, found.link.point[:3])
    spread = np.linalg.inv(found.link.precision)[:3, :3]
    np.testing.assert_allclose(np.linalg.inv(found.precision), spread, atol=1e-9)


@pytest.mark.parametrize("count", [60, 3000])
@pytest.mark.parametrize("level", [0.0, -4.0, 4.0])
def test_passes_over_a_batch_find_the_mode_of_its_posterior(level: float, count: int) -> None:
    x = np.column_stack([np.random.default_rng(1).standard_normal((count, 3)), np.ones(count)])
    r = clicks(x[:, :3], level)
    (batch,) = [fitted(x, r, [], np.zeros(4), intercept=True)]
    belief = logistic_belief([batch], intercept=True)
    mode, precision = likeliest(x, r, np.append(np.full(3, belief.ridge), 1.0 / LEVEL_SPREAD**2))
    assert (belief.mode - mode) @ precision @ (belief.mode - mode) < 0.01


def test_a_belief_that_is_sure_and_wrong_does_not_run_away() -> None:
    """A single Newton step from 12 logits away, where weights are e^-12, ends thousands of logits beyond."""
    x = np.column_stack([np.random.default_rng(1).standard_normal((500, 1)), np.ones(500)])
    r = clicks(np.column_stack([x[:, :1], np.zeros((500, 2))]))
    wrong = np.array([-12.0, 0.0])
    belief = logistic_belief([replace(Stats.of(x, r), expansion=expanded(x, r, wrong))], intercept=True)
    assert np.abs(belief.mode - wrong).max() > 100.0
    batch = fitted(x, r, [], wrong, intercept=True)
    refined = logistic_posterior([batch], intercept=True)
    mode, _ = likeliest(x, r, np.array([refined.ridge, 1.0 / LEVEL_SPREAD**2]))
    assert np.abs(batch.expansion.point).max() < 13.0
    assert np.abs(refined.link.point - mode).max() < 1.0
    single = logistic_posterior([replace(Stats.of(x, r), expansion=expanded(x, r, wrong))], intercept=True)
    assert np.abs(single.estimate - wrong[0]).max() < 20.0  # a summary that was not refined takes a damped step


def test_a_step_that_makes_the_posterior_smaller_is_halved() -> None:
    x = np.column_stack([np.random.default_rng(1).standard_normal((200, 1)), np.ones(200)])
    r = clicks(np.column_stack([x[:, :1], np.zeros((200, 2))]))
    good, bad = np.array([2.0, 0.0]), np.array([40.0, 5.0])
    value = expanded(x, r, good).value
    batch = replace(Stats.of(x, r), expansion=expanded(x, r, bad))
    step = next_point([], batch, Search(2, good, value), intercept=True)
    np.testing.assert_allclose(step[0], (good + bad) / 2.0)
    np.testing.assert_array_equal(step[1].best, good)
    last = next_point([], batch, Search(PASSES - 1, good, value), intercept=True)
    np.testing.assert_array_equal(last[0], good)  # the last pass goes back to the best point
    assert next_point([], batch, Search(PASSES, good, value), intercept=True) is None


def test_summaries_of_parts_add_up_in_any_order() -> None:
    learner, world = Foresight(dim=3, horizon=2000, policies=4), Logits()
    state = after(learner, world, 2)
    rows = rows_of(state, world, 1)
    at = np.random.default_rng(2).permutation(len(rows))
    whole = learner.summarize(state, rows)
    pieces = [rows.select(chosen) for chosen in np.array_split(at, 3)]

    def summed(finer: State) -> Summary:
        parts = [learner.summarize(finer, piece, part=True) for piece in pieces]
        return parts[2] + (parts[0] + parts[1])

    total = learner.fitted(state, summed(state), summed)
    ours, theirs = total.stats[0].expansion, whole.stats[0].expansion
    assert total.stats[0].count == len(rows)
    assert ours.point.any()
    np.testing.assert_allclose(ours.curvature, theirs.curvature, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.moment, theirs.moment, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.held_out, theirs.held_out)
    sets = world.draw(50, seed=9).contexts
    got, wanted = (learner.next(state, one).policy.probabilities(sets) for one in (total, whole))
    np.testing.assert_allclose(got, wanted)
    with pytest.raises(BatchError, match="different points, and do not add up"):
        learner.summarize(state, pieces[0]) + learner.summarize(state, pieces[1])


def test_the_data_choose_and_the_note_says_so() -> None:
    world = Logits()
    for learner, links in [
        (Foresight(dim=3, horizon=500), ["linear", "logistic"]),
        (Foresight(dim=3, horizon=500, rewards="binary"), ["logistic"] * 2),
        (Foresight(dim=3, horizon=500, rewards="binary", intercept=False), ["logistic"] * 2),
        (Foresight(dim=3, horizon=500, intercept=False), [None] * 2),
        (Foresight(dim=3, horizon=500, rewards="linear"), [None] * 2),
        (Foresight(dim=3, arms=5, horizon=500, noise_bound=0.5), [None] * 2),
    ]:
        state = after(learner, world, 2)
        assert [note.get("link") for note in state.notes] == links
        assert (LOGISTIC in state.rule_state) == (links[0] is not None)
        assert (state.past[-1].stats[0].expansion is not None) == (links[0] is not None)


@pytest.mark.parametrize(("scores", "link"), [((-90.0, -80.0), "linear"), ((-80.0, -90.0), "logistic")])
def test_held_out_batches_choose_between_the_models(scores: tuple[float, float], link: str) -> None:
    world, learner = Logits(), Foresight(dim=3, horizon=2000, policies=5)
    state = after(learner, world, 1)
    assert "held_out" in state.notes[0]
    summary = learner.summarize(state, rows_of(state, world, 1))
    (stats,) = summary.stats
    assert stats.expansion is not None
    assert stats.expansion.held_out.shape == (2,)
    assert (stats.expansion.held_out < 0.0).all()
    judged = replace(summary, stats=(replace(stats, expansion=replace(stats.expansion, held_out=np.array(scores))),))
    then = learner.next(state, judged)
    assert then.notes[-1]["link"] == link
    assert then.notes[-1]["held_out"] == scores[0] - scores[1]
    np.testing.assert_array_equal(then.rule_state[HELD_OUT], scores)
    assert replace(learner, rewards="binary").next(state, judged).notes[-1]["link"] == "logistic"


def test_models_are_held_against_rows_that_they_have_not_seen() -> None:
    """By hand: the frozen logistic rates, and the line's, of the next batch, whatever pass it is summed in."""
    world, learner = Logits(level=-1.0), Foresight(dim=3, horizon=2000, policies=5)
    state = after(learner, world, 1)
    rows = rows_of(state, world, 1)
    (stats,) = learner.summarize(state, rows).stats
    assert rows.features is not None
    x, least = np.column_stack([rows.features, np.ones(len(rows))]), 0.5 / (1.0 + state.past[0].rewarded)
    rates = logistic(x @ state.rule_state[LOGISTIC]), x @ state.rule_state[LINEAR]
    wanted = [
        np.log(np.where(rows.rewards == 1.0, rate, 1.0 - rate)).sum()
        for rate in (np.clip(rate, least, 1.0 - least) for rate in rates)
    ]
    np.testing.assert_allclose(stats.expansion.held_out, wanted)
    mean = rows_of(learner.begin(), world, 1).rewards.mean()
    first = rows_of(learner.begin(), world, 1).features
    assert first.mean(axis=0) @ state.rule_state[LINEAR][:3] + state.rule_state[LINEAR][3] == pytest.approx(mean)


def test_clicks_without_a_level_are_held_against_a_half() -> None:
    learner = Foresight(dim=3, horizon=2000, rewards="binary", intercept=False)
    for world, noticed in [(Logits(level=-3.0), True), (Logits(), False)]:
        state = learner.begin()
        summary = learner.summarize(state, rows_of(state, world, 1, count=200), part=True)
        with pytest.warns(LevelWarning, match="features do not explain") if noticed else nullcontext():
            state = learner.next(state, summary)
        assert ("level" in state.notes[0]) == noticed
        assert "level" not in step(learner, state, world).state.notes[1]  # said once


def test_one_other_reward_makes_the_belief_linear_for_good() -> None:
    learner, world = Foresight(dim=3, horizon=2000, policies=5), Logits()
    state = after(learner, world, 1)
    rows = rows_of(state, world, 1)
    other = replace(rows, rewards=np.where(np.arange(len(rows)) == 5, 2.0, rows.rewards))
    summary = learner.summarize(state, other)
    state = learner.next(state, summary)
    assert "link" in state.notes[0]
    assert "link" not in state.notes[1]
    plain = posterior(centred(state.sums[0]))
    assert state.notes[1]["noise"] == plain.noise
    assert "link" not in step(learner, state, world).state.notes[2]
    assert state_from_bytes(state_to_bytes(state)).past[1].stats[0].expansion is None


def test_binary_rewards_are_checked() -> None:
    learner, world = Foresight(dim=3, horizon=500, rewards="binary"), Logits()
    state = learner.begin()
    rows = rows_of(state, world, 1)
    with pytest.raises(UnsuitableError, match=r"rewards of 0 and 1; 1 of \d+ are others, the first 0\.5"):
        learner.summarize(state, replace(rows, rewards=np.where(np.arange(len(rows)) == 2, 0.5, rows.rewards)))
    raises(ParameterError, "rewards must be 'binary' or 'linear'; got 'clicks'", Foresight, dim=3, rewards="clicks")
    raises(ParameterError, "one or the other", Foresight, dim=3, arms=5, horizon=500, noise_bound=0.5, rewards="binary")
    with pytest.raises(ShapeError, match="an expansion is of the same 1 features as the sums; got 2"):
        Stats(
            gram=np.eye(1),
            moment=np.zeros(1),
            count=1,
            square_sum=0.0,
            expansion=expanded(np.ones((1, 2)), np.ones(1), np.zeros(2)),
        )


@pytest.mark.filterwarnings("ignore::rareswitch.errors.LevelWarning")
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("same", [0.0, 1.0, 3.3])
def test_while_all_rewards_are_the_same_the_first_policy_stays(same: float, intercept: bool) -> None:
    learner, world = Foresight(dim=3, horizon=500, intercept=intercept), Logits()
    state = learner.begin()
    rows = rows_of(state, world, 1)
    state = learner.next(state, learner.summarize(state, replace(rows, rewards=np.full(len(rows), same))))
    assert "logistic_point" not in state.rule_state
    assert state.policy.sampler == learner.begin().policy.sampler
    state = step(learner, state, world).state
    assert ("link" in state.notes[-1]) == (intercept and same != 3.3)
    assert state.policy.sampler != learner.begin().policy.sampler


def test_late_rewards_replace_a_batch() -> None:
    """They are summed at the belief that is frozen when they are: all at once they say the same as in time."""
    learner, world = Foresight(dim=3, horizon=4000, policies=4, intercept=True), Logits(level=-1.0)
    first = learner.begin()
    rows = rows_of(first, world, 1)
    some = replace(rows, rewards=np.where(np.arange(len(rows)) % 3 == 0, np.nan, rows.rewards))
    second = learner.next(first, learner.summarize(first, some))
    now = learner.summarize(second, rows_of(second, world, 1))
    late = learner.summarize(second, rows)
    third = learner.next(second, now, late=[late])
    assert third.sums[0].count == len(rows) + now.rewarded
    assert third.past[0].stats[0].expansion is late.stats[0].expansion
    without = learner.next(second, now)
    assert without.policy.id != third.policy.id
    belief = logistic_belief([batch.stats[0] for batch in third.past], intercept=True)
    spread = np.sqrt(np.diag(np.linalg.inv(belief.precision)))
    assert (np.abs(third.rule_state[LOGISTIC] - without.rule_state[LOGISTIC]) < 3.0 * spread).all()


def test_files_carry_it() -> None:
    world = Logits()
    for rewards in (None, "linear"):
        learner = Foresight(dim=3, horizon=500, rewards=rewards)
        state = after(learner, world, 2)
        summary = learner.summarize(state, rows_of(state, world, 1))
        data = summaries_to_bytes([summary]), state_to_bytes(state)
        again, back = summaries_from_bytes(data[0])[0], state_from_bytes(data[1])
        assert learner.next(back, again).policy.id == learner.next(state, summary).policy.id
        assert (summaries_to_bytes([again]), state_to_bytes(back)) == data
        if rewards is None:
            meta, tensors = unpack(data[1])
            name = "past.0.stats.0.expansion.curvature"
            bent = {name: 2.0 * tensors[name]}
            raises(FileFormatError, None, state_from_bytes, pack(meta, tensors | bent))


def test_a_plan_pays_in_clicks() -> None:
    """With a rate of 5 % no decision costs more than about that, however long θ is."""
    level = math.log(0.05 / 0.95)
    link = Link(point=np.array([0.5, 0.0, level]), precision=np.diag([50.0, 50.0, 1e6]))
    x = np.random.default_rng(1).standard_normal((60, 4, 2))
    belief = Posterior(estimate=link.point[:2], precision=50.0 * np.eye(2), noise=1.0, ridge=1.0)
    sets = ContextSets(x, np.ones((60, 4), dtype=np.bool_))
    found = [
        max(
            plan.cost
            for plan in prospects(replace(belief, noise=1.0, link=one), sets, known=50, lengths=[100], seed=1, update=1)
        )
        for one in (link, None)
    ]
    rates = link.rates(x, link.point[None, :2])[:, :, 0]
    np.testing.assert_allclose(rates, logistic(x @ link.point[:2] + level))
    assert 0.0 < found[0] < 0.1 * found[1]


def test_the_level_beside_a_truth_is_the_likeliest_one() -> None:
    """A θ that pays more for the vectors that were chosen goes with a level that pays less."""
    x = np.column_stack([np.random.default_rng(1).standard_normal((3000, 1)) * 0.1 + 2.0, np.ones(3000)])
    *_, found = in_batches(x, clicks(x[:, :1], -6.0), [300, 3000], intercept=True)
    more = found.estimate + np.array([[0.0], [1.0]])
    rates = found.link.rates(np.array([[[2.0]]]), more)[0, 0]
    assert abs(rates[1] - rates[0]) < 0.02 < abs(logistic(found.link.point[-1] + 2.0 * more[1, 0]) - rates[0])
