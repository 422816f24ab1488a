import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rareswitch.errors import ParameterError
from rareswitch.learner import (
    AdaptiveGrid,
    StaticGrid,
    custom_grid,
    geometric_grid,
    loglog_batches,
    paper_design_grid,
    paper_grid,
    warm_start,
)


@pytest.mark.parametrize("horizon", [16, 17, 255, 256, 257, 1000, 65_535, 65_536, 65_537, 10**5, 10**6, 10**7])
def test_the_number_of_batches_is_that_of_the_paper(horizon: int) -> None:
    expected = math.ceil(math.log2(math.log2(horizon)))
    assert loglog_batches(horizon) == expected
    assert paper_grid(horizon).batches == expected
    assert paper_design_grid(horizon).batches == expected + 1


def test_the_number_of_batches_for_every_horizon_in_a_range() -> None:
    for horizon in range(16, 5000):
        expected = math.ceil(math.log2(math.log2(horizon)))
        assert (paper_grid(horizon).batches, paper_design_grid(horizon).batches) == (expected, expected + 1)


def test_batch_ends_are_the_powers_of_the_paper() -> None:
    assert paper_grid(10**6).ends == (1000, 31622, 177827, 421696, 10**6)
    assert paper_design_grid(10**6).ends == (1000, 2000, 31622, 177827, 421696, 10**6)


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
        assert [grid.end(k + 1, 0, 1.0) for k in range(grid.batches)] == list(grid.ends)


@settings(max_examples=200)
@given(st.integers(2, 10**6), st.integers(1, 20), st.lists(st.floats(0.0, 10.0), min_size=20, max_size=20))
def test_the_adaptive_grid_always_reaches_the_horizon(horizon: int, batches: int, widths: list[float]) -> None:
    grid = AdaptiveGrid(horizon=horizon, batches=min(batches, horizon))
    start = used = 0
    while start < horizon:
        used += 1
        end = grid.end(used, start, widths[used - 1])
        assert start < end <= horizon
        start = end
    assert used <= grid.batches


def test_grids_of_ones_own() -> None:
    assert custom_grid([3, 7, 100]).ends == (3, 7, 100)
    assert geometric_grid(10_000, 5, first=1).ends == (1, 10, 100, 1000, 10_000)
    assert warm_start(custom_grid([30, 100]), 4).ends == (5, 30, 100)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: custom_grid([]), "at least one"),
        (lambda: custom_grid([5, 5]), "strictly increasing"),
        (lambda: custom_grid([0, 5]), "at least 1"),
        (lambda: custom_grid([1.5]), "whole number"),  # type: ignore[list-item]
        (lambda: paper_grid(1), "horizon must be at least 2"),
        (lambda: paper_grid(10, 11), "batches must be between 1 and 10"),
        (lambda: geometric_grid(10, 3, first=9), "first must be between 1 and 8"),
        (lambda: AdaptiveGrid(horizon=10, batches=0), "batches must be"),
        (lambda: warm_start(custom_grid([2, 100]), 1), "must end before the first batch"),
    ],
)
def test_bad_grids_are_refused(make: object, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        make()  # type: ignore[operator]
