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
def replacing(path: str | Path) -> Iterator[Path]:
    """A private file to write to, which takes the name ``path`` when the block ends well and is on the disk.

    If the block ends by an exception, nothing appears. What was under the name before stays until then.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> [entry.name for entry in folder.iterdir()]
    ['a.txt']
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".tmp")
    except OSError as error:
        raise _unwritable(path, error) from error
    temporary = Path(name)
    try:
        os.fchmod(handle, 0o666 & ~_umask())
        os.close(handle)
        yield temporary
        _synchronize(temporary)
        temporary.replace(path)
        _synchronize(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def making_folder(path: str | Path) -> Iterator[Path]:
    """A private folder to fill, which takes the name ``path`` when the block ends well; else nothing appears."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".tmp"))
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        temporary.chmod(0o777 & ~_umask())
        yield temporary
        _synchronize(temporary)
        temporary.replace(path)
        _synchronize(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_whole(data: bytes, path: str | Path) -> None:
    """Write a file that appears whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _unwritable(path: Path, error: OSError) -> FileFormatError:
    return FileFormatError(f"{path}: cannot be written ({error.strerror or error}).")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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


def unpack(data: bytes) -> tuple[Any, dict[str, FloatArray]]:
    """What :func:`pack` was given, if nothing is wrong with it; otherwise any error."""
    if len(data) < 8 or struct.unpack_from("<Q", data)[0] > len(data) - 8:
        raise ValueError("its header is not all there")
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8 : 8 + length])
    meta = json.loads(header.pop("__metadata__")[_KEY])
    body = data[8 + length :]
    tensors = {}
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        flat = np.frombuffer(body[start:stop], dtype="<f8")
        tensors[name] = flat.reshape(entry["shape"]).astype(np.float64)
    return meta, tensors
