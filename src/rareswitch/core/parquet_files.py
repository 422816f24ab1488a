"""Parquet files: opened after a check that they are neither damaged nor far larger in memory than on the disk.

Pages have checksums; the footer, which no checksum of Parquet's covers, has a digest. It is read without Arrow, which
ends the process when it is asked for the columns of a malformed one.
"""

import hashlib
import os
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import msgspec

from rareswitch.core.files import EXPANDED, EXPANSION, pyarrow
from rareswitch.core.filesystems import opened_file
from rareswitch.errors import FileFormatError

if TYPE_CHECKING:
    import pyarrow.parquet as parquet

__all__ = ["opened_parquet", "seal_footer"]

#: Bytes of a column that are read at a time.
_BUFFER = 1 << 20
#: The longest footer that is read, in bytes.
LONGEST = 1 << 24
#: Stands before the footer of a sealed file, where no reader looks; after it the SHA-256 of the footer in hex digits.
_MARK = b"rareswitch-sha256:"
_SEAL = len(_MARK) + 64


@contextmanager
def opened_parquet(path: str, columns: Container[str] | None = None) -> "Iterator[parquet.ParquetFile]":
    """A file of which some columns will be read, all by default; what is wrong with it is raised with its name."""
    pa, parquet = pyarrow()
    try:
        with opened_file(path) as source:
            size = source.size()
            if size == 0:
                raise FileFormatError(f"{path}: the file is empty (0 bytes), not even a Parquet file. Write it anew.")
            chunks = column_chunks(check_footer(source, path))
            codes = _check_sizes(path, [chunk for chunk in chunks if columns is None or chunk.column in columns], size)
            # read a megabyte at a time however long its row groups are, and with its checksums
            options = {"buffer_size": _BUFFER, "pre_buffer": False, "page_checksum_verification": True}
            with parquet.ParquetFile(source, read_dictionary=codes, **options) as file:
                _check_lists(path, file, size)
                yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        text = (str(error).splitlines() or [type(error).__name__])[0]
        raise FileFormatError(
            f"{path}: not a readable Parquet file ({text}). It may be cut short or damaged; write it anew."
        ) from error


def _check_sizes(path: str, chunks: "Sequence[ColumnChunk]", size: int) -> list[str]:
    """Refuse columns of a file of ``size`` bytes that would unpack to far more; the names of those to read as codes.

    A text that occurs again and again is stored once: a file of kilobytes can hold gigabytes of it.
    """
    codes: dict[str, bool] = {}
    for chunk in chunks:
        delta, repeats = bool(chunk.encodings & DELTA), bool(chunk.encodings & DICTIONARIES)
        nested = len(chunk.path) > 1
        unsure = chunk.kind == TEXT and (PREFIXED in chunk.encodings or (repeats and (delta or nested)))
        unpacked = max(chunk.unpacked * (chunk.values if unsure else 1), chunk.values * WIDTHS.get(chunk.kind, 0))
        remedy = "Write it with plain encodings" if unsure else "Write it in row groups of fewer rows"
        _check_size(path, chunk.column, unpacked, min(chunk.packed, size), remedy)
        if chunk.kind == TEXT and not nested:
            codes[chunk.column] = codes.get(chunk.column, True) and not delta
    return [name for name, safe in codes.items() if safe]


def _check_lists(path: str, file: "parquet.ParquetFile", size: int) -> None:
    """Refuse lists of one length whose missing rows would take far more than a file of ``size`` bytes."""
    for field in file.schema_arrow:
        length = getattr(field.type, "list_size", 0)
        for group in range(file.metadata.num_row_groups if length else 0):
            unpacked = 8 * length * file.metadata.row_group(group).num_rows
            _check_size(path, field.name, unpacked, size, "Write its vectors as lists")


def _check_size(path: str, column: str, unpacked: int, packed: int, remedy: str) -> None:
    if unpacked > max(EXPANDED, EXPANSION * packed):
        raise FileFormatError(
            f"{path}: column '{column}' would take up to {unpacked:,} bytes in memory for {packed:,} in the file; at "
            f"most {EXPANDED:,} are unpacked in one row group, or {EXPANSION} times what is in the file. {remedy}."
        )


def seal_footer(path: str | Path) -> None:
    """Write the digest of its footer into a Parquet file."""
    with open(path, "r+b") as file:
        footer = _read_footer(file)
        file.seek(-len(footer), os.SEEK_END)
        file.write(_MARK + hashlib.sha256(footer).hexdigest().encode() + footer)


def check_footer(file: BinaryIO, name: str | Path) -> bytes:
    """The footer; refused if it was changed. That of another writer has no seal, and passes."""
    footer = _read_footer(file)
    file.seek(max(0, file.seek(0, os.SEEK_END) - len(footer) - _SEAL))
    mark, digest = file.read(len(_MARK)), file.read(64)
    if mark == _MARK and digest != hashlib.sha256(footer).hexdigest().encode():
        raise FileFormatError(f"{name}: its footer is not that of its checksum: damaged. Write the file anew.")
    return footer


def _read_footer(file: BinaryIO) -> bytes:
    """The end of a Parquet file: the footer, 4 bytes that say how long it is, and 4 that say that this is Parquet."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    length = min(int.from_bytes(file.read(4), "little") + 8, LONGEST)
    file.seek(max(0, size - length))
    return file.read(length)


_Count = Annotated[int, msgspec.Meta(ge=0)]


class ColumnChunk(msgspec.Struct):
    """What a footer says of one column of one row group; Parquet numbers the fields."""

    #: Number of its type; see :data:`WIDTHS`.
    kind: int = msgspec.field(name="1")
    #: Numbers of its encodings.
    encodings: set[int] = msgspec.field(name="2")
    #: Its name, and the names of the fields within it where it is nested.
    path: Annotated[list[bytes], msgspec.Meta(min_length=1)] = msgspec.field(name="3")
    #: Number of values; those within lists are counted one by one.
    values: _Count = msgspec.field(name="5")
    #: Bytes of its pages, before and after compression.
    unpacked: _Count = msgspec.field(name="6")
    packed: _Count = msgspec.field(name="7")

    @property
    def column(self) -> str:
        """Its name; that of the outermost field where it is nested."""
        return self.path[0].decode(errors="replace")


class _Column(msgspec.Struct):
    chunk: ColumnChunk = msgspec.field(name="3")


class _RowGroup(msgspec.Struct):
    columns: list[_Column] = msgspec.field(name="1")


class _Footer(msgspec.Struct):
    groups: list[_RowGroup] = msgspec.field(name="4")


#: Bytes of a value in memory, by the number of its type; texts and bytes of any length (6) have none.
WIDTHS = {0: 1, 1: 8, 2: 8, 3: 16, 4: 8, 5: 8, 7: 16}
TEXT = 6
#: Encodings in which a text is stored once and repeated by its number; as its own end after the beginning of another.
DICTIONARIES, DELTA = frozenset({2, 8}), frozenset({5, 6, 7})
PREFIXED = 7


def column_chunks(footer: bytes) -> list[ColumnChunk]:
    """The columns of all row groups, as the footer of a file describes them; OSError where it does not.

    >>> import pyarrow as pa
    >>> import pyarrow.parquet as parquet
    >>> buffer = pa.BufferOutputStream()
    >>> parquet.write_table(pa.table({"x": [[0.5] * 1000] * 1000}), buffer)
    >>> chunk, = column_chunks(bytes(buffer.getvalue()))
    >>> (chunk.column, chunk.values, chunk.packed < 10_000)
    ('x', 1000000, True)
    """
    length = int.from_bytes(footer[-8:-4], "little")
    if length > len(footer) - 8:
        raise OSError("its footer is longer than the file, or than is read")
    fields = _CompactReader(footer[-8 - length : -8]).value(_STRUCT)
    try:
        groups = msgspec.convert(fields, _Footer).groups
    except msgspec.ValidationError as error:
        raise OSError(f"its footer does not say what its columns hold: {error}") from error
    return [column.chunk for group in groups for column in group.columns]


_TRUE, _FALSE, _BYTE, _INT16, _INT32, _INT64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_Value = bool | int | bytes | list["_Value"] | dict[str, "_Value"]


class _CompactReader:
    """Reads Thrift's compact protocol, in which footers are written."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def value(self, kind: int, depth: int = 0) -> _Value:
        """The next value; a struct is a dictionary by the numbers of its fields."""
        if depth > 32:
            raise OSError("its footer is nested too deeply")
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            return self._take(1)[0]
        if kind in (_INT16, _INT32, _INT64):
            return self._number()
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _BINARY:
            return self._take(self._varint())
        if kind in (_LIST, _SET):
            head = self._take(1)[0]
            count = self._varint() if head >> 4 == 15 else head >> 4
            entry = _BYTE if head & 15 in (_TRUE, _FALSE) else head & 15
            return [self.value(entry, depth + 1) for _ in range(count)]
        if kind == _STRUCT:
            fields: dict[str, _Value] = {}
            number = 0
            while head := self._take(1)[0]:
                number = number + (head >> 4) if head >> 4 else self._number()
                fields[str(number)] = self.value(head & 15, depth + 1)
            return fields
        raise OSError("its footer has a value of an unknown type")

    def _take(self, count: int) -> bytes:
        taken = self.data[self.position : self.position + count]
        if len(taken) < count:
            raise OSError("its footer is cut short")
        self.position += count
        return taken

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise OSError("its footer has a number that is too long")

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
