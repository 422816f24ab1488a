"""Durations as people read and write them; in seconds."""

import re
from datetime import timedelta
from typing import Any

from rareswitch.errors import ParameterError, several
from rareswitch.validation import number

_UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}
_UNITS |= {"d": 86_400.0, "day": 86_400.0, "w": 604_800.0, "week": 604_800.0}
_PART = re.compile(r"\s*(?:and\s+)?(an?\b|\d+(?:\.\d*)?|\.\d+)?\s*([a-z]+)\s*,?")
#: In seconds.
LONGEST = 1e12


class Seconds(float):
    """A duration whose unit is known: a plain number is refused, since 2 may be meant as days."""


def duration_of(name: str, given: Any) -> Seconds:
    """A duration: a timedelta, a text with units, or 0, which needs none.

    >>> duration_of("gap", "1 day 6 hours"), duration_of("gap", "30min"), duration_of("gap", timedelta(hours=1))
    (108000.0, 1800.0, 3600.0)
    >>> duration_of("window", "2d"), duration_of("window", "1.5h"), duration_of("window", 0)
    (172800.0, 5400.0, 0.0)
    """
    if isinstance(given, timedelta):
        given = Seconds(given.total_seconds())
    seconds = _read(given) if isinstance(given, str) else number(name, given, low=0.0, high=LONGEST)
    if seconds is None:
        raise ParameterError(f"{name} must be a duration such as '2d', '12h' or '1 day 6 hours'; got {given!r:.60}.")
    if seconds and not isinstance(given, Seconds) and not isinstance(seconds, Seconds):
        python = "" if isinstance(given, str) else f" or timedelta(days={seconds:g})"
        raise ParameterError(
            f"{name} must be a duration with a unit, such as '{seconds:g}d', '{seconds:g}h'{python}; got {given!r:.60}."
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
