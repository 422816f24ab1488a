"""Tables in files, CSV (compressed or not) and Parquet: columns by name, errors by line."""

import csv
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from rareswitch.core.files import read_whole, reading
from rareswitch.core.parquet_files import opened_parquet
from rareswitch.core.validation import FloatArray
from rareswitch.errors import FileFormatError

__all__ = ["Table", "TableCell", "cell_text", "is_number", "read_records", "read_table"]

#: A cell may be long: it may hold the vectors of all arms.
_LONGEST = 1 << 28
_NO_ROWS = "it holds no rows, only the names of columns."
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
TableCell: TypeAlias = bool | int | float | str | list[Any] | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """A table in memory; it has one row at least."""

    path: str
    #: By name. Cells of CSV are texts, those of Parquet have types; None where a value is missing.
    columns: dict[str, list[TableCell]]
    #: Where each row stands in the file: "line 2".
    places: list[str]
    has_types: bool = False

    @classmethod
    def of(cls, path: str, columns: Mapping[str, Sequence[Any]]) -> Self:
        """Of columns that have types; times become texts in ISO 8601, and NaN is a missing value."""
        rows = max(map(len, columns.values()), default=0)
        if not rows:
            raise FileFormatError(f"{path}: {_NO_ROWS}")
        cells = {name: [*map(_cell, column)] for name, column in columns.items()}
        return cls(path=path, columns=cells, places=[f"row {row}" for row in range(1, rows + 1)], has_types=True)

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def values(self) -> dict[str, list[TableCell]]:
        """The columns as numbers or flags where all cells are, as texts else."""
        return self.columns if self.has_types else {name: _typed(column) for name, column in self.columns.items()}

    def check_column(self, name: str, *, option: str = "", gaps: bool = True) -> None:
        """Refuse the name of a column that is not there, or has gaps; ``option`` is how another one is named."""
        if name not in self.columns:
            remedy = f" Name the right one with {option}=…." if option else ""
            raise FileFormatError(
                f"{self.path}: there is no column {name!r:.60}; it has {', '.join(self.columns):.300}.{remedy}"
            )
        if not gaps and None in self.columns[name]:
            row = self.columns[name].index(None)
            raise self.wrong(row, f"the column {name!r:.60} must not be empty. Fill it, or drop the row.")

    def texts(self, name: str, *, gaps: bool = False) -> list[str]:
        """The cells of a column as they are written; with ``gaps`` they may be missing, and are empty then."""
        self.check_column(name, gaps=gaps)
        return [cell_text(cell) for cell in self.columns[name]]

    def labels(self, name: str, *, option: str) -> list[str]:
        """The values of a column as texts, without gaps: 3 and 3.0 are the same."""
        self.check_column(name, option=option, gaps=False)
        return [cell_text(value) for value in self.values[name]]

    def numbers(self, name: str, *, option: str = "", gaps: bool = False) -> FloatArray:
        """(n,) the cells of a column that must hold finite numbers, or flags; with ``gaps``, NaN where one is missing.

        >>> table = Table(path="a.csv", columns={"x": ["1", None, "-2.5"]}, places=["line 2", "line 3", "line 4"])
        >>> table.numbers("x", gaps=True)
        array([ 1. ,  nan, -2.5])
        """
        self.check_column(name, option=option, gaps=gaps)
        cells = self.values[name]
        odd = [row for row, cell in enumerate(cells) if cell is not None and not _is_finite(cell)]
        if odd:
            row = next((row for row in odd if not is_number(str(cells[row]))), odd[0])  # the slip among numbers
            raise self.wrong(row, f"the column {name!r:.60} must hold finite numbers; got {cells[row]!r:.60}.")
        return np.array([math.nan if cell is None else cell for cell in cells], dtype=np.float64)

    def records(self, names: Iterable[str] | None = None) -> list[dict[str, TableCell]]:
        """The rows as records of some columns, all by default."""
        names = [*(self.columns if names is None else names)]
        if not names:
            return [{} for _ in self.places]
        columns = [self.values[name] for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def take(self, rows: Sequence[int]) -> Self:
        """Some of the rows."""
        columns = {name: [column[row] for row in rows] for name, column in self.columns.items()}
        return replace(self, columns=columns, places=[self.places[row] for row in rows])

    def wrong(self, row: int, what: str) -> FileFormatError:
        """An error that says in which row something is wrong."""
        return FileFormatError(f"{self.path}, {self.places[row]}: {what}")


def read_table(path: str | Path, *, header: bool = True) -> Table:
    r"""Read a table: Parquet where the name ends in ``.parquet``; else CSV, compressed where it ends in ``.gz``.

    The first line of CSV has the names of columns. Without ``header``, numbers alone in it are a row, and columns are
    x1, x2, …

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "flowers.csv")
    >>> _ = path.write_text("petal,colour,label\n1.4,white,a\n,blue,b\n")
    >>> read_table(path).values
    {'petal': [1.4, None], 'colour': ['white', 'blue'], 'label': ['a', 'b']}
    """
    parquet = str(path).lower().endswith(".parquet")
    return _from_parquet(str(path)) if parquet else _from_csv(path, header=header)


def read_records(path: str | Path) -> list[dict[str, TableCell]]:
    r"""Read the rows of a table (``.csv``, ``.parquet``), of a JSON list or of lines of JSON, as records.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "visitors.jsonl")
    >>> _ = path.write_text('{"age": 31, "device": "ios"}\n{"age": 45}\n')
    >>> read_records(path)
    [{'age': 31, 'device': 'ios'}, {'age': 45}]
    """
    kind = Path(path).suffix.lower()
    if kind in (".csv", ".parquet"):
        records = read_table(path).records()
    elif kind in (".json", ".jsonl"):
        records = _from_json(path, lines=kind == ".jsonl")
    else:
        raise FileFormatError(f"{path}: the name of a file of records must end in .csv, .parquet, .json or .jsonl.")
    if not records:
        raise FileFormatError(f"{path}: the file has no records; at least one is needed.")
    return records


def _from_json(path: str | Path, *, lines: bool) -> list[dict[str, TableCell]]:
    data = read_whole(path)
    try:
        records = [json.loads(line) for line in data.splitlines() if line.strip()] if lines else json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: not JSON ({error!s:.200}).") from error
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise FileFormatError(
            f"{path}: records must be JSON objects, one a line in .jsonl, or a list of them in .json."
        )
    return records


def _from_csv(path: str | Path, *, header: bool) -> Table:
    limit = csv.field_size_limit(_LONGEST)
    rows: list[list[str]] = []
    places: list[str] = []
    try:
        with reading(path) as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                if rows and row and len(row) != len(rows[0]):
                    raise FileFormatError(
                        f"{path}, line {reader.line_num}: {len(row)} cells, and there are {len(rows[0])} columns. The "
                        "file may be cut short."
                    )
                if row:
                    rows.append(row)
                    places.append(f"line {reader.line_num}")
    except csv.Error as error:
        raise FileFormatError(f"{path}, line {reader.line_num}: not CSV ({error!s:.60}).") from error
    finally:
        csv.field_size_limit(limit)
    if not rows:
        raise FileFormatError(f"{path}: it is empty; a table in CSV begins with the names of its columns.")
    names = rows[0]
    numbers = [] if header else [name for name in names if is_number(name)]
    if not numbers:
        del rows[0], places[0]
    elif len(numbers) == len(names):
        names = [f"x{number}" for number, _ in enumerate(names, 1)]
    else:
        text = next(name for name in names if not is_number(name))
        raise FileFormatError(
            f"{path}, {places[0]}: it must be all names or all numbers; it holds {text!r:.60} beside "
            f"{numbers[0]!r:.60}. Correct the cell, or give every column a name."
        )
    _check_names(path, [name for name in names if name])
    if not rows:
        raise FileFormatError(f"{path}: {_NO_ROWS}")
    columns: dict[str, list[TableCell]] = {
        name: [text or None for text in column] for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    return Table(path=str(path), columns=columns, places=places)


def _from_parquet(path: str) -> Table:
    with opened_parquet(path) as file:
        table = file.read()
    _check_names(path, table.column_names)
    return Table.of(path, {name: table.column(name).to_pylist() for name in table.column_names})


def _check_names(path: str | Path, names: Sequence[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise FileFormatError(f"{path}: columns must have different names; {twice[0]!r:.60} is there twice.")


def _typed(column: list[TableCell]) -> list[TableCell]:
    """Texts as whole numbers, numbers or flags, where all cells are."""
    texts = {str(cell) for cell in column if cell is not None}
    if texts and all(map(is_number, texts)):
        numbers = {text: float(text) for text in texts}
        whole = all(number.is_integer() for number in numbers.values())
        values = {text: int(number) if whole else number for text, number in numbers.items()}
        return [None if cell is None else values[str(cell)] for cell in column]
    if texts and {text.lower() for text in texts} <= {"true", "false"}:
        return [None if cell is None else str(cell).lower() == "true" for cell in column]
    return column


def _cell(value: Any) -> TableCell:
    """A value of a frame or of Parquet as a cell."""
    if value is None or (isinstance(value, (float, Decimal, date)) and value != value):  # NaN and pandas' NaT
        return None
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def _is_finite(cell: TableCell) -> bool:
    return isinstance(cell, (int, float)) and math.isfinite(cell)


def cell_text(cell: TableCell) -> str:
    """A cell as CSV has it; 3.0 and 3 are the same.

    >>> [cell_text(cell) for cell in (True, 3.0, "red", None)]
    ['true', '3', 'red', '']
    """
    if cell is None or isinstance(cell, bool):
        return "" if cell is None else str(cell).lower()
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def is_number(text: str) -> bool:
    """Whether a cell holds a number in decimal digits: no NaN and no infinity.

    >>> is_number(" -1.5e3"), is_number("nan")
    (True, False)
    """
    return _NUMBER.fullmatch(text.strip()) is not None
