"""The cells of a CSV file: columns by name, errors by line, arms that were offered."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.csv_tables import CsvTable, is_number
from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.exchange.texts import numbered, seconds_of
from rareswitch.validation import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Table(CsvTable):
    """A log in CSV, in memory."""

    def roles(self, named: Mapping[str, str | None], needed: Sequence[str]) -> dict[str, str]:
        """The columns by what they are for; those that may be missing, and are, are left out."""
        found = {}
        for role, name in named.items():
            if name is None and role in needed:
                raise ParameterError(f"{role} must be the name of a column; got None.")
            if name is None or (name not in self.names and name == role and role not in needed):
                continue
            if role == "propensity" and role not in needed:
                continue
            if name not in self.names and role == "propensity":
                raise FileFormatError(
                    f"{self.path}: there is no column {name!r:.60} of propensities; it has "
                    f"{', '.join(self.names):.300}. Name theirs with propensity=…; where they are not known, pass "
                    "propensities='estimate'; all that rests on them is marked then."
                )
            if name not in self.names:
                raise FileFormatError(
                    f"{self.path}: there is no column {name!r:.60}; it has {', '.join(self.names):.300}. Name the "
                    f"right one with {role}=…."
                )
            found[role] = name
        return found

    def each(self, name: str, read: Callable[[str], Any], empty: Any = None) -> list[Any]:
        """What a function reads in each cell of a column; an empty one is what is said, or refused."""
        found = []
        for text, line in zip(self.column(name), self.lines, strict=True):
            if text == "" and (empty is not None or read is time_of):
                found.append(float("nan") if empty is None else empty)
                continue
            try:
                found.append(read(text))
            except ValueError as error:
                raise FileFormatError(f"{self.path}, line {line}: {name} must be {error}; got {text!r:.60}.") from None
        return found

    def json(self, name: str, rows: Iterable[int] | None = None) -> list[Any]:
        """The cells of a column of JSON."""
        at, found = self.names.index(name), []
        for row in range(len(self)) if rows is None else rows:
            try:
                found.append(json.loads(self.rows[row][at]))
            except (ValueError, RecursionError) as error:
                raise FileFormatError(
                    f"{self.path}, line {self.lines[row]}: the column {name!r} must be JSON ({error!s:.60})."
                ) from error
        return found

    def where(self, values: Mapping[str, Any]) -> list[int]:
        """The rows with these values in these columns."""
        kept = [*range(len(self))]
        for name, value in values.items():
            several = isinstance(value, (list, tuple, set, range))
            texts = {*map(str, value)} if several else {str(value)}
            column = self.column(self.known(name))
            kept = [row for row in kept if column[row] in texts]
            if not kept:
                shown = ", ".join(sorted({*column}))
                raise ParameterError(
                    f"where must leave some rows; none has {name} = {value!r:.60}. There are {shown:.100}."
                )
        return kept

    def select(self, kept: Sequence[int]) -> "Table":
        """Some of the rows."""
        return Table(self.path, self.names, [self.rows[row] for row in kept], [self.lines[row] for row in kept])


@dataclass(frozen=True, eq=False)
class Offers:
    """Which arms were offered, and which one was chosen."""

    available: BoolArray
    arm_indices: IntArray
    #: None where arms have no ids.
    arms: tuple[str, ...] | None
    codes: IntArray
    baselines: IntArray | None

    def select(self, kept: Sequence[int]) -> "Offers":
        """Some of the rows."""
        baselines = None if self.baselines is None else self.baselines[kept]
        return Offers(self.available[kept], self.arm_indices[kept], self.arms, self.codes[kept], baselines)

    def names(self) -> list[tuple[str, ...]]:
        """The ids of the offered arms, of each row."""
        arms = self.arms or tuple(map(str, range(self.available.shape[1])))
        return [tuple(arms[code] for code in row if code >= 0) for row in self.codes.tolist()]


def offers_of(table: Table, roles: Mapping[str, str], facts: Mapping[str, Any] | None) -> Offers:
    """The arms of all rows."""
    ours = facts is not None
    chosen = table.column(roles["arm"]) if ours else table.filled(roles["arm"])
    named: list[str | None]
    if "offered" not in roles:
        arms = sorted({*chosen}, key=_order)
        codes = np.tile(np.arange(len(arms)), (len(table), 1))
    else:
        rows = [split(text) for text in table.column(roles["offered"])]
        width = max(map(len, rows))
        known = facts["arms"] if facts is not None and facts["arms"] is not None else None
        if facts is not None and known is None:
            known = [*map(str, range(facts["width"]))]
        occurring = [name for row in rows for name in row if name is not None]
        if known is None:
            known = sorted({*occurring}, key=_order)
        numbers, found = numbered(occurring, known)
        arms, left = [*found], iter(numbers)
        codes = np.full((len(table), width), -1)
        for at, row in enumerate(rows):
            for arm_index, name in enumerate(row):
                codes[at, arm_index] = -1 if name is None else next(left)
    order = {name: code for code, name in enumerate(arms)}
    arm_indices = _places(
        table, codes, order, chosen, "arm", own="arm_index" if ours and "arm_index" in table.names else None
    )
    baselines = None
    if "baseline" in roles:
        named = [text or None for text in table.column(roles["baseline"])]
        baselines = _places(table, codes, order, named, "baseline", own=roles["baseline"] if ours else None)
    unnamed = facts is not None and facts["arms"] is None
    return Offers(codes >= 0, arm_indices, None if unnamed else tuple(arms), codes, baselines)


def _places(
    table: Table, codes: IntArray, order: Mapping[str, int], names: Sequence[str | None], what: str, own: str | None
) -> IntArray:
    """Where arms stand among those that were offered, by their ids, or as our own files say."""
    if own is not None:
        return np.array(table.each(own, _place, empty=-1))
    found = np.full(len(codes), -1)
    for row, (name, line) in enumerate(zip(names, table.lines, strict=True)):
        if name is None:
            continue
        there = np.flatnonzero(codes[row] == order.get(name, -2))
        if not len(there):
            raise FileFormatError(f"{table.path}, line {line}: the {what} {name!r:.60} is none of those offered.")
        found[row] = there[0]
    return found


def split(text: str) -> list[str | None]:
    r"""Arms that were offered, separated by ``|``; None where nothing stands: no arm was offered at that place.

    >>> split("red|blue||green"), split("a\\|b|c"), split("\\0")
    (['red', 'blue', None, 'green'], ['a|b', 'c'], [''])
    """
    parts = re.split(r"(?<!\\)((?:\\\\)*)\|", text) if "\\" in text else text.split("|")
    if "\\" in text:  # what was before a separator, with its own backslashes
        parts = [a + b for a, b in zip(parts[::2], [*parts[1::2], ""], strict=True)]
    return [None if part == "" else re.sub(r"\\([\\|0])", _unescaped, part) for part in parts]


def joined(names: Sequence[str], codes: Sequence[int]) -> str:
    """What :func:`split` reads; arms with a negative code were not offered."""
    return "|".join(
        "" if code < 0 else name.replace("\\", r"\\").replace("|", r"\|") or r"\0"
        for name, code in zip(names, codes, strict=True)
    )


def _unescaped(found: re.Match[str]) -> str:
    return "" if found[1] == "0" else found[1]


def number_of(text: str) -> float:
    """A finite number."""
    if not is_number(text):
        raise ValueError("a finite number")
    return float(text)


def time_of(text: str) -> float:
    """Seconds since 1970, from these or from ISO 8601."""
    found = float(text) if is_number(text) else seconds_of(text)
    if found is None or not math.isfinite(found):
        raise ValueError("a time in seconds since 1970, or such as 2026-11-16T05:00:00Z")
    return found


def _place(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("a place among the arms that were offered")
    return int(text)


def _order(name: str) -> tuple[bool, int, str]:
    """Numbers by size, before texts."""
    return (False, int(name), name) if name.isdecimal() and len(name) < 19 else (True, 0, name)
