"""Dates and durations as people read and write them."""

import math
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from rareswitch.errors import ParameterError
from rareswitch.validation import number


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
    if isinstance(given, datetime):
        return (given if given.tzinfo is not None else given.replace(tzinfo=zone_of(zone))).timestamp()
    return number(name, given, low=-math.inf)


def date_text(moment: float, zone: str) -> str:
    """A moment with its weekday and time zone.

    >>> date_text(0.0, "UTC")
    'Thu 1 January 1970, 00:00 UTC'
    """
    when = datetime.fromtimestamp(moment, zone_of(zone))
    return f"{when:%a} {when.day} {when:%B %Y, %H:%M %Z}"


def duration_text(seconds: float) -> str:
    """Its two largest units.

    >>> duration_text(93_784), duration_text(7), duration_text(604_800)
    ('1 day 2 hours', '7 seconds', '7 days')
    """
    left, parts = round(seconds), list[str]()
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count:,} {unit}{'s' if count > 1 else ''}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 seconds"
