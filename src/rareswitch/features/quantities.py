"""Fields that hold numbers: one, a flag, or a vector of them."""

from array import array
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np

from rareswitch.features.field import MISSING, MOST_COLUMNS, Coder, Codes, Field, Layout, missing_text, plain
from rareswitch.validation import LARGEST_SCALE, count_of, number


@dataclass(frozen=True)
class Number(Field):
    """A number, standardised: (value − mean) / scale, clipped to ±clip, and divided by it. True is 1, False is 0.

    >>> Number("age", mean=40, scale=12).treatment
    '(x − 40) / 12, within ±4; missing: own column'
    """

    kind: ClassVar[str] = "number"

    _: KW_ONLY
    mean: float = 0.0
    scale: float = 1.0
    #: In units of the scale; what lies beyond is set to it, and counted.
    clip: float = 4.0

    def check(self) -> None:
        named = f"of the field {self.name!r}"
        self.keep(
            mean=number(f"mean {named}", self.mean, low=-LARGEST_SCALE, high=LARGEST_SCALE),
            scale=number(f"scale {named}", self.scale, low=1 / LARGEST_SCALE, high=LARGEST_SCALE),
            clip=number(f"clip {named}", self.clip, low=0.0, high=1e6, open_low=True),
        )
        number(f"scale × clip {named}", self.scale * self.clip, low=1 / LARGEST_SCALE)

    @property
    def layout(self) -> Layout:
        own = self.missing == "own"
        return Layout(0, 1, 1 + own, 0, 1 if own else -1, self.mean, self.scale * self.clip)

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.with_missing([self.name])

    def coder(self) -> Coder:
        def codes(values: Sequence[Any]) -> Any:
            if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
                return values.astype(np.float64)
            try:
                return array("d", values)
            except (TypeError, OverflowError):  # some are missing, or no numbers
                return [v if v.__class__ is float else self._code(v) for v in values]

        return codes

    def _code(self, value: Any) -> float:
        value = plain(value)
        if value is None:
            return MISSING
        if isinstance(value, (float, int, Decimal)):
            try:
                return float(value)
            except OverflowError:
                raise self.refused("a number beyond all floats", "must be a number") from None
        raise self.refused(value, "must be a number, or None where it is missing")

    @property
    def treatment(self) -> str:
        return f"(x − {self.mean:.4g}) / {self.scale:.4g}, within ±{self.clip:.4g}; {missing_text(self)}"


@dataclass(frozen=True)
class Flag(Field):
    """Yes or no: 1 or −1. The numbers 1 and 0 are taken for them."""

    kind: ClassVar[str] = "flag"

    @property
    def layout(self) -> Layout:
        own = self.missing == "own"
        return Layout(0, 1, 1 + own, 0, 1 if own else -1)

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.with_missing([self.name])

    def coder(self) -> Coder:
        return Codes({True: 1.0, False: -1.0}, self._code).of  # 1 and 0 are found there too

    def _code(self, value: Any) -> float:
        value = plain(value)
        if value is None:
            return MISSING
        if isinstance(value, (bool, int, float)) and value in (0, 1):
            return 1.0 if value else -1.0
        raise self.refused(value, "must be true or false (or 1 or 0), or None where it is missing")

    @property
    def treatment(self) -> str:
        return f"1 if true, −1 if not; {missing_text(self)}"


@dataclass(frozen=True)
class Vector(Field):
    """A vector of numbers (an embedding), divided by the longest length; longer ones are shortened, and counted."""

    kind: ClassVar[str] = "vector"

    _: KW_ONLY
    length: int
    longest: float = 1.0

    def check(self) -> None:
        named = f"of the field {self.name!r}"
        self.keep(
            length=count_of(f"length {named}", self.length, high=MOST_COLUMNS - 1),
            longest=number(f"longest {named}", self.longest, low=1 / LARGEST_SCALE, high=LARGEST_SCALE),
        )

    @property
    def layout(self) -> Layout:
        own, length = self.missing == "own", self.length
        return Layout(2, length, length + own, 0, length if own else -1, 0.0, self.longest)

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.with_missing([f"{self.name}[{k}]" for k in range(self.length)])

    def coder(self) -> Coder:
        def codes(values: Sequence[Any]) -> Any:
            return np.array([self._code(v) for v in values]).reshape(len(values), self.length).T

        return codes

    def _code(self, value: Any) -> Any:
        if plain(value) is None:
            return np.full(self.length, MISSING)
        rule = f"must be a list of {self.length} numbers, or None where it is missing"
        try:
            found = np.asarray(value)
        except ValueError:
            raise self.refused(value, rule) from None
        if found.shape != (self.length,) or found.dtype.kind not in "iuf":
            if found.shape == (self.length,) and all(isinstance(v, (int, float, type(None))) for v in found.tolist()):
                return np.full(self.length, MISSING)  # with None among its numbers
            raise self.refused(value, rule)
        return found.astype(np.float64)

    @property
    def treatment(self) -> str:
        return f"divided by {self.longest:.4g}, its longest length; {missing_text(self)}"
