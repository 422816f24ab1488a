"""Footers of Parquet files, sealed: they say what the columns are, and no checksum of Parquet's covers them."""

import os
from pathlib import Path
from typing import BinaryIO

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


def check_footer(file: BinaryIO, name: str | Path) -> None:
    """Refuse a file whose footer was changed; one of another writer has no seal, and is let be."""
    if seal_holds(_footer(file)) is False:
        raise FileFormatError(f"{name}: its footer is not that of its checksum: damaged. Write the part anew.")


def _footer(file: BinaryIO) -> bytes:
    """The end of a Parquet file: the footer, 4 bytes that say how long it is, and 4 that say that this is Parquet."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    length = min(int.from_bytes(file.read(4), "little") + 8, LONGEST)
    file.seek(max(0, size - length))
    return file.read(length)
