"""Schedules as people write them: texts and numbers, in Python and on the command line."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import date
from typing import Any, TypeAlias

import numpy as np

from rareswitch.errors import FileFormatError, ParameterError, did_you_mean
from rareswitch.learner import Learner
from rareswitch.planning.schedule import Schedule
from rareswitch.planning.schedules import AfterCounts, BestSchedule, LearnerSchedule, Manual, Periodic
from rareswitch.planning.times import WEEKDAYS, from_settings

__all__ = ["schedule_from_plain", "schedule_of"]

KINDS: dict[str, type[Schedule]] = {
    kind.kind: kind for kind in (LearnerSchedule, Manual, AfterCounts, Periodic, BestSchedule)
}
EXAMPLES = (
    "'best', 'best:policies=8,rate=2000,end=2026-06-01,delay=1d,on=monday 10:00', 'monday*8', 'monday 09:00*8', "
    "'week*8', '6 hours', 10000, '10000*8', [500, 2000, 10000], or 'by hand'"
)
#: What people write for a schedule.
ScheduleLike: TypeAlias = Schedule | Mapping[str, Any] | str | float | Sequence[int] | None
_NUMBERS = {"policies", "decisions", "rate"}
#: Characters of the longest whole number in a schedule.
LONGEST_NUMBER = 25


def schedule_of(schedule: ScheduleLike, *, learner: Learner | None = None) -> Schedule:
    """A schedule from what people write; None is the learner's own plan.

    Parameters
    ----------
    schedule
        A schedule, a text, a number of decisions, or a list of the counts at which batches end.
    learner
        Tells the best schedule the features, policies and decisions that it is for.

    Examples
    --------
    >>> schedule_of("monday 09:00*8")
    Periodic(period='monday', times=8, start=None, at='09:00', zone='UTC', rate=None)
    >>> print(schedule_of(10_000), schedule_of([500, 2000]), schedule_of("by hand"), sep="; ")
    every 10,000 decisions; after 500, 2,000 decisions; by hand
    >>> from rareswitch.learner import Foresight
    >>> print(schedule_of("best", learner=Foresight(dim=10, horizon=10_000)))
    at the best times for 8 policies over 10,000 decisions
    """
    parsed = _parsed(schedule)
    if isinstance(parsed, BestSchedule) and learner is not None:
        return parsed.made_for(learner)
    return parsed


def schedule_from_plain(data: Mapping[str, Any]) -> Schedule:
    """What :meth:`Schedule.to_plain` was called on.

    >>> schedule_from_plain(AfterCounts(decisions=[10, 20]).to_plain())
    AfterCounts(decisions=(10, 20), times=None)
    """
    if not isinstance(data, Mapping) or data.get("kind") not in KINDS:
        raise FileFormatError(f"a schedule is one of the kinds {', '.join(KINDS)}; got {data!r:.60}.")
    try:
        return from_settings(KINDS[data["kind"]], {name: value for name, value in data.items() if name != "kind"})
    except TypeError as error:
        raise FileFormatError(f"the description of the schedule is damaged ({error!s:.200}).") from error


def _parsed(schedule: ScheduleLike) -> Schedule:
    if schedule is None:
        return LearnerSchedule()
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, Mapping) and schedule.get("kind") in KINDS:  # that of a plan
        return schedule_from_plain(schedule)
    if isinstance(schedule, (int, float, np.number)) and not isinstance(schedule, bool):
        return AfterCounts(decisions=schedule)  # type: ignore[arg-type]
    if isinstance(schedule, Sequence) and not isinstance(schedule, (str, bytes)):
        if any(isinstance(entry, (str, date)) for entry in schedule):
            raise ParameterError(
                "schedule: a list holds the decisions in all at which batches end, as [500, 2000, 10000]; got "
                f"{[*schedule]!r:.100}. Dates are said as 'monday*8', 'week*8' or "
                "'best:policies=8,rate=2000,end=2026-06-01'; for others create it 'by hand' and advance on these days."
            )
        if len(schedule) == 1:
            raise ParameterError(
                f"schedule: a list holds the decisions in all at which batches end, and at the last one the schedule "
                f"ends, without an update: give at least two; got {[*schedule]!r:.100}."
            )
        return AfterCounts(decisions=[*schedule])
    if not isinstance(schedule, str):
        raise _unknown(schedule)
    words = " ".join(schedule.split())
    text = words.lower()
    if text in ("by hand", "hand", "by-hand"):
        return Manual()
    if text in ("planned", "plan"):
        return LearnerSchedule()
    if text == "best" or text.startswith("best:"):
        return BestSchedule(**_settings(words.partition(":")[2]))
    text, star, many = (part.strip() for part in text.partition("*"))
    if star and not (many.isdecimal() and len(many) <= LONGEST_NUMBER):
        raise _unknown(schedule)
    times = int(many) if star else None
    if re.fullmatch(r"\d[\d_,]*", text) and len(text) <= LONGEST_NUMBER:
        return AfterCounts(decisions=int(re.sub("[_,]", "", text)), times=times)
    text = text.removeprefix("every ")
    word, _, at = text.partition(" ")
    period, of_day = (word.removesuffix("s"), at) if word[:1].isalpha() else (text, "")
    try:
        return Periodic(period=period, times=times, at=of_day or "00:00")
    except ParameterError as error:
        raise _unknown(schedule, error) from error


def _settings(text: str) -> dict[str, Any]:
    """The settings in ``policies=8,rate=2000``."""
    chosen: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        name = name.lower()
        settings = [field.name for field in fields(BestSchedule) if field.name != "regret"]
        if not equals or name not in settings or name in chosen:
            known = ", ".join(settings)
            raise ParameterError(
                f"schedule: 'best:…' takes each of {known} once, as in 'best:policies=8,rate=2000,end=2026-06-01'; got "
                f"{part!r:.60}.{did_you_mean(name, settings)}"
            )
        try:
            chosen[name] = float(value) if name in _NUMBERS else value
        except ValueError:
            raise ParameterError(f"schedule: {name} must be a number; got {value!r:.60}.") from None
    return chosen


def _unknown(schedule: ScheduleLike, cause: Exception | None = None) -> ParameterError:
    why = "" if cause is None else f" ({cause})"
    word = re.match(r"\s*(?:every\s+)?([a-z]+(?: [a-z]+)?)", schedule.lower()) if isinstance(schedule, str) else None
    meant = did_you_mean(word[1], ("best", "by hand", "planned", "week", "day", *WEEKDAYS)) if word else ""
    return ParameterError(f"schedule must be one of the kinds {EXAMPLES}; got {schedule!r:.60}{why}.{meant}")
