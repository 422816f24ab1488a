"""Policies on disk: safetensors with one canonical-JSON metadata key, no pickle.

The same policy always gives the same bytes. A file is loaded only if writing what was read gives that file again, byte
for byte, and if its id is the hash of its content; so a truncated, edited or foreign file is refused.
"""

from pathlib import Path
from typing import Any

from rareswitch.errors import FileFormatError
from rareswitch.files import decoding, pack, read_whole, unpack, write_whole
from rareswitch.policy.encoding import decode, encode
from rareswitch.policy.policy import Policy
from rareswitch.policy.signing import Key, check_signature, sign, verify

SCHEMA = 1


def save_policy(policy: Policy, path: str | Path, *, key: Key | None = None) -> None:
    """Write a policy; with a key, sign it. The file appears whole or not at all.

    >>> import tempfile
    >>> from rareswitch.design import Uniform
    >>> path = Path(tempfile.mkdtemp()) / "first.policy"
    >>> save_policy(Policy(dim=3, sampler=Uniform()), path)
    >>> load_policy(path).dim
    3
    """
    write_whole(to_bytes(policy, key=key), path)


def load_policy(path: str | Path, *, key: Key | None = None) -> Policy:
    """Read a policy; with a key, only if it was signed with it."""
    data = read_whole(path)
    try:
        return from_bytes(data, key=key)
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from error


def to_bytes(policy: Policy, *, key: Key | None = None) -> bytes:
    """The content of a policy file."""
    return _content(policy, None if key is None else sign(key, f"{SCHEMA}/{policy.id}"))


def from_bytes(data: bytes, *, key: Key | None = None) -> Policy:
    """The policy in the content of a policy file."""
    with decoding("a policy file"):
        meta, tensors = unpack(data)
        if type(meta) is not dict or type(meta.get("schema")) is not int or meta["schema"] != SCHEMA:
            found = f"{meta.get('schema') if isinstance(meta, dict) else None!r:.60}"
            raise FileFormatError(f"policy files have schema {SCHEMA}; this one has {found}. Use a matching version.")
        if not {"id", "policy"} <= {*meta} <= {"schema", "id", "policy", "signature"}:
            raise FileFormatError(f"not a policy file: it holds {', '.join(sorted(meta)):.200}.")
        signature = meta.get("signature")
        if signature is not None:
            check_signature(signature)
        policy = decode(meta["policy"], tensors)
        if meta["id"] != policy.id:
            raise FileFormatError(f"the content does not match its id {meta['id']!r:.80}: the file was changed.")
        if _content(policy, signature) != data:
            raise FileFormatError("the file is not in canonical form: it was changed or written by something else.")
    if key is not None:
        verify(key, f"{SCHEMA}/{policy.id}", signature)
    return policy


def _content(policy: Policy, signature: Any) -> bytes:
    data, tensors = encode(policy)
    meta = {"schema": SCHEMA, "id": policy.id, "policy": data}
    if signature is not None:
        meta["signature"] = signature
    return pack(meta, tensors)
