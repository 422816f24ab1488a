"""When batches end: grids 0 = T_0 < T_1 < … < T_M = T.

All are rounded to whole decisions and strictly increasing, however small T is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rareswitch.errors import ParameterError
from rareswitch.validation import number, whole


@dataclass(frozen=True, kw_only=True)
class StaticGrid:
    """Batch ends that are fixed in advance.

    >>> StaticGrid(ends=(4, 16)).batches
    2
    """

    ends: tuple[int, ...]

    def __post_init__(self) -> None:
        ends = tuple(whole("a batch end", end) for end in self.ends)
        if not ends or any(a >= b for a, b in pairwise(ends)):
            raise ParameterError(f"batch ends must be at least one and strictly increasing; got {self.ends}.")
        object.__setattr__(self, "ends", ends)

    @property
    def horizon(self) -> int:
        """T, the last batch end."""
        return self.ends[-1]

    @property
    def batches(self) -> int:
        """M."""
        return len(self.ends)

    @property
    def needs_width(self) -> bool:
        """Whether :meth:`end` looks at the width."""
        return False

    def end(self, batch: int, start: int, width: float) -> int:
        """Where batch number ``batch`` (from 1) ends; ``start`` and ``width`` are ignored."""
        return self.ends[batch - 1]


@dataclass(frozen=True, kw_only=True)
class AdaptiveGrid:
    """Batches whose length is chosen when they begin, at most ``batches`` of them.

    A batch of n decisions costs at most n·min(1, 4w), where w is the mean over context sets of the widest surviving
    interval. Each batch is as long as that cost stays within √T, which is what the first, of √T decisions, may cost;
    the last takes the rest. With widths ~ √(d/n) this is the recursion T_k = √(T·T_{k-1}) behind the paper's grid,
    driven by the widths that were measured.
    """

    horizon: int
    batches: int

    def __post_init__(self) -> None:
        whole("horizon", self.horizon, low=2)
        whole("batches", self.batches, high=self.horizon)

    @property
    def needs_width(self) -> bool:
        """Whether :meth:`end` looks at the width."""
        return True

    def end(self, batch: int, start: int, width: float) -> int:
        """Where batch number ``batch`` (from 1) ends, given that it begins at ``start``."""
        if batch == self.batches:
            return self.horizon
        length = math.isqrt(self.horizon) / min(1.0, max(4.0 * width, 1e-12))
        latest = self.horizon - (self.batches - batch)
        return int(min(latest, start + max(1.0, length)))


Grid = StaticGrid | AdaptiveGrid


def loglog_batches(horizon: int) -> int:
    """⌈log₂ log₂ T⌉, at least 1, in whole numbers: the least M with 2^(2^M) ≥ T.

    >>> [loglog_batches(t) for t in (2, 4, 16, 17, 256, 10**6)]
    [1, 1, 2, 3, 3, 5]
    """
    whole("horizon", horizon, low=2)
    batches = 1
    while 2 ** (2**batches) < horizon:
        batches += 1
    return batches


def paper_grid(horizon: int, batches: int | None = None) -> StaticGrid:
    """T_i = T^(1-2^-i) with M = ⌈log log T⌉ batches; for any other M, T_i = T^((1-2^-i)/(1-2^-M)).

    The second is the grid of contribution (C2): its regret is of the order T^(1/(2(1-2^-M))).

    >>> paper_grid(10_000).ends
    (100, 1000, 3162, 10000)
    >>> paper_grid(10_000, batches=2).ends
    (464, 10000)
    """
    if batches is None:
        batches = loglog_batches(horizon)
        return _rounded([horizon ** (1 - 2.0**-i) for i in range(1, batches)], horizon)
    _check_batches(horizon, batches)
    return _rounded([horizon ** ((1 - 2.0**-i) / (1 - 2.0**-batches)) for i in range(1, batches)], horizon)


def paper_design_grid(horizon: int, batches: int | None = None) -> StaticGrid:
    """The grid of Algorithm 5: T_1 = √T, T_2 = 2√T, T_i = T^(1-2^-(i-1)), with M = ⌈log log T⌉ + 1 batches.

    For any other M ≥ 3 the exponents are scaled as in :func:`paper_grid`, T_i = T^((1-2^-(i-1))/(1-2^-(M-1))); with two
    batches there is nothing to learn a design for, and the grid is that of :func:`paper_grid`.

    >>> paper_design_grid(10_000).ends
    (100, 200, 1000, 3162, 10000)
    """
    if batches is None:
        batches = min(loglog_batches(horizon) + 1, horizon)
        scale = 1.0
    else:
        _check_batches(horizon, batches)
        if batches <= 2:
            return paper_grid(horizon, batches)
        scale = 1.0 / (1 - 2.0 ** -(batches - 1))
    ends = [horizon ** (scale * (1 - 2.0 ** -max(1, i - 1))) * (2 if i == 2 else 1) for i in range(1, batches)]
    return _rounded(ends, horizon)


def geometric_grid(horizon: int, batches: int, *, first: int | None = None) -> StaticGrid:
    """Batch ends in a geometric progression from ``first`` (by default √T, or less if the batches need it) to T.

    >>> geometric_grid(10_000, 3).ends
    (100, 1000, 10000)
    """
    _check_batches(horizon, batches)
    if batches == 1:
        return StaticGrid(ends=(horizon,))
    begin = math.sqrt(horizon) if first is None else float(whole("first", first, high=horizon - batches + 1))
    ratio = (horizon / begin) ** (1.0 / (batches - 1))
    return _rounded([begin * ratio**i for i in range(batches - 1)], horizon)


def doubling_grid(horizon: int, batches: int | None = None) -> StaticGrid:
    """Batch ends 2, 4, 8, … up to T; for a given number of batches the grid of :func:`paper_grid`.

    >>> doubling_grid(100).ends
    (2, 4, 8, 16, 32, 64, 100)
    """
    whole("horizon", horizon, low=2)
    if batches is not None:
        return paper_grid(horizon, batches)
    return StaticGrid(ends=(*(2**i for i in range(1, horizon.bit_length()) if 2**i < horizon), horizon))


def growing_grid(horizon: int, batches: int) -> StaticGrid:
    """Batches of lengths q, q², …, q^M, with q such that they add up to T.

    >>> growing_grid(1000, 3).ends
    (9, 102, 1000)
    """
    _check_batches(horizon, batches)
    low, high = 1.0, float(horizon)
    for _ in range(200):  # bisection, to the last bit
        ratio = (low + high) / 2.0
        low, high = (ratio, high) if sum(ratio**i for i in range(1, batches + 1)) < horizon else (low, ratio)
    return _rounded([sum(low**i for i in range(1, m + 1)) for m in range(1, batches)], horizon)


def custom_grid(ends: Sequence[int]) -> StaticGrid:
    """Your own batch ends, strictly increasing; the last is the horizon.

    >>> custom_grid([100, 500, 1000]).batches
    3
    """
    return StaticGrid(ends=tuple(ends))


def warm_start(grid: StaticGrid, dim: int) -> StaticGrid:
    """Put a first batch up to √(T/d) before a grid (the remark after Theorem 6).

    >>> warm_start(paper_design_grid(10_000), 25).ends
    (20, 100, 200, 1000, 3162, 10000)
    """
    number("dim", dim, low=1)
    first = max(1, round(math.sqrt(grid.horizon / dim)))
    if first >= grid.ends[0]:
        raise ParameterError(
            f"a warm start must end before the first batch; √(T/d) = {first} and the first batch ends at "
            f"{grid.ends[0]}. Leave the warm start out."
        )
    return StaticGrid(ends=(first, *grid.ends))


def _rounded(ends: list[float], horizon: int) -> StaticGrid:
    """Whole, strictly increasing, with room for the ends that follow."""
    rounded: list[int] = []
    for i, end in enumerate(ends):
        low = rounded[-1] + 1 if rounded else 1
        high = horizon - (len(ends) - i)
        # powers such as 10000^0.5 come out a hair below the whole number they are
        rounded.append(min(high, max(low, math.floor(end + 1e-6))))
    return StaticGrid(ends=(*rounded, horizon))


def _check_batches(horizon: int, batches: int) -> None:
    whole("horizon", horizon, low=2)
    whole("batches", batches, high=horizon)
