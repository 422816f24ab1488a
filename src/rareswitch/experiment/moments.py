"""Moments as people read and write them; kept as seconds since 1970."""

import time as clock
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from rareswitch.errors import ParameterError
from rareswitch.validation import number

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


def moment_of(name: str, given: Any, zone: str = "UTC") -> float:
    """A moment in seconds since 1970: a datetime, a date, a text like 2026-03-02 09:00, or these seconds.

    What does not say its time zone is in ``zone``.

    >>> moment_of("end", "1970-01-02", "Europe/Berlin")
    82800.0
    """
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given.strip())
        except ValueError:
            raise ParameterError(
                f"{name} must be a date, as in '2026-03-02' or '2026-03-02 09:00'; got {given!r:.60}."
            ) from None
    if isinstance(given, date) and not isinstance(given, datetime):
        given = datetime.combine(given, time())
    if isinstance(given, datetime) and given == given:  # which pandas' NaT does not
        return (given if given.tzinfo is not None else given.replace(tzinfo=zone_of(zone))).timestamp()
    return number(name, given, low=_FIRST, high=_LAST)


def seconds_of(now: Any) -> float:
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
