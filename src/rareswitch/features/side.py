"""The fields of one kind of record as codes: numbers, from which kernels make vectors."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from rareswitch.errors import RecordError
from rareswitch.features.arms import Arms
from rareswitch.features.encoded import Details
from rareswitch.features.field import Coder, Field
from rareswitch.features.quantities import Number
from rareswitch.validation import LARGEST_SCALE, BoolArray, FloatArray

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
