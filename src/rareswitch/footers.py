"""Footers of Parquet files, sealed: they say what the columns are, and no checksum of Parquet's covers them.

What a footer says of the sizes of columns is read here, not asked of Arrow: malformed ones would end the process.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from rareswitch.errors import FileFormatError
from rareswitch.seals import ROOM, seal, seal_holds

#: What a file tells beside its columns: room for the seal.
METADATA = {"seal": ROOM.decode()}
#: The longest footer that is looked at, in bytes.
LONGEST = 1 << 26


def seal_footer(path: str | Path) -> None:
    """Fill in the seal of a file that was written with room for it."""
    with open(path, "r+b") as file:
        data = _footer(file)
        file.seek(-len(data), os.SEEK_END)
        file.write(seal(data))


def check_footer(file: BinaryIO, name: str | Path) -> bytes:
    """The footer; refused if it was changed. That of another writer has no seal, and is let be."""
    data = _footer(file)
    if seal_holds(data) is False:
        raise FileFormatError(f"{name}: its footer is not that of its checksum: damaged. Write the part anew.")
    return data


def _footer(file: BinaryIO) -> bytes:
    """The end of a Parquet file: the footer, 4 bytes that say how long it is, and 4 that say that this is Parquet."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    length = min(int.from_bytes(file.read(4), "little") + 8, LONGEST)
    file.seek(max(0, size - length))
    return file.read(length)


class Chunk(NamedTuple):
    """What a footer says of one column of one row group."""

    #: Its name; that of the outermost field where it is nested.
    column: str
    nested: bool
    #: Parquet's number of its type; see :data:`WIDTHS`.
    kind: int
    #: Parquet's numbers of its encodings.
    encodings: frozenset[int]
    #: How many values it has, those within lists counted one by one.
    values: int
    #: Bytes of its pages, before and after compression.
    unpacked: int
    packed: int
    #: Rows of the row group.
    rows: int


#: Bytes of a value in memory, by the number of its type; texts and bytes of any length (6) have none.
WIDTHS = {0: 1, 1: 8, 2: 8, 3: 16, 4: 8, 5: 8, 7: 16}
TEXT = 6
#: Encodings in which a text is stored once and repeated by its number; as its own end after the beginning of another.
DICTIONARIES, DELTA = frozenset({2, 8}), frozenset({5, 6, 7})
PREFIXED = 7


def column_chunks(footer: bytes) -> Iterator[Chunk]:
    """The columns of all row groups, as the footer of a file describes them; ValueError where it does not.

    >>> import pyarrow as pa
    >>> import pyarrow.parquet as parquet
    >>> buffer = pa.BufferOutputStream()
    >>> parquet.write_table(pa.table({"x": [[0.5] * 1000] * 1000}), buffer)
    >>> chunk, = column_chunks(bytes(buffer.getvalue()))
    >>> (chunk.column, chunk.values, chunk.rows, chunk.packed < 10_000)
    ('x', 1000000, 1000, True)
    """
    length = int.from_bytes(footer[-8:-4], "little")
    if length > len(footer) - 8:
        raise ValueError("its footer is longer than the file, or than is looked at")
    reader = _Compact(footer[-8 - length : -8])
    for field, kind in reader.fields():
        if (field, kind) != (4, _LIST):
            reader.skip(kind)
            continue
        for _ in range(reader.list_of(_STRUCT)):
            yield from _row_group(reader)


def _row_group(reader: "_Compact") -> list[Chunk]:
    rows, columns = 0, list[dict[int, Any]]()
    for field, kind in reader.fields():
        if (field, kind) == (1, _LIST):
            for _ in range(reader.list_of(_STRUCT)):
                for inner, inner_kind in reader.fields():
                    if (inner, inner_kind) == (3, _STRUCT):
                        columns.append(_column(reader))
                    else:
                        reader.skip(inner_kind)
        elif (field, kind) == (3, _INT64):
            rows = reader.number()
        else:
            reader.skip(kind)
    chunks = []
    for told in columns:
        if not {1, 2, 3, 5, 6, 7} <= told.keys() or min(rows, told[5], told[6], told[7]) < 0 or not told[3]:
            raise ValueError("its footer does not say what its columns hold")
        name, *inner_names = told[3]
        chunks.append(Chunk(name, bool(inner_names), told[1], frozenset(told[2]), told[5], told[6], told[7], rows))
    return chunks


def _column(reader: "_Compact") -> dict[int, Any]:
    told: dict[int, Any] = {}
    for field, kind in reader.fields():
        if field in (1, 5, 6, 7) and kind in (_INT32, _INT64):
            told[field] = reader.number()
        elif (field, kind) == (2, _LIST):
            told[field] = [reader.number() for _ in range(reader.list_of(_INT32))]
        elif (field, kind) == (3, _LIST):
            told[field] = [reader.text().decode(errors="replace") for _ in range(reader.list_of(_BINARY))]
        else:
            reader.skip(kind)
    return told


_BYTE, _INT16, _INT32, _INT64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(3, 13)


class _Compact:
    """Reads Thrift's compact protocol, in which footers are written. Nothing is built of what is skipped."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        if count < 0 or len(found) < count:
            raise ValueError("its footer is cut short")
        self.at += count
        return found

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("its footer has a number that is too long")

    def number(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def text(self) -> bytes:
        return self.take(self.varint())

    def fields(self) -> Iterator[tuple[int, int]]:
        """The numbers and types of the fields of a struct; their values must be taken or skipped in turn."""
        field = 0
        while head := self.take(1)[0]:
            field = field + (head >> 4) if head >> 4 else self.number()
            yield field, head & 15

    def list_of(self, wanted: int | None = None) -> int:
        """How many entries follow, of the type that is wanted."""
        head = self.take(1)[0]
        if wanted is not None and head & 15 != wanted:
            raise ValueError("its footer has a list of another type")
        self.entry = head & 15
        return self.varint() if head >> 4 == 15 else head >> 4

    def skip(self, kind: int, depth: int = 0, *, entry: bool = False) -> None:
        """Pass over a value; flags are bytes of their own only where they are entries of a list."""
        if depth > 32:
            raise ValueError("its footer is nested too deeply")
        if kind in (1, 2):
            self.take(int(entry))
        elif kind == _BYTE:
            self.take(1)
        elif kind in (_INT16, _INT32, _INT64):
            self.varint()
        elif kind == _DOUBLE:
            self.take(8)
        elif kind == _BINARY:
            self.text()
        elif kind in (_LIST, _SET):
            count = self.list_of()
            inner = self.entry
            for _ in range(count):
                self.skip(inner, depth + 1, entry=True)
        elif kind == _MAP:
            count = self.varint()
            kinds = self.take(1)[0] if count else 0
            for _ in range(count):
                self.skip(kinds >> 4, depth + 1, entry=True)
                self.skip(kinds & 15, depth + 1, entry=True)
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        else:
            raise ValueError("its footer has a value of an unknown type")
