"""Updates by the calendar: every week, every day, every Monday."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import count, islice
from typing import Any, ClassVar

from rareswitch.errors import ParameterError
from rareswitch.experiment.counted import equal_ends
from rareswitch.experiment.durations import duration_of, duration_text
from rareswitch.experiment.moments import date_text, moment_of, zone_of
from rareswitch.experiment.progress import Progress
from rareswitch.experiment.schedule import DAY, OUTLOOK, End, Schedule
from rareswitch.validation import count_of, number

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: Periods that follow the clock on the wall, in days.
_DAYS = {"day": 1, "week": 7}
#: The shortest period in seconds.
_SHORTEST = 60.0


@dataclass(frozen=True, kw_only=True)
class Every(Schedule):
    """Every week or day, every so many hours, or every Monday, for so many times.

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
    >>> mondays = Every(period="monday", times=3, start="2026-03-05", at="09:00")
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
                period = number("period", duration_of("period", period), low=_SHORTEST, high=3660 * DAY)
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
        times = None if self.times is None else count_of("times, the number of batches,", self.times, low=2)
        rate = None if self.rate is None else number("rate, the decisions a day,", self.rate, low=0.0, open_low=True)
        vars(self).update(period=period, start=start, times=times, rate=rate)

    def dates(self, created: float) -> Iterator[float]:
        """When batches end, in seconds since 1970."""
        start = created if self.start is None else self.start
        if not isinstance(self.period, str):
            yield from islice((start + self.period * k for k in count(1)), self.times)
            return
        wall = datetime.fromtimestamp(start, zone_of(self.zone))
        step, first = timedelta(days=_DAYS.get(self.period, 7)), wall
        if self.period in WEEKDAYS:
            first = datetime.combine(wall.date(), time.fromisoformat(self.at), wall.tzinfo)
            first += timedelta(days=(WEEKDAYS.index(self.period) - first.weekday()) % 7)
            first -= step if first > wall else timedelta()
        yield from islice(((first + step * k).timestamp() for k in count(1)), self.times)

    def ends(self, progress: Progress) -> tuple[End, ...]:
        rate, left = progress.rate or (self.rate / DAY if self.rate else None), list[End]()
        for date in self.dates(progress.created):
            if self.times is None and len(left) == OUTLOOK:
                break
            if date > progress.published[-1]:
                by_then = None if rate is None else max(1, round(progress.total + rate * (date - progress.now)))
                left.append(End(by_then, date))
        return tuple(left)

    def totals(self, *, rate: float | None, total: float | None, created: float | None) -> tuple[float, ...]:
        rate = self.rate if rate is None else rate
        if rate is None:
            return ()
        seconds = self.period if not isinstance(self.period, str) else _DAYS.get(self.period, 7) * DAY
        return equal_ends(number("rate", rate, low=0.0, open_low=True) * seconds / DAY, self.times, total)

    def __str__(self) -> str:
        period = self.period if isinstance(self.period, str) else duration_text(self.period)
        if self.period in WEEKDAYS:
            period = f"{self.period.capitalize()} at {self.at} {self.zone}"
        many = "" if self.times is None else f", {self.times} policies"
        return f"every {period}{many}" + ("" if self.start is None else f", from {date_text(self.start, self.zone)}")
