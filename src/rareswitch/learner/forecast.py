"""How many decisions are to come: what an update is planned for."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np

from rareswitch.errors import ParameterError
from rareswitch.validation import count_of, number

#: Decisions to come in all, or those of each batch to come, the next one first.
Ahead = int | Sequence[int]
#: The most decisions a day: those of all years that dates have can still be counted.
FASTEST = 1e12


def forecast(*, rate: float, dates: Sequence[date | datetime], now: date | datetime) -> tuple[int, ...]:
    """Decisions of each batch to come, from a rate and the dates at which batches end.

    Parameters
    ----------
    rate
        Decisions a day.
    dates
        When the batches to come end, increasing.
    now
        When the next one begins.

    Examples
    --------
    >>> forecast(rate=100.0, dates=[date(2026, 3, 9), date(2026, 3, 16)], now=date(2026, 3, 6))
    (300, 700)
    """
    number("rate", rate, low=0.0, high=FASTEST, open_low=True)
    if not isinstance(dates, Iterable):
        raise ParameterError(f"dates must be a list of dates or datetimes; got {dates!r:.60}. Pass [date].")
    dates = list(dates)
    ends = np.array([_seconds("now", now), *(_seconds("dates", end) for end in dates)])
    if len(ends) < 2 or (np.diff(ends) <= 0.0).any():
        raise ParameterError(f"dates must be at least one, after now and increasing; got {dates} from {now} on.")
    return tuple(max(1, round(rate * days)) for days in np.diff(ends) / 86_400.0)


def lengths(ahead: Any, *, start: int, left: int) -> tuple[int, ...]:
    """Decisions of each batch to come.

    A number of decisions in all is spread over the ``left`` policies that may still be deployed, so that all decisions
    so far grow by the same factor from one update to the next.

    >>> lengths([300, 700], start=40, left=5), lengths(960, start=40, left=2), lengths(0, start=40, left=2)
    ((300, 700), (160, 800), ())
    """
    if isinstance(ahead, (str, bytes, Mapping)):
        raise ParameterError(f"ahead must be the decisions to come in all, or a list; got {ahead!r:.60}.")
    if not isinstance(ahead, (int, float, np.number)):
        try:
            given = tuple(count_of("ahead, the decisions of each batch to come,", count) for count in ahead)
        except TypeError:
            raise ParameterError(
                f"ahead must be the decisions to come in all, or a list of those of each batch; got {ahead!r:.60}."
            ) from None
        if not given:
            raise ParameterError("ahead must name at least one batch to come; got an empty list. 0 ends the run.")
        return given
    total = count_of("ahead, the decisions to come,", ahead, low=0)
    left = max(1, min(left, total))
    if total == 0:
        return ()
    begin = max(1, start)
    ratio = ((begin + total) / begin) ** (1.0 / left)
    ends = [math.floor(begin * ratio**k + 1e-6) - begin for k in range(1, left)]
    found, last = [], 0
    for k, end in enumerate((*ends, total)):
        last, before = min(max(last + 1, end), total - (left - 1 - k)), last
        found.append(last - before)
    return tuple(found)


def _seconds(name: str, given: Any) -> float:
    if isinstance(given, datetime):
        return given.timestamp() if given.tzinfo is not None else (given - datetime(1970, 1, 1)).total_seconds()
    if isinstance(given, date):
        return (given - date(1970, 1, 1)).total_seconds()
    raise ParameterError(f"{name} must be dates or datetimes; got {given!r:.60}.")
