"""How many decisions are to come: as a number, as a list."""

from typing import Any

import numpy as np
import pytest

from rareswitch.errors import ParameterError
from rareswitch.lab.worlds import make_world
from rareswitch.learner import BatchLinUCB, Foresight, Learner, State
from rareswitch.learner.grids import batch_sizes_of
from reference.loop import after, rows_of
from reference.refusals import raises

WORLD = make_world("gaussian", dim=3, arms=5, noise=0.5)
FIVE = Foresight(dim=3, horizon=2000, policies=5)


def spread(total: int, start: int, policies: int) -> tuple[int, ...]:
    return batch_sizes_of(total, start=start, policies=lambda decisions: policies)


def closed(learner: Learner, state: State, forecast: Any = None, count: int | None = None) -> State:
    """The state after the current batch, with so many decisions."""
    return learner.next(state, learner.summarize(state, rows_of(state, WORLD, 1, count=count)), forecast=forecast)


@pytest.mark.parametrize("total", [1, 2, 3, 7, 1000, 10**9])
@pytest.mark.parametrize("left", [1, 2, 5, 40])
@pytest.mark.parametrize("start", [1, 40, 10**6])
def test_a_number_is_spread_over_the_policies_that_are_left(total: int, left: int, start: int) -> None:
    found = spread(total, start, left)
    assert sum(found) == total
    assert len(found) == min(left, total)
    assert min(found) >= 1
    ends = start + np.cumsum(found)
    if total > 100 * left:
        ratios = ends / np.concatenate([[start], ends[:-1]])
        assert ratios.max() <= ratios.min() * (1 + 2 * len(found) / min(found))


@pytest.mark.parametrize(
    ("forecast", "expected"),
    [
        (None, (35, 123, 415, 1412)),
        ([100, 200], (100, 200)),
        ((7,), (7,)),
        (np.array([5, 6, 7]), (5, 6, 7)),
        ([1e2], (100,)),
        (range(3, 6), (3, 4, 5)),
        (0, ()),
    ],
)
def test_forecasts_are_followed(forecast: Any, expected: tuple[int, ...]) -> None:
    state = closed(FIVE, FIVE.begin(), forecast)
    assert state.batch_sizes == expected
    assert state.done == (not expected)
    assert all(type(count) is int for count in state.batch_sizes)


@pytest.mark.parametrize("forecast", [985, 985.0, np.int64(985), np.float64(985.0)])
def test_a_number_of_any_kind_is_spread(forecast: Any) -> None:
    assert closed(FIVE, FIVE.begin(), forecast).batch_sizes == spread(985, 15, 4)
    unknown = Foresight(dim=3)
    assert len(closed(unknown, unknown.begin(), forecast).batch_sizes) == 4  # it grows 2.5-fold: 30, 72, 174, 421, 1018


@pytest.mark.parametrize(
    ("forecast", "words"),
    [
        (-1, "forecast, the decisions to come, must be at least 0; got -1"),
        (2.5, "must be a whole number; got 2.5"),
        (float("nan"), "must be a whole number; got nan"),
        (float("inf"), "must be a whole number; got inf"),
        (True, "must be a whole number; got True"),
        ("many", "forecast must be the decisions to come in all, or a list of those of each batch; got 'many'"),
        (b"ab", "forecast must be the decisions to come in all, or a list"),
        ({5: 1}, "forecast must be the decisions to come in all, or a list"),
        ([], "got an empty list. 0 ends the run"),
        (10**400, "must be between 0 and 9223372036854775807; got far more"),
        ([10**400], "must be between 1 and"),
        ([5, 0], "must be at least 1; got 0"),
        ([5, -3], "must be at least 1; got -3"),
        ([5, "x"], "must be a whole number; got 'x'"),
        ([float("nan")], "must be a whole number; got nan"),
        (object(), "forecast must be the decisions to come in all, or a list of those of each batch"),
    ],
)
def test_bad_forecasts_change_nothing(forecast: Any, words: str) -> None:
    for learner in (FIVE, Foresight(dim=3), BatchLinUCB(dim=3, arms=5, horizon=2000)):
        state = learner.begin()
        raises(ParameterError, words, closed, learner, state, forecast)
        assert closed(learner, state).policies == 2


def test_an_unknown_horizon_is_revised_as_it_becomes_known() -> None:
    """Without one the decisions grow 2.5-fold; a forecast is followed until it is used up, and then they grow again."""
    learner = Foresight(dim=3)
    state = closed(learner, learner.begin())
    assert (state.start, state.batch_sizes) == (30, (45, 112, 280))
    state = closed(learner, state, 925)
    assert state.horizon == 1000
    assert state.batch_sizes == spread(925, 75, 3)
    state = closed(learner, state, [50])
    assert state.batch_sizes == (50,)
    state = closed(learner, state, 0)
    assert state.done
    assert state.policies == 4


def test_a_run_may_go_on_after_its_planned_end() -> None:
    learner = Foresight(dim=3, horizon=300, policies=2)
    state = after(learner, WORLD, 1)
    assert state.batch_sizes == (264,)
    longer = closed(learner, state, [100, 200])
    assert (longer.policies, longer.batch_sizes, longer.notes[-1]["update"]) == (3, (100, 200), 2)
    assert "cost" in longer.notes[-1]  # it was planned for, with the sets of what was to be the last batch
    assert closed(learner, longer).batch_sizes == (200,)
    assert closed(learner, state).done


def test_the_number_of_policies_is_held_to_where_the_horizon_is_unknown() -> None:
    learner = Foresight(dim=3, policies=3)
    state = learner.begin()
    assert len(state.batch_sizes) == 3
    state = closed(learner, closed(learner, state))
    assert state.batch_sizes == (112,)
    assert closed(learner, state).done
    assert len(closed(learner, learner.begin(), 10**6).batch_sizes) == 2
