"""Fields that are transformed before they are encoded: logarithms, quantiles, and parts of dates."""

import datetime as dt
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from rareswitch.core import LARGEST_SCALE, kind, number
from rareswitch.errors import ParameterError
from rareswitch.features.fields import CodeArray, Coder, Described, FieldLayout, Number
from rareswitch.features.records import MISSING, FieldValue, FieldValues, scalar

__all__ = ["Hour", "Log", "Month", "Quantile", "Weekday"]

#: The length of a vector on a circle, at most: sine and cosine are rounded.
_CIRCLE = 1.0 + 1e-12
_MOST_QUANTILES = 1001
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@kind("log")
@dataclass(frozen=True, kw_only=True)
class Log(Number):
    """A number on a logarithmic scale, log(x + shift), and then as :class:`Number`; mean and scale are of logarithms.

    A value of which there is no logarithm, as x + shift is 0 or less, is at the low end, −clip, and counted as clipped.

    >>> Log("price", mean=2, scale=1).coder()([math.exp(3)])
    [3.0]
    """

    #: Added first; 1 for counts, which may be 0.
    shift: float = 0.0

    def check(self) -> None:
        super().check()
        shift = number(f"shift of the field {self.name!r}", self.shift, low=0.0, high=LARGEST_SCALE)
        vars(self).update(shift=shift)

    def coder(self) -> Coder:
        return lambda values: [self._log(value) for value in self._codes(values)]

    def _log(self, value: float) -> float:
        if value + self.shift > 0.0:
            return math.log(value + self.shift)
        # infinite numbers are refused later, as those of other fields are
        return value if math.isnan(value) or math.isinf(value) else self.mean - 2.0 * self.scale * self.clip


@kind("quantile")
@dataclass(frozen=True, kw_only=True)
class Quantile(Described):
    """A number by its rank among the quantiles of a sample, from −1 for the least to 1 for the largest.

    Between two quantiles it is interpolated, at one that is there several times it is their middle; what lies beyond
    the first or the last is set to it, and counted as clipped. No outlier and no skew changes that much.

    >>> Quantile("age", quantiles=[0, 0, 0, 10, 20]).coder()([0, 5, 10, 20])
    [-0.5, 0.25, 0.5, 1.0]
    """

    quantiles: Sequence[float]

    def check(self) -> None:
        named = f"quantiles of the field {self.name!r}"
        values = self.quantiles
        if isinstance(values, str) or not isinstance(values, Sequence) or not 2 <= len(values) <= _MOST_QUANTILES:
            raise ParameterError(f"{named} must be a list of 2 to {_MOST_QUANTILES} numbers; got {values!r:.60}.")
        quantiles = tuple(number(named, value, low=-LARGEST_SCALE, high=LARGEST_SCALE) for value in values)
        if list(quantiles) != sorted(quantiles) or quantiles[0] == quantiles[-1]:
            raise ParameterError(f"{named} must rise, and hold two different numbers; got {values!r:.60}.")
        vars(self).update(quantiles=quantiles)

    def coder(self) -> Coder:
        codes = Number(self.name).coder()
        return lambda values: [self._rank(float(value)) for value in codes(values)]

    def _rank(self, value: float) -> float:
        """−1 to 1; −2 and 2 are beyond."""
        if not abs(value) <= LARGEST_SCALE:  # missing, or refused later
            return value
        low, high = bisect_left(self.quantiles, value), bisect_right(self.quantiles, value)
        if low < high:
            place = (low + high - 1) / 2
        elif low in (0, len(self.quantiles)):
            return -2.0 if low == 0 else 2.0
        else:
            before, after = self.quantiles[low - 1], self.quantiles[low]
            place = low - 1 + (value - before) / (after - before)
        return 2.0 * place / (len(self.quantiles) - 1) - 1.0


@dataclass(frozen=True, kw_only=True)
class DatePart(Described):
    """A part of a date: of a datetime, a date, or a text in ISO 8601 such as 2026-03-02T09:30Z.

    A time with a zone is read on the clocks of ``zone``; one without is taken for what these clocks show.
    """

    #: Whether a date is not enough.
    timed: ClassVar[bool] = False

    #: Whose clocks: UTC, or a name such as Europe/Berlin.
    zone: str = "UTC"
    _clock: ClassVar[dt.tzinfo]  # of each field

    def check(self) -> None:
        try:
            vars(self)["_clock"] = dt.UTC if self.zone == "UTC" else ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
            raise ParameterError(
                f"zone of the field {self.name!r} must be UTC or a name that this machine knows, such as Europe/Berlin;"
                f" got {self.zone!r:.60}. Python finds more names with: pip install tzdata."
            ) from None

    def moment(self, value: FieldValue) -> dt.date | None:
        """A date, or a datetime on the clocks of the zone; None where it is missing."""
        date: Any = scalar(value)
        if isinstance(date, str):
            with suppress(ValueError):
                text = date.strip()
                date = dt.date.fromisoformat(text) if len(text) <= 10 else dt.datetime.fromisoformat(text)
        if date is None:
            return None
        if not isinstance(date, dt.date) or (self.timed and not isinstance(date, dt.datetime)):
            wanted = "a date with a time" if self.timed else "a date"
            raise self.refused(
                value,
                f"must be {wanted}, as a datetime or a text such as 2026-03-02T09:30, or None where it is missing",
            )
        if isinstance(date, dt.datetime) and date.tzinfo is not None:
            with suppress(OverflowError):  # in the years 1 and 9999
                date = date.astimezone(self._clock)
        day: dt.date = date
        return day

    def coder(self) -> Coder:
        return self._coded

    def _coded(self, values: FieldValues) -> CodeArray:
        dates = (self.moment(value) for value in values)
        return np.array([[MISSING] * self.layout.entries if date is None else self._code(date) for date in dates]).T

    def _code(self, date: dt.date) -> Sequence[float]:
        """The numbers by which the part of a date is coded."""
        raise NotImplementedError


@dataclass(frozen=True)
class Cyclic(DatePart):
    """A part on a circle, as sine and cosine: its last value is beside its first."""

    @property
    def layout(self) -> FieldLayout:
        return self.laid_out(2, 2, entries=2, divisor=_CIRCLE)

    @property
    def value_columns(self) -> tuple[str, ...]:
        return f"{self.name} sine", f"{self.name} cosine"

    def _code(self, date: dt.date) -> Sequence[float]:
        angle = 2.0 * math.pi * self.turn(date)
        return math.sin(angle), math.cos(angle)

    def turn(self, date: Any) -> float:
        """How far around the circle, 0 to 1."""
        raise NotImplementedError


@kind("hour")
@dataclass(frozen=True)
class Hour(Cyclic):
    """The time of day, with its minutes, on a circle of 24 hours.

    >>> [round(float(entry), 6) for entry in Hour("at").coder()(["2026-03-02T06:00Z"])[:, 0]]
    [1.0, 0.0]
    """

    timed: ClassVar[bool] = True

    def turn(self, date: dt.datetime) -> float:
        return (date.hour + date.minute / 60.0) / 24.0


@kind("month")
@dataclass(frozen=True)
class Month(Cyclic):
    """The month on a circle of 12."""

    def turn(self, date: dt.date) -> float:
        return (date.month - 1) / 12.0


@kind("weekday")
@dataclass(frozen=True)
class Weekday(DatePart):
    """The day of the week: a column for each, Monday to Sunday.

    >>> Weekday("at").coder()(["2026-03-02", None]).tolist()
    [[0.0, nan]]
    """

    @property
    def layout(self) -> FieldLayout:
        return self.laid_out(1, 7, unknown=7)

    @property
    def value_columns(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={day}" for day in DAYS)

    def _code(self, date: dt.date) -> Sequence[float]:
        return (float(date.weekday()),)
