"""What becomes of each field of a record: a group of columns of length at most 1, whatever its value."""

import dataclasses
from array import array
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from rareswitch.core import LARGEST_SCALE, LONGEST, FloatArray, flag, kind, name_of, number, one_of, whole
from rareswitch.errors import ParameterError, RecordError
from rareswitch.features.records import MISSING, Codes, FieldValue, FieldValues, Level, level_text, scalar, text_hash

__all__ = ["Arms", "Category", "Field", "Flag", "Hashed", "Number", "Vector"]

SIDES = ("context", "arm", "both")
#: In the key of a field of both: where the id of the arm stands, if the field is read from the context.
ARM = "{arm}"
#: The most columns of one field, and of a whole vector.
MOST_COLUMNS = 4096
#: One or more numbers for each value (entries, n), from which the kernels go on.
CodeArray: TypeAlias = Sequence[float] | FloatArray
#: From values to codes; it remembers what it has seen, as far as that saves time.
Coder: TypeAlias = Callable[[FieldValues], CodeArray]


class FieldLayout(NamedTuple):
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


class Field:
    """A field of a record, and what becomes of it: one of the kinds below, all of them dataclasses.

    It is none itself: msgspec would then take no other for one.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    name: str
    of: str
    key: str
    alone: bool
    missing: str

    @property
    def kind(self) -> str:
        """Its name in files."""
        return name_of(self)

    @property
    def layout(self) -> FieldLayout:
        """What the kernels need to know."""
        return self.laid_out(0, 1)

    @property
    def value_columns(self) -> tuple[str, ...]:
        """What each of its columns is, without that of missing values."""
        return (self.name,)

    @property
    def column_names(self) -> tuple[str, ...]:
        """What each of its columns is."""
        return (*self.value_columns, f"{self.name} missing") if self.missing == "own" else self.value_columns

    def laid_out(
        self, form: int, columns: int, *, entries: int = 1, unknown: int = 0, center: float = 0.0, divisor: float = 1.0
    ) -> FieldLayout:
        """The layout of a number of columns, beside which missing values may have one of their own."""
        own = self.missing == "own"
        return FieldLayout(form, entries, columns + own, unknown, columns if own else -1, center, divisor)

    def coder(self) -> Coder:
        """A function from values to codes."""
        raise NotImplementedError

    def level(self, value: FieldValue) -> str | None:
        """The text of a level; None where it is missing."""
        try:
            return level_text(value)
        except TypeError:
            raise self.refused(value, "must be a text, a number or a flag, or None where it is missing") from None

    def refused(self, value: FieldValue, rule: str) -> RecordError:
        """The error that says what this value should have been."""
        return RecordError(f"the field {self.name!r} {rule}; got {type(value).__name__} {value!r:.60}.")


@dataclass(frozen=True)
class Described(Field):
    """The settings of all kinds of fields."""

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
        flag(f"alone of the field {self.name!r}", self.alone)
        if ARM in self.key and (self.of != "both" or self.key.count(ARM) > 1):
            raise ParameterError(
                f"key of the field {self.name!r} has {ARM}, which stands for the id of an arm, once, in fields of both;"
                f" this one is of the {self.of}. Set of = 'both'."
            )
        self.check()

    def check(self) -> None:
        """Bring the settings of this kind into canonical form, or refuse them."""


def checked_text(name: str, value: str) -> str:
    """A name of 1 to 128 characters on one line."""
    if type(value) is not str or not 0 < len(value) <= LONGEST or not value.isprintable():
        raise ParameterError(f"{name} must be a text of 1 to {LONGEST} printable characters; got {value!r:.60}.")
    return value


@kind("number")
@dataclass(frozen=True, kw_only=True)
class Number(Described):
    """A number, standardised: (value − mean) / scale, clipped to ±clip, and divided by it. True is 1, False is 0.

    >>> Number("age", mean=40, scale=12).coder()([40, None])
    [40.0, nan]
    """

    mean: float = 0.0
    scale: float = 1.0
    #: In units of the scale; what lies beyond is set to it, and counted.
    clip: float = 4.0

    def check(self) -> None:
        named = f"of the field {self.name!r}"
        vars(self).update(
            mean=number(f"mean {named}", self.mean, low=-LARGEST_SCALE, high=LARGEST_SCALE),
            scale=number(f"scale {named}", self.scale, low=1 / LARGEST_SCALE, high=LARGEST_SCALE),
            clip=number(f"clip {named}", self.clip, low=0.0, high=1e6, open_low=True),
        )
        number(f"scale × clip {named}", self.scale * self.clip, low=1 / LARGEST_SCALE)

    @property
    def layout(self) -> FieldLayout:
        return self.laid_out(0, 1, center=self.mean, divisor=self.scale * self.clip)

    def coder(self) -> Coder:
        return self._codes

    def _codes(self, values: FieldValues) -> CodeArray:
        try:
            return array("d", values)  # type: ignore[arg-type]  # or raises
        except (TypeError, OverflowError):  # some are missing, or no numbers
            return [value if type(value) is float else self._code(value) for value in values]

    def _code(self, value: FieldValue) -> float:
        value = scalar(value)
        if value is None:
            return MISSING
        if isinstance(value, (float, int, Decimal)):
            try:
                return float(value)
            except OverflowError:
                raise self.refused("a number beyond all floats", "must be a number") from None
        raise self.refused(value, "must be a number, or None where it is missing")


@kind("flag")
@dataclass(frozen=True)
class Flag(Described):
    """Yes or no: 1 or −1. The numbers 1 and 0 are taken for them."""

    def coder(self) -> Coder:
        return Codes({True: 1.0, False: -1.0}, self._code).of  # 1 and 0 are found there too

    def _code(self, value: FieldValue) -> float:
        value = scalar(value)
        if value is None:
            return MISSING
        if isinstance(value, (bool, int, float)) and value in (0, 1):
            return 1.0 if value else -1.0
        raise self.refused(value, "must be true or false (or 1 or 0), or None where it is missing")


@kind("vector")
@dataclass(frozen=True, kw_only=True)
class Vector(Described):
    """A vector of numbers (an embedding), divided by the longest length; longer ones are shortened, and counted."""

    length: int
    longest: float = 1.0

    def check(self) -> None:
        named = f"of the field {self.name!r}"
        vars(self).update(
            length=whole(f"length {named}", self.length, high=MOST_COLUMNS - 1),
            longest=number(f"longest {named}", self.longest, low=1 / LARGEST_SCALE, high=LARGEST_SCALE),
        )

    @property
    def layout(self) -> FieldLayout:
        return self.laid_out(2, self.length, entries=self.length, divisor=self.longest)

    @property
    def value_columns(self) -> tuple[str, ...]:
        return tuple(f"{self.name}[{k}]" for k in range(self.length))

    def coder(self) -> Coder:
        return lambda values: np.array([self._entries(value) for value in values]).reshape(len(values), self.length).T

    def _entries(self, value: FieldValue) -> FloatArray:
        """The numbers of one vector."""
        missing = np.full(self.length, MISSING)
        if scalar(value) is None:
            return missing
        rule = f"must be a list of {self.length} numbers, or None where it is missing"
        try:
            numbers = np.asarray(value)
        except ValueError:
            raise self.refused(value, rule) from None
        if numbers.shape == (self.length,):
            if numbers.dtype.kind in "iuf":
                return numbers.astype(np.float64)
            if all(isinstance(entry, (int, float, type(None))) for entry in numbers.tolist()):
                return missing  # with None among its numbers
        raise self.refused(value, rule)


@kind("category")
@dataclass(frozen=True, kw_only=True)
class Category(Described):
    """One of some levels, each with a column; unknown ones have a column of their own, or are an error.

    A level is its text: 3, 3.0 and "3" are the same one, and so are True and "true".
    """

    treatments: ClassVar[tuple[str, ...]] = ("own", "unknown", "error")

    levels: Sequence[Level]
    #: What becomes of values that are none of the levels: ``"own"``, a column for all of them; or ``"error"``.
    unknown: str = "own"

    def check(self) -> None:
        vars(self).update(levels=checked_levels(f"levels of the field {self.name!r}", self.levels))
        one_of(f"unknown of the field {self.name!r}", self.unknown, ("own", "error"))
        if self.missing == "unknown" and self.unknown != "own":
            raise ParameterError(
                f"missing of the field {self.name!r} cannot be 'unknown' where unknown is {self.unknown!r}: there is no"
                " such column. Set unknown = 'own', or missing = 'own' or 'error'."
            )

    @property
    def layout(self) -> FieldLayout:
        count = len(self.levels)
        layout = self.laid_out(1, count + (self.unknown == "own"), unknown=count)
        return layout._replace(missing=count) if self.missing == "unknown" else layout

    @property
    def value_columns(self) -> tuple[str, ...]:
        levels = tuple(f"{self.name}={level}" for level in self.levels)
        return (*levels, f"{self.name} unknown") if self.unknown == "own" else levels

    @cached_property
    def _places(self) -> dict[FieldValue, float]:
        return {level: float(k) for k, level in enumerate(self.levels)}

    def coder(self) -> Coder:
        return Codes(self._places, self._code).of

    def _code(self, value: FieldValue) -> float:
        text = self.level(value)
        if text is None:
            return MISSING
        if self.unknown == "error" and text not in self._places:
            levels = [f"{level}" if len(f"{level}") <= 12 else f"{level:.10}…" for level in self.levels[:3]]
            more = f" and {len(self.levels) - 3} more" if len(self.levels) > 3 else ""
            raise self.refused(value, f"must be one of its {len(self.levels)} levels, {', '.join(levels)}{more}")
        return self._places.get(text, float(len(self.levels)))


@kind("hashed")
@dataclass(frozen=True, kw_only=True)
class Hashed(Described):
    """One of any number of levels, each with one of ``columns`` by the hash of its text; levels may share one."""

    columns: int

    def check(self) -> None:
        vars(self).update(columns=whole(f"columns of the field {self.name!r}", self.columns, high=MOST_COLUMNS - 1))

    @property
    def layout(self) -> FieldLayout:
        return self.laid_out(1, self.columns, unknown=MOST_COLUMNS + 1)

    @property
    def value_columns(self) -> tuple[str, ...]:
        return tuple(f"{self.name} hash {k}" for k in range(self.columns))

    def coder(self) -> Coder:
        return Codes({}, self._code).of

    def _code(self, value: FieldValue) -> float:
        text = self.level(value)
        return MISSING if text is None else float(text_hash(text) % self.columns)


def checked_levels(name: str, values: Sequence[Level]) -> tuple[str, ...]:
    """Texts that differ, each of at most 128 characters."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not 0 < len(values) < MOST_COLUMNS:
        raise ParameterError(f"{name} must be a list of 1 to {MOST_COLUMNS - 1} levels; got {values!r:.60}.")
    levels: list[str] = []
    for value in values:
        try:
            text = level_text(value)
        except TypeError:
            text = None
        if text is None or len(text) > LONGEST:
            raise ParameterError(
                f"{name} must be texts of at most {LONGEST} characters, or numbers; got {value!r:.60}."
            )
        levels.append(text)
    if len(set(levels)) < len(levels):
        twice = next(text for text in levels if levels.count(text) > 1)
        raise ParameterError(f"{name} must differ; {twice!r:.60} is there twice (3 and '3' are the same level).")
    return tuple(levels)


@kind("arms")
@dataclass(frozen=True, kw_only=True)
class Arms:
    """Which arms have parameters of their own, and for what.

    Arms are known by the text of their ids: 3 and "3" are the same arm. An arm that is not named takes one of the
    ``spare_arms`` blocks, by a hash of its id: always the same one. Two such arms may meet in a block, and then share
    its parameters: of m arms that come later, each meets another with probability 1 − (1 − 1/spare_arms)^(m−1). Arms
    that took spare blocks are counted as *spare*, and arms that met in one request as *shared*. Without spare blocks,
    an arm that is not named is an error.
    """

    #: Under which no field is: the arms' blocks are a part of vectors as fields are.
    name: ClassVar[str] = ""

    ids: Sequence[str | int]
    #: Spare blocks.
    spare_arms: int = 0
    #: Fields for which each arm has parameters of its own.
    own: Sequence[str] = ()
    #: Whether each arm has a level of its own.
    level: bool = True

    def __post_init__(self) -> None:
        ids = checked_levels("ids of the arms", self.ids)
        spare_arms = whole("spare_arms of the arms", self.spare_arms, low=0, high=MOST_COLUMNS)
        if isinstance(self.own, str) or not isinstance(self.own, Sequence):
            raise ParameterError(f"own of the arms must be a list of names of fields; got {self.own!r:.60}.")
        flag("level of the arms", self.level)
        if not self.level and not self.own:
            raise ParameterError("own of the arms must name a field where level is false: they have nothing otherwise.")
        vars(self).update(ids=ids, spare_arms=spare_arms, own=tuple(self.own))

    @property
    def layout(self) -> FieldLayout:
        """What the kernels need to know."""
        return FieldLayout(1, 1, len(self.ids) + self.spare_arms, len(self.ids), -1)

    @property
    def column_names(self) -> tuple[str, ...]:
        """What each block is of."""
        return (*(f"arm {id}" for id in self.ids), *(f"spare {k}" for k in range(self.spare_arms)))  # noqa: A001

    def coder(self) -> Coder:
        """A function from ids to blocks."""
        return Codes(self._places, self._block).of

    @cached_property
    def _places(self) -> dict[FieldValue, float]:
        return {name: float(k) for k, name in enumerate(self.ids)}

    def _block(self, arm: FieldValue) -> float:
        """The block of an arm whose id is no text that is named."""
        try:
            text = level_text(arm)
        except TypeError:
            raise RecordError("a number as the id of an arm must have at most 300 digits. Give a text.") from None
        assert text is not None, "ids of arms are checked before"
        if text in self._places:
            return self._places[text]
        if not self.spare_arms:
            raise RecordError(
                f"the arm {arm!r:.60} has no parameters: the {len(self.ids)} arms with parameters of their own are "
                f"{', '.join(map(str, self.ids))!s:.100}, and no spare ones. Describe features with spare_arms=…."
            )
        return float(len(self.ids) + text_hash(text) % self.spare_arms)
