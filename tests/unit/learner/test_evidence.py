"""Beliefs that know when they are wrong: the innovation of a batch, and what policies and people hear of it."""

import math
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from rareswitch.belief import Posterior, posterior
from rareswitch.belief.posterior import CHANCE, NOTHING, WIDEST, ModelCheck, innovation, vague_where_unknown
from rareswitch.core import ContextSets, FloatArray, inverse_root, normals
from rareswitch.decisions import DecisionLog
from rareswitch.experiment import create
from rareswitch.lab.worlds import Rounds, make_world
from rareswitch.learner import Foresight, State
from rareswitch.learner.foresight import believed_cost, certified_cost
from rareswitch.policy import PosteriorDraws
from reference.loop import after, rows_of
from reference.trials import play

WORLD = make_world("gaussian", dim=3, arms=5, noise=0.5)
PRECISION = np.array([[30.0, 5.0, 0.0], [5.0, 8.0, 1.0], [0.0, 1.0, 4.0]])
BELIEF = Posterior(estimate=np.array([0.5, -0.2, 0.1]), precision=PRECISION, noise=0.4, ridge=1.0)


def found(x: FloatArray, theta: FloatArray, noise: FloatArray, belief: Posterior = BELIEF) -> ModelCheck:
    """That of rows (n, d) with rewards xᵀθ and noise (n,)."""
    return innovation(belief, x.T @ x, x.T @ (x @ theta + noise), noise=belief.noise)


def test_the_innovation_of_a_right_belief_is_chi_squared() -> None:
    """Of 1500 batches the sum has 4500 degrees: within six standard deviations (p < 1e-8).

    It is wrong about one with a chance of 0.0005 each: more than 12 of 1500 are so with a chance below 1e-10 (Poisson).
    """
    rng = np.random.default_rng(1)
    root, all_of_them = inverse_root(PRECISION), []
    for _ in range(1500):
        theta = BELIEF.estimate + 0.4 * rng.standard_normal(3) @ root
        x = rng.standard_normal((12, 3)) * [1.0, 2.0, 0.3]
        all_of_them.append(found(x, theta, 0.4 * rng.standard_normal(12)))
    assert {one.rank for one in all_of_them} == {3}
    assert abs(sum(one.surprise * one.rank for one in all_of_them) - 4500) <= 6 * math.sqrt(2 * 4500)
    assert sum(one.wrong for one in all_of_them) <= 12


@pytest.mark.parametrize("rank", [1, 2, 3, 5, 10, 17])
def test_one_batch_in_two_thousand_is_found_wrong_by_chance(rank: int) -> None:
    """Or fewer, where Wilson and Hilferty's quantile is a little high; not fewer than half of what a normal gives."""
    low, high = 1.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if ModelCheck(surprise=middle, rank=rank).wrong else (middle, high)
    assert scipy_stats.norm.sf(CHANCE) / 2 < scipy_stats.chi2.sf(high * rank, rank) < 1 / 2000


def test_with_many_directions_twice_as_far_is_borne() -> None:
    assert not ModelCheck(surprise=1.99, rank=400).wrong
    assert ModelCheck(surprise=2.01, rank=400).wrong


def test_a_theta_that_has_changed_is_found() -> None:
    """By as much as its covariance says, without noise exactly."""
    rng = np.random.default_rng(2)
    x, noise = rng.standard_normal((400, 3)), 0.4 * rng.standard_normal(400)
    right = found(x, BELIEF.estimate, noise)
    assert not right.wrong
    assert (right.widening, right.least_scale) == (1.0, 0.0)
    delta = np.array([0.8, 0.0, 0.0])
    gram = x.T @ x
    covariance = 0.16 * (gram + gram @ np.linalg.inv(PRECISION) @ gram)
    exact = float(delta @ gram @ np.linalg.solve(covariance, gram @ delta)) / 3  # without noise
    assert found(x, BELIEF.estimate + delta, 0.0 * noise).surprise == pytest.approx(exact)
    wrong = found(x, BELIEF.estimate + delta, noise)
    assert wrong.wrong
    assert wrong.surprise > WIDEST
    assert (wrong.widening, wrong.least_scale) == (WIDEST, 1.0)
    assert ModelCheck(surprise=3.0, rank=100).widening == 3.0


def test_directions_that_were_not_played_do_not_count() -> None:
    x = np.outer(np.arange(1.0, 5.0), [0.0, 2.0, 0.0])
    one = found(x, BELIEF.estimate + np.array([9.0, 0.1, 9.0]), np.zeros(4))
    n = float((x**2).sum())
    variance = 0.16 * (n + n**2 * np.linalg.inv(PRECISION)[1, 1])
    assert one.rank == 1
    assert one.surprise == pytest.approx((0.1 * n) ** 2 / variance)
    assert found(np.zeros((4, 3)), BELIEF.estimate, np.zeros(4)) == NOTHING
    assert (NOTHING.wrong, NOTHING.widening) == (False, 1.0)


@pytest.mark.parametrize(("features", "rewards"), [(1e90, 1e90), (1e-90, 1e-90), (1e3, 1e-100)])
def test_units_do_not_matter(features: float, rewards: float) -> None:
    rng = np.random.default_rng(3)
    x, noise = rng.standard_normal((20, 3)), rng.standard_normal(20)
    unit = rewards / features
    belief = Posterior(
        estimate=BELIEF.estimate * unit, precision=PRECISION * features**2, noise=0.4 * rewards, ridge=1.0
    )
    one = found(x, BELIEF.estimate + 1.0, noise)
    other = found(x * features, (BELIEF.estimate + 1.0) * unit, noise * rewards, belief)
    assert other.surprise == pytest.approx(one.surprise, rel=1e-9)
    assert other.rank == 3


class Steep:
    """Rewards exp(3·xᵀθ): a line that fits arms chosen blindly does not fit the best."""

    dim, arms = 3, 8
    theta = np.array([0.8, 0.5, -0.3])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        x = normals(seed, "items", first, count, 24).reshape(count, 8, 3) / 2.0
        return Rounds(contexts=x, means=np.exp(3.0 * (x @ self.theta)))

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return np.asarray(means + 0.1 * normals(seed, "noise", first, len(means), 1)[:, 0])


@pytest.mark.parametrize("intercept", [False, True])
def test_rewards_that_are_not_linear_keep_policies_wide(intercept: bool) -> None:
    """And on the way from the estimate of before.

    The standardised squares of the draws around it are χ² with 384 degrees: within six standard deviations (p < 1e-8).
    """
    learner = Foresight(dim=3, grid=[300, 1500, 4000, 9000], design_share=0.0, intercept=intercept)
    state = after(learner, Steep(), 2)
    note = state.notes[-1]
    assert note["surprise"] > 2.0
    assert note["widening"] == min(note["surprise"], WIDEST)
    assert note["scale"] >= 1.0
    assert "widening" not in state.notes[0]
    sampler = state.policy.sampler
    assert isinstance(sampler, PosteriorDraws)
    belief = learner.compose().rule.line(reduce(add, (one.stats[0] for one in state.past)))  # type: ignore[attr-defined]
    assert belief.noise == note["noise"]
    before = learner.compose().rule.line(state.past[0].stats[0])  # type: ignore[attr-defined]
    way = np.linspace(before.estimate, belief.estimate, 257)[1::2]
    away = sampler.draws - way
    squares = np.einsum("mi,ij,mj->m", away, belief.precision, away) / (note["scale"] * belief.noise) ** 2
    assert abs(squares.sum() / min(note["surprise"], WIDEST) - 384) <= 6 * math.sqrt(2 * 384)
    assert note["between"]


def test_a_theta_that_drifts_is_followed() -> None:
    state = after(
        Foresight(intercept=False, dim=3, grid=[300, 1500, 4000, 9000], design_share=0.0, discount=0.9), Steep(), 2
    )
    assert state.notes[-1]["widening"] > 1.0
    assert "between" not in state.notes[-1]


def test_intervals_are_widened_too() -> None:
    state = after(Foresight(intercept=False, dim=3, grid=[300, 1500, 4000, 9000]), Steep(), 2)
    belief, surprise = posterior(state.sums[0]), state.notes[-1]["surprise"]
    grown = np.linalg.slogdet(belief.precision)[1] - 3 * math.log(belief.ridge)
    radius = math.sqrt(min(surprise, WIDEST)) * belief.noise * (math.sqrt(2 * math.log(20) + grown) + math.sqrt(3))
    root = state.policy.eliminations[-1].root
    np.testing.assert_allclose(root.T @ root, radius**2 * np.linalg.inv(belief.precision), rtol=1e-6)


def test_notes_say_what_was_expected_and_what_came() -> None:
    learner = Foresight(intercept=False, dim=3, grid=[60, 300, 1000, 3000], design_share=0.0)
    one = after(learner, WORLD, 1)
    first, second = after(learner, WORLD, 2).notes
    assert {"expected", "widening", "surprise"} & set(first) == set()
    assert first["lost"] > 0.0
    assert second["expected"] == first["next_cost"]
    assert 0.0 < first["next_cost"] < first["cost"]
    assert second["widening"] == 1.0
    rows = rows_of(one, WORLD, 1)
    summary = learner.summarize(one, rows)
    belief = posterior(one.sums[0] + summary.stats[0])
    assert second["lost"] == pytest.approx(240 * believed_cost(one.policy, summary.sample.sets, belief))
    before = vague_where_unknown(posterior(one.sums[0]), known=60)
    evidence = innovation(before, summary.stats[0].gram, summary.stats[0].moment, noise=belief.noise)
    assert second["surprise"] == pytest.approx(evidence.surprise)


X = np.random.default_rng(4).standard_normal((3, 200, 4, 2))


def played(learner: Foresight, thetas: list[list[float]], clicks: bool = False) -> State:
    """The state after a batch of 200 decisions for each θ."""
    rng, state = np.random.default_rng(6), learner.begin()
    for k, theta in enumerate(thetas):
        made = state.policy.decide(X[k], ids=range(200 * k, 200 * k + 200), seed=1)
        means = X[k][np.arange(200), made.arms] @ theta
        paid = means + 0.1 * rng.standard_normal(200)
        if clicks:
            paid = (rng.random(200) < 1.0 / (1.0 + np.exp(-means))).astype(np.float64)
        state = learner.next(state, learner.summarize(state, DecisionLog.of(X[k], made, paid)), forecast=[300, 900])
    return state


def test_what_is_forgotten_was_not_believed() -> None:
    """After a change two batches ago, a belief in all batches is still wrong, and one that forgets is right again."""
    changed = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    kept, forgets = (
        played(Foresight(intercept=False, dim=2, discount=discount), changed).notes for discount in (1.0, 0.001)
    )
    for notes in (kept, forgets):
        assert notes[1]["widening"] > 1.0
    assert kept[2]["widening"] > 1.0
    assert forgets[2]["widening"] == 1.0


def test_clicks_that_are_not_what_was_believed_are_found() -> None:
    learner: Any = Foresight(dim=2, rewards="binary")
    right, turned = (played(learner, [[3.0, 0.0], then], clicks=True).notes[1] for then in ([3.0, 0.0], [-3.0, 0.0]))
    assert (right["link"], turned["link"]) == ("logistic", "logistic")
    assert right["widening"] == 1.0
    assert turned["widening"] > 1.0
    assert turned["scale"] >= 1.0


@pytest.mark.parametrize(("clicks", "steepest"), [(False, 1.0), (True, 0.25)])
def test_a_certificate_of_clicks_is_a_quarter_of_that_in_logits(clicks: bool, steepest: float) -> None:
    state = played(Foresight(dim=2), [[1.0, 0.0], [1.0, 0.0]], clicks=clicks)
    most = certified_cost(state.policy, ContextSets(X[1], np.ones(X[1].shape[:2], dtype=np.bool_)))
    assert state.notes[-1]["certificate"] == pytest.approx(steepest * most)


def test_a_batch_that_ended_early_was_expected_to_cost_its_share() -> None:
    learner = Foresight(intercept=False, dim=2)
    notes = played(learner, [[1.0, 0.0], [1.0, 0.0]]).notes  # 200 decisions where 300 were planned
    assert notes[1]["expected"] == pytest.approx(notes[0]["next_cost"] * 200 / 300)


def test_an_update_tells_people_what_came() -> None:
    trial = create("memory:", "spring", dim=3, seed=7, now=0.0, grid=[40, 120, 400])
    texts, notes = [], []
    for first, stop in ((0, 40), (40, 120)):
        play(trial, WORLD, first, stop - first, now=float(first))
        outcome = trial.advance(now=float(stop))
        assert outcome.made
        texts.append(str(outcome))
        notes.append(outcome.note)
    assert f"Regret of this batch: about {notes[0].lost:.0f}.\nChanges: " in texts[0]
    assert "As believed before the batch" not in texts[0]
    assert f"Regret of this batch: about {notes[1].lost:.2g} (expected: {notes[1].expected:.2g}). " in texts[1]
    assert notes[1].expected == notes[0].next_cost
    assert " As believed before the batch.\nChanges: " in texts[1]
