"""Features proposed from a sample of contexts and arms."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rareswitch.core import LARGEST_SCALE, LONGEST, FloatArray, number, one_of, whole
from rareswitch.errors import ParameterError, RecordError
from rareswitch.features.fields import ARM, Arms, Category, Field, Flag, Hashed, Number, Vector
from rareswitch.features.records import (
    ArmId,
    Contexts,
    FieldValue,
    FieldValues,
    Offer,
    OfferedArms,
    RecordList,
    level_text,
    offers_of,
    records_of,
    scalar,
)
from rareswitch.features.transforms import DatePart, Hour, Log, Month, Quantile, Weekday

#: The kinds of fields, by their names in files.
FIELDS = ("number", "log", "quantile", "category", "hashed", "flag", "vector", "hour", "weekday", "month")
DATE_PARTS: dict[str, type[DatePart]] = {"hour": Hour, "weekday": Weekday, "month": Month}
#: Rows from which on a column of different values is taken for an id.
_IDS_FROM = 20
#: Up to this number of arms without features, each has parameters of its own.
_FEW = 50
#: Quantiles of a field that is asked for by them.
_QUANTILES = 21
#: Skewness from which on another scale is recommended: an exponential distribution has 2.
_SKEWED = 3.0
_HUGE = "it holds infinite or huge numbers"
_DATE = "a date: ask for its parts by kinds, as in kinds={'at': 'hour+weekday'}"


class SampleColumn(NamedTuple):
    """A column of the sample."""

    name: str
    key: str
    of: str
    values: FieldValues


class ColumnSample:
    """The values of a column that are not missing, and the field that they may become.

    Each kind has a method that gives the field, or None, and a remark: what it holds, or why it is left
    out.
    """

    def __init__(self, proposal: "Proposal", name: str, column: SampleColumn, kind: str | None) -> None:
        if kind is not None and kind not in FIELDS:
            raise ParameterError(f"kinds must be fields or {', '.join(FIELDS)}; got {kind!r:.60} for {name!r:.60}.")
        many = (list, tuple, np.ndarray, Mapping)
        values = [value if isinstance(value, many) else scalar(value) for value in column.values]
        self.held: list[Any] = [value for value in values if value is not None]
        self.proposal, self.name, self.column, self.asked = proposal, name, column, kind
        self.gaps = len(values) - len(self.held)
        self.kind = kind or (_kind(self.held, column.of) if self.held else "no value in the sample")
        if kind is None and self.kind == "category" and len(self.levels) > proposal.levels:
            self.kind = "hashed"

    def field(self) -> tuple[Field | None, str]:
        """The field, if there is one, and the remark about it."""
        if self.kind not in FIELDS:
            return None, self.kind
        parts = DATE_PARTS.get(self.kind)
        field, text = getattr(self, f"_{self.kind}")() if parts is None else self._date(parts)
        if field is not None:
            missing = self.proposal.missing or ("unknown" if isinstance(field, Category) else "own")
            missing = "own" if self.gaps else missing
            field = replace(field, of=self.column.of, key=self.column.key, missing=missing)
        return field, text + (f", {self.gaps} missing" if self.gaps else "")

    @property
    def constant(self) -> bool:
        """Whether a column that holds one value alone is left out: it has no gaps, and was not asked for."""
        return self.asked is None and not self.gaps

    @cached_property
    def levels(self) -> list[str]:
        """Levels by how often they are there, then by text: the same order for the same sample."""
        counts = Counter(text for value in self.held if (text := level_text(value)) is not None)
        return sorted(counts, key=lambda text: (-counts[text], text))

    def _number(self) -> tuple[Field | None, str]:
        values = self._numbers()
        field, text = self._standardized(Number, values)
        if isinstance(field, Number) and (((values - field.mean) / field.scale) ** 3).mean() > _SKEWED:
            text += f", skewed: try {'log or ' if values.min() >= 0.0 else ''}quantile"
        return field, text

    def _numbers(self) -> FloatArray:
        """The values as numbers; an error of what is none."""
        return np.array(Number(self.name).coder()(self.held), dtype=np.float64)

    def _log(self) -> tuple[Field | None, str]:
        values = self._numbers()
        shift = 0.0 if (values > 0.0).all() else 1.0
        field, text = self._standardized(Log, np.log(values[values > -shift] + shift), shift=shift)
        low = int((values <= -shift).sum())
        return field, f"logarithms {text}" + (f", {low} without one at the low end" if low else "")

    def _quantile(self) -> tuple[Field | None, str]:
        values = self._numbers()
        if not (np.abs(values) <= LARGEST_SCALE).all():
            return None, _HUGE
        quantiles = np.quantile(values, np.linspace(0.0, 1.0, _QUANTILES), method="inverted_cdf").tolist()
        if quantiles[0] == quantiles[-1]:
            return None, f"{quantiles[0]:.6g} in every row"
        text = f"{quantiles[0]:.4g} to {quantiles[-1]:.4g}, median {quantiles[_QUANTILES // 2]:.4g}"
        return Quantile(self.name, quantiles=quantiles), text

    def _date(self, part: type[DatePart]) -> tuple[Field | None, str]:
        field = part(self.name)
        days = sorted(f"{field.moment(value):%Y-%m-%d}" for value in self.held)
        return field, f"{days[0]} to {days[-1]}" if days else "no value in the sample"

    def _standardized(self, form: type[Number], values: FloatArray, **own: Any) -> tuple[Field | None, str]:
        """A number of this form, with mean and scale of these values."""
        if not len(values):
            return None, "no value of which there is a logarithm"
        if not np.isfinite(values).all() or np.abs(values).max() > LARGEST_SCALE:
            return None, _HUGE
        scale = float(f"{values.std():.6g}")  # as people would write it
        mean = float(f"{values.mean():.6g}") if abs(values.mean()) > 1e-9 * scale else 0.0
        if not scale > 1e-12 * abs(mean):
            first = float(values[0])
            if self.constant:
                return None, f"{first:.6g} in every row"
            return form(self.name, mean=first, scale=max(abs(first), 1.0), **own), f"{first:.4g}"
        clip = self.proposal.clip
        beyond = float((np.abs(values - mean) > clip * scale).mean())
        clipped = f", {beyond:.2%} clipped" if beyond else ""
        field = form(self.name, mean=mean, scale=scale, clip=clip, **own)
        return field, f"{values.min():.4g} to {values.max():.4g}{clipped}"

    def _category(self) -> tuple[Field | None, str]:
        if len(self.levels) == 1 and self.constant:
            return None, f"{self.levels[0]:.20} in every row"
        if any(len(level) > LONGEST for level in self.levels):
            return self._hashed()
        return Category(self.name, levels=tuple(self.levels)), self._listed()

    def _hashed(self) -> tuple[Field | None, str]:
        return Hashed(self.name, columns=self.proposal.hashed), self._listed()

    def _listed(self) -> str:
        shown = ", ".join(level if len(level) <= 8 else f"{level[:6]}…" for level in self.levels[:3])
        return f"{len(self.levels)} levels: {shown}{', …' if len(self.levels) > 3 else ''}"

    def _flag(self) -> tuple[Field | None, str]:
        share = sum(map(bool, self.held)) / len(self.held)
        if share in (0.0, 1.0) and self.constant:
            return None, f"{'true' if share else 'false'} in every row"
        return Flag(self.name), f"{share:.0%} true"

    def _vector(self) -> tuple[Field | None, str]:
        array = np.array(self.held)
        if array.dtype.kind not in "iuf" or array.ndim != 2 or not np.isfinite(array).all():
            return None, "lists of other things than finite numbers"
        lengths = np.sqrt((array.astype(np.float64) ** 2).sum(axis=1))
        longest = float(lengths.max())
        if not 1 / LARGEST_SCALE <= longest <= LARGEST_SCALE:
            return None, "zero in every row" if longest == 0.0 else "its numbers are too large or too small"
        field = Vector(self.name, length=array.shape[1], longest=longest)
        return field, f"lengths {lengths.min():.4g} to {longest:.4g}"


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
    if all(issubclass(t, dt.date) for t in types):
        return _DATE
    if any(issubclass(t, (dt.date, dt.time, dt.timedelta)) for t in types):
        return "a time or a duration: give it as a number"
    if all(issubclass(t, (list, tuple, np.ndarray)) for t in types):
        return "vector" if len({np.shape(v) for v in held}) == 1 and np.ndim(held[0]) == 1 else "lists of other shapes"
    if not all(issubclass(t, (str, int, float)) for t in types):
        return f"values of the type {', '.join(sorted(t.__name__ for t in types))}"
    distinct = {level_text(v) for v in held}
    if len(held) >= _IDS_FROM and len(distinct) > 0.9 * len(held):
        return _DATE if _are_dates(held) else "different in nearly every row, as an id is"
    if of == "arm" and len(held) > 2 and len(distinct) == len(held):
        return "different for each arm, as an id is: parameters of their own (own=True) say the same"
    return "category"


def _are_dates(held: Sequence[Any]) -> bool:
    """Whether all values are texts of dates."""
    try:
        return all("-" in value and Weekday("date").moment(value) is not None for value in held)
    except (RecordError, TypeError):
        return False


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Features that suit a sample.

    Numbers are standardised, texts become categories or, with many levels, are hashed; what is the same in every row,
    or different in each as an id, is left out. Where arms have fields, those of the context are crossed with them, each
    once and then the smallest crossings first, as long as there are at most ``most`` columns. Where few arms have none,
    each arm has parameters of its own for the fields of the context. Everything that was found and left out is in the
    table that ``print(features)`` shows.
    """

    #: Where records and tables of arms hold the id.
    key: str = "id"
    #: Columns that are not known when a decision is made (rewards!) or must not be used.
    drop: Iterable[str] = ()
    #: For fields by name: ``"number"``, ``"log"``, ``"quantile"``, ``"category"``, ``"hashed"``, ``"flag"``,
    #: ``"vector"``, ``"hour"``, ``"weekday"``, ``"month"``; several of them as ``"hour+weekday"``, each of which
    #: becomes a field (``at hour``, ``at weekday``); or a whole field.
    kinds: Mapping[str, str | Field] | None = None
    #: Pairs of names to cross; True for all pairs, False for none.
    crossings: bool | Sequence[tuple[str, str]] | None = None
    #: Whether each arm has parameters of its own, or for which fields.
    own: bool | Sequence[str] | None = None
    #: Blocks for arms that come later, where arms have parameters of their own; a quarter of the arms by default.
    spare_arms: int | None = None
    #: The most columns that are proposed.
    most: int = 100
    #: By default missing values have a column of their own, and are as unknown ones where the sample had none of a
    #: category. ``"own"``: a column for categories too; ``"error"``: an error in fields that have none in the sample.
    missing: str | None = None
    #: As in :class:`~rareswitch.features.Features`.
    absent: str = "missing"
    extra: str = "ignore"
    #: Categories of more levels are hashed, into this number of columns.
    levels: int = 30
    hashed: int = 16
    #: Where numbers are clipped, in standard deviations.
    clip: float = 4.0
    #: The remark about each column.
    seen: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.missing is not None:
            one_of("missing", self.missing, ("own", "error"))
        for name in ("levels", "hashed", "most"):
            vars(self)[name] = whole(name, getattr(self, name))
        number("clip", self.clip, low=0.0, open_low=True)
        drop = [self.drop] if isinstance(self.drop, str) else self.drop
        vars(self).update(drop={str(name) for name in drop}, kinds=self.kinds or {})

    def settings(self, contexts: Contexts, arms: OfferedArms) -> dict[str, Any]:
        """The settings of features that suit a sample.

        Parameters
        ----------
        contexts
            Records, a file of them (``.csv``, ``.parquet``, ``.json``, ``.jsonl``), or a table of pandas, polars or
            Arrow. A column for each arm, with its id in the name (``likes_a``, …), becomes one field of context and arm
            together.
        arms
            A list of ids; records by id; records or a table that hold ids under ``key``; or one such for each context:
            fields that vary for an arm are then of context and arm together.
        """
        table = records_of("contexts", contexts)
        if not len(table):
            raise RecordError("a sample of at least one context is needed; got none.")
        offers = offers_of(arms, len(table), self.key, ())
        ids = list(dict.fromkeys(level_text(name) or "" for offer in offers for name in offer.names))
        columns = [*_context_columns(table, ids, self.kinds or {}), *_arm_columns(offers, self.key)]
        known = {name for column in columns for name in (column.name, column.key)}
        for name in [*self.drop, *(self.kinds or {})]:
            if name not in known:
                raise ParameterError(f"drop and kinds must name columns of the sample; it has no {name!r:.60}.")
        fields = [part for column in columns for part in self._fields(column)]
        if not fields and len(ids) > self.most:
            raise RecordError(f"{len(ids)} arms without features: give records of them, or fewer.")
        composed = self._composed(fields, ids)
        return {**composed, "seen": self.seen, "key": self.key, "absent": self.absent, "extra": self.extra}

    def _fields(self, column: SampleColumn) -> Iterator[Field]:
        """What a column becomes: a field, none, or one for each kind that was asked for."""
        name = column.name if column.name not in self.seen else f"{column.of}.{column.name}"
        kinds = self.kinds or {}
        kind = kinds.get(name, kinds.get(column.name))
        if {column.name, column.key} & {*self.drop}:
            self.seen[name] = "as was asked"
        elif column.of == "context" and column.key == self.key:
            self.seen[name] = f"it names the arm, as {self.key!r} does in a log; a feature needs another name"
        elif isinstance(kind, Field):
            self.seen[kind.name] = "as it was given"
            yield replace(kind, of=column.of, key=column.key)
        else:
            words = [word.strip() for word in kind.split("+")] if isinstance(kind, str) else [kind]
            for word in words:
                label = name if len(words) == 1 else f"{name} {word}"
                part, self.seen[label] = ColumnSample(self, label, column, word).field()
                if part is not None:
                    yield part

    def _composed(self, fields: Sequence[Field], ids: Sequence[str]) -> dict[str, Any]:
        """Fields put together: crossed with those of arms, or with the arms themselves."""
        context = [part for part in fields if part.of == "context"]
        items = [part for part in fields if part.of == "arm"]
        telling = [part for part in fields if part.of != "context"]
        own = (not items and len(ids) <= max(_FEW, self.most)) if self.own is None else self.own
        total = sum(part.layout.columns for part in telling)
        arms = None
        if own or not telling:
            spare = max(1, len(ids) // 4) if self.spare_arms is None else whole("spare_arms", self.spare_arms, low=0)
            named = [own] if isinstance(own, str) else [f.name for f in context] if isinstance(own, bool) else [*own]
            block, chosen = len(ids) + spare, {*named}
            total += block
            for part in sorted((f for f in fields if f.name in named), key=lambda f: f.layout.columns):
                more = block * part.layout.columns
                if isinstance(own, bool) and total + more > self.most:
                    self.seen[f"arm × {part.name}"] = f"{more} more columns, beyond most={self.most}"
                    chosen.remove(part.name)
                else:
                    total += more
            arms = Arms(ids=tuple(ids), spare_arms=spare, own=tuple(name for name in named if name in chosen))
        elif self.spare_arms is not None:
            raise ParameterError(
                "spare_arms is for arms with parameters of their own: give own=True too, or no spare_arms."
            )
        pairs = self._pairs(context, items, self.most - total - (arms is None))
        crossed = {name for pair in pairs for name in pair}
        own_to_arms = set(() if arms is None else arms.own)
        used = []
        for part in fields:
            if part.of == "context" and part.name not in crossed | own_to_arms:
                remark = "alone it cannot change a choice: cross it, or give arms parameters of their own for it"
                self.seen[part.name] = remark
            else:  # what is own to arms need not be there for all of them
                used.append(replace(part, alone=part.of != "context" or part.name in crossed - own_to_arms))
        return {"fields": used, "constant": arms is None, "crossings": pairs, "arms": arms}

    def _pairs(self, context: Sequence[Field], items: Sequence[Field], left: int) -> list[tuple[str, str]]:
        """Crossings, each field of the context once and then the smallest, as long as there are columns left.

        A crossed field of the context has columns alone too: else its level would be taken for that of its crossings.
        """
        if self.crossings is not None and not isinstance(self.crossings, bool):
            return [*self.crossings]
        if self.crossings is False:
            return []
        every = [(first, second) for first in context for second in items]
        by_size = sorted(every, key=lambda pair: pair[0].layout.columns * pair[1].layout.columns)
        smallest = list({pair[0].name: pair for pair in reversed(by_size)}.values())[::-1]
        chosen, alone, beyond = set[tuple[str, str]](), set[str](), []
        for first, second in [*smallest, *(pair for pair in by_size if pair not in smallest)]:
            size = first.layout.columns * second.layout.columns
            size += 0 if first.name in alone else first.layout.columns
            if size > left and self.crossings is None:
                beyond.append(f"{first.name} × {second.name} ({size})")
                continue
            left -= size
            alone.add(first.name)
            chosen.add((first.name, second.name))
        if beyond:
            self.seen["crossings beyond most columns"] = ", ".join(beyond)
        return [(first.name, second.name) for first, second in every if (first.name, second.name) in chosen]


def _context_columns(table: RecordList, ids: Sequence[str], kinds: Mapping[str, str | Field]) -> list[SampleColumn]:
    """The columns of contexts; those that hold a value for each arm are put together."""
    names = [*dict.fromkeys(name for record in table for name in record)]

    def values(name: str) -> FieldValues:
        return [record.get(name) for record in table]

    columns, taken = [], set[str]()
    for name in names:
        if name in taken or name in kinds:
            continue
        group = _group(name, ids, names) if len(ids) > 1 else None
        if group is None:
            columns.append(SampleColumn(name, name, "context", values(name)))
            continue
        members = [group.replace(ARM, arm) for arm in ids]
        taken |= {*members}
        every = [value for member in members for value in values(member)]
        columns.append(SampleColumn(group.replace(ARM, "").strip("_-. ") or group, group, "both", every))
    return columns + [SampleColumn(name, name, "context", values(name)) for name in names if name in kinds]


def _group(name: str, ids: Sequence[str], names: Sequence[str]) -> str | None:
    """The name with the arm's id left open, if the sample has such a column for every arm."""
    known = set(names)
    for arm in ids:
        at = name.find(arm)
        while at >= 0:
            group = f"{name[:at]}{ARM}{name[at + len(arm) :]}"
            if group != ARM and all(group.replace(ARM, other) in known for other in ids):
                return group
            at = name.find(arm, at + 1)
    return None


def _arm_columns(offers: Sequence[Offer], key: str) -> list[SampleColumn]:
    """The columns of arms: of the arm where each arm has one value throughout, else of both."""
    values: dict[str, list[FieldValue]] = {}
    firsts: dict[str, dict[ArmId, FieldValue]] = {}
    varies = set[str]()
    names = dict.fromkeys(name for offer in offers for record in offer.records or () for name in record if name != key)
    for offer in offers:
        for arm, record in zip(offer.names, offer.records or (), strict=False):
            for name in names:
                value: Any = record.get(name)
                first: Any = firsts.setdefault(name, {}).setdefault(arm, value)
                if first is not value and not np.array_equal(first, value):
                    varies.add(name)
                values.setdefault(name, []).append(value)
    return [
        SampleColumn(name, name, "both", values[name])
        if name in varies
        else SampleColumn(name, name, "arm", list(firsts[name].values()))
        for name in names
    ]
