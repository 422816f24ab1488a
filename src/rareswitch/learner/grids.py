"""When batches end: grids 0 = T_0 < T_1 < … < T_M = T, and how forecasts become batches.

All are rounded to whole decisions and strictly increasing, however small T is.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from rareswitch.core import kind, number, whole
from rareswitch.errors import ParameterError
from rareswitch.learner.clocks import Clock, ToTheHorizon

__all__ = ["PER_FEATURE", "POLICIES", "AdaptiveGrid", "Forecast", "StaticGrid", "geometric_grid", "loglog_batches"]
__all__ += ["paper_design_grid", "paper_grid", "warm_start", "whole_ends"]

#: c: a policy that was learned from n decisions costs c·d/n of what uniform exploration does, and as much as that up to
#: c·d of them. With 2 the model says of weekly updates, of a day's gap and of never updating what was measured in six
#: worlds, within a tenth.
PER_FEATURE = 2.0
#: Policies of a run where nobody says how many.
POLICIES = 8
#: Of a grid that is made of a number: more would take long to plan, and are no longer rare.
MOST_UPDATES = 10_000
#: Stands for an :class:`AdaptiveGrid` to the learner's horizon, on the command line and in files.
ADAPTIVE = "adaptive"


@kind("static-grid")
@dataclass(frozen=True, kw_only=True)
class StaticGrid(Clock):
    """Batch ends that are fixed in advance. A batch that comes out longer or shorter moves those after it.

    >>> StaticGrid(ends=(4, 16)).begin()
    (4, 12)
    """

    ends: tuple[int, ...]

    def __post_init__(self) -> None:
        ends = tuple(whole("a batch end", end, high=None) for end in self.ends)
        if not ends or any(a >= b for a, b in pairwise(ends)):
            raise ParameterError(f"batch ends must be at least one and strictly increasing; got {list(self.ends)}.")
        vars(self).update(ends=ends)

    @property
    def horizon(self) -> int:  # type: ignore[override]
        """T, the last batch end."""
        return self.ends[-1]

    @property
    def policies(self) -> int:
        """M, the number of batches and so of policies."""
        return len(self.ends)

    def begin(self) -> tuple[int, ...]:
        return lengths(self.ends, start=0)

    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int) -> tuple[int, ...]:
        return planned


@kind("adaptive-grid")
@dataclass(frozen=True, kw_only=True)
class AdaptiveGrid(ToTheHorizon):
    """At most ``policies`` batches, each of a length that is chosen when it begins, by :meth:`length`.

    >>> AdaptiveGrid(horizon=10_000, policies=8).begin()
    (100,)
    """

    policies: int

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self).update(policies=whole("policies", self.policies, high=self.horizon))

    def begin(self) -> tuple[int, ...]:
        return (self.length(batch=1, start=0, width=1.0),)

    def length(self, *, batch: int, start: int, width: float) -> int:
        """Decisions of batch number ``batch``, which begins after ``start`` decisions.

        A batch of n decisions costs at most n·min(1, 4·``width``), where the width is the mean over context sets of the
        widest surviving interval. Each batch is as long as that cost stays within √T, which is what the first, of √T
        decisions, may cost; the last takes the rest. With widths ~ √(d/n) this is the recursion T_k = √(T·T_{k-1})
        behind the paper's grid, driven by the widths that were measured.
        """
        if batch >= self.policies:
            return self.horizon - start
        decisions = math.isqrt(self.horizon) / min(1.0, max(4.0 * width, 1e-12))
        latest = self.horizon - (self.policies - batch)
        return max(1, int(min(latest, start + max(1.0, decisions))) - start)


#: What a setting may be that says where batches end; some learners take an adaptive one, or the word for it.
GridLike: TypeAlias = StaticGrid | AdaptiveGrid | Sequence[int] | str


@dataclass(frozen=True, kw_only=True)
class GrowingGrid(Clock):
    """Batches for a horizon that is not known: all decisions so far grow by ``factor`` from one update to the next.

    The plan looks ``outlook`` batches ahead; how many follow is not known.

    >>> GrowingGrid(first=40).begin()
    (40, 60, 150)
    """

    first: int
    factor: float = 2.5
    #: The most policies; no limit by default.
    policies: int | None = None
    outlook: int = 2
    horizon: None = None

    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int) -> tuple[int, ...]:
        left = math.inf if self.policies is None else self.policies - batch + 1
        sizes = list[int]()
        while len(sizes) < min(left, self.outlook + 1):
            total = start + sum(sizes)
            sizes.append(max(1, round(total * (self.factor - 1.0))) if total else self.first)
        return tuple(sizes)

    def policies_for(self, decisions: int, *, planned: tuple[int, ...], start: int) -> int:
        wanted = math.ceil(math.log((start + decisions) / start) / math.log(self.factor))
        return max(1, wanted if self.policies is None else min(wanted, len(planned)))


def as_grid(name: str, value: GridLike) -> StaticGrid:
    """A grid; a sequence of batch ends is one too.

    >>> as_grid("grid", [20, 50]).ends
    (20, 50)
    """
    if isinstance(value, StaticGrid):
        return value
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ParameterError(
            f"{name} must be batch ends, as in [100, 500, 1000], or a grid such as geometric_grid(1000, 5); got "
            f"{value!r:.60}."
        )
    try:
        return StaticGrid(ends=tuple(value))
    except ParameterError as error:
        raise ParameterError(f"{name}: {error}") from None


def as_grid_or_adaptive(name: str, value: GridLike) -> StaticGrid | AdaptiveGrid | str:
    """A grid, or the word for one that follows the widths of the learner's intervals.

    >>> as_grid_or_adaptive("grid", "adaptive")
    'adaptive'
    """
    if isinstance(value, AdaptiveGrid) or (isinstance(value, str) and value == ADAPTIVE):
        return value
    return as_grid(name, value)


def loglog_batches(horizon: int) -> int:
    """⌈log₂ log₂ T⌉, at least 1, in whole numbers: the least M with 2^(2^M) ≥ T.

    >>> [loglog_batches(t) for t in (2, 4, 16, 17, 256, 10**6)]
    [1, 1, 2, 3, 3, 5]
    """
    whole("horizon", horizon, low=2, high=None)
    batches = 1
    while 2 ** (2**batches) < horizon:
        batches += 1
    return batches


def paper_grid(horizon: int, policies: int | None = None) -> StaticGrid:
    """T_i = T^(1-2^-i) with M = ⌈log log T⌉ batches; for any other M, T_i = T^((1-2^-i)/(1-2^-M)).

    The second is the grid of contribution (C2): its regret is of the order T^(1/(2(1-2^-M))).

    >>> paper_grid(10_000).ends
    (100, 1000, 3162, 10000)
    >>> paper_grid(10_000, policies=2).ends
    (464, 10000)
    """
    if policies is None:
        policies = loglog_batches(horizon)
        return _static([horizon ** (1 - 2.0**-i) for i in range(1, policies)], horizon)
    _check(horizon, policies)
    return _static([horizon ** ((1 - 2.0**-i) / (1 - 2.0**-policies)) for i in range(1, policies)], horizon)


def paper_design_grid(horizon: int, policies: int | None = None) -> StaticGrid:
    """The grid of Algorithm 5: T_1 = √T, T_2 = 2√T, T_i = T^(1-2^-(i-1)), with M = ⌈log log T⌉ + 1 batches.

    For any other M ≥ 3 the exponents are scaled as in :func:`paper_grid`, T_i = T^((1-2^-(i-1))/(1-2^-(M-1))); with two
    batches there is nothing to learn a design for, and the grid is that of :func:`paper_grid`.

    Where Theorem 6 holds, its proof gives a regret of √(d log d log(dKT/δ))·T^(1/(2(1-2^-(M-1)))), up to M: the first
    two batches cost at most their 2·T_1 decisions, batch i ≥ 3 at most T_i/√T_(i-1) times the deviation √(d log d) of
    the design before it. Contribution (C2) states M in place of M - 1. With its grid, ``paper_grid(T, M)``, the second
    batch is long and rests on G-optimal play alone, so that what is proved has the exponent of (C2) and d in place of
    √(d log d). At horizons that can be run d is all that is proved, and that grid has the smaller bound.

    >>> paper_design_grid(10_000).ends
    (100, 200, 1000, 3162, 10000)
    >>> paper_design_grid(10**6, 3).ends, paper_grid(10**6, 3).ends   # T^(2/3) against d·T^(4/7)
    ((10000, 20000, 1000000), (2682, 138949, 1000000))
    """
    if policies is None:
        policies = min(loglog_batches(horizon) + 1, horizon)
        scale = 1.0
    else:
        _check(horizon, policies)
        if policies <= 2:
            return paper_grid(horizon, policies)
        scale = 1.0 / (1 - 2.0 ** -(policies - 1))
    ends = [horizon ** (scale * (1 - 2.0 ** -max(1, i - 1))) * (2 if i == 2 else 1) for i in range(1, policies)]
    return _static(ends, horizon)


def geometric_grid(horizon: int, policies: int, *, first: int | None = None) -> StaticGrid:
    """Batch ends in a geometric progression from ``first`` (by default √T, or less if the batches need it) to T.

    >>> geometric_grid(10_000, 3).ends
    (100, 1000, 10000)
    """
    _check(horizon, policies)
    if policies == 1:
        return StaticGrid(ends=(horizon,))
    begin = math.sqrt(horizon) if first is None else float(whole("first", first, high=horizon - policies + 1))
    ratio = (horizon / begin) ** (1.0 / (policies - 1))
    return _static([begin * ratio**i for i in range(policies - 1)], horizon)


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


def _static(ends: Iterable[float], horizon: int) -> StaticGrid:
    return StaticGrid(ends=whole_ends(ends, start=0, stop=horizon))


def _check(horizon: int, policies: int) -> None:
    whole("horizon", horizon, low=2, high=None)
    whole("policies", policies, high=min(horizon, MOST_UPDATES))


#: Decisions to come in all, or those of each batch to come, the next one first.
Forecast = int | Sequence[int]


def batch_sizes_of(forecast: Forecast, *, start: int, policies: Callable[[int], int]) -> tuple[int, ...]:
    """Decisions of each batch to come; none where the run ends.

    A number of decisions in all is spread over ``policies`` of it, so that all decisions so
    far grow by the same factor from one update to the next.

    >>> batch_sizes_of([300, 700], start=40, policies=lambda decisions: 5)
    (300, 700)
    >>> batch_sizes_of(960, start=40, policies=lambda decisions: 2)
    (160, 800)
    """
    if isinstance(forecast, Iterable) and not isinstance(forecast, (str, bytes, Mapping)):
        sizes = tuple(whole("forecast, the decisions of each batch to come,", count) for count in forecast)
        if not sizes:
            raise ParameterError("forecast must name at least one batch to come; got an empty list. 0 ends the run.")
        return sizes
    if not isinstance(forecast, (int, float, np.number)):
        raise ParameterError(
            f"forecast must be the decisions to come in all, or a list of those of each batch; got {forecast!r:.60}."
        )
    total = whole("forecast, the decisions to come,", forecast, low=0)
    if total == 0:
        return ()
    count, begin = max(1, min(policies(total), total)), max(1, start)
    ratio = ((begin + total) / begin) ** (1.0 / count)
    return lengths(whole_ends([begin * ratio**k - begin for k in range(1, count)], start=0, stop=total), start=0)


def whole_ends(ends: Iterable[float], *, start: int, stop: int) -> tuple[int, ...]:
    """Batch ends after ``start`` as whole numbers, strictly increasing, with room for those that follow; ``stop`` last.

    >>> whole_ends([0.3, 0.4, 99.0], start=0, stop=10)
    (1, 2, 9, 10)
    """
    ends, last, whole_numbers = [*ends], start, list[int]()
    for left, end in zip(range(len(ends), 0, -1), ends, strict=True):
        # powers such as 10000^0.5 come out a hair below the whole number they are
        last = min(stop - left, max(last + 1, math.floor(end + 1e-6)))
        whole_numbers.append(last)
    return (*whole_numbers, stop)


def lengths(ends: Sequence[int], *, start: int) -> tuple[int, ...]:
    """Decisions of each batch, of where batches end.

    >>> lengths((4, 16), start=1)
    (3, 12)
    """
    return tuple(b - a for a, b in pairwise((start, *ends)))
