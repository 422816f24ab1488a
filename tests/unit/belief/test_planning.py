"""Planned exploration against slow look-aheads."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from rareswitch.belief import Posterior, planning
from rareswitch.belief.planning import SCALES, Stage, best_columns, best_prospect, prospects, spread, unseen_directions
from rareswitch.belief.posterior import Link
from rareswitch.core import ContextSets, FloatArray, inverse_root, normals
from rareswitch.decisions import DecisionLog
from rareswitch.lab.distributions import Gaussian
from rareswitch.learner import Foresight, State, Summary
from rareswitch.policy import Blend, PosteriorDraws

RNG = np.random.default_rng(5)


def test_prospects_match_a_slow_look_ahead() -> None:
    """The same quantities by other means: fresh truths, all batches played decision by decision, many times.

    Both sides are Monte Carlo, over 512 truths and over 300, so they are compared to within five standard errors.
    """
    rng = np.random.default_rng(1)
    dim, lengths = 2, (60, 90, 400)
    belief = Posterior(estimate=np.array([0.3, 0.1]), precision=np.diag([20.0, 5.0]), noise=0.5, ridge=1.0)
    sets = Gaussian(dim=dim, arms=4).draw(200, seed=1)
    sample = ContextSets(sets.contexts, sets.available)
    found = {p.scale: p.cost for p in prospects(belief, sample, known=25, lengths=lengths, seed=1, update=1)}
    root = np.linalg.cholesky(np.linalg.inv(belief.precision))
    for scale in (0.15, 1.0):
        costs = []
        for _ in range(300):
            truth = belief.estimate + 0.5 * root @ rng.standard_normal(dim)
            precision, moment, lost = belief.precision.copy(), belief.precision @ belief.estimate, 0.0
            for batch, length in enumerate(lengths[:-1]):
                estimate = np.linalg.solve(precision, moment)
                for _ in range(length):
                    x = sets.contexts[rng.integers(200)]
                    drawn = estimate if batch else estimate + scale * 0.5 * root @ rng.standard_normal(dim)
                    arm = int((x @ drawn).argmax())
                    lost += float((x @ truth).max() - x[arm] @ truth)
                    precision += np.outer(x[arm], x[arm])
                    moment = moment + (x[arm] @ truth + 0.5 * rng.standard_normal()) * x[arm]
            values = sets.contexts @ truth
            chosen = (sets.contexts @ np.linalg.solve(precision, moment)).argmax(axis=1)
            costs.append(lost + lengths[-1] * float((values.max(axis=1) - values[np.arange(200), chosen]).mean()))
        spread = np.std(costs, ddof=1) * (1 / math.sqrt(300) + 1 / math.sqrt(512))
        assert abs(np.mean(costs) - found[scale]) <= 5 * spread


def slow_prospects(
    belief: Posterior, sets: ContextSets, groups: list[list[int]], *, known: int, seed: int, update: int
) -> list[float]:
    """The look-ahead truth by truth and group by group of batches, with the same random numbers."""
    dim, truths = len(belief.estimate), planning.TRUTHS

    def paid(x: FloatArray, truth: FloatArray) -> FloatArray:
        """(K,)"""
        return x @ truth if belief.link is None else 1.0 / (1.0 + np.exp(-(x @ truth) - belief.link.point[-1]))

    def taught(x: FloatArray, truth: FloatArray) -> float:
        """What a decision for an arm (d,) teaches, against one of a linear reward."""
        rate = float(paid(x[None], truth)[0])
        return 1.0 if belief.link is None else rate * (1.0 - rate)

    lengths = [sum(group) for group in groups]
    charged = []
    for group in groups:
        starts = list(itertools.accumulate(group, initial=known))
        charged.append(sum(length * known / start for length, start in zip(group, starts, strict=False)))
        known = starts[-1]  # where t others are known, a decision costs as 1/t
    z = normals(seed, "plan", update, 1, (2 * truths + 64) * dim).reshape(-1, dim)
    values, vectors = np.linalg.eigh(belief.precision)
    root = inverse_root(belief.precision)
    np.testing.assert_allclose(root.T @ root, (vectors / values) @ vectors.T)
    halves = [sets.contexts[0::2], sets.contexts[1::2]]
    shocks = normals(seed, "plan later", update, len(lengths) - 1, truths * len(halves[0]))
    costs = []
    truth_of = [belief.estimate + belief.noise * z[j] @ root for j in range(truths)]
    for scale in planning.SCALES:
        draws = [belief.estimate + scale * belief.noise * row @ root for row in z[-64:]]
        information = np.zeros((dim, dim))
        for x in halves[0]:
            for drawn in draws:
                arm = x[(x @ drawn).argmax()]
                worth = np.mean([taught(arm, truth) for truth in truth_of])
                information += worth * lengths[0] / (len(halves[0]) * len(draws)) * np.outer(arm, arm)
        # taken to teach next to nothing in every direction besides, so that its root is continuous
        information += 1e-10 * belief.precision + 1e-12 * np.diag(np.diag(information))
        half_power = np.linalg.cholesky(information)
        total = 0.0
        for j, truth in enumerate(truth_of):
            for x in halves[0]:
                pays = paid(x, truth)
                lost = sum(float(pays.max() - pays[(x @ drawn).argmax()]) for drawn in draws)
                total += lengths[0] * lost / (len(halves[0]) * len(draws)) / truths
            precision = belief.precision + information
            moment = belief.precision @ belief.estimate + information @ truth
            moment = moment + belief.noise * half_power @ z[truths + j]
            for later, length in enumerate(lengths[1:], start=1):
                here = halves[later % 2]
                estimate = np.linalg.solve(precision, moment)
                for s, x in enumerate(here):
                    chosen, pays = (x @ estimate).argmax(), paid(x, truth)
                    arm = math.sqrt(taught(x[chosen], truth)) * x[chosen]
                    total += charged[later] / len(here) * float(pays.max() - pays[chosen]) / truths
                    if later < len(lengths) - 1:
                        share = length / len(here)
                        shock = shocks[later - 1].reshape(truths, -1)[j, s]
                        precision = precision + share * np.outer(arm, arm)
                        moment = moment + (share * arm @ truth + math.sqrt(share) * belief.noise * shock) * arm
        costs.append(total)
    return costs


def test_prospects_are_worked_out_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight batches, of which some are played as one, and an odd number of sets."""
    monkeypatch.setattr(planning, "TRUTHS", 100)
    monkeypatch.setattr(planning, "SCALES", (0.0, 0.5, 1.4))
    belief = Posterior(estimate=np.array([0.2, 0.1]), precision=np.diag([9.0, 4.0]), noise=0.5, ridge=1.0)
    sets = Gaussian(dim=2, arms=3).draw(5, seed=1)
    sample, keys = ContextSets(sets.contexts, sets.available), {"known": 7, "seed": 4, "update": 3}
    found = prospects(belief, sample, lengths=[3, 9, 20, 50, 100, 300, 800, 500], **keys)
    slow = slow_prospects(belief, sample, [[3], [9, 20], [50, 100], [300, 800], [500]], **keys)
    np.testing.assert_allclose([p.cost for p in found], slow, rtol=1e-8)


def test_clicks_teach_as_much_as_their_rates_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    """μ(1 - μ), in the next batch as it is on average over the truths, and in each after it by its own truth."""
    monkeypatch.setattr(planning, "TRUTHS", 100)
    monkeypatch.setattr(planning, "SCALES", (0.0, 1.0))
    link = Link(point=np.array([0.2, 0.1, -1.0]), precision=np.diag([0.9, 0.4, 1e6]))  # the level hangs on nothing
    belief = Posterior(estimate=link.point[:2], precision=link.precision[:2, :2], noise=1.0, ridge=1.0, link=link)
    sets = Gaussian(dim=2, arms=3).draw(5, seed=1)
    sample, keys = ContextSets(3.0 * sets.contexts, sets.available), {"known": 7, "seed": 4, "update": 3}
    found = prospects(belief, sample, lengths=[3, 20, 50, 100], **keys)
    np.testing.assert_allclose(
        [p.cost for p in found], slow_prospects(belief, sample, [[3], [20], [50], [100]], **keys), rtol=1e-8
    )


@pytest.mark.parametrize(("dim", "truths"), [(8, 512), (32, 512), (64, 128), (128, 64)])
def test_with_many_features_fewer_truths_are_tried_out(monkeypatch: pytest.MonkeyPatch, dim: int, truths: int) -> None:
    seen, of = [], Stage.of

    def counted(sets: ContextSets, tried: FloatArray, link: Link | None = None) -> Stage:
        seen.append(tried.shape)
        return of(sets, tried, link)

    monkeypatch.setattr(Stage, "of", counted)
    monkeypatch.setattr(planning, "SCALES", (1.0,))
    belief = Posterior(estimate=np.zeros(dim), precision=np.eye(dim), noise=0.5, ridge=1.0)
    sample = ContextSets(np.eye(dim)[None, :2], np.ones((1, 2), dtype=np.bool_))
    prospects(belief, sample, known=9, lengths=[5, 5], seed=1, update=1)
    assert seen == [(truths, dim)]


@pytest.mark.parametrize("count", range(1, 40))
def test_stages_play_all_decisions_and_are_charged_for_those_that_learn_on_the_way(count: int) -> None:
    """A run whose batches grow by the same factor, and in which a decision costs as 1/t, costs what its stages do."""
    lengths = [2**batch for batch in range(count)]
    played, charged = planning.stages(1, lengths)
    assert len(played) == len(charged) == min(count, 5)
    assert sum(played) == sum(lengths)
    known = np.cumsum([1, *played])[:-1]
    assert np.sum(charged / known) == pytest.approx(count)  # each batch costs as much as the first
    np.testing.assert_array_less(charged, np.array(played) * (1.0 + 1e-9))


def test_a_greedy_batch_teaches_what_its_arms_teach(monkeypatch: pytest.MonkeyPatch) -> None:
    """One set whose best arm is in doubt: greedy play stays with it, however many batches follow.

    So the cost of never looking grows with their length, and does not fall when it is cut into more batches.
    """
    monkeypatch.setattr(planning, "SCALES", (0.0, 1.0))
    belief = Posterior(estimate=np.array([0.2, 0.1]), precision=np.diag([400.0, 4.0]), noise=0.5, ridge=1.0)
    sample = ContextSets(np.eye(2)[None].repeat(6, axis=0), np.ones((6, 2), dtype=np.bool_))
    one, many = (
        {p.scale: p.cost for p in prospects(belief, sample, known=50, lengths=lengths, seed=2, update=1)}
        for lengths in ((100, 10_000), (100, 2000, 3000, 5000))
    )
    assert many[0.0] == pytest.approx(one[0.0], rel=0.02)
    assert one[1.0] < 0.5 * one[0.0]
    assert best_prospect(belief, sample, known=50, lengths=(100, 10_000), seed=2, update=1).scale > 0.0


@pytest.mark.parametrize(("discount", "known"), [(1.0, [30, 70, 120]), (0.5, [30, 55, 78])])
def test_a_plan_knows_what_the_belief_rests_on(
    monkeypatch: pytest.MonkeyPatch, discount: float, known: list[int]
) -> None:
    """Also a log from before the run; less of what fades."""
    told: list[int] = []

    def remembered(*given: Any, **keys: Any) -> planning.Prospect:
        told.append(keys["known"])
        return best_prospect(*given, **keys)

    monkeypatch.setattr("rareswitch.learner.foresight.best_prospect", remembered)
    learner, rng = Foresight(dim=2, horizon=1000, policies=8, discount=discount), np.random.default_rng(1)

    def summary(state: State, count: int) -> Summary:
        x = rng.standard_normal((count, 3, 2))
        made = state.policy.decide(x, ids=range(state.start, state.start + count), seed=1)
        return learner.summarize(state, DecisionLog.of(x, made, rng.standard_normal(count)))

    state = learner.begin(warm=summary(learner.begin(), 30))
    for count in (40, 50):
        state = learner.next(state, summary(state, count), forecast=[100, 100, 100])
    assert told == known


def test_the_plan_is_the_cheapest_prospect() -> None:
    belief = Posterior(estimate=np.array([0.2, 0.0]), precision=np.diag([30.0, 2.0]), noise=0.5, ridge=1.0)
    sets = Gaussian(dim=2, arms=5).draw(50, seed=1)
    sample = ContextSets(sets.contexts, sets.available)
    chosen = best_prospect(belief, sample, known=50, lengths=(100, 10**6), seed=3, update=2)
    found = prospects(belief, sample, known=50, lengths=(100, 10**6), seed=3, update=2)
    assert [p.scale for p in found] == list(SCALES)
    assert chosen == found[int(np.argmin([p.cost for p in found]))]
    assert (
        best_prospect(belief, sample, known=50, lengths=(10**6, 1), seed=3, update=2).scale == 0.15
    )  # nothing to explore for
    assert chosen.scale > 0.15
    for least in SCALES:
        wide = best_prospect(belief, sample, known=50, lengths=(10**6, 1), seed=3, update=2, least_scale=least)
        assert wide.scale == least  # where it is the dearer the wider


def test_arms_that_do_not_exist_do_not_enter_the_plan() -> None:
    belief = Posterior(estimate=np.array([0.2, 0.1]), precision=np.diag([30.0, 4.0]), noise=0.5, ridge=1.0)
    sets = Gaussian(dim=2, arms=4).draw(60, seed=1)
    wider = np.concatenate([sets.contexts, np.full((60, 2, 2), 5.0)], axis=1)
    available = np.arange(6) < np.full((60, 1), 4)
    few = prospects(
        belief, ContextSets(sets.contexts, sets.available), known=50, lengths=(50, 200, 400), seed=1, update=1
    )
    many = prospects(belief, ContextSets(wider, available), known=50, lengths=(50, 200, 400), seed=1, update=1)
    for one, other in zip(few, many, strict=True):
        assert one.cost == pytest.approx(other.cost)


def test_of_arms_that_tie_the_first_available_one_is_best() -> None:
    arms = np.zeros((1, 2), dtype=np.int64)
    scores = np.array([[[3.0, 1.0], [2.0, 1.0], [2.0, 1.0]]])
    best_columns(scores, np.array([[False, True, True]]), np.empty(2), arms)
    assert arms.tolist() == [[1, 1]]


def own_arms(count: int, *, arms: int, blocks: int, first: int = 0) -> FloatArray:
    """(count, arms, 2·blocks) users (1, z), in a block of each arm."""
    users = np.column_stack([np.ones(count), normals(1, "users", first, count)[:, 0]])
    contexts = np.zeros((count, arms, blocks, 2))
    for arm in range(arms):
        contexts[:, arm, arm] = users
    return contexts.reshape(count, arms, 2 * blocks)


def before_a_late_arm(noise: float = 0.3) -> State:
    """A learner with room for a fourth arm after two batches, of which the best arm is clear."""
    learner = Foresight(dim=8, grid=[60, 600, 2000], horizon=2000, intercept=True)
    state = learner.begin()
    for first, stop in ((0, 60), (60, 600)):
        contexts = own_arms(stop - first, arms=3, blocks=4, first=first)
        decisions = state.policy.decide(contexts, ids=range(first, stop), seed=1)
        means = np.array([0.0, 0.5, 1.5])[decisions.arms]
        rewards = means + noise * normals(1, "noise", first, stop - first)[:, 0]
        state = learner.next(
            state, learner.summarize(state, DecisionLog.of(contexts, decisions, rewards)), forecast=[700, 700]
        )
    return state


def test_parameters_of_an_arm_that_never_came_are_drawn_from_the_prior() -> None:
    """A plan that has not seen the arm chose the least scale, at which the arm would never be tried."""
    state = before_a_late_arm()
    assert state.notes[-1]["scale"] == min(SCALES)
    sampler = state.policy.sampler
    assert isinstance(sampler, Blend)
    assert isinstance(sampler.main, PosteriorDraws)
    spreads = sampler.main.draws.std(axis=0)
    assert spreads[:6].max() < 0.1 < 0.3 < spreads[6:].min()
    late = own_arms(500, arms=4, blocks=4)
    shares = state.policy.probabilities(late).mean(axis=0)
    assert shares[3] > 0.02
    assert shares[2] > 0.5


def test_what_a_plan_has_not_seen_does_not_depend_on_the_axes() -> None:
    rotation = np.linalg.qr(RNG.standard_normal((4, 4)))[0]
    vectors = RNG.standard_normal((30, 3, 4)) * [1.0, 1.0, 0.1, 0.0]
    precision = np.diag([30.0, 8.0, 2.0, 1.0])
    beliefs = [
        Posterior(estimate=np.zeros(4), precision=turned, noise=1.0, ridge=1.0)
        for turned in (precision, rotation @ precision @ rotation.T)
    ]
    available = np.ones((30, 3), dtype=np.bool_)
    plain = unseen_directions(beliefs[0], ContextSets(vectors, available), known=40)
    turned = unseen_directions(beliefs[1], ContextSets(vectors @ rotation.T, available), known=40)
    np.testing.assert_allclose(turned, rotation @ plain @ rotation.T, atol=1e-9)
    assert plain[3, 3] == pytest.approx(1.0)
    assert np.diag(plain)[:3].max() < 0.3
    np.testing.assert_allclose(spread(0.3, plain)[3, 3], SCALES[-1])


def test_an_arm_that_was_offered_and_never_chosen_is_left_to_the_plan() -> None:
    contexts = own_arms(50, arms=3, blocks=3)
    belief = Posterior(estimate=np.zeros(6), precision=np.diag([51.0, 51.0, 1, 1, 1, 1]), noise=1.0, ridge=1.0)
    sets = ContextSets(contexts, np.ones((50, 3), dtype=np.bool_))
    assert np.abs(unseen_directions(belief, sets, known=50)).max() < 0.02
