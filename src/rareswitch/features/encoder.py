"""A description, compiled: records in, vectors out, and a count of all that was not as described."""

import math
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import EmptySetError, RecordError
from rareswitch.features.fields import ARM, Arms, Coder, Field, Number
from rareswitch.features.kernels import fill
from rareswitch.features.records import Frame, Offer, Records, offer_of, offers_of, record_of, table_of
from rareswitch.validation import LARGEST_SCALE, BoolArray, FloatArray, IntArray, Sets, sealed

if TYPE_CHECKING:
    from rareswitch.features.features import Features

#: How often what happened, by what and field.
Details = Counter[tuple[str, str]]
#: What was not as described in one request: (field, what) pairs; spare blocks are those of the field "arms".
Cautions = tuple[tuple[str, str], ...]
#: Fields that a description does not know, of which so many are named in a request.
MOST_EXTRA = 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Encoded:
    """Vectors of one request or of many, and what was not as described."""

    #: Ids of the arms in the order of the vectors: a tuple, or of many requests a list of tuples.
    names: Any
    #: (n, K, d) with their mask; n is 1 for one request.
    checked: Sets
    #: How often what happened, by what and field.
    details: Details
    #: Of each request, what was not as described.
    cautions: tuple[Cautions, ...]

    @property
    def vectors(self) -> FloatArray:
        """(K, d) of one request, (n, K, d) of many."""
        return self.checked.contexts[0] if self.checked.single else self.checked.contexts

    @property
    def sets(self) -> ContextSets:
        """All of them as context sets."""
        return ContextSets.checked(self.checked)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often what happened: clipped, missing, unknown, absent, extra, spare, shared.

        *Clipped* are numbers and vectors beyond their range, *missing* None and NaN, *unknown* values that are none of
        the levels; *absent* are fields that a record lacks (they count as missing too), *extra* those that the
        description does not know; *spare* arms that took a block kept for later ones, and *shared* such arms that met
        another one in the same request.
        """
        found: Counter[str] = Counter()
        for (what, _), times in self.details.items():
            found[what] += times
        return found


def cautions_of(happened: Iterable[tuple[str, str]]) -> Cautions:
    """What happened in one request, (what, field) pairs, by field. What is absent is missing too, and is left out.

    >>> cautions_of([("absent", "device"), ("missing", "device"), ("extra", "devce")])
    (('devce', 'extra'), ('device', 'missing'))
    """
    pairs = sorted((_shown(field), what) for what, field in happened if what != "absent")
    extra = [pair for pair in pairs if pair[1] == "extra"]
    return tuple(pair for pair in pairs if pair[1] != "extra" or pair in extra[:MOST_EXTRA])


def _shown(field: Any) -> str:
    """A name that every store can keep."""
    return str(field)[:100].encode(errors="replace").decode() or "arms"


#: What a kernel counts, in its order; of the arms' blocks, unknown means spare.
EVENTS = ("clipped", "missing", "unknown")
#: Under this name, which no field has, the arms' blocks are counted.
ARMS = ""
#: Numbers that are made to an array at once, where they are of Python's own types.
_PACKED = 1 << 14


class Side:
    """The fields that are read from one kind of record, and how they are coded."""

    def __init__(self, fields: Sequence[Field], arms: Arms | None = None) -> None:
        parts = [(field.name, field.layout, field.coder()) for field in fields]
        plain_numbers = {field.name for field in fields if isinstance(field, Number)}
        if arms is not None:
            parts.append((ARMS, arms.layout, arms.coder()))
        self.names = [name for name, _, _ in parts]
        self.coders = [coder for _, _, coder in parts]
        # a number that is one is its own code
        self.quick: list[Coder | None] = [None if name in plain_numbers else coder for name, _, coder in parts]
        layouts = [layout for _, layout, _ in parts]
        self.vectors = any(layout.entries > 1 or layout.form == 2 for layout in layouts)
        starts = np.cumsum([0, *(layout.entries for layout in layouts)]).tolist()
        self.first = dict(zip(self.names, starts[:-1], strict=True))
        self.entries = starts[-1]
        specs = [
            [a.form, first, a.entries, a.unknown, a.missing] for a, first in zip(layouts, starts[:-1], strict=True)
        ]
        self.specs = np.array(specs, dtype=np.int64).reshape(-1, 5)
        self.scales = np.array([[a.center, a.divisor] for a in layouts]).reshape(-1, 2)

    def raw(self, columns: Sequence[Sequence[Any]], count: int) -> FloatArray:
        """The codes (entries, count) of values, a column for each field."""
        raw = np.empty((self.entries, count))
        if not self.vectors and count * len(columns) <= _PACKED:
            for coders in (self.quick, self.coders):
                flat: list[Any] = []
                for coder, values in zip(coders, columns, strict=True):
                    flat.extend(values if coder is None else coder(values))
                with suppress(struct.error, TypeError, OverflowError):  # some number is missing, or no number
                    struct.pack_into(f"{len(flat)}d", raw.data, 0, *flat)
                    return raw
        for name, values in zip(self.names, columns, strict=True):
            self.code(raw, name, values)
        return raw

    def code(self, raw: FloatArray, name: str, values: Sequence[Any]) -> None:
        """Put the codes of one field into their place."""
        codes = np.asarray(self.coders[self.names.index(name)](values), dtype=np.float64).reshape(-1, raw.shape[1])
        raw[self.first[name] : self.first[name] + len(codes)] = codes

    def events(self, raw: FloatArray) -> Iterator[tuple[str, str, BoolArray]]:
        """What happened to which field, and (m,) to which of the codes: as kernels count it."""
        for name, spec, (center, divisor) in zip(self.names, self.specs.tolist(), self.scales.tolist(), strict=True):
            form, first, entries, unknown, _ = spec
            part = raw[first : first + entries]
            yield "missing", name, np.asarray(np.isnan(part).any(axis=0))
            if form == 1:
                yield "spare" if name == ARMS else "unknown", name, part[0] >= unknown
            elif form == 0:
                yield "clipped", name, np.abs((part[0] - center) / divisor) > 1.0
            else:
                yield "clipped", name, np.linalg.norm(part, axis=0) > divisor

    def refuse_number(self, f: int, raw: FloatArray) -> None:
        """A number of field f is infinite or too large."""
        values = raw[self.specs[f, 1] : self.specs[f, 1] + self.specs[f, 2]]
        given = values[~(np.abs(values) <= LARGEST_SCALE) & ~np.isnan(values)][0]
        raise RecordError(
            f"the field {self.names[f]!r} must be finite and at most {LARGEST_SCALE:g} in size; got {given:g}. Give "
            "None where it is not known."
        )

    def account(self, events: list[list[int]], raw: FloatArray, details: Details, times: int) -> None:
        """Count events of values that each stand for ``times``; missing values may be an error."""
        for f, counts in enumerate(events):
            if not any(counts):
                continue
            if counts[1] and self.specs[f, 4] < 0:
                part = raw[self.specs[f, 1] : self.specs[f, 1] + self.specs[f, 2]]
                raise RecordError(
                    f"the field {self.names[f]!r} must not be missing; it is in record "
                    f"{int(np.isnan(part).any(axis=0).argmax())}. Give its value, or describe features in which a "
                    "missing one has a column: missing = 'own'."
                )
            for what, count in zip(EVENTS, counts, strict=True):
                if count:
                    named = "spare" if what == "unknown" and self.names[f] == ARMS else what
                    details[named, self.names[f]] += times * count


#: Up to so many records, values are taken row by row.
_ROWWISE = 100
Getter = Callable[[Mapping[str, Any]], tuple[Any, ...]]
#: A field that the context holds for each arm, and what is before and after the arm's id in its key.
Wide = tuple[Field, str, str]


class Encoder:
    """What :class:`~rareswitch.features.Features` computes with; made once for each."""

    def __init__(self, features: "Features") -> None:
        self.features = features
        self.context_fields = [field for field in features.fields if field.of == "context"]
        self.arm_fields = [field for field in features.fields if field.of != "context" and ARM not in field.key]
        self.wide_fields = [field for field in features.fields if ARM in field.key]
        self.key = features.key
        self.named = () if features.arms is None else tuple(features.arms.ids)
        self.context = Side(self.context_fields)
        self.arm = Side([*self.arm_fields, *self.wide_fields], features.arms)
        self.context_keys = frozenset(field.key for field in self.context_fields)
        self.arm_keys = frozenset(field.key for field in self.arm_fields)
        self.context_getter, self.arm_getter = _getter(self.context_fields), _getter(self.arm_fields)
        self.wide: list[Wide] = [(f, *f.key.partition(ARM)[::2]) for f in self.wide_fields]
        self.terms = self._terms()
        self.scale = 1.0 / math.sqrt(len(self.terms))
        self.specs = np.concatenate([self.context.specs, self.arm.specs])
        self.scales = np.concatenate([self.context.scales, self.arm.scales])

    def _terms(self) -> IntArray:
        start, rows = 0, []
        for term in self.features.terms:
            parts: list[int] = []
            widths = [1, 1]
            for k, (name, layout) in enumerate(term):
                side = 0 if name in self.context.first else 1
                first = (self.arm if side else self.context).first[name]
                parts += [side, first, layout.entries]
                widths[k] = layout.columns
            rows.append([start, *parts, *[0] * (6 - len(parts)), widths[1]])
            start += widths[0] * widths[1]
        assert start == self.features.dim
        return np.array(rows, dtype=np.int64)

    def one(self, context: Mapping[str, Any] | None, arms: Any) -> Encoded:
        """One request."""
        details: Details = Counter()
        offer = offer_of(arms, self.key, self.named)
        context = {} if context is None else record_of(context)
        if not isinstance(context, (dict, Mapping)):  # dicts are known at once
            raise RecordError(
                f"a context must be a record, a dict of fields by name; got {type(context).__name__}. For many at once "
                "use encode_many."
            )
        context_raw = self.context.raw(self._context_columns([context], details), 1)
        columns = self._arm_columns(offer, details)
        columns += [self._wide_column(wide, [context], [offer], details) for wide in self.wide]
        arm_raw = self._arm_raw(columns, offer.names)
        return self._encoded(offer.names, context_raw, arm_raw, _one_row(len(offer.names)), details, single=True)

    def many(self, contexts: Any, arms: Any) -> Encoded:
        """Many requests, with the same arms or each with its own."""
        details: Details = Counter()
        table = table_of("contexts", contexts)
        count = len(table)
        if not count:
            raise EmptySetError("at least one context is needed; got none.")
        context_raw = self.context.raw(self._context_columns(table, details), count)
        offers = offers_of(arms, count, self.key, self.named)
        names = [offer.names for offer in offers] * (count if len(offers) < count else 1)
        joined, own, repeat = _joined(offers), Counter[tuple[str, str]](), count // len(offers)
        columns = self._arm_columns(joined, own)
        for key, times in own.items():
            details[key] += times * repeat
        if self.wide:  # each request has values of its own
            arm_raw = np.empty((self.arm.entries, len(joined.names)))
            for field, values in zip(self.arm_fields, columns, strict=True):
                self.arm.code(arm_raw, field.name, values)
            if self.features.arms is not None:
                self.arm.code(arm_raw, ARMS, joined.names)
            arm_raw, offers = np.tile(arm_raw, repeat), offers * repeat
            records = table.records(self._wide_names(table)) if isinstance(table, Frame) else table
            for wide in self.wide:
                self.arm.code(arm_raw, wide[0].name, self._wide_column(wide, records, offers, details))
        else:
            arm_raw = self._arm_raw(columns, joined.names)
        sizes = np.array([len(offer.names) for offer in offers])
        rows = (np.cumsum(sizes) - sizes)[:, None] + np.arange(sizes.max())
        rows[np.arange(sizes.max()) >= sizes[:, None]] = -1
        encoded = self._encoded(names, context_raw, arm_raw, rows, details, single=False)
        if details and count > 1:
            vars(encoded)["cautions"] = self._by_request(table, joined, context_raw, arm_raw, rows)
        return encoded

    def _by_request(
        self, table: Frame | Records, offer: Offer, context: FloatArray, arm: FloatArray, rows: IntArray
    ) -> tuple[Cautions, ...]:
        """What happened in each of many requests; looked up only where something did."""
        count, happened = context.shape[1], dict[tuple[str, str], set[int]]()

        def of_arms(mask: BoolArray) -> Iterable[int]:
            """The requests that offer one of these arms."""
            hit = np.append(np.tile(mask, arm.shape[1] // len(mask)), False)[rows].any(axis=1)
            return np.flatnonzero(np.broadcast_to(hit, count)).tolist()

        def note(what: str, field: str, requests: Iterable[int]) -> None:
            happened.setdefault((what, field), set()).update(requests)

        for what, field, mask in self.context.events(context):
            note(what, field, np.flatnonzero(mask).tolist())
        for what, field, mask in self.arm.events(arm):
            note(what, field, of_arms(mask))
        for k, record in enumerate([dict.fromkeys(table.names)] if isinstance(table, Frame) else table):
            for name in record:
                if not self._known(name):
                    note("extra", name, range(count) if isinstance(table, Frame) else [k])
        for k, record in enumerate(offer.records or ()):
            for name in record.keys() - self.arm_keys - {self.key}:
                note("extra", name, of_arms(np.arange(len(offer.names)) == k))
        if happened.get(("spare", ARMS)):
            meets = [k for k, row in enumerate(np.broadcast_to(rows, (count, rows.shape[1]))) if self._met(arm, row)]
            note("shared", ARMS, meets)
        each: list[list[tuple[str, str]]] = [[] for _ in range(count)]
        for key, requests in happened.items():
            for at in requests:
                each[at].append(key)
        return tuple(map(cautions_of, each))

    def _encoded(
        self, names: Any, context: FloatArray, arm: FloatArray, rows: IntArray, details: Details, *, single: bool
    ) -> Encoded:
        """Vectors of codes; ``rows`` (n, K) are places of arms, or (1, K) the same ones for all."""
        count, requests = context.shape[1], len(rows)
        fields = len(self.context.specs)
        events = np.zeros((len(self.specs), len(EVENTS)), dtype=np.int64)
        if requests < count:
            rows = np.tile(rows, (count, 1))
        vectors = np.zeros((*rows.shape, self.features.dim))
        total = fill(context, arm, fields, self.specs, self.scales, rows, self.terms, self.scale, vectors, events)
        if total:
            if -1 - total >= fields:
                self.arm.refuse_number(-1 - total - fields, arm)
            elif total < 0:
                self.context.refuse_number(-1 - total, context)
            counted = events.tolist()
            self.context.account(counted[:fields], context, details, 1)
            self.arm.account(counted[fields:], arm, details, count // requests)
            self._count_shared(arm, rows, details)
        made = object.__new__(Encoded)  # the initializer of a frozen class takes twice as long
        cautions = (cautions_of(details),) if details and count == 1 else ((),) * count
        checked = Sets(sealed(vectors), sealed(rows >= 0), single)
        vars(made).update(names=names, checked=checked, details=details, cautions=cautions)
        return made

    def _context_columns(self, table: Frame | Records, details: Details) -> list[Any]:
        """The values of the context's fields; what else the records hold is counted."""
        if isinstance(table, Frame):
            held, count = {*table.names}, len(table)
            columns = []
            for field in self.context_fields:
                values = table.column(field.key) if field.key in held else None
                columns.append(self._absent(field, count, details) if values is None else values)
            extra = [name for name in table.names if not self._known(name)]
            self._extra("context", extra, count, details)
            return columns
        columns = self._columns(self.context_fields, self.context_getter, table, details)
        if details or sum(map(len, table)) != len(table) * len(self.context_keys):
            for record in table:
                self._extra("context", [name for name in record if not self._known(name)], 1, details)
        return columns

    def _arm_columns(self, offer: Offer, details: Details) -> list[Any]:
        """The values of the fields that are in the records of arms; what else these hold is counted."""
        records = offer.records
        if records is None:
            return [self._absent(field, len(offer.names), details) for field in self.arm_fields]
        columns = self._columns(self.arm_fields, self.arm_getter, records, details)
        known = len(self.arm_keys | {self.key} if offer.keyed else self.arm_keys)
        if details or sum(map(len, records)) != len(records) * known:
            for record in records:
                self._extra("arm", sorted(record.keys() - self.arm_keys - {self.key}), 1, details)
        return columns

    def _arm_raw(self, columns: list[Any], names: Sequence[Any]) -> FloatArray:
        """The codes of arms, their blocks last."""
        return self.arm.raw([*columns, names] if self.features.arms is not None else columns, len(names))

    def _columns(self, fields: Sequence[Field], getter: Getter, records: Records, details: Details) -> list[Any]:
        """The values of fields, a column for each."""
        if not fields:
            return []
        try:
            if len(records) > _ROWWISE:
                return [[record[field.key] for record in records] for field in fields]
            return list(zip(*map(getter, records), strict=True))[: len(fields)]
        except KeyError:
            for field in fields:
                self._absent(field, sum(field.key not in record for record in records), details)
            return [[record.get(field.key) for record in records] for field in fields]

    def _wide_column(self, wide: Wide, records: Records, offers: Sequence[Offer], details: Details) -> list[Any]:
        """The values that contexts hold of each of their arms."""
        field, before, after = wide
        values, absent = [], 0
        for record, offer in zip(records, offers, strict=True):
            keys = [f"{before}{name}{after}" for name in offer.names]
            absent += sum(key not in record for key in keys)
            values += [record.get(key) for key in keys]
        self._absent(field, absent, details)
        return values

    def _absent(self, field: Field, count: int, details: Details) -> list[None]:
        """Fields that are not there are missing, where the description lets them be."""
        if count and self.features.absent == "error":
            raise RecordError(
                f"a record lacks the field {field.key!r} of the {field.of}. Give it (None where its value is not known)"
                ", or describe features with absent = 'missing'."
            )
        if count:
            details["absent", field.name] += count
        return [None] * count

    def _known(self, name: str) -> bool:
        """Whether contexts have such a field, also of an arm that is not offered."""
        if name in self.context_keys:
            return True
        return any(name.startswith(before) and name.endswith(after) for _, before, after in self.wide)

    def _wide_names(self, table: Frame) -> list[str]:
        return [name for name in table.names if name not in self.context_keys and self._known(name)]

    def _extra(self, of: str, names: Sequence[str], count: int, details: Details) -> None:
        if names and self.features.extra == "error":
            raise RecordError(
                f"a record of the {of} holds {names[0]!r:.60}, which these features do not know. Leave it out, or "
                "describe features with extra = 'ignore'."
            )
        for name in names:
            details["extra", name] += count

    def _count_shared(self, arm_raw: FloatArray, rows: IntArray, details: Details) -> None:
        """How many arms met another one of the same request in a spare block."""
        if details["spare", ARMS]:
            met = sum(self._met(arm_raw, row) for row in rows)
            if met:
                details["shared", ARMS] += met

    def _met(self, arm_raw: FloatArray, row: IntArray) -> int:
        """The arms of a request that met another one in a spare block."""
        assert self.features.arms is not None
        blocks = arm_raw[-1, row[row >= 0]]
        _, times = np.unique(blocks[blocks >= len(self.features.arms.ids)], return_counts=True)
        return int(times[times > 1].sum())


@lru_cache(maxsize=64)
def _one_row(count: int) -> IntArray:
    """The places of the arms of one request."""
    return np.arange(count)[None]


def _getter(fields: Sequence[Field]) -> Getter:
    """A function from a record to the values of fields; it raises KeyError where one is absent."""
    keys = [field.key for field in fields]
    if len(keys) == 1:
        return itemgetter(keys[0], keys[0])  # twice, so that it is a tuple
    return itemgetter(*keys) if keys else lambda record: ()


def _joined(offers: Sequence[Offer]) -> Offer:
    """The arms of many requests, one after the other."""
    if len(offers) == 1:
        return offers[0]
    records: list[Mapping[str, Any]] | None = None
    if any(offer.records is not None for offer in offers):
        records = [r for offer in offers for r in (offer.records or [{}] * len(offer.names))]
    return Offer(tuple([name for offer in offers for name in offer.names]), records, offers[0].keyed)
