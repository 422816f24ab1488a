"""Keyed randomness: the numbers of decision t depend on (seed, stream, t) and on nothing else.

They come from Philox4x64-10 (Salmon et al. 2011), a generator that maps a counter to random bits, so any split of the
work, any order and any number of threads or machines gives the same numbers. It is compiled here, and its bits are
those of :class:`numpy.random.Philox`.
"""

import hashlib
import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from rareswitch.lanes import compiled
from rareswitch.validation import FloatArray, whole

_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)


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
    numbers = np.empty(_check(seed, first, count, width))
    _fill_uniforms(*_key(seed, stream), first * width, numbers)
    return numbers.reshape(count, width)


def normals(seed: int, stream: str, first: int, count: int, width: int = 1) -> FloatArray:
    """Standard normal numbers (count, width), keyed as :func:`uniforms` is: the quantiles of the same uniforms.

    >>> normals(7, "noise", 0, 2).shape
    (2, 1)
    """
    numbers = np.empty(_check(seed, first, count, width))
    _fill_normals(*_key(seed, stream), first * width, numbers)
    return numbers.reshape(count, width)


def _check(seed: int, first: int, count: int, width: int) -> int:
    whole("seed", seed, low=0)
    whole("first", first, low=0)
    whole("width", width)
    return whole("count", count, low=0) * width


def _key(seed: int, stream: str) -> tuple[np.uint64, np.uint64]:
    digest = hashlib.blake2b(f"{seed}/{stream}".encode(), digest_size=16).digest()
    return np.uint64(int.from_bytes(digest[:8], "little")), np.uint64(int.from_bytes(digest[8:], "little"))


@intrinsic  # type: ignore[untyped-decorator]
def _high_product(typing_context: Any, left: Any, right: Any) -> Any:
    """The upper 64 bits of the product of two unsigned 64-bit numbers."""
    signature = types.uint64(types.uint64, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return signature, generate


@compiled
def _philox(key_0, key_1, counter):  # type: ignore[no-untyped-def]
    """Four random 64-bit numbers of a counter."""
    multiplier_0, multiplier_1 = np.uint64(_MULTIPLIERS[0]), np.uint64(_MULTIPLIERS[1])
    weyl_0, weyl_1 = np.uint64(_WEYL[0]), np.uint64(_WEYL[1])
    a, b, c, d = np.uint64(counter), np.uint64(0), np.uint64(0), np.uint64(0)
    for _ in range(10):
        high_a, low_a = _high_product(multiplier_0, a), multiplier_0 * a
        high_c, low_c = _high_product(multiplier_1, c), multiplier_1 * c
        a, b, c, d = high_c ^ b ^ key_0, low_c, high_a ^ d ^ key_1, low_a
        key_0 += weyl_0
        key_1 += weyl_1
    return a, b, c, d


@compiled
def _unit(bits):  # type: ignore[no-untyped-def]
    """52 random bits, centred in their cell: never 0 and never 1, so that quantiles stay finite."""
    return (np.float64(bits >> np.uint64(12)) + 0.5) * 2.0**-52


@compiled
def _fill_uniforms(key_0, key_1, first, numbers):  # type: ignore[no-untyped-def]
    """The uniforms number ``first`` and following of a key; four to a counter, counters from 1."""
    length = numbers.shape[0]
    at = -(first % 4)  # place of the block's first number; what lies outside of the array is passed over
    block = np.uint64(first // 4)
    while at < length:
        block += np.uint64(1)
        a, b, c, d = _philox(key_0, key_1, block)
        if at >= 0 and at + 4 <= length:
            numbers[at] = _unit(a)
            numbers[at + 1] = _unit(b)
            numbers[at + 2] = _unit(c)
            numbers[at + 3] = _unit(d)
        else:
            for place, bits in enumerate((a, b, c, d)):
                if 0 <= at + place < length:
                    numbers[at + place] = _unit(bits)
        at += 4


_CENTRE = 0.425
"""Uniforms this close to ½ have their quantile from one rational function, which vectorises."""


@compiled
def _fill_normals(key_0, key_1, first, numbers):  # type: ignore[no-untyped-def]
    """Normal quantiles of the uniforms by algorithm AS 241 (Wichura 1988), accurate to about 1e-16."""
    block = np.empty(512)
    for start in range(0, numbers.shape[0], 512):
        u = block[: min(512, numbers.shape[0] - start)]
        _fill_uniforms(key_0, key_1, first + start, u)
        for k in range(u.shape[0]):
            numbers[start + k] = _central_quantile(u[k] - 0.5)
        for k in range(u.shape[0]):
            if abs(u[k] - 0.5) > _CENTRE:
                numbers[start + k] = _tail_quantile(u[k])


@compiled
def _central_quantile(q):  # type: ignore[no-untyped-def]
    r = 0.180625 - q * q
    top = 2.5090809287301226727e3
    top = top * r + 3.3430575583588128105e4
    top = top * r + 6.7265770927008700853e4
    top = top * r + 4.5921953931549871457e4
    top = top * r + 1.3731693765509461125e4
    top = top * r + 1.9715909503065514427e3
    top = top * r + 1.3314166789178437745e2
    top = top * r + 3.3871328727963666080e0
    bottom = 5.2264952788528545610e3
    bottom = bottom * r + 2.8729085735721942674e4
    bottom = bottom * r + 3.9307895800092710610e4
    bottom = bottom * r + 2.1213794301586595867e4
    bottom = bottom * r + 5.3941960214247511077e3
    bottom = bottom * r + 6.8718700749205790830e2
    bottom = bottom * r + 4.2313330701600911252e1
    bottom = bottom * r + 1.0
    return q * top / bottom


@compiled
def _tail_quantile(p):  # type: ignore[no-untyped-def]
    r = math.sqrt(-math.log(min(p, 1.0 - p)))
    if r <= 5.0:
        r -= 1.6
        top = 7.74545014278341407640e-4
        top = top * r + 2.27238449892691845833e-2
        top = top * r + 2.41780725177450611770e-1
        top = top * r + 1.27045825245236838258e0
        top = top * r + 3.64784832476320460504e0
        top = top * r + 5.76949722146069140550e0
        top = top * r + 4.63033784615654529590e0
        top = top * r + 1.42343711074968357734e0
        bottom = 1.05075007164441684324e-9
        bottom = bottom * r + 5.47593808499534494600e-4
        bottom = bottom * r + 1.51986665636164571966e-2
        bottom = bottom * r + 1.48103976427480074590e-1
        bottom = bottom * r + 6.89767334985100004550e-1
        bottom = bottom * r + 1.67638483018380384940e0
        bottom = bottom * r + 2.05319162663775882187e0
        bottom = bottom * r + 1.0
    else:
        r -= 5.0
        top = 2.01033439929228813265e-7
        top = top * r + 2.71155556874348757815e-5
        top = top * r + 1.24266094738807843860e-3
        top = top * r + 2.65321895265761230930e-2
        top = top * r + 2.96560571828504891230e-1
        top = top * r + 1.78482653991729133580e0
        top = top * r + 5.46378491116411436990e0
        top = top * r + 6.65790464350110377720e0
        bottom = 2.04426310338993978564e-15
        bottom = bottom * r + 1.42151175831644588870e-7
        bottom = bottom * r + 1.84631831751005468180e-5
        bottom = bottom * r + 7.86869131145613259100e-4
        bottom = bottom * r + 1.48753612908506148525e-2
        bottom = bottom * r + 1.36929880922735805310e-1
        bottom = bottom * r + 5.99832206555887937690e-1
        bottom = bottom * r + 1.0
    return math.copysign(top / bottom, p - 0.5)
