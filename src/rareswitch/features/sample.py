"""One column of a sample: what kind of field it is, and what was seen of it."""

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from rareswitch.errors import ParameterError
from rareswitch.features.categories import Category, Hashed, level_text
from rareswitch.features.field import Field, plain
from rareswitch.features.quantities import Flag, Number, Vector
from rareswitch.ids import LONGEST
from rareswitch.validation import LARGEST_SCALE, count_of, number

_WORDS = ("number", "category", "hashed", "flag", "vector")
#: Rows from which on a column of different values is taken for an id.
_IDS_FROM = 20


class Seen(NamedTuple):
    """What becomes of a column; no field, with the reason, where it is left out."""

    field: Field | None
    text: str


@dataclass(frozen=True, kw_only=True)
class Habits:
    """How columns become fields where nothing else is said."""

    #: None: a column of their own where the sample has missing values, else an error (or as unknown, of categories).
    missing: str | None = None
    #: Categories of more levels are hashed, into so many columns.
    levels: int = 30
    hashed: int = 16
    clip: float = 4.0

    def __post_init__(self) -> None:
        if self.missing not in (None, "own", "error"):
            raise ParameterError(f"missing must be 'own' or 'error'; got {self.missing!r:.60}.")
        count_of("levels", self.levels)
        count_of("hashed", self.hashed)
        number("clip", self.clip, low=0.0, open_low=True)

    def look(self, name: str, key: str, of: str, values: Any, kind: str | None = None) -> Seen:
        """What one column of a sample is; ``kind`` where the caller says it."""
        if kind is not None and kind not in _WORDS:
            raise ParameterError(f"kinds must be fields or {', '.join(_WORDS)}; got {kind!r:.60} for {name!r:.60}.")
        held = [] if isinstance(values, np.ndarray) else [plain(v) if not _many(v) else v for v in values]
        if isinstance(values, np.ndarray):
            numbers = values[~np.isnan(values)] if values.dtype.kind == "f" else values
            held, missing = numbers.tolist(), len(values) - len(numbers)
        else:
            missing = sum(v is None for v in held)
            held = [v for v in held if v is not None]
        if not held:
            return Seen(None, "no value in the sample")
        found = kind or _kind(held, of)
        if found not in _WORDS:
            return Seen(None, found)
        common: dict[str, Any] = {"of": of, "key": key}
        common["missing"] = self.missing or ("own" if missing else "unknown" if found == "category" else "error")
        note = f", {missing} missing" if missing else ""
        maker = {"number": _number, "category": _category, "hashed": _hashed, "flag": _flag, "vector": _vector}[found]
        if found == "category" and kind is None and len(set(map(level_text, held))) > self.levels:
            maker = _hashed
            common["missing"] = "own" if common["missing"] == "unknown" else common["missing"]
        field, text = maker(self, name, held, common, None if kind else missing)
        return Seen(field, text + note)


def _many(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray, Mapping))


def _kind(held: Sequence[Any], of: str) -> str:
    """The kind of these values, or why they cannot be a field."""
    types = set(map(type, held))
    if types == {bool}:
        return "flag"
    if types <= {int, float, bool, Decimal}:
        distinct = set(held)
        if distinct == {0, 1} and bool not in types:
            return "flag"
        if types == {int} and len(held) >= _IDS_FROM and max(held) - min(held) + 1 == len(held) == len(distinct):
            return "the number of the row"
        return "number"
    if any(issubclass(t, (dt.date, dt.time, dt.timedelta)) for t in types):
        return "a date or a time: give what matters of it (hour, weekday, age in days) as fields of their own"
    if all(issubclass(t, (list, tuple, np.ndarray)) for t in types):
        return "vector" if len({np.shape(v) for v in held}) == 1 and np.ndim(held[0]) == 1 else "lists of other shapes"
    if not all(issubclass(t, (str, int, float)) for t in types):
        return f"values of the type {', '.join(sorted(t.__name__ for t in types))}"
    distinct = {level_text(v) for v in held}
    if len(held) >= _IDS_FROM and len(distinct) > 0.9 * len(held):
        return "different in nearly every row, as an id is"
    if of == "arm" and len(held) > 2 and len(distinct) == len(held):
        return "different for each arm, as an id is: parameters of their own (own=True) say the same"
    return "category"


def _number(habits: Habits, name: str, held: list[Any], common: dict[str, Any], missing: int | None) -> Seen:
    values = np.array([float(v) for v in held])
    if not np.isfinite(values).all() or np.abs(values).max() > LARGEST_SCALE:
        return Seen(None, "it holds infinite or huge numbers")
    scale = float(f"{values.std():.6g}")  # as people would write it
    mean = float(f"{values.mean():.6g}") if abs(values.mean()) > 1e-9 * scale else 0.0
    if not scale > 1e-12 * abs(mean):
        return Seen(None, f"{values[0]:.6g} in every row") if missing == 0 else _only(name, values[0], common)
    made = Number(name, mean=mean, scale=scale, clip=habits.clip, **common)
    beyond = float((np.abs(values - mean) > habits.clip * scale).mean())
    clipped = f", {beyond:.2%} clipped" if beyond else ""
    return Seen(made, f"{values.min():.4g} to {values.max():.4g}{clipped}")


def _only(name: str, value: float, common: dict[str, Any]) -> Seen:
    """A number that is missing, or always the same."""
    return Seen(Number(name, mean=float(value), scale=max(abs(float(value)), 1.0), **common), f"{value:.4g}")


def _levels(held: Sequence[Any]) -> list[str]:
    """Levels by how often they are there, then by text: the same order for the same sample."""
    counts = Counter(text for v in held if (text := level_text(v)) is not None)
    return sorted(counts, key=lambda text: (-counts[text], text))


def _category(habits: Habits, name: str, held: list[Any], common: dict[str, Any], missing: int | None) -> Seen:
    levels = _levels(held)
    if len(levels) == 1 and missing == 0:
        return Seen(None, f"{levels[0]:.20} in every row")
    if any(len(level) > LONGEST for level in levels):
        return _hashed(habits, name, held, common, missing)
    return Seen(Category(name, levels=tuple(levels), **common), _listed(levels))


def _listed(levels: Sequence[str]) -> str:
    shown = ", ".join(level if len(level) <= 8 else f"{level[:6]}…" for level in levels[:3])
    return f"{len(levels)} levels: {shown}{', …' if len(levels) > 3 else ''}"


def _hashed(habits: Habits, name: str, held: list[Any], common: dict[str, Any], missing: int | None) -> Seen:
    if common["missing"] == "unknown":
        common = common | {"missing": "own"}
    return Seen(Hashed(name, columns=habits.hashed, **common), _listed(_levels(held)))


def _flag(habits: Habits, name: str, held: list[Any], common: dict[str, Any], missing: int | None) -> Seen:
    share = sum(map(bool, held)) / len(held)
    if share in (0.0, 1.0) and missing == 0:
        return Seen(None, f"{'true' if share else 'false'} in every row")
    return Seen(Flag(name, **common), f"{share:.0%} true")


def _vector(habits: Habits, name: str, held: list[Any], common: dict[str, Any], missing: int | None) -> Seen:
    array = np.array(held)
    if array.dtype.kind not in "iuf" or array.ndim != 2 or not np.isfinite(array).all():
        return Seen(None, "lists of other things than finite numbers")
    lengths = np.sqrt((array.astype(np.float64) ** 2).sum(axis=1))
    longest = float(lengths.max())
    if not 1 / LARGEST_SCALE <= longest <= LARGEST_SCALE:
        return Seen(None, "zero in every row" if longest == 0.0 else "its numbers are too large or too small")
    made = Vector(name, length=array.shape[1], longest=longest, **common)
    return Seen(made, f"lengths {lengths.min():.4g} to {longest:.4g}")
