"""What every field of a record is: a group of columns of length at most 1, whatever its value."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rareswitch.errors import ParameterError, RecordError
from rareswitch.ids import LONGEST

SIDES = ("context", "arm", "both")
#: In the key of a field of both: where the id of the arm stands, if the field is read from the context.
ARM = "{arm}"
#: The most columns of one field, and of a whole vector.
MOST_COLUMNS = 4096
#: The code of a missing value.
MISSING = math.nan
#: From values to codes, one or more numbers for each: what the kernels go on from.
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

    def check(self) -> None:  # noqa: B027
        """Bring the settings of this kind into canonical form, or refuse them; a kind may have none."""

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

    def keep(self, **values: Any) -> None:
        """Set settings of this frozen value, while it is made."""
        vars(self).update(values)

    def with_missing(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns, and that of missing values where there is one."""
        return (*columns, f"{self.name} missing") if self.missing == "own" else tuple(columns)

    def refused(self, value: Any, rule: str) -> RecordError:
        """The error that says what this value should have been."""
        return RecordError(f"the field {self.name!r} {rule}; got {type(value).__name__} {value!r:.60}.")


class Codes(dict[Any, float]):
    """Codes by value; of the values that are not there, a function tells."""

    def __init__(self, known: dict[Any, float], code: Callable[[Any], float]) -> None:
        super().__init__(known)
        self.code = code

    def __missing__(self, value: Any) -> float:
        return self.code(value)

    def of(self, values: Sequence[Any]) -> list[float]:
        """The codes of values."""
        try:
            return list(map(self.__getitem__, values))
        except TypeError:  # a value that cannot be hashed, of which the message shall tell
            return [self.code(v) for v in values]


def plain(value: Any) -> Any:
    """A scalar as Python's own type; None where it is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, (float, Decimal)) and value != value):
        return None
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def checked_text(name: str, value: Any) -> str:
    """A name of 1 to 128 characters on one line."""
    if type(value) is not str or not 0 < len(value) <= LONGEST or not value.isprintable():
        raise ParameterError(f"{name} must be a text of 1 to {LONGEST} printable characters; got {value!r:.60}.")
    return value


def one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Refuse what is none of the words."""
    if type(value) is not str or value not in allowed:
        raise ParameterError(f"{name} must be {' or '.join(map(repr, allowed))}; got {value!r:.60}.")


def missing_text(field: Field) -> str:
    """What becomes of missing values, for people."""
    words = {"own": "own column", "unknown": "as unknown", "error": "error"}
    return f"missing: {words[field.missing]}"
