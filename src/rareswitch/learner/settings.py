"""A learner's settings: its dataclass is the one description that catalogue, command line and files read."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from rareswitch.core import codec, number, of_type, one_of, whole
from rareswitch.design import GOptimal
from rareswitch.errors import ParameterError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["count", "design_of_sets", "plain_settings", "real", "required_settings", "setting", "settings_of"]

#: Takes a setting's name and value; the value in canonical form, or an error that names both.
Check = Callable[[str, Any], Any]
T = TypeVar("T")
#: The most features: the sums of a learner hold d × d numbers, which no file of 1 GiB would keep beyond.
MOST_FEATURES = 10_000


def setting_metadata(text: str, check: Check | None = None) -> Mapping[str, str | Check | None]:
    """Metadata of a setting: what it is, on one line, and how it is checked. None is never checked."""
    return {"text": text, "check": check}


def setting(default: T, text: str, check: Check | None = None) -> T:
    """A field of a learner, with its default, that is a setting."""
    entry: T = field(default=default, metadata=setting_metadata(text, check))
    return entry


def count(low: int = 1, **most: int) -> Check:
    """A whole number, also as 1e4.

    >>> count()("horizon", 1e4)
    10000
    """
    return lambda name, value: whole(name, value, low=low, **most)


def features(name: str, value: float) -> int:
    """A number of features whose sums fit into memory and files."""
    dim = whole(name, value)
    if dim > MOST_FEATURES:
        raise ParameterError(
            f"{name} must be at most {MOST_FEATURES}, as a learner sums up d × d numbers; got {dim}. Use fewer "
            "features: hash them, or project them on fewer dimensions."
        )
    return dim


def real(low: float = 0.0, high: float = float("inf"), *, open_low: bool = False) -> Check:
    """A number in a range."""
    return lambda name, value: number(name, value, low=low, high=high, open_low=open_low)


def choice(*names: str) -> Check:
    """One of these names."""
    return lambda name, value: one_of(name, value, names)


def design_of_sets(name: str, value: GOptimal) -> GOptimal:
    """A G-optimal design."""
    return of_type(name, value, GOptimal)


def check_settings(learner: "DataclassInstance") -> None:
    """Put every setting of a frozen dataclass into its canonical form."""
    for entry in settings_of(type(learner)):
        check, value = entry.metadata["check"], getattr(learner, entry.name)
        if check is not None and value is not None:
            object.__setattr__(learner, entry.name, check(entry.name, value))
        elif value is None and entry.default is not None:
            raise ParameterError(f"{entry.name} must be given: it is {entry.metadata['text']}; got None.")


def settings_of(kind: "type[DataclassInstance]") -> tuple["Field[Any]", ...]:
    """The settings of a class of learners, in order."""
    return tuple(entry for entry in fields(kind) if "text" in entry.metadata)


def required_settings(kind: "type[DataclassInstance]") -> tuple[str, ...]:
    """The settings without a default."""
    return tuple(entry.name for entry in settings_of(kind) if entry.default is MISSING)


def plain_settings(learner: "DataclassInstance") -> dict[str, Any]:
    """A learner's settings as JSON can keep them."""
    return {entry.name: codec.plain(getattr(learner, entry.name)) for entry in settings_of(type(learner))}
