"""Fields that hold one of several levels, each known by its text."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from rareswitch.errors import ParameterError
from rareswitch.features.field import MISSING, MOST_COLUMNS, Coder, Codes, Field, Layout, missing_text, one_of, plain
from rareswitch.ids import LONGEST
from rareswitch.validation import count_of

#: Of the values that a hashed field remembers the columns of.
_REMEMBERED = 4096


@dataclass(frozen=True)
class Levelled(Field):
    """What is one of several levels, known by their texts."""

    def level(self, value: Any) -> str | None:
        """The text of a level; None where it is missing."""
        try:
            return level_text(value)
        except TypeError:
            raise self.refused(value, "must be a text, a number or a flag, or None where it is missing") from None


@dataclass(frozen=True)
class Category(Levelled):
    """One of some levels, each with a column; unknown ones have a column of their own, or are an error.

    A level is its text: 3, 3.0 and "3" are the same one, and so are True and "true".
    """

    kind: ClassVar[str] = "category"
    treatments: ClassVar[tuple[str, ...]] = ("own", "unknown", "error")

    _: KW_ONLY
    levels: Sequence[Any]
    #: What becomes of values that are none of the levels: ``"own"``, a column for all of them; or ``"error"``.
    unknown: str = "own"

    def check(self) -> None:
        self.keep(levels=checked_levels(f"levels of the field {self.name!r}", self.levels))
        one_of(f"unknown of the field {self.name!r}", self.unknown, ("own", "error"))
        if self.missing == "unknown" and self.unknown != "own":
            raise ParameterError(
                f"missing of the field {self.name!r} cannot be 'unknown' where unknown is {self.unknown!r}: there is no"
                " such column. Set unknown = 'own', or missing = 'own' or 'error'."
            )

    @property
    def layout(self) -> Layout:
        count, unknown = len(self.levels), self.unknown == "own"
        place = {"own": count + unknown, "unknown": count, "error": -1}[self.missing]
        return Layout(1, 1, count + unknown + (self.missing == "own"), count, place)

    @property
    def column_names(self) -> tuple[str, ...]:
        unknown = [f"{self.name} unknown"] if self.unknown == "own" else []
        return self.with_missing([*(f"{self.name}={level}" for level in self.levels), *unknown])

    def coder(self) -> Coder:
        places = {level: float(k) for k, level in enumerate(self.levels)}

        def code(value: Any) -> float:
            text = self.level(value)
            if text is None:
                return MISSING
            place = places.get(text, float(len(places)))
            if place == len(places) and self.unknown == "error":
                raise self.refused(value, f"must be one of its {len(places)} levels, {_some(self.levels)}")
            return place

        return Codes(places, code).of

    @property
    def treatment(self) -> str:
        unknown = "own column" if self.unknown == "own" else "error"
        return f"a column for each of {len(self.levels)} levels; unknown: {unknown}; {missing_text(self)}"


@dataclass(frozen=True)
class Hashed(Levelled):
    """One of any number of levels, each with one of so many columns by the hash of its text; levels may share one."""

    kind: ClassVar[str] = "hashed"

    _: KW_ONLY
    columns: int

    def check(self) -> None:
        self.keep(columns=count_of(f"columns of the field {self.name!r}", self.columns, high=MOST_COLUMNS - 1))

    @property
    def layout(self) -> Layout:
        own = self.missing == "own"
        return Layout(1, 1, self.columns + own, MOST_COLUMNS + 1, self.columns if own else -1)

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.with_missing([f"{self.name} hash {k}" for k in range(self.columns)])

    def coder(self) -> Coder:
        def code(value: Any) -> float:
            text = self.level(value)
            if text is None:
                return MISSING
            place = float(text_hash(text) % self.columns)
            if type(value) is str:
                if len(codes) >= _REMEMBERED:
                    codes.clear()
                codes[value] = place
            return place

        codes = Codes({}, code)
        return codes.of

    @property
    def treatment(self) -> str:
        return f"one of {self.columns} columns by hash; {missing_text(self)}"


def level_text(value: Any) -> str | None:
    """The text by which a level is known; None where it is missing.

    >>> level_text(3.0), level_text("3"), level_text(True), level_text(0.5), level_text(float("nan"))
    ('3', '3', 'true', '0.5', None)
    """
    value = plain(value)
    if value is None or type(value) is str:
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() < 1000:
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if math.isfinite(value) and value == math.floor(value) else repr(value)
    raise TypeError(type(value).__name__)


def text_hash(text: str) -> int:
    """64 bits of the hash of a text, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def checked_levels(name: str, values: Any) -> tuple[str, ...]:
    """Texts that differ, each of at most 128 characters."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not 0 < len(values) < MOST_COLUMNS:
        raise ParameterError(f"{name} must be a list of 1 to {MOST_COLUMNS - 1} levels; got {values!r:.60}.")
    found: list[str] = []
    for value in values:
        try:
            text = level_text(value)
        except TypeError:
            text = None
        if text is None or len(text) > LONGEST:
            raise ParameterError(
                f"{name} must be texts of at most {LONGEST} characters, or numbers; got {value!r:.60}."
            )
        found.append(text)
    if len(set(found)) < len(found):
        twice = next(text for text in found if found.count(text) > 1)
        raise ParameterError(f"{name} must differ; {twice!r:.60} is there twice (3 and '3' are the same level).")
    return tuple(found)


def _some(levels: Sequence[str]) -> str:
    shown = ", ".join(level if len(level) <= 12 else f"{level[:10]}…" for level in levels[:3])
    return shown if len(levels) <= 3 else f"{shown} and {len(levels) - 3} more"
