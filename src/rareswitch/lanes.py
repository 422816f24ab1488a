"""Eight-wide row operations for the compiled kernels.

A row operation here names its own order of summation and its own fused multiply-adds, so a kernel built from them
returns the same bits on every processor, whatever the width of its vector unit. Rows must be padded to a multiple
of :data:`WIDTH`; the padding is computed with and must hold finite numbers (zeros).
"""

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

WIDTH = 8

_INT = ir.IntType(64)
_DOUBLE = ir.DoubleType()
_LANES = ir.VectorType(_DOUBLE, WIDTH)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first call, to run without the GIL; the machine code is cached on disk."""
    kernel: Callable[..., Any] = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return kernel


def padded(length: int) -> int:
    """Smallest multiple of the lane width that holds ``length`` entries.

    >>> padded(20)
    24
    """
    return (length + WIDTH - 1) // WIDTH * WIDTH


def _row_pointer(context: Any, builder: Any, array_type: Any, array: Any, row: Any) -> Any:
    fields = context.make_array(array_type)(context, builder, array)
    stride = cgutils.unpack_tuple(builder, fields.strides)[0]
    address = builder.add(builder.ptrtoint(fields.data, _INT), builder.mul(row, stride))
    return builder.inttoptr(address, _DOUBLE.as_pointer())


def _lanes_at(builder: Any, row: Any, column: Any) -> Any:
    return builder.bitcast(builder.gep(row, [column]), _LANES.as_pointer())


def _fused(builder: Any, factor: Any, other: Any, addend: Any) -> Any:
    """Factor · other + addend, rounded once."""
    suffix = "f64" if factor.type == _DOUBLE else "v8f64"
    signature = ir.FunctionType(factor.type, [factor.type] * 3)
    function = cgutils.get_or_insert_function(builder.module, signature, f"llvm.fma.{suffix}")
    return builder.call(function, [factor, other, addend])


def _blocks(builder: Any, start: Any, stop: Any) -> Any:
    return cgutils.for_range_slice(builder, start, stop, ir.Constant(_INT, WIDTH), intp=_INT)


@intrinsic  # type: ignore[untyped-decorator]
def fma(typing_context: Any, factor: Any, other: Any, addend: Any) -> Any:
    """``factor * other + addend`` with a single rounding."""
    signature = types.float64(types.float64, types.float64, types.float64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fused(builder, *args)

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def dot_rows(typing_context: Any, left: Any, i: Any, right: Any, j: Any, stop: Any) -> Any:
    """Σ_c left[i, c] · right[j, c] over c < stop: eight running sums, then a fixed tree."""
    index = types.int64
    signature = types.float64(left, index, right, index, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = _row_pointer(context, builder, left, args[0], args[1])
        second = _row_pointer(context, builder, right, args[2], args[3])
        total = cgutils.alloca_once_value(builder, ir.Constant(_LANES, [0.0] * WIDTH))
        with _blocks(builder, ir.Constant(_INT, 0), args[4]) as (column, _):
            x = builder.load(_lanes_at(builder, first, column), align=8)
            y = builder.load(_lanes_at(builder, second, column), align=8)
            builder.store(_fused(builder, x, y, builder.load(total)), total)
        lanes = builder.load(total)
        sums = [builder.extract_element(lanes, ir.Constant(ir.IntType(32), k)) for k in range(WIDTH)]
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [builder.fadd(sums[k], sums[k + half]) for k in range(half)]
        return sums[0]

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def add_row(typing_context: Any, target: Any, i: Any, source: Any, j: Any, factor: Any, start: Any, stop: Any) -> Any:
    """target[i, c] += factor · source[j, c] for start ≤ c < stop; ``start`` a multiple of the width."""
    index = types.int64
    signature = types.void(target, index, source, index, types.float64, index, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        into = _row_pointer(context, builder, target, args[0], args[1])
        source_row = _row_pointer(context, builder, source, args[2], args[3])
        undefined = ir.Constant(_LANES, ir.Undefined)
        lanes = builder.insert_element(undefined, args[4], ir.Constant(ir.IntType(32), 0))
        spread = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        factors = builder.shuffle_vector(lanes, undefined, spread)
        with _blocks(builder, args[5], args[6]) as (column, _):
            x = builder.load(_lanes_at(builder, source_row, column), align=8)
            at = _lanes_at(builder, into, column)
            builder.store(_fused(builder, factors, x, builder.load(at, align=8)), at, align=8)
        return context.get_dummy_value()

    return signature, generate
