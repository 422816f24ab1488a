"""The schedules: the learner's own, by hand, after counts of decisions, by the calendar, and the cheapest one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from itertools import accumulate, count, islice, pairwise, takewhile
from typing import Any, ClassVar, Self

import numpy as np

from rareswitch.core import finite_array, number, whole
from rareswitch.errors import ParameterError, several
from rareswitch.learner import PER_FEATURE, POLICIES, Learner
from rareswitch.planning.regret_model import RegretCurve, best_ends
from rareswitch.planning.schedule import OUTLOOK, Due, End, Progress, Schedule, Wait
from rareswitch.planning.times import (
    DAY,
    WEEKDAYS,
    date_text,
    duration_of,
    duration_text,
    meetings_of,
    moment_of,
    weekly,
    zone_of,
)

__all__ = ["AfterCounts", "BestSchedule", "LearnerSchedule", "Manual", "Periodic"]

#: Periods that follow the clock on the wall, in days.
_DAYS = {"day": 1, "week": 7}
#: Batches of a schedule at the most, each of which is planned for: policies are few.
MOST_TIMES = 1_000
#: The shortest period in seconds.
_SHORTEST_PERIOD = 60.0
#: Seconds by which a week between meetings may be shorter than seven days: clocks change.
_CLOCKS = 3601.0
#: The least decisions in the rest of a run for which something is planned.
_SHORTEST_RUN = 2.0


@dataclass(frozen=True, kw_only=True)
class LearnerSchedule(Schedule):
    """As the learner plans by itself, which is what simulations do.

    >>> progress = replace(Progress.beginning(0.0), planned=(40, 60, 150))
    >>> print(LearnerSchedule().due(progress))
    Next update: after 40 more decisions (0 of 40); no decisions yet.
    """

    kind: ClassVar[str] = "planned"
    last_is_end: ClassVar[bool] = False  # whether anything follows, the learner knows
    learner_plans: ClassVar[bool] = True

    def ends(self, progress: Progress) -> tuple[End, ...]:
        return _counted(progress.before, progress.planned)

    def due(self, progress: Progress) -> Due:
        if progress.over:
            return Due(now=False, waits=(Wait(kind="done"),))
        due = super().due(progress)
        # what was learned from is all that an early update needs, and what it was asked for by is in it
        return Due(now=True, at=due.at, decisions=due.decisions) if progress.early else due

    def __str__(self) -> str:
        return "as the learner plans"


@dataclass(frozen=True, kw_only=True)
class Manual(Schedule):
    """Whenever someone calls ``advance``."""

    kind: ClassVar[str] = "by-hand"
    learner_plans: ClassVar[bool] = True

    def ends(self, progress: Progress) -> tuple[End, ...]:
        return ()

    def due(self, progress: Progress) -> Due:
        return Due(now=False, waits=(Wait(kind="manual"),))

    def __str__(self) -> str:
        return "by hand"


@dataclass(frozen=True, kw_only=True)
class AfterCounts(Schedule):
    """After a number of decisions, repeatedly; or at a list of batch ends, counted from the beginning.

    >>> AfterCounts(decisions=1000).ends(Progress.beginning(0.0))
    (End(decisions=1000, at=None), End(decisions=2000, at=None), End(decisions=3000, at=None))
    >>> print(AfterCounts(decisions=[100, 500, 2000]).table(Progress.beginning(0.0)))
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
        decisions: int | tuple[int, ...]
        if isinstance(self.decisions, Sequence):
            decisions = tuple(whole("decisions, where batches end,", end) for end in self.decisions)
            if not decisions or any(a >= b for a, b in pairwise(decisions)):
                raise ParameterError(
                    "decisions, where batches end, must be at least one and increasing, counted from the beginning; "
                    f"got {list(decisions)}."
                )
            if times is not None:
                raise ParameterError("times is for batches of equal length; a list of ends says how many there are.")
        else:
            decisions = whole("decisions, after which an update is due,", self.decisions)
            times = None if times is None else _times(times)
        vars(self).update(decisions=decisions, times=times)

    @property
    def endless(self) -> bool:
        return isinstance(self.decisions, int) and self.times is None

    def ends(self, progress: Progress) -> tuple[End, ...]:
        if not isinstance(self.decisions, int):
            return tuple(End(end) for end in self.decisions[progress.policies - 1 :] if end > progress.before)
        left = OUTLOOK if self.times is None else max(0, self.times - progress.policies + 1)
        return _counted(progress.before, [self.decisions] * left)

    def __str__(self) -> str:
        if not isinstance(self.decisions, int):
            return f"after {', '.join(f'{end:,}' for end in self.decisions)} decisions"
        return f"every {several(self.decisions, 'decision')}" + (f", {self.times} policies" if self.times else "")


def _times(times: int) -> int:
    return whole("times, the number of batches,", times, low=2, high=MOST_TIMES)


def _counted(before: int, lengths: Iterable[int]) -> tuple[End, ...]:
    """The ends of batches of these lengths."""
    return tuple(End(before + total) for total in accumulate(lengths))


@dataclass(frozen=True, kw_only=True)
class Periodic(Schedule):
    """Every week, day, number of hours or weekday, for a number of times.

    Days and weeks are those of the time zone: 09:00 stays 09:00 when clocks change.

    Parameters
    ----------
    period
        ``"week"``, ``"day"``, a weekday such as ``"monday"``, or a duration such as ``"6 hours"``.
    times
        Batches, and so policies; the last date is the end. No end by default.
    start
        From when on; the moment at which the experiment was created by default.
    at
        The time of day of a weekday's updates.
    zone
        The time zone, such as Europe/Berlin.
    rate
        Decisions a day, as expected: a forecast until some have come.

    Examples
    --------
    >>> mondays = Periodic(period="monday", times=3, start="2026-03-05", at="09:00")
    >>> print(mondays.table(Progress.beginning(mondays.start)))
    policy  until                         decisions in all
         1  Mon 9 March 2026, 09:00 UTC                  ?
         2  Mon 16 March 2026, 09:00 UTC                 ?
         3  Mon 23 March 2026, 09:00 UTC                 ?
    """

    kind: ClassVar[str] = "every"
    durations: ClassVar[tuple[str, ...]] = ("period",)
    period: Any
    times: int | None = None
    start: Any = None
    at: str = "00:00"
    zone: str = "UTC"
    rate: float | None = None

    def __post_init__(self) -> None:
        zone_of(self.zone)
        period = self.period.strip().lower() if isinstance(self.period, str) else self.period
        if period not in (*WEEKDAYS, *_DAYS):
            try:
                period = number("period", duration_of("period", period), low=_SHORTEST_PERIOD, high=3660 * DAY)
            except ParameterError as error:
                raise ParameterError(
                    f"period must be 'week', 'day', a weekday such as 'monday', or a duration of at least a minute "
                    f"with its unit, as '6 hours'; got {self.period!r:.60}."
                ) from error
        try:
            of_day = time.fromisoformat(self.at)
        except (TypeError, ValueError):
            raise ParameterError(f"at must be a time of day such as '09:00'; got {self.at!r:.60}.") from None
        if period not in WEEKDAYS and of_day != time():
            raise ParameterError(f"at is for weekdays, as in 'monday 09:00'; the period is {self.period!r:.60}.")
        start = None if self.start is None else moment_of("start", self.start, self.zone)
        times = None if self.times is None else _times(self.times)
        rate = None if self.rate is None else number("rate, the decisions a day,", self.rate, low=0.0, open_low=True)
        vars(self).update(period=period, start=start, times=times, rate=rate)

    def dates(self, created: float) -> Iterator[float]:
        """When batches end, in seconds since 1970."""
        start = created if self.start is None else self.start
        if not isinstance(self.period, str):
            yield from islice((start + self.period * k for k in count(1)), self.times)
            return
        if self.period in WEEKDAYS:
            yield from islice(weekly(start, self.period, self.at, self.zone), self.times)
            return
        first, step = datetime.fromtimestamp(start, zone_of(self.zone)), timedelta(days=_DAYS[self.period])
        yield from islice(((first + step * k).timestamp() for k in count(1)), self.times)

    @property
    def endless(self) -> bool:
        return self.times is None

    def ends(self, progress: Progress) -> tuple[End, ...]:
        rate = progress.rate or (self.rate / DAY if self.rate else None)
        coming = (date for date in self.dates(progress.created) if date > progress.published[-1])
        return tuple(
            End(None if rate is None else max(1, round(progress.total + rate * (date - progress.now))), date)
            for date in islice(coming, OUTLOOK if self.times is None else None)
        )

    def __str__(self) -> str:
        period = self.period if isinstance(self.period, str) else duration_text(self.period)
        if self.period in WEEKDAYS:
            period = f"{self.period.capitalize()} at {self.at} {self.zone}"
        many = "" if self.times is None else f", {self.times} policies"
        return f"every {period}{many}" + ("" if self.start is None else f", from {date_text(self.start, self.zone)}")


@dataclass(frozen=True, kw_only=True)
class BestSchedule(Schedule):
    """At most this number of updates, at the times that cost least by the model of the regret.

    Either ``decisions`` says how many there will be in all, and updates are due after counts of them; or ``rate`` and
    ``end`` say how many come a day and until when, and updates have dates. Dates move with the rate that is seen.

    Parameters
    ----------
    policies
        The most policies, the first included; those of the learner, or 8, by default.
    decisions
        In all, T.
    rate, end
        Decisions a day, as expected, and when the experiment ends.
    delay
        How long after a decision its reward is known; the attribution window by default.
    gap
        The least time between two updates, and before the first one.
    first
        The earliest first update after the creation; the gap by default.
    on
        Weekdays and times of day at which updates may be made, such as ``"monday 10:00"`` or
        ``"monday thursday 10:00"``: the best of these meetings. An update is due at its meeting and for a day after;
        one that was missed for longer is planned anew, for a later meeting.
    zone
        The time zone of ``end`` and ``on``, such as Europe/Berlin.
    dim
        Features of an arm; the learner's.
    regret
        What a decision costs after how many others were learned from: increasing pairs (decisions, cost), in units of
        uniform exploration, as :func:`~rareswitch.planning.plan` simulates them. By default 2·dim/decisions.

    Examples
    --------
    >>> print(BestSchedule(decisions=10_000, policies=5, dim=10).table(Progress.beginning(0.0)))
    policy  until  decisions in all
         1                       69
         2                      241
         3                      840
         4                    2,923
         5                   10,000
    """

    kind: ClassVar[str] = "best"
    durations: ClassVar[tuple[str, ...]] = ("delay", "gap", "first")
    policies: int | None = None
    decisions: int | None = None
    rate: float | None = None
    end: Any = None
    delay: Any = None
    gap: Any = 0.0
    first: Any = None
    on: str | Sequence[str] | None = None
    zone: str = "UTC"
    dim: int | None = None
    regret: Sequence[Sequence[float]] | None = None

    def __post_init__(self) -> None:
        zone_of(self.zone)
        checked: dict[str, float | str | tuple[tuple[float, float], ...]] = {
            name: duration_of(name, value) for name in self.durations if (value := getattr(self, name)) is not None
        }
        if self.on is not None:
            checked["on"] = meetings_of("on", self.on)
        if self.policies is not None:
            checked["policies"] = whole("policies", self.policies, low=2, high=1000)
        if self.dim is not None:
            checked["dim"] = whole("dim", self.dim)
        if self.decisions is not None:
            checked["decisions"] = whole("decisions, in all,", self.decisions, low=2)
        if self.rate is not None:
            checked["rate"] = number("rate, the decisions a day,", self.rate, low=0.0, high=1e12, open_low=True)
        if self.end is not None:
            checked["end"] = moment_of("end", self.end, self.zone)
        if self.regret is not None:
            checked["regret"] = _pairs(self.regret)
        vars(self).update(checked)
        dated = self.rate is not None and self.end is not None
        if self.decisions is not None and (self.rate is not None or self.end is not None):
            raise ParameterError(
                "decisions, in all, are for schedules that count; rate and end for those with dates: give one or the "
                "other."
            )
        if not dated and (self.rate is not None or self.end is not None):
            raise ParameterError(
                "rate and end belong together: dates are planned from the decisions a day and the last day, as in "
                "BestSchedule(policies=8, rate=2000, end='2026-06-01')."
            )
        if not dated and (self.gap or self.delay or self.first or self.on):
            raise ParameterError(
                "gap, delay and first are durations, and on is for dates, which a schedule that counts decisions "
                "cannot keep: give rate and end in place of decisions."
            )

    @property
    def curve(self) -> RegretCurve | None:
        return None if self.regret is None else RegretCurve(*map(tuple, zip(*self.regret, strict=True)))

    def made_for(self, learner: Learner) -> Self:
        """With what the learner says of features, policies and decisions, where this schedule does not."""
        planned = getattr(learner, "policies", None)
        if self.policies is not None and planned not in (None, self.policies):
            raise ParameterError(
                f"schedule: best times for {self.policies} policies, and the learner has policies={planned}: give one "
                "of the two."
            )
        decisions = learner.horizon if self.decisions is None and self.rate is None else self.decisions
        if decisions is None and self.rate is None:
            raise ParameterError(
                "schedule: the best times depend on how long the experiment runs. Give the learner a horizon, the "
                "decisions in all; or BestSchedule(policies=8, rate=2000, end='2026-06-01'), decisions a day and "
                "the last day ('best:rate=2000,end=2026-06-01' on the command line)."
            )
        return replace(
            self, dim=self.dim or learner.dim, policies=self.policies or planned or POLICIES, decisions=decisions
        )

    def ends(self, progress: Progress) -> tuple[End, ...]:
        if self.dim is None:
            raise ParameterError("dim, the features of an arm, is not known to this schedule: give dim=….")
        left = (self.policies or POLICIES) - progress.policies + 1
        if self.decisions is not None:
            ends = _best_ends(float(self.decisions), left, progress.before, self.dim, self.curve)
            return tuple(End(round(end)) for end in ends)
        rate = self.expected_rate(progress)
        published, first = progress.published[-1], self.gap if self.first is None else self.first

        def by(moment: float) -> float:
            """Decisions in all at that moment."""
            return progress.total + rate * (moment - progress.now)

        delay = self.delay if self.delay is not None else progress.window or 0.0
        meetings = self.meetings(published - DAY) if self.on else []
        # an update is made some minutes after its meeting, and gaps are those between meetings
        begun = published if progress.policies == 1 else max((m for m in meetings if m <= published), default=published)
        between = max(0.0, self.gap - (_CLOCKS if self.on else 0.0))
        earliest = by(begun + (first if progress.policies == 1 else between))
        earliest = max(earliest, by(published + delay) + 1.0)  # an update learns from a reward of its batch at least
        limits = {"earliest": earliest, "gap": max(rate * between, rate * delay + 1.0), "delay": rate * delay}
        total = by(self.end)
        if self.on is None:
            ends = _best_ends(total, left, progress.before, self.dim, self.curve, **limits)
            return tuple(End(round(end), progress.now + (end - progress.total) / rate) for end in ends)
        dates = {by(at): at for at in meetings if at > max(published, progress.now - DAY)}
        ends = _best_ends(total, left, progress.before, self.dim, self.curve, times=[*dates], **limits)
        return tuple(End(round(end), dates.get(end, self.end)) for end in ends)

    def meetings(self, start: float) -> list[float]:
        """The moments after ``start`` and before the end at which updates may be made."""
        meetings = [meeting.split() for meeting in str(self.on).split(", ")]
        each = (weekly(start, weekday, of_day, self.zone) for weekday, of_day in meetings)
        return sorted(at for dates in each for at in takewhile(lambda at: at < self.end, dates))

    def expected_rate(self, progress: Progress) -> float:
        """Decisions a second: ``rate``, which weighs as the decisions of a first policy, and the observed rate."""
        assert self.rate is not None
        worth = PER_FEATURE * (self.dim or 1)
        return (progress.total + worth) / (progress.now - progress.created + worth * DAY / self.rate)

    def __str__(self) -> str:
        long = (
            f"{self.decisions:,} decisions"
            if self.decisions is not None
            else f"{self.rate:g} decisions a day until {date_text(self.end, self.zone)}"
            if self.rate is not None
            else "the learner's horizon"
        )
        more = [
            f"{name} {duration_text(value)}"
            for name, value in (("gap", self.gap), ("delay", self.delay), ("first after", self.first))
            if value
        ]
        more += [] if self.on is None else [f"on {str(self.on).title()} {self.zone}"]
        return ", ".join([f"at the best times for {self.policies or POLICIES} policies over {long}", *more])


def _best_ends(
    total: float,
    policies: int,
    before: int,
    dim: int,
    curve: RegretCurve | None,
    times: Sequence[float] | None = None,
    **limits: float,
) -> tuple[float, ...]:
    """The best ends of the policies that are left; none where no policy or too little of the run is left."""
    if policies < 1 or total - before < _SHORTEST_RUN:
        return ()
    return best_ends(total, policies, dim=dim, start=before, times=times, curve=curve, **limits)


def _pairs(regret: Sequence[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    """The points of a regret curve, checked."""
    points = finite_array("regret", regret)
    known, price = points.T if points.ndim == 2 and points.shape[1] == 2 and len(points) else np.zeros((2, 1))
    if known[0] <= 0.0 or price.max() > 1.0 or price.min() <= 0.0 or (np.diff(known) <= 0.0).any():
        raise ParameterError(
            "regret must be pairs (decisions, cost), decisions increasing from above 0 and costs above 0 up to 1; got "
            f"{regret!r:.60}. Take those of plan(…).schedule.",
            parameter="regret",
        )
    return tuple(zip(known.tolist(), price.tolist(), strict=True))
