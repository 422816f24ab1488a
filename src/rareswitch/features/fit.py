"""Features proposed from a sample of contexts and arms."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from rareswitch.errors import ParameterError, RecordError
from rareswitch.features.fields import ARM, Arms, Category, Field, Flag, Hashed, Number, Vector, level_text, plain
from rareswitch.features.records import Frame, Offer, Records, offers_of, table_of
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


#: With so many arms or fewer, which have no features, each has parameters of its own.
_FEW = 50


class Column(NamedTuple):
    """A column of the sample."""

    name: str
    key: str
    of: str
    values: Any


class Proposal(NamedTuple):
    """Fields found, and what is said about them and about those that were not."""

    fields: list[Field]
    seen: dict[str, str]


def propose(
    contexts: Any,
    arms: Any,
    *,
    key: str = "id",
    drop: Iterable[str] = (),
    kinds: Mapping[str, Any] | None = None,
    crossings: bool | Sequence[tuple[str, str]] | None = None,
    own: bool | Sequence[str] | None = None,
    spare_arms: int | None = None,
    most: int = 100,
    missing: str | None = None,
    absent: str = "missing",
    extra: str = "ignore",
    levels: int = 30,
    hashed: int = 16,
    clip: float = 4.0,
) -> dict[str, Any]:
    """The settings of features that suit a sample.

    Numbers are standardised, texts become categories or, with many levels, are hashed; what is the same in every row,
    or different in each as an id, is left out. Where arms have fields, those of the context are crossed with them, each
    once and then the smallest crossings first, as long as there are at most ``most`` columns. Where few arms have none,
    each arm has parameters of its own for the fields of the context. Everything that was found and left out is in the
    table that ``print(features)`` shows.

    Parameters
    ----------
    contexts
        Records or a table of pandas, polars or Arrow. A column for each arm, with its id in the name (``likes_a``,
        ``likes_b``, …), becomes one field of context and arm together.
    arms
        A list of ids; records by id; records or a table that hold ids under ``key``; or one such for each context:
        fields that vary for an arm are then of context and arm together.
    key
        Where records and tables of arms hold the id.
    drop
        Columns that are not known when a decision is made (rewards!) or must not be used.
    kinds
        For fields by name: ``"number"``, ``"category"``, ``"hashed"``, ``"flag"``, ``"vector"``, or a whole field.
    crossings
        Pairs of names to cross; True for all pairs, False for none.
    own
        Whether each arm has parameters of its own, or for which fields.
    spare_arms
        Blocks for arms that come later, where arms have parameters of their own; a quarter of the arms by default.
    most
        The most columns that are proposed.
    missing
        ``"own"`` or ``"error"`` for all fields; by default what the sample needs.
    absent, extra
        As in :class:`~rareswitch.features.Features`.
    levels, hashed, clip
        Most levels with a column each; columns of a hashed field; where numbers are clipped, in standard deviations.
    """
    habits = Habits(missing=missing, levels=levels, hashed=hashed, clip=clip)
    table = table_of("contexts", contexts)
    if not len(table):
        raise RecordError("a sample of at least one context is needed; got none.")
    offers = offers_of(arms, len(table), key, ())
    ids = list(dict.fromkeys(level_text(name) or "" for offer in offers for name in offer.names))
    dropped = {str(name) for name in ([drop] if isinstance(drop, str) else drop)}
    told = dict(kinds or {})
    columns = [*_context_columns(table, ids, told), *_arm_columns(offers, key)]
    known = {column.name for column in columns}
    for name in [*dropped, *told]:
        if name not in known and name not in {column.key for column in columns}:
            raise ParameterError(f"drop and kinds must name columns of the sample; it has no {name!r:.60}.")
    found = _fields(columns, habits, told, dropped, key)
    most = count_of("most", most)
    if not found.fields and len(ids) > most:
        raise RecordError(f"{len(ids)} arms without features: give records of them, or fewer.")
    made = _composed(found, ids, crossings, own, spare_arms, most)
    return {**made, "key": key, "absent": absent, "extra": extra}


def _context_columns(table: Frame | Records, ids: Sequence[str], told: Mapping[str, Any]) -> list[Column]:
    """The columns of contexts; those that hold a value for each arm are put together."""
    names = table.names if isinstance(table, Frame) else [*dict.fromkeys(name for record in table for name in record)]

    def values(name: str) -> Any:
        return table.column(name) if isinstance(table, Frame) else [record.get(name) for record in table]

    columns, taken = [], set[str]()
    for name in names:
        if name in taken or name in told:
            continue
        group = _group(name, ids, names) if len(ids) > 1 else None
        if group is None:
            columns.append(Column(name, name, "context", values(name)))
            continue
        pooled = [values(group.replace(ARM, id)) for id in ids]  # noqa: A001
        arrays = all(isinstance(part, np.ndarray) for part in pooled)
        taken |= {group.replace(ARM, id) for id in ids}  # noqa: A001
        every = np.concatenate(pooled) if arrays else [v for part in pooled for v in part]
        columns.append(Column(group.replace(ARM, "").strip("_-. ") or group, group, "both", every))
    return columns + [Column(name, name, "context", values(name)) for name in names if name in told]


def _group(name: str, ids: Sequence[str], names: Sequence[str]) -> str | None:
    """The name with the arm's id left open, if the sample has such a column for every arm."""
    held = set(names)
    for id in ids:  # noqa: A001
        at = name.find(id)
        while at >= 0:
            group = f"{name[:at]}{ARM}{name[at + len(id) :]}"
            if group != ARM and all(group.replace(ARM, other) in held for other in ids):
                return group
            at = name.find(id, at + 1)
    return None


def _arm_columns(offers: Sequence[Offer], key: str) -> list[Column]:
    """The columns of arms: of the arm where each arm has one value throughout, else of both."""
    values: dict[str, list[Any]] = {}
    firsts: dict[str, dict[Any, Any]] = {}
    varies = set[str]()
    names = dict.fromkeys(name for offer in offers for record in offer.records or () for name in record if name != key)
    for offer in offers:
        for id, record in zip(offer.names, offer.records or (), strict=False):  # noqa: A001
            for name in names:
                value: Any = record.get(name)
                first: Any = firsts.setdefault(name, {}).setdefault(id, value)
                if first is not value and not np.array_equal(first, value):
                    varies.add(name)
                values.setdefault(name, []).append(value)
    return [
        Column(name, name, "both", values[name])
        if name in varies
        else Column(name, name, "arm", list(firsts[name].values()))
        for name in names
    ]


def _fields(
    columns: Sequence[Column], habits: Habits, told: Mapping[str, Any], dropped: set[str], key: str
) -> Proposal:
    """What each column becomes."""
    fields: list[Field] = []
    seen: dict[str, str] = {}
    for column in columns:
        name = column.name if column.name not in seen else f"{column.of}.{column.name}"
        kind = told.get(name, told.get(column.name))
        if column.name in dropped or column.key in dropped:
            seen[name] = "as was asked"
        elif column.of == "context" and column.key == key:
            seen[name] = f"it names the arm, as {key!r} does in a log; a feature needs another name"
        elif isinstance(kind, Field):
            fields.append(kind.changed(of=column.of, key=column.key))
            seen[kind.name] = "as it was given"
        else:
            field, seen[name] = habits.look(name, column.key, column.of, column.values, kind)
            fields += [field] if field is not None else []
    return Proposal(fields, seen)


def _composed(
    found: Proposal,
    ids: Sequence[str],
    crossings: bool | Sequence[tuple[str, str]] | None,
    own: bool | Sequence[str] | None,
    spare_arms: int | None,
    most: int,
) -> dict[str, Any]:
    """Fields put together: crossed with those of arms, or with the arms themselves."""
    seen = dict(found.seen)
    context = [field for field in found.fields if field.of == "context"]
    items = [field for field in found.fields if field.of == "arm"]
    telling = [field for field in found.fields if field.of != "context"]
    if own is None:
        own = not items and len(ids) <= max(_FEW, most)
    total, block = sum(field.layout.columns for field in telling), 0
    arms = None
    if own or not telling:
        spare = max(1, len(ids) // 4) if spare_arms is None else count_of("spare_arms", spare_arms, low=0)
        block = len(ids) + spare
        total += block
        named = [own] if isinstance(own, str) else [f.name for f in context] if isinstance(own, bool) else [*own]
        kept: list[str] = []
        for field in sorted((f for f in found.fields if f.name in named), key=lambda f: f.layout.columns):
            if isinstance(own, bool) and total + block * field.layout.columns > most:
                seen[f"arm × {field.name}"] = f"{block * field.layout.columns} more columns, beyond most={most}"
                continue
            total += block * field.layout.columns
            kept.append(field.name)
        kept += [name for name in named if name not in {f.name for f in found.fields}]  # refused where they are checked
        arms = Arms(ids=tuple(ids), spare_arms=spare, own=tuple(sorted(kept, key=named.index)))
    elif spare_arms is not None:
        raise ParameterError("room is for arms with parameters of their own: give own=True too, or no room.")
    pairs = _pairs(context, items, crossings, seen, most - total - (arms is None))
    used = {name for pair in pairs for name in pair} | set(() if arms is None else arms.own)
    fields = []
    for field in found.fields:
        crossed = any(field.name in pair for pair in pairs)
        if field.of == "context" and field.name not in used:
            seen[field.name] = "alone it cannot change a choice: cross it, or give arms parameters of their own for it"
        else:
            own_to_arms = arms is not None and field.name in arms.own  # and so need not be there for all of them
            fields.append(field.changed(alone=field.of != "context" or (crossed and not own_to_arms)))
    return {"fields": fields, "constant": arms is None, "crossings": pairs, "arms": arms, "seen": seen}


def _pairs(
    context: Sequence[Field],
    items: Sequence[Field],
    asked: bool | Sequence[tuple[str, str]] | None,
    seen: dict[str, str],
    left: int,
) -> list[tuple[str, str]]:
    """Crossings, each field of the context once and then the smallest, as long as there are columns left.

    A crossed field of the context has columns alone too: else its level would be taken for that of its crossings.
    """
    if asked is not None and not isinstance(asked, bool):
        return [(one, other) for one, other in asked]
    if asked is False:
        return []
    every = [(one, other) for one in context for other in items]
    by_size = sorted(every, key=lambda pair: pair[0].layout.columns * pair[1].layout.columns)
    firsts = list({one.name: (one, other) for one, other in reversed(by_size)}.values())[::-1]
    chosen, alone, beyond = set[tuple[str, str]](), set[str](), []
    for one, other in [*firsts, *(pair for pair in by_size if pair not in firsts)]:
        size = one.layout.columns * other.layout.columns
        size += 0 if one.name in alone else one.layout.columns
        if size > left and asked is None:
            beyond.append(f"{one.name} × {other.name} ({size})")
            continue
        left -= size
        alone.add(one.name)
        chosen.add((one.name, other.name))
    if beyond:
        seen["crossings beyond most columns"] = ", ".join(beyond)
    return [(one.name, other.name) for one, other in every if (one.name, other.name) in chosen]
