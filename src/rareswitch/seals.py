"""Seals: the digest of some bytes, kept among these very bytes, so that every change of them is noticed.

Whoever makes the bytes leaves room for it.
"""

import hashlib

_MARK = b"rareswitch-sha256:"
_BLANK = 64 * b"0"
#: What is written where the seal shall be.
ROOM = _MARK + _BLANK


def seal(data: bytes) -> bytes:
    """The bytes with their digest in the last room that was left for it.

    >>> seal_holds(seal(b"content, " + ROOM)), seal_holds(b"contend" + seal(b"content, " + ROOM)[7:])
    (True, False)
    """
    start = data.rindex(ROOM) + len(_MARK)
    return data[:start] + hashlib.sha256(data).hexdigest().encode() + data[start + len(_BLANK) :]


def seal_holds(data: bytes) -> bool | None:
    """Whether bytes are as they were sealed; None if they never were."""
    start = data.rfind(_MARK) + len(_MARK)
    if start < len(_MARK):
        return None
    return data == seal(data[:start] + _BLANK + data[start + len(_BLANK) :])
