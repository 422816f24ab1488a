"""The cells of a CSV file: columns by name, errors by line, arms that were offered."""

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.exchange.texts import numbered, reading, seconds_of
from rareswitch.validation import BoolArray, IntArray

#: A cell may be long: it may hold the vectors of all arms.
_LONGEST = 1 << 28
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, eq=False)
class Table:
    """A CSV file in memory."""

    path: str | Path
    names: list[str]
    rows: list[list[str]]
    #: In which line of the file each row ends.
    lines: list[int]

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Of a file whose first line has the names of its columns."""
        limit = csv.field_size_limit(_LONGEST)
        rows: list[list[str]] = []
        lines: list[int] = []
        try:
            with reading(path) as file:
                reader = csv.reader(file, strict=True)
                names = next(reader, None)
                if not names:
                    raise FileFormatError(f"{path}: it is empty; a log in CSV begins with the names of its columns.")
                for row in reader:
                    if len(row) != len(names) and row:
                        raise FileFormatError(
                            f"{path}, line {reader.line_num}: {len(row)} cells, and there are {len(names)} columns. "
                            "The file may be cut short."
                        )
                    if row:
                        rows.append(row)
                        lines.append(reader.line_num)
        except csv.Error as error:
            raise FileFormatError(f"{path}, line {reader.line_num}: not CSV ({error!s:.60}).") from error
        finally:
            csv.field_size_limit(limit)
        twice = [name for name in names if name and names.count(name) > 1]
        if twice:
            raise FileFormatError(f"{path}: columns must have different names; {twice[0]!r:.60} is there twice.")
        if not rows:
            raise FileFormatError(f"{path}: it holds no decision, only the names of columns.")
        return cls(path, names, rows, lines)

    def __len__(self) -> int:
        return len(self.rows)

    def known(self, name: str) -> str:
        """The name of a column, if it is one."""
        if name not in self.names:
            raise FileFormatError(f"{self.path}: there is no column {name!r:.60}; it has {', '.join(self.names):.300}.")
        return name

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

    def column(self, name: str) -> list[str]:
        """The texts of a column."""
        at = self.names.index(name)
        return [row[at] for row in self.rows]

    def filled(self, name: str) -> list[str]:
        """The texts of a column, none of which may be empty."""
        found = self.column(name)
        if "" in found:
            line = self.lines[found.index("")]
            raise FileFormatError(f"{self.path}, line {line}: the column {name!r:.60} must not be empty.")
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

    def records(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Records of some columns: numbers and flags where all cells are, texts else; None where one is empty."""
        columns = [_typed(self.column(name)) for name in names]
        if not columns:
            return [{} for _ in self.rows]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


@dataclass(frozen=True, eq=False)
class Offers:
    """Which arms were offered, and which one was chosen."""

    alive: BoolArray
    places: IntArray
    #: None where arms have no ids.
    arms: tuple[str, ...] | None
    codes: IntArray
    baselines: IntArray | None

    def select(self, kept: Sequence[int]) -> "Offers":
        """Some of the rows."""
        baselines = None if self.baselines is None else self.baselines[kept]
        return Offers(self.alive[kept], self.places[kept], self.arms, self.codes[kept], baselines)

    def names(self) -> list[tuple[str, ...]]:
        """The ids of the offered arms, of each row."""
        arms = self.arms or tuple(map(str, range(self.alive.shape[1])))
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
            for place, name in enumerate(row):
                codes[at, place] = -1 if name is None else next(left)
    order = {name: code for code, name in enumerate(arms)}
    places = _places(table, codes, order, chosen, "arm", own="place" if ours and "place" in table.names else None)
    baselines = None
    if "baseline" in roles:
        named = [text or None for text in table.column(roles["baseline"])]
        baselines = _places(table, codes, order, named, "baseline", own=roles["baseline"] if ours else None)
    unnamed = facts is not None and facts["arms"] is None
    return Offers(codes >= 0, places, None if unnamed else tuple(arms), codes, baselines)


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
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError("a finite number")
    return float(text)


def time_of(text: str) -> float:
    """Seconds since 1970, from these or from ISO 8601."""
    found = float(text) if _NUMBER.fullmatch(text.strip()) else seconds_of(text)
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


def _typed(column: list[str]) -> list[Any]:
    held = {text for text in column if text}
    if held and all(_NUMBER.fullmatch(text.strip()) for text in held):
        return [float(text) if text else None for text in column]
    if held and {text.lower() for text in held} <= {"true", "false"}:
        return [text.lower() == "true" if text else None for text in column]
    return [text or None for text in column]
