"""Eight-wide row operations for the compiled kernels.

A row operation here names its own order of summation and its own fused multiply-adds, so a kernel built from them
returns the same bits on every processor, whatever the width of its vector unit. Rows must be padded to a multiple
of :data:`WIDTH`; the padding is computed with and must hold finite numbers (zeros).
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
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


@compiled
def lane_zeros(rows, columns):  # type: ignore[no-untyped-def]
    """Zeros (rows, columns) that begin on a cache line, so that no block of a row straddles two."""
    flat = np.zeros(rows * columns + WIDTH)
    shift = -(flat.ctypes.data // 8) % WIDTH
    return flat[shift : shift + rows * columns].reshape((rows, columns))


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


def _spread(builder: Any, value: Any) -> Any:
    """The same number in every lane."""
    undefined = ir.Constant(_LANES, ir.Undefined)
    lanes = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(lanes, undefined, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))


def _blocks(builder: Any, start: Any, stop: Any, blocks: int = 1) -> Any:
    """A loop over the columns from start to stop, ``blocks`` times the width at a time."""
    return cgutils.for_range_slice(builder, start, stop, ir.Constant(_INT, blocks * WIDTH), intp=_INT)


def _load(builder: Any, row: Any, column: Any) -> Any:
    return builder.load(_lanes_at(builder, row, column), align=8)


def _store(builder: Any, lanes: Any, row: Any, column: Any) -> None:
    builder.store(lanes, _lanes_at(builder, row, column), align=8)


def _sum(builder: Any, lanes: Any) -> Any:
    """The sum of the lanes: halves added to each other until one is left."""
    count = WIDTH
    while count > 1:
        count //= 2
        undefined = ir.Constant(lanes.type, ir.Undefined)
        parts = [
            builder.shuffle_vector(lanes, undefined, ir.Constant(ir.VectorType(ir.IntType(32), count), list(places)))
            for places in (range(count), range(count, 2 * count))
        ]
        lanes = builder.fadd(*parts)
    return builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))


@intrinsic  # type: ignore[untyped-decorator]
def fma(typing_context: Any, factor: Any, other: Any, addend: Any) -> Any:
    """``factor * other + addend`` with a single rounding."""
    signature = types.float64(types.float64, types.float64, types.float64)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _fused(builder, *args)

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def dot_four(typing_context: Any, target: Any, left: Any, i: Any, right: Any, j: Any, stop: Any) -> Any:
    """target[k, i] = Σ_c left[i, c] · right[k, c] over c < stop, for the four rows k = j … j + 3."""
    index = types.int64
    signature = types.void(target, left, index, right, index, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = _row_pointer(context, builder, left, args[1], args[2])
        rows = [builder.add(args[4], ir.Constant(_INT, k)) for k in range(4)]
        others = [_row_pointer(context, builder, right, args[3], row) for row in rows]
        zero = ir.Constant(_LANES, [0.0] * WIDTH)
        totals = [cgutils.alloca_once_value(builder, zero) for _ in rows]
        for total in totals:
            builder.store(zero, total)
        with _blocks(builder, ir.Constant(_INT, 0), args[5]) as (column, _):
            x = _load(builder, first, column)
            for total, other in zip(totals, others, strict=True):
                builder.store(_fused(builder, x, _load(builder, other, column), builder.load(total)), total)
        for total, row in zip(totals, rows, strict=True):
            into = _row_pointer(context, builder, target, args[0], row)
            builder.store(_sum(builder, builder.load(total)), builder.gep(into, [args[2]]))
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def add_row(typing_context: Any, target: Any, i: Any, source: Any, j: Any, factor: Any, start: Any, stop: Any) -> Any:
    """target[i, c] += factor · source[j, c] for start ≤ c < stop; ``start`` a multiple of the width."""
    index = types.int64
    signature = types.void(target, index, source, index, types.float64, index, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        into = _row_pointer(context, builder, target, args[0], args[1])
        row = _row_pointer(context, builder, source, args[2], args[3])
        factors = _spread(builder, args[4])
        with _blocks(builder, args[5], args[6]) as (column, _):
            added = _fused(builder, factors, _load(builder, row, column), _load(builder, into, column))
            _store(builder, added, into, column)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def add_rows(
    typing_context: Any, target: Any, base: Any, i: Any, factors: Any, j: Any, source: Any, rows: Any, stop: Any
) -> Any:
    """target[i, c] = base[i, c] + Σ_{k < rows} factors[j, k] · source[k, c] for c < stop, added in the order of k."""
    index = types.int64
    signature = types.void(target, base, index, factors, index, source, index, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        into = _row_pointer(context, builder, target, args[0], args[2])
        base_row = _row_pointer(context, builder, base, args[1], args[2])
        factor_row = _row_pointer(context, builder, factors, args[3], args[4])
        stop = args[7]
        start = ir.Constant(_INT, 0)
        # several blocks side by side, so that one multiply-add need not wait for the last; then what is left over
        for blocks in (4, 3, 2, 1):
            wide = ir.Constant(_INT, blocks * WIDTH)
            end = builder.sub(stop, builder.srem(builder.sub(stop, start), wide))
            with _blocks(builder, start, end, blocks) as (column, _):
                columns = [builder.add(column, ir.Constant(_INT, b * WIDTH)) for b in range(blocks)]
                totals = [cgutils.alloca_once(builder, _LANES) for _ in columns]
                for total, at in zip(totals, columns, strict=True):
                    builder.store(_load(builder, base_row, at), total)
                with cgutils.for_range(builder, args[6], intp=_INT) as row:
                    source_row = _row_pointer(context, builder, source, args[5], row.index)
                    factor = _spread(builder, builder.load(builder.gep(factor_row, [row.index])))
                    for total, at in zip(totals, columns, strict=True):
                        added = _fused(builder, factor, _load(builder, source_row, at), builder.load(total))
                        builder.store(added, total)
                for total, at in zip(totals, columns, strict=True):
                    _store(builder, builder.load(total), into, at)
            start = end
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def add_products(typing_context: Any, target: Any, source: Any, i: Any, column: Any, rows: Any) -> Any:
    """target[j, c] += Σ_{k < rows} source[k, j] · source[k, c], added in the order of k, for a tile of four rows
    j = i … i + 3 and eight columns c = column … column + 7.
    """
    index = types.int64
    signature = types.void(target, source, index, index, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        column = args[3]
        factors = [builder.add(args[2], ir.Constant(_INT, q)) for q in range(4)]
        totals = [cgutils.alloca_once(builder, _LANES) for _ in factors]
        for total in totals:
            builder.store(ir.Constant(_LANES, [0.0] * WIDTH), total)
        with cgutils.for_range(builder, args[4], intp=_INT) as row:
            source_row = _row_pointer(context, builder, source, args[1], row.index)
            lanes = _load(builder, source_row, column)
            for total, j in zip(totals, factors, strict=True):
                factor = _spread(builder, builder.load(builder.gep(source_row, [j])))
                builder.store(_fused(builder, factor, lanes, builder.load(total)), total)
        for total, j in zip(totals, factors, strict=True):
            into = _row_pointer(context, builder, target, args[0], j)
            _store(builder, builder.fadd(_load(builder, into, column), builder.load(total)), into, column)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def multiply_row(typing_context: Any, target: Any, i: Any, left: Any, j: Any, right: Any, k: Any, stop: Any) -> Any:
    """target[i, c] = left[j, c] · right[k, c] for c < stop."""
    index = types.int64
    signature = types.void(target, index, left, index, right, index, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        into = _row_pointer(context, builder, target, args[0], args[1])
        first = _row_pointer(context, builder, left, args[2], args[3])
        second = _row_pointer(context, builder, right, args[4], args[5])
        with _blocks(builder, ir.Constant(_INT, 0), args[6]) as (column, _):
            product = builder.fmul(_load(builder, first, column), _load(builder, second, column))
            _store(builder, product, into, column)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def add_squares(typing_context: Any, target: Any, i: Any, source: Any, j: Any, factor: Any, stop: Any) -> Any:
    """target[i, c] += factor · source[j, c]² for c < stop."""
    index = types.int64
    signature = types.void(target, index, source, index, types.float64, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        into = _row_pointer(context, builder, target, args[0], args[1])
        row = _row_pointer(context, builder, source, args[2], args[3])
        factors = _spread(builder, args[4])
        with _blocks(builder, ir.Constant(_INT, 0), args[5]) as (column, _):
            x = _load(builder, row, column)
            added = _fused(builder, x, builder.fmul(x, factors), _load(builder, into, column))
            _store(builder, added, into, column)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def triangular_squares(typing_context: Any, target: Any, matrix: Any, source: Any, rows: Any, stop: Any) -> Any:
    """target[0, c] = Σ_{j < rows} (Σ_{k ≤ j} matrix[j, k] · source[k, c])² for c < stop, added in these orders."""
    index = types.int64
    signature = types.void(target, matrix, source, index, index)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        into = _row_pointer(context, builder, target, args[0], ir.Constant(_INT, 0))
        zero = ir.Constant(_LANES, [0.0] * WIDTH)
        start = ir.Constant(_INT, 0)
        for blocks in (4, 3, 2, 1):
            wide = ir.Constant(_INT, blocks * WIDTH)
            end = builder.sub(args[4], builder.srem(builder.sub(args[4], start), wide))
            with _blocks(builder, start, end, blocks) as (column, _):
                columns = [builder.add(column, ir.Constant(_INT, b * WIDTH)) for b in range(blocks)]
                squares = [cgutils.alloca_once(builder, _LANES) for _ in columns]
                sums = [cgutils.alloca_once(builder, _LANES) for _ in columns]
                for square in squares:
                    builder.store(zero, square)
                with cgutils.for_range(builder, args[3], intp=_INT) as outer:
                    factor_row = _row_pointer(context, builder, matrix, args[1], outer.index)
                    for total in sums:
                        builder.store(zero, total)
                    with cgutils.for_range(builder, builder.add(outer.index, ir.Constant(_INT, 1)), intp=_INT) as row:
                        source_row = _row_pointer(context, builder, source, args[2], row.index)
                        factor = _spread(builder, builder.load(builder.gep(factor_row, [row.index])))
                        for total, at in zip(sums, columns, strict=True):
                            added = _fused(builder, factor, _load(builder, source_row, at), builder.load(total))
                            builder.store(added, total)
                    for square, total in zip(squares, sums, strict=True):
                        x = builder.load(total)
                        builder.store(_fused(builder, x, x, builder.load(square)), square)
                for square, at in zip(squares, columns, strict=True):
                    _store(builder, builder.load(square), into, at)
            start = end
        return context.get_dummy_value()

    return signature, generate
