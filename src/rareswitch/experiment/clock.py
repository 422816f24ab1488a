"""Moments, as callers give them and as they are kept: seconds since 1970."""

import re
import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

from rareswitch.errors import ParameterError
from rareswitch.validation import number

_UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}
_UNITS |= {"d": 86_400.0, "day": 86_400.0, "w": 604_800.0, "week": 604_800.0}
_PART = re.compile(r"\s*(?:and\s+)?(an?\b|\d+(?:\.\d+)?)?\s*([a-z]+)\s*,?")


#: The years 1 to 9999, of which people know dates.
EARLIEST, LATEST = -62_135_596_800.0, 253_402_300_799.0


def seconds_of(now: Any) -> float:
    """A moment in seconds since 1970: a datetime, which is in UTC where it has no time zone, or seconds; now if None.

    >>> seconds_of(datetime(2026, 3, 9, tzinfo=UTC))
    1773014400.0
    """
    if now is None:
        return time.time()
    if isinstance(now, datetime) and now == now:  # which pandas' NaT does not
        return (now if now.tzinfo is not None else now.replace(tzinfo=UTC)).timestamp()
    if isinstance(now, (str, bytes, bool, date)):
        raise ParameterError(f"now must be a datetime or seconds since 1970; got {now!r:.60}.")
    return number("now", now, low=EARLIEST, high=LATEST)


def duration_of(name: str, given: Any) -> float:
    """A duration in seconds: a timedelta, a number of seconds, or a text.

    >>> duration_of("gap", "1 day 6 hours"), duration_of("gap", "30min"), duration_of("gap", timedelta(hours=1))
    (108000.0, 1800.0, 3600.0)
    """
    if isinstance(given, timedelta):
        given = given.total_seconds()
    if not isinstance(given, str):
        return number(name, given, low=0.0, high=1e12)
    found, at = 0.0, 0
    text = given.strip().lower()
    while at < len(text):
        part = _PART.match(text, at)
        unit = None if part is None else _UNITS.get(part[2], _UNITS.get(part[2].removesuffix("s")))
        if part is None or unit is None:
            break
        found += unit * (1.0 if part[1] is None or part[1].startswith("a") else float(part[1]))
        at = part.end()
    if at < len(text) or not text:
        raise ParameterError(
            f"{name} must be a duration such as '12h', '1 day 6 hours' or timedelta(days=1); got {given!r:.60}."
        )
    return found


def shown(seconds: float) -> str:
    """A moment as people write it, in UTC.

    >>> shown(0.0)
    '1970-01-01 00:00'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
