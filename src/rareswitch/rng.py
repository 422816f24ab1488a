"""Keyed randomness: the numbers of decision t depend on (seed, stream, t) and on nothing else.

A counter-based generator (Philox) is started at the place of the first decision, so any split of the work, any order
and any number of threads or machines gives the same numbers.
"""

import hashlib

import numpy as np
from scipy.special import ndtri

from rareswitch.validation import FloatArray, whole

_BLOCK = 4  # 64-bit numbers per Philox counter


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
    whole("seed", seed, low=0)
    whole("first", first, low=0)
    whole("count", count, low=0)
    whole("width", width)
    digest = hashlib.blake2b(f"{seed}/{stream}".encode(), digest_size=16).digest()
    bits = np.random.Philox(key=int.from_bytes(digest, "little"))
    skipped = first * width
    bits.advance(skipped // _BLOCK)
    raw = bits.random_raw(skipped % _BLOCK + count * width)[skipped % _BLOCK :]
    # 52 random bits, centred in their cell: never 0 and never 1, so that quantile functions stay finite
    return np.asarray(((raw >> np.uint64(12)) + 0.5) * 2.0**-52, dtype=np.float64).reshape(count, width)


def normals(seed: int, stream: str, first: int, count: int, width: int = 1) -> FloatArray:
    """Standard normal numbers (count, width), keyed as :func:`uniforms` is, by the quantile function.

    >>> normals(7, "noise", 0, 2).shape
    (2, 1)
    """
    return np.asarray(ndtri(uniforms(seed, stream, first, count, width)))
