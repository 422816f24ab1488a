"""Durations and moments as people read and write them; kept in seconds."""

import re
import time as clock
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

from rareswitch.core import number
from rareswitch.errors import ParameterError, several

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["DAY", "Moment", "date_text", "duration_of", "duration_text", "from_settings", "minute_text", "moment_of"]
__all__ += ["plain_fields", "seconds_of", "short_date_text"]

T = TypeVar("T")
#: What people write for a duration: with a unit, or 0.
Duration: TypeAlias = str | timedelta | float
#: What people write for a moment: a datetime, a date, a text, or seconds since 1970.
Moment: TypeAlias = str | date | float
DAY = 86_400.0
WEEK = timedelta(days=7)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}
_UNITS |= {"d": 86_400.0, "day": 86_400.0, "w": 604_800.0, "week": 604_800.0}
_PART = re.compile(r"\s*(?:and\s+)?(an?\b|\d+(?:\.\d*)?|\.\d+)?\s*([a-z]+)\s*,?")
#: In seconds.
LONGEST = 1e12


class Seconds(float):
    """A duration whose unit is known: a plain number is refused, since 2 may be meant as days."""


def duration_of(name: str, duration: Duration) -> Seconds:
    """A duration: a timedelta, a text with units, or 0, which needs none.

    >>> duration_of("gap", "1 day 6 hours"), duration_of("gap", "30min"), duration_of("gap", timedelta(hours=1))
    (108000.0, 1800.0, 3600.0)
    >>> duration_of("window", "2d"), duration_of("window", "1.5h"), duration_of("window", 0)
    (172800.0, 5400.0, 0.0)
    """
    if isinstance(duration, timedelta):
        duration = Seconds(duration.total_seconds())
    seconds = _read(duration) if isinstance(duration, str) else number(name, duration, low=0.0, high=LONGEST)
    if seconds is None:
        raise ParameterError(f"{name} must be a duration such as '2d', '12h' or '1 day 6 hours'; got {duration!r:.60}.")
    if seconds and not isinstance(duration, Seconds) and not isinstance(seconds, Seconds):
        python = "" if isinstance(duration, str) else f" or timedelta(days={seconds:g})"
        raise ParameterError(
            f"{name} must be a duration with a unit, such as '{seconds:g}d', '{seconds:g}h'{python}; got "
            f"{duration!r:.60}."
        )
    return Seconds(number(name, seconds, low=0.0, high=LONGEST))


def _read(text: str) -> float | None:
    """What a text says: seconds, a number without a unit, or nothing."""
    text, at, total = text.strip().lower(), 0, 0.0
    if re.fullmatch(r"\d+(\.\d*)?|\.\d+", text):
        return float(text)
    while at < len(text):
        part = _PART.match(text, at)
        unit = None if part is None else _unit(part[2])
        if part is None or unit is None:
            return None
        total += unit * (1.0 if part[1] is None or part[1].startswith("a") else float(part[1]))
        at = part.end()
    return Seconds(total) if text else None


def _unit(word: str) -> float | None:
    """Seconds of a unit, in the singular or the plural; ms are none of minutes."""
    return _UNITS.get(word) or (_UNITS.get(word.removesuffix("s")) if len(word) > 2 else None)


def plain_fields(settings: "DataclassInstance") -> dict[str, Any]:
    """The settings of a dataclass that are not None, as JSON keeps them: durations in seconds."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {name: value for name, value in plain.items() if value is not None}


def from_settings(cls: type[T], data: dict[str, Any]) -> T:
    """The dataclass of which :func:`plain_fields` made these; its ``durations`` are in seconds."""
    durations: tuple[str, ...] = getattr(cls, "durations", ())
    return cls(**data | {name: Seconds(data[name]) for name in durations if type(data.get(name)) is float})


def duration_text(seconds: float) -> str:
    """Its two largest units.

    >>> duration_text(93_784), duration_text(7), duration_text(604_800)
    ('1 day 2 hours', '7 seconds', '7 days')
    """
    left, parts = round(seconds), list[str]()
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(several(count, unit))
        elif parts:
            break
    return " ".join(parts[:2]) or "0 seconds"


#: The years that dates can be written of, 1 to 9999.
_FIRST, _LAST = -62_135_596_800.0, 253_402_300_799.0


def zone_of(name: str) -> tzinfo:
    """The time zone of a name such as Europe/Berlin.

    >>> zone_of("UTC")
    datetime.timezone.utc
    """
    if name == "UTC":
        return UTC  # known where no tables of time zones are installed
    try:
        return ZoneInfo(name)
    except Exception:  # names that are paths, or no names at all, raise whatever the file system does
        raise ParameterError(f"zone must be a time zone such as 'Europe/Berlin' or 'UTC'; got {name!r:.60}.") from None


def moment_of(name: str, moment: Moment, zone: str = "UTC") -> float:
    """A moment in seconds since 1970: a datetime, a date, a text like 2026-03-02 09:00, or these seconds.

    What does not say its time zone is in ``zone``.

    >>> moment_of("end", "1970-01-02", "Europe/Berlin")
    82800.0
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError:
            raise ParameterError(
                f"{name} must be a date, as in '2026-03-02' or '2026-03-02 09:00'; got {moment!r:.60}."
            ) from None
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if isinstance(moment, datetime) and moment == moment:  # which pandas' NaT does not
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone_of(zone))).timestamp()
    return number(name, moment, low=_FIRST, high=_LAST)


def meetings_of(name: str, value: str | Sequence[str]) -> str:
    """Weekdays, each with its time of day; midnight where none follows.

    >>> meetings_of("on", "Monday 10:00"), meetings_of("on", "monday and thursday 9:30, friday 14:00")
    ('monday 10:00', 'monday 09:30, thursday 09:30, friday 14:00')
    """
    text = value if isinstance(value, str) else " ".join(value) if isinstance(value, Sequence) else repr(value)
    days, meetings = list[str](), list[tuple[str, str]]()
    for word in re.findall(r"[^\s,/+&]+", text.lower().replace(" and ", " ")):
        if (day := word.removesuffix("s")) in WEEKDAYS:
            days.append(day)
            continue
        try:
            of_day = time.fromisoformat(word.zfill(5))
        except ValueError:
            days = []
        if not days or of_day.tzinfo is not None:
            meetings = []
            break
        meetings += [(day, f"{of_day:%H:%M}") for day in days]
        days = []
    meetings += [(day, "00:00") for day in days]
    if not meetings:
        raise ParameterError(
            f"{name} must be weekdays with a time of day, such as 'monday 10:00' or 'monday thursday 10:00'; got "
            f"{value!r:.60}."
        )
    return ", ".join(f"{day} {of_day}" for day, of_day in dict.fromkeys(meetings))


def weekly(start: float, weekday: str, of_day: str, zone: str) -> Iterator[float]:
    """Each moment after ``start`` that is this time of this weekday; the hour stays when clocks change."""
    wall = datetime.fromtimestamp(start, zone_of(zone))
    first = datetime.combine(wall.date(), time.fromisoformat(of_day), wall.tzinfo)
    first += timedelta(days=(WEEKDAYS.index(weekday) - first.weekday()) % 7)
    first -= WEEK if first > wall else timedelta()
    weeks = (datetime.max.replace(tzinfo=first.tzinfo) - first) // WEEK  # no date is later
    return ((first + WEEK * k).timestamp() for k in range(1, weeks))


def seconds_of(now: Moment | None) -> float:
    """A moment, as :func:`moment_of` takes it, in UTC where it does not say its zone; now if None.

    >>> seconds_of(datetime(2026, 3, 9))
    1773014400.0
    """
    return clock.time() if now is None else moment_of("now", now)


def minute_text(moment: float) -> str:
    """A moment to the minute, in UTC.

    >>> minute_text(0.0)
    '1970-01-01 00:00'
    """
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M}"


def date_text(moment: float, zone: str) -> str:
    """A moment with its weekday and time zone.

    >>> date_text(0.0, "UTC")
    'Thu 1 January 1970, 00:00 UTC'
    """
    when = datetime.fromtimestamp(moment, zone_of(zone))
    return f"{when:%a} {when.day} {when:%B %Y, %H:%M %Z}"


def short_date_text(moment: float, zone: str, *, year: bool) -> str:
    """A moment in a list of several.

    >>> short_date_text(0.0, "UTC", year=False)
    '1 Jan 00:00'
    """
    when = datetime.fromtimestamp(moment, zone_of(zone))
    return f"{when.day} {when:{'%b %Y %H:%M' if year else '%b %H:%M'}}"
