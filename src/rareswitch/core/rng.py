"""Ids of decisions, and keyed randomness: the numbers of decision t depend on (seed, stream, t) and on nothing else.

An id is a whole number 0 ≤ id < 2⁶³ or a string of 1 to 128 bytes, and has a key of two words. The number i has the key
(i, 0); a string has 127 bits of its hash, the highest bit of the second word set. So 12 and "12" are two ids, and no
number meets a string; two strings of a billion meet with a probability below 10⁻²⁰.

Random numbers come from Philox4x64-10 (Salmon et al. 2011), a generator that maps a counter to random bits, so any
split of the work, any order and any number of threads or machines gives the same numbers. It is compiled here, and its
bits are those of :class:`numpy.random.Philox`.
"""

import hashlib
import math
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rareswitch.core.validation import FloatArray, whole
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.lanes import compiled, high_product

__all__ = ["LONGEST", "KeyArray", "id_keys", "key_bytes", "keys_of_bytes", "normals", "one_key", "sample_order"]
__all__ += ["stream_key", "text_keys", "uniforms", "uniforms_at", "unit_at"]

KeyArray = NDArray[np.uint64]
#: Ids of decisions, or their keys.
Ids: TypeAlias = Sequence[int | str] | NDArray[np.generic]
#: Bytes of the longest string.
LONGEST = 128
_BEYOND = 1 << 63
_KEY = struct.Struct(">QQ").pack
_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)


def id_keys(ids: Ids, count: int | None = None) -> KeyArray:
    """The keys of ids, (n, 2), read-only.

    Parameters
    ----------
    ids
        A range; a list, tuple or one-dimensional NumPy array of whole numbers, of strings, or of both; or what this
        function returned, which is the only two-dimensional array that is taken: uint64, (n, 2).
    count
        The number of ids that there must be.

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
    elif (numbers := _whole_numbers(ids)) is not None:
        keys = np.zeros((len(numbers), 2), dtype=np.uint64)
        keys[:, 0] = numbers
    else:
        keys = np.array([one_key(id) for id in ids], dtype=np.uint64).reshape(-1, 2)  # noqa: A001
    keys.setflags(write=False)
    return keys


def one_key(id: object) -> tuple[int, int]:  # noqa: A002
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
                    f"a string id must be valid Unicode; got {_shown(id)}, a lone surrogate. Pass a hash of its bytes.",
                    parameter="id",
                ) from None
            if len(data) <= LONGEST:
                digest = int.from_bytes(hashlib.blake2b(data, digest_size=16).digest(), "little")
                return digest & 0xFFFFFFFFFFFFFFFF, digest >> 64 | _BEYOND
        remedy = "a shorter name of the decision, or a hash of this one" if id else "the decision's own name or number"
        raise ParameterError(
            f"a string id must have 1 to {LONGEST} bytes; got {len(id)} characters, {_shown(id)}. Pass {remedy}.",
            parameter="id",
        )
    if isinstance(id, (int, np.integer)) and not isinstance(id, bool):
        if 0 <= id < _BEYOND:  # of another type than int
            return int(id), 0
        raise ParameterError(
            f"a number as id must be at least 0 and below 2^63; got {_shown(id)}. Pass str(id).", parameter="id"
        )
    remedy = "the decision's own name or number" if id is None else "str(id), or id.decode() where it is bytes"
    raise ParameterError(
        f"an id must be a whole number or a string; got {type(id).__name__} {_shown(id)}. Pass {remedy}.",
        parameter="id",
    )


def key_bytes(keys: KeyArray) -> list[bytes]:
    """Keys (n, 2) as stores keep them, 16 bytes each, which sort as the keys do: numbers that rise lie side by side.

    >>> key_bytes(id_keys([258]))[0].hex()
    '00000000000000000000000000000102'
    """
    return [_KEY(high, low) for low, high in keys.tolist()]


def keys_of_bytes(data: bytes | memoryview | NDArray[np.generic], count: int) -> KeyArray:
    """The ``count`` keys (n, 2) in a buffer, as :func:`key_bytes` makes them.

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


def _whole_numbers(ids: Ids) -> NDArray[np.integer] | None:
    """The ids as one array, if they are whole numbers throughout."""
    ends: tuple[object, object]
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


def _shown(value: object) -> str:
    """A value as text, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 100:
        return f"a number of {value.bit_length()} bits"
    return repr(value[:60] if isinstance(value, (str, bytes)) else value)[:60]


def uniforms(seed: int, stream: str, first: int, count: int, width: int = 1) -> FloatArray:
    """Uniform numbers in the open interval (0, 1) for decisions ``first`` … ``first + count - 1``.

    Parameters
    ----------
    seed
        Any non-negative whole number.
    stream
        The purpose; different names give independent numbers.
    width
        How many numbers each decision gets.

    Returns
    -------
    array (count, width)

    Examples
    --------
    >>> whole_run = uniforms(7, "contexts", 0, 10, width=3)
    >>> later_part = uniforms(7, "contexts", 6, 4, width=3)
    >>> bool((whole_run[6:] == later_part).all())
    True
    """
    whole("width", width)
    total = whole("count", count, low=0) * width
    start = whole("first", first, low=0, high=((1 << 63) - total) // width) * width  # they are counted by 63 bits
    block, skipped = divmod(start, 4)  # NumPy goes on from a counter of the same generator: four numbers at each
    generator = np.random.Philox(key=np.array(stream_key(seed, stream)), counter=block)
    bits = generator.random_raw(skipped + total)[skipped:]
    return np.asarray(((bits >> np.uint64(12)) + 0.5).reshape(count, width) * 2.0**-52)  # as _unit has them


def normals(seed: int, stream: str, first: int, count: int, width: int = 1) -> FloatArray:
    """Standard normal numbers (count, width), keyed as :func:`uniforms` is: the quantiles of the same uniforms.

    >>> normals(7, "noise", 0, 2).shape
    (2, 1)
    """
    numbers = uniforms(seed, stream, first, count, width)
    _to_normals(numbers.reshape(-1))
    return numbers


def uniforms_at(seed: int, stream: str, keys: KeyArray) -> FloatArray:
    """One uniform number in (0, 1) for each id, (n,), by the keys (n, 2) of :func:`id_keys`.

    That of a number is the one that :func:`uniforms` gives it; that of a string comes from a counter no number has.

    >>> bool((uniforms_at(7, "decide", id_keys([9, 4])) == uniforms(7, "decide", 0, 10)[[9, 4], 0]).all())
    True
    """
    numbers = np.empty(len(keys))
    _fill_at(*stream_key(seed, stream), keys, numbers)
    return numbers


def sample_order(keys: KeyArray) -> FloatArray:
    """(n,) a hash of each id in (0, 1), by which samples are taken: the decisions with the k smallest.

    It depends on the id alone, so no decision need be counted beforehand, and samples of parts merge.
    """
    return uniforms_at(0, "sample", keys)


@lru_cache(maxsize=256, typed=True)
def stream_key(seed: int, stream: str) -> tuple[np.uint64, np.uint64]:
    """The two words that key all numbers of a stream."""
    seed = whole("seed", seed, low=0, high=None)
    low, high = struct.unpack("<QQ", hashlib.blake2b(f"{seed}/{stream}".encode(), digest_size=16).digest())
    return np.uint64(low), np.uint64(high)


@compiled
def _philox(key_0, key_1, counter, second):  # type: ignore[no-untyped-def]
    """Four random 64-bit numbers of a counter, given by the lower two of its four words."""
    multiplier_0, multiplier_1 = np.uint64(_MULTIPLIERS[0]), np.uint64(_MULTIPLIERS[1])
    weyl_0, weyl_1 = np.uint64(_WEYL[0]), np.uint64(_WEYL[1])
    a, b, c, d = np.uint64(counter), np.uint64(second), np.uint64(0), np.uint64(0)
    for _ in range(10):
        high_a, low_a = high_product(multiplier_0, a), multiplier_0 * a
        high_c, low_c = high_product(multiplier_1, c), multiplier_1 * c
        a, b, c, d = high_c ^ b ^ key_0, low_c, high_a ^ d ^ key_1, low_a
        key_0 += weyl_0
        key_1 += weyl_1
    return a, b, c, d


@compiled
def _unit(bits):  # type: ignore[no-untyped-def]
    """52 random bits, centred in their cell: never 0 and never 1, so that quantiles stay finite."""
    return (np.float64(bits >> np.uint64(12)) + 0.5) * 2.0**-52


@compiled
def unit_at(key_0, key_1, low, high):  # type: ignore[no-untyped-def]
    """The uniform number of the id whose key is (low, high)."""
    if high != 0:  # a string: the words are its counter
        return _unit(_philox(key_0, key_1, low, high)[0])
    a, b, c, d = _philox(key_0, key_1, low // np.uint64(4) + np.uint64(1), np.uint64(0))
    lane = low % np.uint64(4)
    return _unit(a if lane == 0 else b if lane == 1 else c if lane == 2 else d)


@compiled
def _fill_at(key_0, key_1, keys, numbers):  # type: ignore[no-untyped-def]
    for s in range(keys.shape[0]):
        numbers[s] = unit_at(key_0, key_1, keys[s, 0], keys[s, 1])


#: Uniforms this close to ½ have their quantile from one rational function, which vectorises.
_CENTRE = 0.425


@compiled
def _to_normals(numbers):  # type: ignore[no-untyped-def]
    """Uniforms become their normal quantiles, by algorithm AS 241 (Wichura 1988), accurate to about 1e-16."""
    block = np.empty(512)
    for start in range(0, numbers.shape[0], 512):
        u = block[: min(512, numbers.shape[0] - start)]
        for k in range(u.shape[0]):
            u[k] = numbers[start + k]
        for k in range(u.shape[0]):
            numbers[start + k] = _central_quantile(u[k] - 0.5)
        for k in range(u.shape[0]):
            if abs(u[k] - 0.5) > _CENTRE:
                numbers[start + k] = _tail_quantile(u[k])


# fmt: off
#: Numerators and denominators of AS 241, highest power first: at the centre, beyond it, and far out.
_TOP = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
)
_BOTTOM = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
    5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)
_OUTER_TOP = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
    3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0,
)
_OUTER_BOTTOM = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0,
)
_FAR_TOP = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0,
)
_FAR_BOTTOM = (
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
)
# fmt: on


@compiled
def _polynomial(x, a, b, c, d, e, f, g, h):  # type: ignore[no-untyped-def]
    return ((((((a * x + b) * x + c) * x + d) * x + e) * x + f) * x + g) * x + h


@compiled
def _central_quantile(q):  # type: ignore[no-untyped-def]
    r = 0.180625 - q * q
    return q * _polynomial(r, *_TOP) / _polynomial(r, *_BOTTOM)


@compiled
def _tail_quantile(p):  # type: ignore[no-untyped-def]
    r = math.sqrt(-math.log(min(p, 1.0 - p)))
    if r <= 5.0:
        ratio = _polynomial(r - 1.6, *_OUTER_TOP) / _polynomial(r - 1.6, *_OUTER_BOTTOM)
    else:
        ratio = _polynomial(r - 5.0, *_FAR_TOP) / _polynomial(r - 5.0, *_FAR_BOTTOM)
    return math.copysign(ratio, p - 0.5)
