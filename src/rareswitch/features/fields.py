"""The kinds of field: how one value of a record becomes columns of a vector, each a group of length at most 1."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rareswitch.errors import ParameterError, RecordError
from rareswitch.ids import LONGEST
from rareswitch.validation import LARGEST_SCALE, count_of, number

SIDES = ("context", "arm", "both")
#: In the key of a field of both: where the id of the arm stands, if the field is read from the context.
ARM = "{arm}"
#: The most columns of one field, and of a whole vector.
MOST_COLUMNS = 4096
#: Of the values that a hashed field remembers the columns of.
_REMEMBERED = 4096
MISSING = math.nan
#: One number for each value: what the kernels go on from.
Coder = Callable[[Sequence[Any]], Any]


class Layout(NamedTuple):
    """What the kernels need to know of a field."""

    #: 0 for a number, 1 for one of several columns, 2 for a vector.
    form: int
    #: Numbers that a value is coded by.
    entries: int
    columns: int
    #: Codes from here on are of values that the description does not name.
    unknown: int
    #: The column of missing values; -1 where they are an error.
    missing: int
    center: float = 0.0
    divisor: float = 1.0


@dataclass(frozen=True)
class Field(ABC):
    """A field of a record, and what becomes of it."""

    kind: ClassVar[str]
    #: What may be done about a missing value.
    treatments: ClassVar[tuple[str, ...]] = ("own", "error")

    #: What crossings and tables call it.
    name: str
    _: KW_ONLY
    #: Whose it is: of the context, of the arm, or of both together (an affinity, in the arm's record of the request;
    #: or in the context, where the key has ``{arm}`` in place of the arm's id).
    of: str = "context"
    #: Where it is found in the record; under its name by default.
    key: str = ""
    #: Whether it has columns by itself, not only in crossings and in the arms' own parameters.
    alone: bool = True
    #: What becomes of None and NaN: ``"own"``, a column of their own; or ``"error"``.
    missing: str = "own"

    def __post_init__(self) -> None:
        checked_text("name", self.name)
        vars(self)["key"] = checked_text("key", self.key) if self.key != "" else self.name
        one_of(f"of of the field {self.name!r}", self.of, SIDES)
        one_of(f"missing of the field {self.name!r}", self.missing, self.treatments)
        if type(self.alone) is not bool:
            raise ParameterError(f"alone of the field {self.name!r} must be true or false; got {self.alone!r:.60}.")
        if ARM in self.key and (self.of != "both" or self.key.count(ARM) > 1):
            raise ParameterError(
                f"key of the field {self.name!r} has {ARM}, which stands for the id of an arm, once, in fields of both;"
                f" this one is of the {self.of}. Set of = 'both'."
            )
        self.check()

    def check(self) -> None:
        """Bring the settings of this kind into canonical form, or refuse them."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """What the kernels need to know."""

    @property
    @abstractmethod
    def column_names(self) -> tuple[str, ...]:
        """What each of its columns is."""

    @abstractmethod
    def coder(self) -> Coder:
        """A function from values to codes; it remembers what it has seen, as far as that saves time."""

    @property
    @abstractmethod
    def treatment(self) -> str:
        """What is done with its values, for people."""

    def _set(self, **values: Any) -> None:
        vars(self).update(values)

    def _with_missing(self, columns: Sequence[str]) -> tuple[str, ...]:
        return (*columns, f"{self.name} missing") if self.missing == "own" else tuple(columns)

    def _refuse(self, value: Any, rule: str) -> RecordError:
        return RecordError(f"the field {self.name!r} {rule}; got {type(value).__name__} {value!r:.60}.")


@dataclass(frozen=True)
class Number(Field):
    """A number, standardised: (value − mean) / scale, clipped to ±clip, and divided by it.

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
        self._set(
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
        return self._with_missing([self.name])

    def coder(self) -> Coder:
        def codes(values: Sequence[Any]) -> Any:
            if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
                return values.astype(np.float64)
            return [v if v.__class__ is float else self._code(v) for v in values]

        return codes

    def _code(self, value: Any) -> float:
        value = plain(value)
        if value is None:
            return MISSING
        if isinstance(value, (float, int, Decimal)) and not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                raise self._refuse("a number beyond all floats", "must be a number") from None
        raise self._refuse(value, "must be a number, or None where it is missing")

    @property
    def treatment(self) -> str:
        return f"(x − {self.mean:.4g}) / {self.scale:.4g}, within ±{self.clip:.4g}; {_missing(self)}"


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
        return self._with_missing([self.name])

    def coder(self) -> Coder:
        def codes(values: Sequence[Any]) -> Any:
            return [1.0 if v is True else -1.0 if v is False else self._code(v) for v in values]

        return codes

    def _code(self, value: Any) -> float:
        value = plain(value)
        if value is None:
            return MISSING
        if isinstance(value, (bool, int, float)) and value in (0, 1):
            return 1.0 if value else -1.0
        raise self._refuse(value, "must be true or false (or 1 or 0), or None where it is missing")

    @property
    def treatment(self) -> str:
        return f"1 if true, −1 if not; {_missing(self)}"


class _Codes(dict[Any, float]):
    """Codes by value; of the values that are not there, a function tells."""

    def __init__(self, known: dict[Any, float], code: Callable[[Any], float]) -> None:
        super().__init__(known)
        self.code = code

    def __missing__(self, value: Any) -> float:
        return self.code(value)

    def of(self, values: Sequence[Any]) -> list[float]:
        try:
            return [self[v] for v in values]
        except TypeError:  # what cannot be hashed is no level either, but the message shall name it
            return [self.code(v) for v in values]


@dataclass(frozen=True)
class Levelled(Field):
    """What is one of several levels, known by their texts."""

    def level(self, value: Any) -> str | None:
        """The text of a level; None where it is missing."""
        try:
            return level_text(value)
        except TypeError:
            raise self._refuse(value, "must be a text, a number or a flag, or None where it is missing") from None


@dataclass(frozen=True)
class Category(Levelled):
    """One of some levels, each with a column; unknown ones have a column of their own, or are an error.

    A level is its text: 3, 3.0 and "3" are the same one, and so are True and "true".
    """

    kind: ClassVar[str] = "category"
    treatments: ClassVar[tuple[str, ...]] = ("own", "unknown", "error")

    _: KW_ONLY
    levels: tuple[str, ...]
    #: What becomes of values that are none of the levels: ``"own"``, a column for all of them; or ``"error"``.
    unknown: str = "own"

    def check(self) -> None:
        self._set(levels=checked_levels(f"levels of the field {self.name!r}", self.levels))
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
        return self._with_missing([*(f"{self.name}={level}" for level in self.levels), *unknown])

    def coder(self) -> Coder:
        places = {level: float(k) for k, level in enumerate(self.levels)}

        def code(value: Any) -> float:
            text = self.level(value)
            if text is None:
                return MISSING
            place = places.get(text, float(len(places)))
            if place == len(places) and self.unknown == "error":
                raise self._refuse(value, f"must be one of its {len(places)} levels, {_some(self.levels)}")
            return place

        return _Codes(places, code).of

    @property
    def treatment(self) -> str:
        unknown = "own column" if self.unknown == "own" else "error"
        return f"one column each for {_some(self.levels)}; unknown: {unknown}; {_missing(self)}"


@dataclass(frozen=True)
class Hashed(Levelled):
    """One of any number of levels, each with one of so many columns by the hash of its text; levels may share one."""

    kind: ClassVar[str] = "hashed"

    _: KW_ONLY
    columns: int

    def check(self) -> None:
        self._set(columns=count_of(f"columns of the field {self.name!r}", self.columns, high=MOST_COLUMNS - 1))

    @property
    def layout(self) -> Layout:
        own = self.missing == "own"
        return Layout(1, 1, self.columns + own, MOST_COLUMNS + 1, self.columns if own else -1)

    @property
    def column_names(self) -> tuple[str, ...]:
        return self._with_missing([f"{self.name} hash {k}" for k in range(self.columns)])

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

        codes = _Codes({}, code)
        return codes.of

    @property
    def treatment(self) -> str:
        return f"one of {self.columns} columns by hash; {_missing(self)}"


@dataclass(frozen=True)
class Vector(Field):
    """A vector of numbers (an embedding), divided by the longest length; longer ones are shortened, and counted."""

    kind: ClassVar[str] = "vector"

    _: KW_ONLY
    length: int
    longest: float = 1.0

    def check(self) -> None:
        named = f"of the field {self.name!r}"
        self._set(
            length=count_of(f"length {named}", self.length, high=MOST_COLUMNS - 1),
            longest=number(f"longest {named}", self.longest, low=1 / LARGEST_SCALE, high=LARGEST_SCALE),
        )

    @property
    def layout(self) -> Layout:
        own, length = self.missing == "own", self.length
        return Layout(2, length, length + own, 0, length if own else -1, 0.0, self.longest)

    @property
    def column_names(self) -> tuple[str, ...]:
        return self._with_missing([f"{self.name}[{k}]" for k in range(self.length)])

    def coder(self) -> Coder:
        def codes(values: Sequence[Any]) -> Any:
            return np.array([self._code(v) for v in values]).reshape(len(values), self.length).T

        return codes

    def _code(self, value: Any) -> Any:
        if plain(value) is None:
            return np.full(self.length, MISSING)
        rule = f"must be a list of {self.length} numbers, or None where it is missing"
        try:
            array = np.asarray(value)
        except ValueError:
            raise self._refuse(value, rule) from None
        if array.shape != (self.length,) or array.dtype.kind not in "iuf":
            if array.shape == (self.length,) and all(isinstance(v, (int, float, type(None))) for v in array.tolist()):
                return np.full(self.length, MISSING)  # with None among its numbers
            raise self._refuse(value, rule)
        return array.astype(np.float64)

    @property
    def treatment(self) -> str:
        return f"divided by {self.longest:.4g}, its longest length; {_missing(self)}"


KINDS: dict[str, type[Field]] = {kind.kind: kind for kind in (Number, Category, Hashed, Flag, Vector)}


def plain(value: Any) -> Any:
    """A scalar as Python's own type; None where it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, (float, Decimal)) and value != value):
        return None
    return None if type(value).__name__ in ("NAType", "NaTType") else value


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


def checked_text(name: str, value: Any) -> str:
    """A name of 1 to 128 characters on one line."""
    if type(value) is not str or not 0 < len(value) <= LONGEST or not value.isprintable():
        raise ParameterError(f"{name} must be a text of 1 to {LONGEST} printable characters; got {value!r:.60}.")
    return value


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


def one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Refuse what is none of the words."""
    if type(value) is not str or value not in allowed:
        raise ParameterError(f"{name} must be {' or '.join(map(repr, allowed))}; got {value!r:.60}.")


def _missing(field: Field) -> str:
    return f"missing: {dict(own='own column', unknown='as unknown', error='error')[field.missing]}"


def _some(levels: Sequence[str]) -> str:
    shown = ", ".join(level if len(level) <= 12 else f"{level[:10]}…" for level in levels[:3])
    return shown if len(levels) <= 3 else f"{shown} and {len(levels) - 3} more"
