"""Ids of decisions, and the two words that key their randomness.

An id is a whole number 0 ≤ id < 2⁶³ or a string of 1 to 128 bytes. The number i has the key (i, 0); a string has 127
bits of its hash, the highest bit of the second word set. So 12 and "12" are two ids, and no number meets a string; two
strings of a billion meet with a probability below 10⁻²⁰.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareswitch.errors import ParameterError, ShapeError

KeyArray = NDArray[np.uint64]
#: Bytes of the longest string.
LONGEST = 128
_BEYOND = 1 << 63


def id_keys(ids: Any, count: int | None = None) -> KeyArray:
    """The keys of ids, (n, 2), read-only.

    Parameters
    ----------
    ids
        A range; a list, tuple or one-dimensional NumPy array of whole numbers, of strings, or of both; or what this
        function returned, which is the only two-dimensional array that is taken: uint64, (n, 2).
    count
        How many ids there must be.

    Examples
    --------
    >>> id_keys([7, 8, "7"])[:, 0].tolist()[:2], id_keys([7, "7"])[:, 1].tolist()[0]
    ([7, 8], 0)
    >>> bool((id_keys(range(5)) == id_keys(id_keys([0, 1, 2, 3, 4]))).all())
    True
    """
    if not isinstance(ids, (list, tuple, range, np.ndarray)):
        raise ShapeError(
            f"ids must be a list, tuple, range or NumPy array, one id for each set; got {type(ids).__name__} "
            f"{_shown(ids)}. Pass [id] for an array of one set, list(ids) for another collection."
        )
    if isinstance(ids, range) and ids and abs(ids[-1] - ids[0]) >= _BEYOND - 1:
        raise ShapeError(f"ids must be below 2^63, one for each set; got a range to {_shown(ids[-1])}.")
    if isinstance(ids, np.ma.MaskedArray) and np.ma.getmaskarray(ids).any():
        raise ShapeError("ids must not be masked: every decision needs one. Leave these decisions out.")
    keyed = isinstance(ids, np.ndarray) and ids.dtype == np.uint64 and ids.ndim == 2 and ids.shape[1] == 2
    if isinstance(ids, np.ndarray) and ids.ndim != 1 and not keyed:
        raise ShapeError(f"ids must be one-dimensional; got shape {ids.shape}. Pass ids.ravel().")
    if count is not None and len(ids) != count:
        raise ShapeError(f"each set needs one id: {count} sets take {count} ids; got {len(ids)}.")
    if keyed:
        keys = _checked(np.asarray(ids))
    elif (numbers := _numbers(ids)) is not None:
        keys = np.zeros((len(numbers), 2), dtype=np.uint64)
        keys[:, 0] = numbers
    else:
        keys = np.array([one_key(id) for id in ids], dtype=np.uint64).reshape(-1, 2)  # noqa: A001
    keys.setflags(write=False)
    return keys


def one_key(id: Any) -> tuple[int, int]:  # noqa: A002
    """The key of one id.

    >>> one_key(12), one_key("12") == one_key(12)
    ((12, 0), False)
    """
    if type(id) is int and 0 <= id < _BEYOND:
        return id, 0
    if isinstance(id, str):
        if 0 < len(id) <= LONGEST:  # a byte at least for each character: what is longer is not even encoded
            try:
                data = id.encode()
            except UnicodeEncodeError:
                raise ParameterError(
                    f"a string id must be valid Unicode; got {_shown(id)}, a lone surrogate. Pass a hash of its bytes."
                ) from None
            if len(data) <= LONGEST:
                digest = int.from_bytes(hashlib.blake2b(data, digest_size=16).digest(), "little")
                return digest & 0xFFFFFFFFFFFFFFFF, digest >> 64 | _BEYOND
        remedy = "a shorter name of the decision, or a hash of this one" if id else "the decision's own name or number"
        raise ParameterError(
            f"a string id must have 1 to {LONGEST} bytes; got {len(id)} characters, {_shown(id)}. Pass {remedy}."
        )
    if isinstance(id, (int, np.integer)) and not isinstance(id, bool):
        if 0 <= id < _BEYOND:  # of another type than int
            return int(id), 0
        raise ParameterError(f"a number as id must be at least 0 and below 2^63; got {_shown(id)}. Pass str(id).")
    remedy = "the decision's own name or number" if id is None else "str(id), or id.decode() where it is bytes"
    raise ParameterError(
        f"an id must be a whole number or a string; got {type(id).__name__} {_shown(id)}. Pass {remedy}."
    )


def key_bytes(keys: KeyArray) -> list[bytes]:
    """Keys (n, 2) as stores keep them, 16 bytes each, which sort as the keys do: numbers that rise lie side by side.

    >>> key_bytes(id_keys([258]))[0].hex()
    '00000000000000000000000000000102'
    """
    data = np.ascontiguousarray(keys[:, ::-1], dtype=">u8").tobytes()
    return [data[at : at + 16] for at in range(0, len(data), 16)]


def keys_of_bytes(data: Any, count: int) -> KeyArray:
    """The keys (n, 2) of which so many lie in a buffer, as :func:`key_bytes` makes them.

    >>> keys_of_bytes(b"".join(key_bytes(id_keys([258, "a"]))), 2).tolist() == id_keys([258, "a"]).tolist()
    True
    """
    words = np.frombuffer(data, dtype=">u8", count=2 * count).reshape(-1, 2)
    return words[:, ::-1].astype(np.uint64, order="C")


def text_keys(texts: Iterable[bytes]) -> KeyArray:
    """The keys (n, 2) of strings, encoded, of 1 to 128 bytes; what :func:`one_key` gives, in less time.

    >>> text_keys([b"12"])[0].tolist() == [*one_key("12")]
    True
    """
    digests = b"".join([hashlib.blake2b(text, digest_size=16).digest() for text in texts])
    keys = np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(-1, 2)
    keys[:, 1] |= np.uint64(_BEYOND)
    keys.setflags(write=False)
    return keys


def _numbers(ids: Any) -> NDArray[Any] | None:
    """The ids as one array, if they are whole numbers throughout."""
    if isinstance(ids, range) and ids:
        ends = ids[0], ids[-1]
    elif isinstance(ids, np.ndarray) and ids.dtype.kind in "iu" and len(ids):
        ends = int(ids.min()), int(ids.max())
    elif set(map(type, ids)) == {int}:
        ends = min(ids), max(ids)
    else:
        return None
    for end in ends:
        one_key(end)  # raises if it is out of range
    if isinstance(ids, range) and len(ids) > 1:
        return np.asarray(ids[0] + np.arange(len(ids)) * ids.step)
    return np.asarray(ids)


def _checked(keys: KeyArray) -> KeyArray:
    """Keys that were made before; a copy where the caller could still write to them."""
    keys = keys.copy() if keys.flags.writeable else np.ascontiguousarray(keys)
    strange = (keys[:, 1] < _BEYOND) & ((keys[:, 1] != 0) | (keys[:, 0] >= _BEYOND))
    if strange.any():
        raise ParameterError(
            f"an array (n, 2) of uint64 must hold keys as id_keys returns them; row {strange.argmax()} is "
            f"{keys[strange.argmax()].tolist()}. Pass the ids themselves."
        )
    return keys


def _shown(value: Any) -> str:
    """A value as text, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 100:
        return f"a number of {value.bit_length()} bits"
    return repr(value[:60] if isinstance(value, (str, bytes)) else value)[:60]
