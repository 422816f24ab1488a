import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rareswitch.errors import ParameterError
from rareswitch.learner import (
    AdaptiveGrid,
    StaticGrid,
    geometric_grid,
    loglog_batches,
    paper_design_grid,
    paper_grid,
    warm_start,
)
from rareswitch.learner.grids import GrowingGrid
from reference.refusals import raises


def test_the_number_of_batches_is_that_of_the_paper() -> None:
    for horizon in (*range(16, 5000), 65_535, 65_536, 65_537, 10**5, 10**6, 10**7):
        expected = math.ceil(math.log2(math.log2(horizon)))
        assert loglog_batches(horizon) == expected
        assert (paper_grid(horizon).policies, paper_design_grid(horizon).policies) == (expected, expected + 1)


@pytest.mark.parametrize("batches", [1, 2, 3, 5, 9])
def test_any_number_of_batches(batches: int) -> None:
    ends = paper_grid(10**6, batches).ends
    assert len(ends) == batches
    for i, end in enumerate(ends[:-1], 1):
        assert end == pytest.approx((10**6) ** ((1 - 2.0**-i) / (1 - 2.0**-batches)), abs=1)
    design = paper_design_grid(10**6, batches).ends
    assert len(design) == batches
    if batches >= 3:
        powers = [(10**6) ** ((1 - 2.0 ** -max(1, i - 1)) / (1 - 2.0 ** -(batches - 1))) for i in range(1, batches)]
        powers[1] *= 2
        assert design[:-1] == pytest.approx(powers, abs=1)
    else:
        assert design == ends


@settings(max_examples=200)
@given(st.integers(2, 10**7), st.integers(1, 40), st.booleans())
def test_every_grid_is_increasing_and_ends_at_the_horizon(horizon: int, batches: int, own: bool) -> None:
    batches = min(batches, horizon)
    grids: list[StaticGrid] = [geometric_grid(horizon, batches)]
    grids += [make(horizon, None if own else batches) for make in (paper_grid, paper_design_grid)]
    for grid in grids:
        assert grid.ends[-1] == horizon == grid.horizon
        assert grid.ends[0] >= 1
        assert all(a < b for a, b in pairwise(grid.ends))
        assert grid.policies == len(grid.ends)
        assert grid.begin() == (grid.ends[0], *(b - a for a, b in pairwise(grid.ends)))


@settings(max_examples=200)
@given(st.integers(2, 10**6), st.integers(1, 20), st.lists(st.floats(0.0, 10.0), min_size=20, max_size=20))
def test_the_adaptive_grid_always_reaches_the_horizon(horizon: int, batches: int, widths: list[float]) -> None:
    grid = AdaptiveGrid(horizon=horizon, policies=min(batches, horizon))
    start = used = 0
    while start < horizon:
        length = grid.length(batch=used + 1, start=start, width=widths[used % 20])
        assert 0 < length <= horizon - start
        used, start = used + 1, start + length
    assert start == horizon
    assert used <= grid.policies


def test_an_adaptive_batch_costs_what_the_first_may_cost() -> None:
    """√T = n·min(1, 4w): an arm that survives is at most two of its own widths and two of the best arm's behind."""
    grid = AdaptiveGrid(horizon=10_000, policies=8)
    assert [grid.length(batch=2, start=100, width=width) for width in (9.0, 0.25, 0.05)] == [100, 100, 500]


def test_grids_of_ones_own() -> None:
    assert StaticGrid(ends=(3, 7, 100)).ends == (3, 7, 100)
    assert geometric_grid(10_000, 5, first=1).ends == (1, 10, 100, 1000, 10_000)
    assert warm_start(StaticGrid(ends=(30, 100)), 4).ends == (5, 30, 100)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: StaticGrid(ends=()), "at least one"),
        (lambda: StaticGrid(ends=(5, 5)), "strictly increasing"),
        (lambda: StaticGrid(ends=(0, 5)), "at least 1"),
        (lambda: StaticGrid(ends=(1.5,)), "whole number"),  # type: ignore[arg-type]
        (lambda: paper_grid(1), "horizon must be at least 2"),
        (lambda: paper_grid(10, 11), "policies must be between 1 and 10"),
        (lambda: geometric_grid(10, 3, first=9), "first must be between 1 and 8"),
        (lambda: AdaptiveGrid(horizon=10, policies=0), "policies must be"),
        (lambda: warm_start(StaticGrid(ends=(2, 100)), 1), "must end before the first batch"),
    ],
)
def test_bad_grids_are_refused(make: Callable[[], object], words: str) -> None:
    raises(ParameterError, words, make)


def test_a_growing_grid_follows_what_came() -> None:
    """The plan looks two batches past the next one, and is made anew from the decisions that there were."""
    grid = GrowingGrid(first=40)
    assert grid.begin() == (40, 60, 150)
    assert grid.batch_sizes((60, 150), batch=2, start=50) == (75, 188, 470)
    assert GrowingGrid(first=40, policies=2).begin() == (40, 60)
    assert GrowingGrid(first=40, policies=2).batch_sizes((60,), batch=3, start=120) == ()
    assert GrowingGrid(first=40, factor=1.0001).batch_sizes((), batch=2, start=1) == (1, 1, 1)


def test_grids_of_a_number_are_made_at_once() -> None:
    """A file that asks for 10⁹ updates is refused before they are planned; powers do not overflow on the way."""
    for grid in (geometric_grid, paper_grid, paper_design_grid):
        raises(ParameterError, "policies must be between 1 and 10000; got 1000000000", grid, 10**18, 10**9)
