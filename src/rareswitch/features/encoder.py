"""A description, compiled: records in, vectors out, and a count of all that was not as described."""

import math
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rareswitch.core import LARGEST_SCALE, ContextSets, FloatArray, IntArray, Sets
from rareswitch.errors import EmptySetError, RecordError
from rareswitch.features.fields import ARM, Arms, Coder, Field, Number
from rareswitch.features.records import (
    Contexts,
    FieldValue,
    FieldValues,
    Offer,
    OfferedArms,
    Record,
    RecordList,
    offer_of,
    offers_of,
    record_of,
    records_of,
)
from rareswitch.lanes import compiled

if TYPE_CHECKING:
    from rareswitch.features.features import Features

__all__ = ["Cautions", "Encoded"]

#: What was not as described in one request: (field, what) pairs; spare blocks are those of the field "arms".
Cautions = tuple[tuple[str, str], ...]
#: The requests, or the arms, to which something happened, by what and field; each as often as it happened to it.
Events = defaultdict[tuple[str, str], list[int]]
#: From a record to the values of fields.
Getter = Callable[[Record], tuple[FieldValue, ...]]
#: Unknown fields that are named for each request, at most.
MOST_EXTRA = 20
#: What a kernel notes, in the order of its numbers; of the arms' blocks, unknown means spare.
KERNEL_EVENTS = ("clipped", "missing", "unknown")
#: Numbers that are made to an array at once, where they are of Python's own types.
_PACKED = 1 << 16
#: Up to this number of records, values are taken row by row.
_ROWWISE = 700


class Encoded(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Vectors of one request or of many, and what was not as described."""

    #: Ids of the arms in the order of the vectors: a tuple, or of many requests a list of tuples.
    names: Any
    #: (n, K, d) with their mask; n is 1 for one request.
    checked: Sets
    #: How often what happened, by what and field.
    details: Counter[tuple[str, str]]
    #: Of each request, what was not as described.
    cautions: tuple[Cautions, ...]
    #: The records of the requests, and what was offered: once for all, or for each.
    table: RecordList
    offers: Sequence[Offer]
    #: (entries, n) codes of the records; (entries, m) of the arms of all offers, and where each offer has them, (n, K).
    context_codes: FloatArray
    arm_codes: FloatArray
    rows: IntArray

    def codes(self, at: int) -> bytes:
        """The codes of one request, in far fewer bytes than its vectors: equal codes are equal vectors."""
        arms = self.arm_codes
        if len(self.rows) > 1:  # those of an offer lie one after the other
            first = int(self.rows[at, 0])
            arms = arms[:, first : first + len(self.offers[at].names)]
        return self.context_codes[:, at].tobytes() + arms.tobytes()

    @property
    def vectors(self) -> FloatArray:
        """(K, d) of one request, (n, K, d) of many."""
        return self.checked.contexts[0] if self.checked.single else self.checked.contexts

    @property
    def sets(self) -> ContextSets:
        """All of them as context sets."""
        return ContextSets.checked(self.checked)

    @property
    def counts(self) -> Counter[str]:
        """How often what happened: clipped, missing, unknown, absent, extra, spare, shared.

        *Clipped* are numbers and vectors beyond their range, *missing* None and NaN, *unknown* values that are none of
        the levels; *absent* are fields that a record lacks (they count as missing too), *extra* those that the
        description does not know; *spare* arms that took a block kept for later ones, and *shared* such arms that met
        another one in the same request.
        """
        counts: Counter[str] = Counter()
        for (what, _), times in self.details.items():
            counts[what] += times
        return counts


def cautions_of(happened: Iterable[tuple[str, str]]) -> Cautions:
    """What happened in one request, (what, field) pairs, by field. What is absent is missing too, and is left out.

    >>> cautions_of([("absent", "device"), ("missing", "device"), ("extra", "devce")])
    (('devce', 'extra'), ('device', 'missing'))
    """
    pairs = sorted([(_shown(field), what) for what, field in happened if what != "absent"])
    if len(pairs) > MOST_EXTRA:
        extra = [pair for pair in pairs if pair[1] == "extra"][:MOST_EXTRA]
        pairs = [pair for pair in pairs if pair[1] != "extra" or pair in extra]
    return tuple(pairs)


def _shown(field: str) -> str:
    """A name that every store can keep."""
    return str(field)[:100].encode(errors="replace").decode() or "arms"


class Side:
    """The fields that are read from one kind of record, and how they are coded."""

    def __init__(self, parts: Sequence[Field | Arms]) -> None:
        self.names = [part.name for part in parts]
        self.coders = [part.coder() for part in parts]
        # a number that is one is its own code
        self.quick: list[Coder | None] = [
            None if type(part) is Number else coder for part, coder in zip(parts, self.coders, strict=True)
        ]
        layouts = [part.layout for part in parts]
        self.vectors = any(layout.entries > 1 or layout.form == 2 for layout in layouts)
        starts = np.cumsum([0, *(layout.entries for layout in layouts)]).tolist()
        self.first = dict(zip(self.names, starts[:-1], strict=True))
        self.entries = starts[-1]
        specs = [[a.form, first, a.entries, a.unknown, a.missing] for a, first in zip(layouts, starts, strict=False)]
        self.specs = np.array(specs, dtype=np.int64).reshape(-1, 5)
        self.scales = np.array([[a.center, a.divisor] for a in layouts]).reshape(-1, 2)

    def raw(self, columns: Sequence[FieldValues], count: int) -> FloatArray:
        """The codes (entries, count) of values, a column for each field."""
        raw = np.empty((self.entries, count))
        if not self.vectors and count * len(columns) <= _PACKED:
            for coders in (self.quick, self.coders):
                flat: list[Any] = []
                for coder, values in zip(coders, columns, strict=True):
                    flat.extend(values if coder is None else coder(values))
                try:
                    struct.pack_into(f"{len(flat)}d", raw.data, 0, *flat)
                    return raw
                except (struct.error, TypeError, OverflowError):  # some number is missing, or no number
                    continue
        for name, coder, values in zip(self.names, self.coders, columns, strict=True):
            codes = np.asarray(coder(values), dtype=np.float64).reshape(-1, count)
            raw[self.first[name] : self.first[name] + len(codes)] = codes
        return raw

    def note(self, noted: NDArray[np.int8], events: Events) -> None:
        """Add what a kernel noted (fields, count) to the events; missing values may be an error."""
        fields, items = np.nonzero(noted)
        for f, item, number in zip(fields.tolist(), items.tolist(), noted[fields, items].tolist(), strict=True):
            name, what = self.names[f], KERNEL_EVENTS[number - 1]
            if what == "missing" and self.specs[f, 4] < 0:
                raise RecordError(
                    f"the field {name!r} must not be missing; it is in record {item}. Give its value, or describe "
                    "features in which a missing one has a column: missing = 'own'."
                )
            events["spare" if what == "unknown" and name == Arms.name else what, name].append(item)

    def refuse_number(self, f: int, raw: FloatArray) -> None:
        """A number of field f is infinite or too large."""
        values = raw[self.specs[f, 1] : self.specs[f, 1] + self.specs[f, 2]]
        wrong = values[~(np.abs(values) <= LARGEST_SCALE) & ~np.isnan(values)][0]
        raise RecordError(
            f"the field {self.names[f]!r} must be finite and at most {LARGEST_SCALE:g} in size; got {wrong:g}. Give "
            "None where it is not known."
        )


class Encoder:
    """What :class:`~rareswitch.features.Features` computes with; made once for each."""

    def __init__(self, features: "Features") -> None:
        self.features = features
        self.context_fields = [field for field in features.fields if field.of == "context"]
        self.arm_fields = [field for field in features.fields if field.of != "context" and ARM not in field.key]
        self.wide_fields = [field for field in features.fields if ARM in field.key]
        self.named = () if features.arms is None else tuple(features.arms.ids)
        self.context = Side(self.context_fields)
        self.arm = Side([*self.arm_fields, *self.wide_fields, *features.parts[len(features.fields) :]])
        self.context_keys = frozenset(field.key for field in self.context_fields)
        self.arm_keys = frozenset(field.key for field in self.arm_fields)
        self.context_getter, self.arm_getter = _getter(self.context_fields), _getter(self.arm_fields)
        #: Of the fields that a context holds for each arm, what is before and after the arm's id in the key.
        self.affixes = [field.key.split(ARM) for field in self.wide_fields]
        self.terms = self._terms()
        self.scale = 1.0 / math.sqrt(len(self.terms))

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

    def single(self, context: Record | None, arms: OfferedArms) -> Encoded:
        """One request."""
        offer = offer_of(arms, self.features.key, self.named)
        record = {} if context is None else record_of(context)
        if not isinstance(record, (dict, Mapping)):  # dicts are known at once
            raise RecordError(
                f"a context must be a record, a dict of fields by name; got {type(record).__name__}. For many at once "
                "use encode_many."
            )
        return self._encoded([record], [offer], single=True)

    def many(self, contexts: Contexts, arms: OfferedArms) -> Encoded:
        """Many requests, with the same arms or each with its own."""
        table = records_of("contexts", contexts)
        if not len(table):
            raise EmptySetError("at least one context is needed; got none.")
        return self._encoded(table, offers_of(arms, len(table), self.features.key, self.named), single=False)

    def _encoded(self, table: RecordList, offers: Sequence[Offer], *, single: bool) -> Encoded:
        """The requests of a table, with one offer for all or one each."""
        count = len(table)
        if self.wide_fields:  # each request has values of its own
            offers = [*offers] * (count // len(offers))
        joined = offers[0] if len(offers) == 1 else _joined(offers)
        context_events, arm_events = Events(list), Events(list)
        context = self.context.raw(self._context_columns(table, context_events), count)
        columns = self._arm_columns(joined, arm_events)
        if self.wide_fields:
            columns += self._wide_columns(table, offers, arm_events)
        arm = self.arm.raw([*columns, joined.names] if self.features.arms is not None else columns, len(joined.names))
        rows = _rows(offers)
        vectors = self._vectors(context, arm, rows, context_events, arm_events)
        if ("spare", Arms.name) in arm_events:
            self._note_shared(arm, rows, count, context_events)
        repeated = count // len(offers)
        details = Counter({key: len(requests) for key, requests in context_events.items()})
        for key, items in arm_events.items():
            details[key] += len(items) * repeated
        if not details:
            cautions: tuple[Cautions, ...] = ((),) * count
        elif count == 1:
            cautions = (cautions_of(details),)
        else:
            cautions = _by_request(count, rows, context_events, arm_events)
        names = offers[0].names if single else [offer.names for offer in offers] * repeated
        available = np.tile(rows >= 0, (repeated, 1)) if repeated > 1 else rows >= 0
        for array in (vectors, available):
            array.setflags(write=False)
        return Encoded(
            names=names,
            checked=Sets(vectors, available, single),
            details=details,
            cautions=cautions,
            table=table,
            offers=offers,
            context_codes=context,
            arm_codes=arm,
            rows=rows,
        )

    def _vectors(
        self, context: FloatArray, arm: FloatArray, rows: IntArray, context_events: Events, arm_events: Events
    ) -> FloatArray:
        """Vectors (n, K, d) of codes; ``rows`` (n, K) are places of arms, or (1, K) the same ones for all."""
        vectors = np.zeros((context.shape[1], rows.shape[1], self.features.dim))
        sides = ((self.context, context, context_events), (self.arm, arm, arm_events))
        noted = [np.zeros((len(side.specs), raw.shape[1]), np.int8) for side, raw, _ in sides]
        total = fill(
            context,
            self.context.specs,
            self.context.scales,
            noted[0],
            arm,
            self.arm.specs,
            self.arm.scales,
            noted[1],
            rows,
            self.terms,
            self.scale,
            vectors,
        )
        own = len(self.context.specs)
        if total < 0:
            side, raw, _ = sides[-1 - total >= own]
            side.refuse_number(-1 - total - (own if side is self.arm else 0), raw)
        if total:
            for (side, _, events), marks in zip(sides, noted, strict=True):
                side.note(marks, events)
        return vectors

    def _context_columns(self, table: RecordList, events: Events) -> list[FieldValues]:
        """The values of the context's fields; what else the records hold is noted."""
        columns = self._columns(self.context_fields, self.context_getter, table, events)
        if events or sum(map(len, table)) != len(table) * len(self.context_keys):
            for k, record in enumerate(table):
                for name in record:
                    if name not in self.context_keys and not self._named_arm(name):
                        self._note_extra("context", name, k, events)
        return columns

    def _arm_columns(self, offer: Offer, events: Events) -> list[FieldValues]:
        """The values of the fields that are in the records of arms; what else these hold is noted."""
        records = offer.records
        if records is None:
            return [self._absent(field, range(len(offer.names)), events) for field in self.arm_fields]
        columns = self._columns(self.arm_fields, self.arm_getter, records, events)
        known = self.arm_keys | {self.features.key}
        if events or sum(map(len, records)) != len(records) * (len(known) if offer.keyed else len(self.arm_keys)):
            for k, record in enumerate(records):
                for name in sorted(record.keys() - known):
                    self._note_extra("arm", name, k, events)
        return columns

    def _columns(
        self, fields: Sequence[Field], getter: Getter, records: RecordList, events: Events
    ) -> list[FieldValues]:
        """The values of fields, a column for each."""
        if not fields:
            return []
        try:
            if len(records) > _ROWWISE:
                return [[record[field.key] for record in records] for field in fields]
            columns: list[FieldValues] = [*zip(*map(getter, records), strict=True)]
            return columns[: len(fields)]
        except KeyError:
            for field in fields:
                self._absent(field, [k for k, record in enumerate(records) if field.key not in record], events)
            return [[record.get(field.key) for record in records] for field in fields]

    def _wide_columns(self, table: RecordList, offers: Sequence[Offer], events: Events) -> Iterator[FieldValues]:
        """The values that contexts hold of each of their arms."""
        for field, (before, after) in zip(self.wide_fields, self.affixes, strict=True):
            cells = [
                (record, f"{before}{name}{after}")
                for record, offer in zip(table, offers, strict=True)
                for name in offer.names
            ]
            self._absent(field, [k for k, (record, key) in enumerate(cells) if key not in record], events)
            yield [record.get(key) for record, key in cells]

    def _absent(self, field: Field, items: Sequence[int], events: Events) -> list[None]:
        """Fields that are not there are missing, where the description lets them be."""
        if items and self.features.absent == "error":
            raise RecordError(
                f"a record lacks the field {field.key!r} of the {field.of}. Give it (None where its value is not known)"
                ", or describe features with absent = 'missing'."
            )
        if items:
            events["absent", field.name] += items
        return [None] * len(items)

    def _named_arm(self, name: str) -> bool:
        """Whether contexts have such a field of an arm, also of one that is not offered."""
        return bool(self.affixes) and any(name.startswith(start) and name.endswith(end) for start, end in self.affixes)

    def _note_extra(self, of: str, name: str, item: int, events: Events) -> None:
        if self.features.extra == "error":
            raise RecordError(
                f"a record of the {of} holds {name!r:.60}, which these features do not know. Leave it out, or "
                "describe features with extra = 'ignore'."
            )
        events["extra", name].append(item)

    def _note_shared(self, arm: FloatArray, rows: IntArray, count: int, events: Events) -> None:
        """Note each request once for each of its arms that met another one in a spare block."""
        for k, row in enumerate(rows):
            blocks = arm[-1, row[row >= 0]]
            _, times = np.unique(blocks[blocks >= len(self.named)], return_counts=True)
            met = int(times[times > 1].sum())
            requests = range(count) if len(rows) < count else [k]
            if met:
                events["shared", Arms.name] += [*requests] * met


@lru_cache(maxsize=64)
def _one_row(count: int) -> IntArray:
    """The places of the arms of one request."""
    return np.arange(count)[None]


def _rows(offers: Sequence[Offer]) -> IntArray:
    """(n, K) where the arms of each offer are among those of all; -1 where it has fewer."""
    if len(offers) == 1:
        return _one_row(len(offers[0].names))
    counts = [len(offer.names) for offer in offers]
    if len(set(counts)) == 1:
        return np.arange(len(counts) * counts[0]).reshape(len(counts), -1)
    sizes = np.array(counts)
    rows: IntArray = (np.cumsum(sizes) - sizes)[:, None] + np.arange(sizes.max())
    rows[np.arange(sizes.max()) >= sizes[:, None]] = -1
    return rows


def _by_request(count: int, rows: IntArray, context_events: Events, arm_events: Events) -> tuple[Cautions, ...]:
    """What happened in each of many requests."""
    happened: list[set[tuple[str, str]]] = [set() for _ in range(count)]
    for key, requests in context_events.items():
        for request in requests:
            happened[request].add(key)
    for key, items in arm_events.items():
        hit = np.isin(rows, items).any(axis=1)
        for request in np.flatnonzero(np.broadcast_to(hit, count)).tolist():
            happened[request].add(key)
    keys = [*map(frozenset, happened)]
    cautions = {key: cautions_of(key) for key in {*keys}}  # mostly the same for all
    return tuple([cautions[key] for key in keys])


def _getter(fields: Sequence[Field]) -> Getter:
    """A function from a record to the values of fields; it raises KeyError where one is absent."""
    keys = [field.key for field in fields]
    if len(keys) == 1:
        return itemgetter(keys[0], keys[0])  # twice, so that it is a tuple
    return itemgetter(*keys) if keys else lambda record: ()


def _joined(offers: Sequence[Offer]) -> Offer:
    """The arms of many requests, one after the other."""
    records: list[Record] | None = None
    if any(offer.records is not None for offer in offers):
        records = [record for offer in offers for record in (offer.records or [{}] * len(offer.names))]
    return Offer(tuple([name for offer in offers for name in offer.names]), records, offers[0].keyed)


@compiled
def place_values(raw, specs, scales, columns, numbers, events):  # type: ignore[no-untyped-def]
    """Column and number of each code, both (entries, m), of codes ``raw`` (entries, m).

    ``specs`` are rows (form, first entry, entries, unknown, missing) of fields, ``scales`` rows (center, divisor).
    ``events`` (fields, m), zero before, becomes 1 where a value was clipped, 2 where it is missing, and 3 where it is
    unknown. Returns the number of events, or -1 - f where a number of field f is infinite or too large.
    """
    total = 0
    for f in range(specs.shape[0]):
        form, first, entries, unknown, missing = specs[f, 0], specs[f, 1], specs[f, 2], specs[f, 3], specs[f, 4]
        center, divisor = scales[f, 0], scales[f, 1]
        for i in range(raw.shape[1]):
            absent = False
            for r in range(first, first + entries):
                absent |= math.isnan(raw[r, i])
            if absent:
                for r in range(first, first + entries):
                    columns[r, i], numbers[r, i] = 0, 0.0
                columns[first, i], numbers[first, i] = max(missing, 0), 1.0
                events[f, i] = 2
                total += 1
                continue
            for r in range(first, first + entries):
                if not abs(raw[r, i]) <= LARGEST_SCALE:
                    return -1 - f
            if form == 0:
                value = (raw[first, i] - center) / divisor
                if abs(value) > 1.0:
                    value = 1.0 if value > 0.0 else -1.0
                    events[f, i] = 1
                columns[first, i], numbers[first, i] = 0, value
            elif form == 1:
                place = int(raw[first, i])
                if place >= unknown:
                    events[f, i] = 3
                columns[first, i], numbers[first, i] = place, 1.0
            else:
                square = 0.0
                for r in range(first, first + entries):
                    square += raw[r, i] * raw[r, i]
                length = math.sqrt(square)
                if length > divisor:
                    events[f, i] = 1
                for r in range(first, first + entries):
                    columns[r, i], numbers[r, i] = r - first, raw[r, i] / max(length, divisor)
            total += events[f, i] > 0
    return total


@compiled
def assemble(  # type: ignore[no-untyped-def]
    context_columns, context_numbers, arm_columns, arm_numbers, rows, terms, scale, vectors
):
    """Fill vectors (n, K, d), which are zero before, with the products that the terms name.

    ``rows`` (n, K), or (1, K) for all sets, says which column of the arms' entries belongs to an arm, -1 where there is
    none. ``terms`` are rows (first column of the vector, then of two factors each: side, first entry, entries; columns
    of the second factor); side 0 is the context, 1 the arm, and a factor without entries is 1.
    """
    for s in range(vectors.shape[0]):
        for i in range(rows.shape[1]):
            row = rows[s % rows.shape[0], i]
            if row < 0:
                continue
            for t in range(terms.shape[0]):
                start = terms[t, 0]
                for e in range(max(terms[t, 3], 1)):
                    column, number = 0, scale
                    if terms[t, 3] > 0 and terms[t, 1] == 0:
                        column, number = (
                            context_columns[terms[t, 2] + e, s],
                            scale * context_numbers[terms[t, 2] + e, s],
                        )
                    elif terms[t, 3] > 0:
                        column, number = arm_columns[terms[t, 2] + e, row], scale * arm_numbers[terms[t, 2] + e, row]
                    if terms[t, 6] == 0:
                        vectors[s, i, start + column] += number
                    for k in range(terms[t, 6]):
                        if terms[t, 4] == 0:
                            inner, other = context_columns[terms[t, 5] + k, s], context_numbers[terms[t, 5] + k, s]
                        else:
                            inner, other = arm_columns[terms[t, 5] + k, row], arm_numbers[terms[t, 5] + k, row]
                        vectors[s, i, start + column * terms[t, 7] + inner] += number * other


@compiled
def fill(  # type: ignore[no-untyped-def]
    context, specs, scales, events, arm, arm_specs, arm_scales, arm_events, rows, terms, scale, vectors
):
    """Fill vectors (n, K, d) from the codes of contexts (entries, n) and of arms (entries, m).

    Specs, scales and events of both are those of :func:`place_values`. Returns the number of events, or -1 - f where
    field f, counted from the context's on to the arms', holds a number that is infinite or too large.
    """
    columns, numbers = np.empty(context.shape, np.int64), np.empty(context.shape)
    total = place_values(context, specs, scales, columns, numbers, events)
    if total < 0:
        return total
    arm_columns, arm_numbers = np.empty(arm.shape, np.int64), np.empty(arm.shape)
    more = place_values(arm, arm_specs, arm_scales, arm_columns, arm_numbers, arm_events)
    if more < 0:
        return more - specs.shape[0]
    assemble(columns, numbers, arm_columns, arm_numbers, rows, terms, scale, vectors)
    return total + more
