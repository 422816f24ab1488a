"""Moments, as callers give them and as they are kept: seconds since 1970."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from rareswitch.errors import ParameterError
from rareswitch.validation import number


def seconds_of(now: Any) -> float:
    """A moment in seconds since 1970: a datetime, which is in UTC where it has no time zone, or seconds; now if None.

    >>> seconds_of(datetime(2026, 3, 9, tzinfo=UTC))
    1773014400.0
    """
    if now is None:
        return time.time()
    if isinstance(now, datetime):
        return (now if now.tzinfo is not None else now.replace(tzinfo=UTC)).timestamp()
    if isinstance(now, (str, bytes, bool)):
        raise ParameterError(f"now must be a datetime or seconds since 1970; got {now!r:.60}.")
    return number("now", now, low=-1e12, high=1e12)


def duration_of(name: str, given: Any) -> float:
    """A length of time in seconds: a timedelta, or seconds.

    >>> duration_of("window", timedelta(days=1))
    86400.0
    """
    if isinstance(given, timedelta):
        given = given.total_seconds()
    return number(name, given, low=0.0, high=1e12)


def shown(seconds: float) -> str:
    """A moment as people write it, in UTC.

    >>> shown(0.0)
    '1970-01-01 00:00'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
