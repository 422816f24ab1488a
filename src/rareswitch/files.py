"""Files: written whole or not at all, and read without pickle.

Named arrays beside plain data make one file, safetensors with one canonical-JSON metadata key; the same content always
gives the same bytes. Tables are Parquet.
"""

import json
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError, MissingExtraError
from rareswitch.validation import FloatArray

_KEY = "rareswitch"
_LARGEST = 1 << 30


def pyarrow() -> tuple[Any, Any]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtraError(
            "this is kept in Parquet. Install what it needs with: pip install 'rareswitch[parquet]'"
        ) from error
    return pa, parquet


@contextmanager
def replacing(path: str | Path, *, folder: bool = False) -> Iterator[Path]:
    """A private file to write to, which takes the name ``path`` when the block ends well and is on the disk.

    If the block ends by an exception, nothing appears. What was under the name before stays until then. With ``folder``
    it is a folder to fill.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> [entry.name for entry in folder.iterdir()]
    ['a.txt']
    """
    path, temporary = Path(path), None
    try:
        where: dict[str, Any] = {"dir": path.parent, "prefix": f".{path.name[:100]}.", "suffix": ".tmp"}
        if folder:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = Path(tempfile.mkdtemp(**where))
        else:
            handle, name = tempfile.mkstemp(**where)
            os.close(handle)
            temporary = Path(name)
        os.umask(mask := os.umask(0))
        temporary.chmod((0o777 if folder else 0o666) & ~mask)
        yield temporary
        _synchronize(temporary)
        temporary.replace(path)
        _synchronize(path.parent)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written ({error.strerror or error}).") from error
    finally:
        if temporary is not None and folder:
            shutil.rmtree(temporary, ignore_errors=True)
        elif temporary is not None:
            temporary.unlink(missing_ok=True)


#: A private folder to fill, which takes its name when the block ends well; else nothing appears.
making_folder = partial(replacing, folder=True)


def write_whole(data: bytes, path: str | Path) -> None:
    """Write a file that appears whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _synchronize(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems cannot do this for a folder
            os.fsync(handle)
    finally:
        os.close(handle)


def read_whole(path: str | Path) -> bytes:
    """The content of a file, unless it is larger than anything written here."""
    path = Path(path)
    try:
        if path.stat().st_size > _LARGEST:
            raise FileFormatError(
                f"{path}: such a file has at most {_LARGEST} bytes; this one has {path.stat().st_size}."
            )
        return path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read ({error.strerror or error}).") from error


def canonical_json(data: Any) -> bytes:
    """One text for equal data: sorted keys, no spaces, shortest numbers, no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def pack(meta: Any, tensors: dict[str, FloatArray]) -> bytes:
    """8 bytes of header length, a JSON header padded to a multiple of 8, then the arrays, little-endian."""
    header: dict[str, Any] = {"__metadata__": {_KEY: canonical_json(meta).decode()}}
    offset = 0
    for name in sorted(tensors):
        size = tensors[name].size * 8
        header[name] = {"dtype": "F64", "shape": list(tensors[name].shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = canonical_json(header)
    text += b" " * (-len(text) % 8)
    arrays = (np.ascontiguousarray(tensors[name], dtype="<f8").tobytes() for name in sorted(tensors))
    return struct.pack("<Q", len(text)) + text + b"".join(arrays)


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """A block that reads what :func:`pack` made: whatever else goes wrong in it, the data are not ``what``."""
    try:
        yield
    except FileFormatError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise FileFormatError(f"not {what}, or a damaged one ({error}).") from error


def unpack(data: bytes) -> tuple[Any, dict[str, FloatArray]]:
    """What :func:`pack` was given, if nothing is wrong with it; otherwise any error."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise ValueError("its header is not all there")
    header = json.loads(data[8 : 8 + length])
    meta = json.loads(header.pop("__metadata__")[_KEY])
    body = data[8 + length :]
    tensors = {}
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        flat = np.frombuffer(body[start:stop], dtype="<f8")
        tensors[name] = flat.reshape(entry["shape"]).astype(np.float64)
    return meta, tensors
