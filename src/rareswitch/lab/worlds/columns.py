"""The columns of a table in a file, checked, for worlds that are made of tables."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rareswitch.csv_tables import CsvTable, is_number
from rareswitch.errors import FileFormatError
from rareswitch.files import pyarrow, read_whole

ENDINGS = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True, eq=False, kw_only=True)
class Columns:
    """A table by its columns: numbers, flags or texts, and None where a value is missing."""

    path: str
    values: dict[str, list[Any]]
    #: Where each row stands in the file: "line 2".
    places: Sequence[str]

    def __len__(self) -> int:
        return len(self.places)

    def needed(self, name: str, option: str) -> list[Any]:
        """The values of a column that must be there, without gaps; ``option`` is how another one is named."""
        if name not in self.values:
            raise FileFormatError(
                f"{self.path}: there is no column {name!r:.60}; it has {', '.join(self.values):.300}. Name the right "
                f"one with {option}=…."
            )
        found = self.values[name]
        if None in found:
            raise self.wrong(found.index(None), f"the column {name!r:.60} must not be empty. Fill it, or drop the row.")
        return found

    def names(self, name: str, option: str) -> list[str]:
        """The values of a column as texts, without gaps: 3 and 3.0 are the same."""
        return [_text(value) for value in self.needed(name, option)]

    def numbers(self, name: str, option: str) -> list[float]:
        """The values of a column that must be numbers, without gaps; true is 1."""
        found = self.needed(name, option)
        if texts := [row for row, value in enumerate(found) if not isinstance(value, (int, float))]:
            row = next((row for row in texts if not is_number(str(found[row]))), texts[0])  # the slip among numbers
            raise self.wrong(row, f"the column {name!r:.60} must hold numbers; got {found[row]!r:.60}.")
        return [float(value) for value in found]

    def wrong(self, row: int, what: str) -> FileFormatError:
        """An error that says in which row something is wrong."""
        return FileFormatError(f"{self.path}, {self.places[row]}: {what}")

    def records(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """The rows as records of some columns."""
        if not names:
            return [{} for _ in self.places]
        columns = [self.values[name] for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def read_columns(path: str | Path) -> Columns:
    r"""Read a table: CSV with names of columns in its first line, compressed or not, or Parquet.

    A column of numbers alone is one of numbers; one of *true* and *false* holds flags, any other texts. Empty cells are
    missing values. A text among numbers is an error: most often it is a slip.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "flowers.csv")
    >>> _ = path.write_text("petal,colour,label\n1.4,white,a\n,blue,b\n")
    >>> read_columns(path).values
    {'petal': [1.4, None], 'colour': ['white', 'blue'], 'label': ['a', 'b']}
    """
    if not str(path).lower().endswith(ENDINGS):
        raise FileFormatError(f"{path}: a table is read from a file whose name ends in {', '.join(ENDINGS)}.")
    found = _from_parquet(path) if str(path).lower().endswith(".parquet") else _from_csv(path)
    for name, values in found.values.items():
        for row, value in enumerate(values):
            if isinstance(value, float) and math.isinf(value):
                raise found.wrong(row, f"the column {name!r:.60} holds an infinite number. Leave it empty if missing.")
    return found


def _from_csv(path: str | Path) -> Columns:
    table = CsvTable.read(path)
    if "" in table.names:
        raise FileFormatError(f"{path}: column {table.names.index('') + 1} has no name in line 1. Give it one.")
    columns = Columns(
        path=str(path),
        values={name: _whole(table.typed(name)) for name in table.names},
        places=[f"line {line}" for line in table.lines],
    )
    for name, values in columns.values.items():
        texts = [row for row, value in enumerate(values) if isinstance(value, str) and not is_number(value)]
        if texts and sum(isinstance(value, str) for value in values) > 2 * len(texts):  # most are numbers
            rule = f"the column {name!r:.60} holds {values[texts[0]]!r:.60} where most others are numbers"
            remedy = "Correct it; leave it empty if it is missing; write a letter before numbers that are names."
            raise columns.wrong(texts[0], f"{rule}. {remedy}")
    return columns


def _whole(values: list[Any]) -> list[Any]:
    """Whole numbers as such, where all numbers are: features know the numbers of rows by that."""
    if all(value is None or (isinstance(value, float) and value.is_integer()) for value in values):
        return [None if value is None else int(value) for value in values]
    return values


def _from_parquet(path: str | Path) -> Columns:
    pa, parquet = pyarrow()
    try:
        table = parquet.read_table(pa.BufferReader(read_whole(path)))
    except (OSError, ValueError, pa.ArrowException) as error:
        if isinstance(error, FileFormatError):
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileFormatError(f"{path}: not a readable Parquet file ({reason!a:.200}).") from error
    if not table.num_rows or not table.num_columns:
        raise FileFormatError(f"{path}: it holds no rows.")
    if len(set(table.column_names)) < table.num_columns:
        raise FileFormatError(f"{path}: columns must have different names; it has {table.column_names!s:.300}.")
    values = {
        name: [None if isinstance(v, float) and math.isnan(v) else v for v in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return Columns(path=str(path), values=values, places=[f"row {row}" for row in range(1, table.num_rows + 1)])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
