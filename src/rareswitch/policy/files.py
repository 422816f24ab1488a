"""Policies on disk: safetensors with one canonical-JSON metadata key, no pickle.

The same policy always gives the same bytes. A file is loaded only if writing what was read gives that file again, byte
for byte, and if its id is the hash of its content; so a truncated, edited or foreign file is refused.
"""

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.policy.encoding import canonical_json, decode, encode
from rareswitch.policy.policy import Policy
from rareswitch.policy.signing import Key, sign, verify
from rareswitch.validation import FloatArray

SCHEMA = 1
_KEY = "rareswitch"
_LARGEST = 1 << 30


def save_policy(policy: Policy, path: str | Path, *, key: Key | None = None) -> None:
    """Write a policy; with a key, sign it. The file appears whole or not at all.

    >>> import tempfile
    >>> from rareswitch.design import Uniform
    >>> path = Path(tempfile.mkdtemp()) / "first.policy"
    >>> save_policy(Policy(dim=3, sampler=Uniform()), path)
    >>> load_policy(path).dim
    3
    """
    path = Path(path)
    data = to_bytes(policy, key=key)
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


def load_policy(path: str | Path, *, key: Key | None = None) -> Policy:
    """Read a policy; with a key, only if it was signed with it."""
    path = Path(path)
    try:
        if path.stat().st_size > _LARGEST:
            raise FileFormatError(
                f"{path}: a policy file is at most {_LARGEST} bytes; this one has {path.stat().st_size}."
            )
        data = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read ({error.strerror or error}).") from error
    try:
        return from_bytes(data, key=key)
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from error


def to_bytes(policy: Policy, *, key: Key | None = None) -> bytes:
    """The content of a policy file."""
    return _content(policy, None if key is None else sign(key, f"{SCHEMA}/{policy.id}"))


def from_bytes(data: bytes, *, key: Key | None = None) -> Policy:
    """The policy in the content of a policy file."""
    try:
        meta, tensors = _unpack(data)
        if type(meta) is not dict or type(meta.get("schema")) is not int or meta["schema"] != SCHEMA:
            found = meta.get("schema") if isinstance(meta, dict) else None
            raise FileFormatError(f"policy files have schema {SCHEMA}; this one has {found!r}. Use a matching version.")
        policy = decode(meta.get("policy"), tensors)
        if meta.get("id") != policy.id:
            raise FileFormatError(f"the content does not match its id {meta.get('id')!r}: the file was changed.")
        signature = meta.get("signature")
        if _content(policy, signature) != data:
            raise FileFormatError("the file is not in canonical form: it was changed or written by something else.")
    except FileFormatError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        raise FileFormatError(f"not a policy file, or a damaged one ({error}).") from error
    if key is not None:
        verify(key, f"{SCHEMA}/{policy.id}", signature)
    return policy


def _content(policy: Policy, signature: Any) -> bytes:
    data, tensors = encode(policy)
    meta = {"schema": SCHEMA, "id": policy.id, "policy": data}
    if signature is not None:
        meta["signature"] = signature
    return _pack(meta, tensors)


def _pack(meta: Any, tensors: dict[str, FloatArray]) -> bytes:
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


def _unpack(data: bytes) -> tuple[Any, dict[str, FloatArray]]:
    if len(data) < 8 or struct.unpack_from("<Q", data)[0] > len(data) - 8:
        raise FileFormatError("not a policy file, or a truncated one.")
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
