"""Policies that are kept back: when they are spent, by features alone, and when they are deployed anyway."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rareswitch.core import FloatArray
from rareswitch.decisions import DecisionLog
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import Foresight, Learner, State, Summary, state_from_bytes, state_to_bytes
from rareswitch.learner.clocks import ModelGrowth
from rareswitch.learner.reserve import LEAST_SEEN, UNLIKE, Reserve
from reference.loop import rows_of

HORIZON = 10_000
#: Worlds in which contexts are drawn from one distribution, also rare ones.
STILL = ["gaussian", "anisotropic", "segments", "zipf", "varying", "disjoint", "rare-clicks", "heavy-tails"]


def clock(*, policies: int = 8, reserve: int = 2, horizon: int = HORIZON, first: int = 40) -> Reserve:
    return Reserve(horizon=horizon, policies=policies, reserve=reserve, first=first)


def chosen(world: World, seed: int, count: int) -> FloatArray:
    """Features of arms that are chosen at random."""
    rounds = world.draw(count, seed=seed)
    available = np.ones(rounds.contexts.shape[:2], dtype=bool) if rounds.available is None else rounds.available
    scores = np.where(available, np.random.default_rng(seed).random(available.shape), -1.0)
    return np.asarray(rounds.contexts[np.arange(count), scores.argmax(axis=1)])


def after(gram: FloatArray, count: int, batch_sizes: tuple[int, ...]) -> ModelGrowth:
    """A batch that begins after so many decisions with a Gram matrix (d, d)."""
    return ModelGrowth(
        frozen=gram[None],
        counts=np.array([count]),
        grams=gram[None],
        taught=np.array([0]),
        ridge=1.0,
        start=count,
        batch_sizes=batch_sizes,
    )


def struck(told: Reserve, features: FloatArray) -> Iterator[int]:
    """Where batches end before their time, by features (T, d); rewards are nowhere."""
    dim = features.shape[1]
    gram, start, batch = np.zeros((dim, dim)), 0, 1
    forecast = told.begin()
    while forecast:
        x = features[start : start + forecast[0]]
        due = told.due(after(gram, start, forecast), x, np.zeros(len(x), dtype=np.int64))
        if due is not None and due < forecast[0]:
            yield start + due
        x = x[:due]
        gram, start, batch = gram + x.T @ x, start + len(x), batch + 1
        forecast = told.batch_sizes(forecast[1:], batch=batch, start=start)
    assert (start, batch) == (told.horizon, told.policies + 1)


@pytest.mark.parametrize("name", STILL)
def test_nothing_is_spent_where_nothing_changes(name: str) -> None:
    world = make_world(name, horizon=4000)
    for seed in range(3):
        x = chosen(world, seed, 4000)
        for policies, reserve in ((8, 2), (16, 4)):
            told = clock(policies=policies, reserve=reserve, horizon=4000, first=min(4 * world.dim, 63))
            assert not list(struck(told, x))


@pytest.mark.parametrize(("policies", "reserve"), [(8, 2), (16, 4)])
def test_each_group_that_appears_late_has_its_update(policies: int, reserve: int) -> None:
    """Soon after it appears, that is before a tenth of what is left has been decided without it."""
    world = make_world("late-groups", horizon=HORIZON)
    for seed in range(3):
        ends = list(struck(clock(policies=policies, reserve=reserve, first=48), chosen(world, seed, HORIZON)))
        for appears in (1000, 3000, 6000):
            assert any(appears < end < appears + (HORIZON - appears) // 10 for end in ends), (seed, ends)


@pytest.mark.parametrize(("policies", "reserve"), [(3, 1), (4, 1), (4, 2), (8, 2), (8, 5), (16, 4), (40, 5)])
@pytest.mark.parametrize("horizon", [50, 1000, 100_000])
def test_schedules_are_whole_and_hold_policies_back(policies: int, reserve: int, horizon: int) -> None:
    told = clock(policies=policies, reserve=reserve, horizon=horizon, first=min(40, horizon - policies + 1))
    for batch, start in ((1, 0), (2, 45), (policies // 2 + 1, horizon // 3), (policies, horizon - 1)):
        forecast = told.batch_sizes((), batch=batch, start=start)
        assert min(forecast) >= 1
        assert start + sum(forecast) == horizon
        left = min(policies - batch, horizon - start - 1)
        assert len(forecast) == left + 1
        ends = start + np.cumsum(forecast)
        for behind in range(1, min(reserve, left) + 1):  # from the last on, where there is room for them
            least = min(int(horizon * 0.5 ** (behind / reserve) - 1e-6), horizon - behind)
            assert ends[-1 - behind] >= least
    assert told.batch_sizes((), batch=policies + 1, start=horizon - 1) == ()
    assert told.batch_sizes((), batch=2, start=horizon) == ()


def test_the_schedule_is_the_cheapest_of_those_that_hold_back() -> None:
    """Moving any end, by as much as it may be, costs more where a batch from a to b costs (b - a)/a."""
    ends = np.cumsum(clock(policies=8, reserve=2, horizon=1_000_000, first=1000).begin()).astype(float)
    least = np.array([0.0] * 5 + [500_000.0, 1e6 * 0.5**0.5])

    def cost(ends: FloatArray) -> float:
        return float(sum((b - a) / a for a, b in pairwise(ends)))

    for place in range(1, 7):
        for factor in (0.98, 1.02):
            moved = ends.copy()
            moved[place] *= factor
            if moved[place] >= least[place]:
                assert cost(moved) > cost(ends)


@pytest.mark.parametrize(("policies", "reserve", "price"), [(8, 2, 1.10), (16, 4, 1.04)])
def test_what_holding_back_costs_where_nothing_changes(policies: int, reserve: int, price: float) -> None:
    """As docs/how-to/changing.md has it, where a batch from a to b costs (b - a)/a."""
    kept, usual = (
        sum((b - a) / a for a, b in pairwise(np.cumsum(learner.clock.begin())))
        for learner in (
            Foresight(dim=12, horizon=30_000, policies=policies, reserve=reserve),
            Foresight(dim=12, horizon=30_000, policies=policies),
        )
    )
    assert round(kept / usual, 2) == price


def test_a_batch_that_ended_early_takes_the_place_of_one_that_is_not_kept_back() -> None:
    told = clock()
    planned = told.begin()
    start = sum(planned[:3])
    assert told.batch_sizes(planned[3:], batch=4, start=start) == planned[3:]
    anew = np.cumsum(told.batch_sizes(planned[3:], batch=4, start=start - 50)) + start - 50
    assert anew.tolist()[-3:] == [5000, 7071, 10_000]
    only_kept = told.batch_sizes((), batch=7, start=3000)
    assert np.cumsum(only_kept).tolist() == [4071, 7000]


def learned(learner: Learner, world: World, count: int, **how: Any) -> tuple[State, int]:
    """The state after two batches, of 100 and of enough to tell rare from new."""
    state = learner.begin(**how)
    for first, many in ((0, 100), (100, count - 100)):
        state = learner.next(state, part(learner, state, world, first, many))
    return state, count


def part(learner: Learner, state: State, world: World, first: int, count: int) -> Summary:
    return learner.summarize(state, rows_of(state, world, 3, first=first, count=count))


@pytest.mark.parametrize("intercept", [False, True])
def test_it_is_due_at_the_same_decision_in_parts_and_whatever_the_rewards(intercept: bool) -> None:
    world = make_world("late-groups", horizon=HORIZON)
    learner = Foresight(dim=12, horizon=HORIZON, reserve=2, intercept=intercept)
    state, start = learned(learner, world, 900)
    assert start >= LEAST_SEEN * 13
    rounds = world.draw(600, seed=3, first=start)
    ids = np.arange(start, start + 600)
    made = state.policy.decide(rounds.contexts, ids=ids, seed=3)
    due = learner.due(state, rounds.contexts, made)
    assert due is not None
    assert due > 100  # the group appears after 100 of them
    for cut in (1, 57, due - 1):
        later = state.policy.decide(rounds.contexts[cut:], ids=ids[cut:], seed=3)
        for reward in (0.0, 5.0):
            rows = DecisionLog.of(rounds.contexts[:cut], made.upto(cut), np.full(cut, reward))
            before = learner.summarize(state, rows)
            assert learner.due(state, rounds.contexts[cut:], later, before) == due - cut
            assert learner.early(state, before) is None
    rows = DecisionLog.of(rounds.contexts[:due], made.upto(due), np.zeros(due))
    again = state_from_bytes(state_to_bytes(state))
    assert learner.due(again, rounds.contexts, made) == due
    early = learner.early(state, learner.summarize(state, rows))
    assert early.unlike
    assert early.value > UNLIKE
    following = learner.next(state, learner.summarize(state, rows))
    assert following.horizon == HORIZON
    assert len(following.batch_sizes) == len(state.batch_sizes) - 1


def test_a_first_batch_or_nothing_but_zeros_never_strikes() -> None:
    told = clock()
    for count in (0, 500):
        progress = after(np.zeros((3, 3)), count, (500, 1000))
        assert told.due(progress, np.zeros((20, 3)), np.zeros(20, dtype=np.int64)) is None
        assert told.early(progress) is None


def due_after(known: list[float], feature: list[float], *, left: int) -> int | None:
    """After how many decisions with one feature vector, where each axis was seen so often and so many may follow."""
    gram, count = np.diag(known), int(sum(known))
    return clock().due(
        after(gram, count, (3000,) * (left + 1)), np.tile(feature, (2500, 1)), np.zeros(2500, dtype=np.int64)
    )


def test_policies_kept_back_wait_for_what_is_further_from_all_before() -> None:
    """A vector twice as long is four times as uncertain, one three times as long nine times."""
    known = [100.0, 100.0, 100.0]
    assert due_after(known, [1.5, 0.0, 0.0], left=3) is None
    assert due_after(known, [2.0, 0.0, 0.0], left=3) is not None
    assert due_after(known, [2.0, 0.0, 0.0], left=2) is None  # only those that were kept back
    assert due_after(known, [3.0, 0.0, 0.0], left=2) is not None
    assert due_after(known, [9.0, 0.0, 0.0], left=1) is None  # the last is for directions that are hardly known


@pytest.mark.parametrize(("seen", "hardly"), [(1.0, True), (4.0, True), (5.0, False), (6.0, False)])
def test_a_direction_with_fewer_than_five_decisions_is_hardly_known(seen: float, hardly: bool) -> None:
    assert (due_after([100.0, 100.0, seen], [0.0, 0.0, 1.0], left=1) is not None) == hardly
