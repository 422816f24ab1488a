"""Schedules that count decisions: as the learner plans, by hand, after so many."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from rareswitch.errors import ParameterError, several
from rareswitch.experiment.progress import Progress
from rareswitch.experiment.schedule import OUTLOOK, Due, End, Schedule
from rareswitch.learner import Forecast
from rareswitch.validation import count_of, number

#: What a run waits for whose learner plans no more policies.
OVER = "nothing: no policy is planned after this one. To go on, give forecast=…, the decisions to come"


@dataclass(frozen=True, kw_only=True)
class Planned(Schedule):
    """As the learner plans by itself, which is what simulations do.

    >>> progress = Progress.beginning(0.0, planned=(40, 60, 150))
    >>> str(Planned().due(progress))
    'waits for 40 more decisions (0 of 40 came); and a decision: none has come yet'
    """

    kind: ClassVar[str] = "planned"
    last_is_end: ClassVar[bool] = False  # whether anything follows, the learner knows

    def ends(self, progress: Progress) -> tuple[End, ...]:
        return _counted(progress.before, progress.planned)

    def due(self, progress: Progress) -> Due:
        if progress.over:
            return Due(False, (OVER,))
        found = super().due(progress)
        # what was learned from is all that an early update needs, and what it was asked for by is in it
        return found._replace(now=True, waits=()) if progress.early else found

    def forecast(self, progress: Progress) -> Forecast | None:
        return None

    def totals(self, *, rate: float | None, total: float | None, created: float | None) -> tuple[float, ...]:
        return ()

    def __str__(self) -> str:
        return "as the learner plans"


@dataclass(frozen=True, kw_only=True)
class ByHand(Schedule):
    """Whenever someone calls ``advance``."""

    kind: ClassVar[str] = "by-hand"

    def ends(self, progress: Progress) -> tuple[End, ...]:
        return ()

    def due(self, progress: Progress) -> Due:
        return Due(False, ("you: updates are made by hand",))

    def forecast(self, progress: Progress) -> Forecast | None:
        return None

    def totals(self, *, rate: float | None, total: float | None, created: float | None) -> tuple[float, ...]:
        return ()

    def __str__(self) -> str:
        return "by hand"


@dataclass(frozen=True, kw_only=True)
class After(Schedule):
    """After so many decisions, again and again; or where batches end, counted from the beginning.

    >>> After(decisions=1000).ends(Progress.beginning(0.0))
    (End(decisions=1000, at=None), End(decisions=2000, at=None), End(decisions=3000, at=None))
    >>> print(After(decisions=[100, 500, 2000]).table(Progress.beginning(0.0)))
    policy  until  decisions in all
         1                      100
         2                      500
         3                    2,000
    """

    kind: ClassVar[str] = "after"
    decisions: int | Sequence[int]
    #: Batches, where each has the same number of decisions; no end by default.
    times: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.decisions, (str, bytes)):
            raise ParameterError(f"decisions must be a number or a list of them; got {self.decisions!r:.60}.")
        times = self.times
        found: int | tuple[int, ...]
        if isinstance(self.decisions, Sequence):
            found = tuple(count_of("decisions, where batches end,", end) for end in self.decisions)
            if not found or any(a >= b for a, b in pairwise(found)):
                raise ParameterError(
                    "decisions, where batches end, must be at least one and increasing, counted from the beginning; "
                    f"got {list(found)}."
                )
            if times is not None:
                raise ParameterError("times is for batches of equal length; a list of ends says how many there are.")
        else:
            found = count_of("decisions, after which an update is due,", self.decisions)
            times = None if times is None else count_of("times, the number of batches,", times, low=2)
        vars(self).update(decisions=found, times=times)

    def ends(self, progress: Progress) -> tuple[End, ...]:
        if not isinstance(self.decisions, int):
            return tuple(End(end) for end in self.decisions[progress.policies - 1 :] if end > progress.before)
        left = OUTLOOK if self.times is None else max(0, self.times - progress.policies + 1)
        return _counted(progress.before, (self.decisions,) * left)

    def totals(self, *, rate: float | None, total: float | None, created: float | None) -> tuple[float, ...]:
        if not isinstance(self.decisions, int):
            return tuple(map(float, self.decisions))
        return equal_ends(float(self.decisions), self.times, total)

    def __str__(self) -> str:
        if not isinstance(self.decisions, int):
            return f"after {', '.join(f'{end:,}' for end in self.decisions)} decisions"
        return f"every {several(self.decisions, 'decision')}" + (f", {self.times} policies" if self.times else "")


def equal_ends(batch: float, times: int | None, total: float | None) -> tuple[float, ...]:
    """The ends of batches of equal length, up to a total where it is given; none where nothing says how many."""
    if times is None and total is None:
        return ()
    count = math.inf if times is None else times
    if total is not None:
        count = min(count, max(1, math.ceil(total / batch)))
    ends = [batch * k for k in range(1, int(count))]
    return (*ends, batch * count if total is None else number("total", total, low=1.0))


def _counted(before: int, lengths: Sequence[int]) -> tuple[End, ...]:
    """The ends of batches of these lengths."""
    return tuple(End(before + sum(lengths[: k + 1])) for k in range(len(lengths)))
