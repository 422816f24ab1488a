"""Named arrays beside plain data in one file: safetensors with one canonical-JSON metadata key, no pickle.

The same content always gives the same bytes.
"""

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.validation import FloatArray

_KEY = "rareswitch"
_LARGEST = 1 << 30


def write_whole(data: bytes, path: str | Path) -> None:
    """Write a file that appears whole or not at all."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise FileFormatError(f"{path}: cannot be written ({error.strerror or error}).") from error


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
