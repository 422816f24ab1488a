"""Tables in CSV files: columns by name, errors by line."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rareswitch.errors import FileFormatError
from rareswitch.files import reading

#: A cell may be long: it may hold the vectors of all arms.
_LONGEST = 1 << 28
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, eq=False)
class CsvTable:
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
                    raise FileFormatError(f"{path}: it is empty; a table in CSV begins with the names of its columns.")
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
            raise FileFormatError(f"{path}: it holds no rows, only the names of columns.")
        return cls(path, names, rows, lines)

    def __len__(self) -> int:
        return len(self.rows)

    def known(self, name: str) -> str:
        """The name of a column, if it is one."""
        if name not in self.names:
            raise FileFormatError(f"{self.path}: there is no column {name!r:.60}; it has {', '.join(self.names):.300}.")
        return name

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

    def typed(self, name: str) -> list[Any]:
        """The values of a column: numbers or flags where all cells are, texts else; None where one is empty."""
        column = self.column(name)
        held = {text for text in column if text}
        if held and all(map(is_number, held)):
            return [float(text) if text else None for text in column]
        if held and {text.lower() for text in held} <= {"true", "false"}:
            return [text.lower() == "true" if text else None for text in column]
        return [text or None for text in column]

    def records(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Records of some columns, with the values of :meth:`typed`."""
        columns = [self.typed(name) for name in names]
        if not columns:
            return [{} for _ in self.rows]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def is_number(text: str) -> bool:
    """Whether a cell holds a number in decimal digits: no NaN and no infinity.

    >>> is_number(" -1.5e3"), is_number("nan")
    (True, False)
    """
    return _NUMBER.fullmatch(text.strip()) is not None
