"""The instructions of row operations, written with llvmlite."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.registry import cpu_target
from numba.core.typing import Signature
from numba.core.typing.context import BaseContext as TypingContext
from numba.extending import intrinsic

from rareswitch.lanes.kernel import WIDTH

_INT = ir.IntType(64)
_DOUBLE = ir.DoubleType()
_LANES = ir.VectorType(_DOUBLE, WIDTH)
_ZEROS = ir.Constant(_LANES, [0.0] * WIDTH)
#: A number, a pointer or lanes that the code computes.
IRValue: TypeAlias = ir.Value
#: From a row's number to where the row begins.
Rows: TypeAlias = Callable[[IRValue | int], IRValue]
#: Writes the code of one call: what it returns.
Generator: TypeAlias = Callable[[BaseContext, ir.IRBuilder, Signature, Sequence[IRValue]], IRValue]


def operation_type(name: str) -> types.Type:
    """The type of the operation of that name, by which Numba finds its instructions."""
    cpu_target.typing_context.refresh()  # operations that were loaded in the middle of a compilation are new to it
    numba_type: types.Type = cpu_target.typing_context.resolve_value_type(globals()[f"_{name}"])
    return numba_type


class _Code:
    """Writes the instructions of one row operation."""

    def __init__(self, context: BaseContext, builder: ir.IRBuilder) -> None:
        self.context, self.builder = context, builder

    def rows(self, kind: types.Type, array: IRValue) -> Rows:
        """An array (rows, columns) of this type, as a function from a row's number to where it begins."""
        builder = self.builder
        fields = self.context.make_array(kind)(self.context, builder, array)
        stride = cgutils.unpack_tuple(builder, fields.strides)[0]

        def row(index: IRValue | int) -> IRValue:
            address = builder.add(builder.ptrtoint(fields.data, _INT), builder.mul(self.whole(index), stride))
            return builder.inttoptr(address, _DOUBLE.as_pointer())

        return row

    def whole(self, value: IRValue | int) -> IRValue:
        """A whole number that is known beforehand, or one that is computed."""
        return ir.Constant(_INT, value) if isinstance(value, int) else value

    def plus(self, value: IRValue, more: int) -> IRValue:
        return self.builder.add(value, ir.Constant(_INT, more))

    def load(self, row: IRValue, column: IRValue) -> IRValue:
        return self.builder.load(self._lanes_at(row, column), align=8)

    def store(self, lanes: IRValue, row: IRValue, column: IRValue) -> None:
        self.builder.store(lanes, self._lanes_at(row, column), align=8)

    def _lanes_at(self, row: IRValue, column: IRValue) -> IRValue:
        return self.builder.bitcast(self.builder.gep(row, [column]), _LANES.as_pointer())

    def spread(self, value: IRValue) -> IRValue:
        """The same number in every lane."""
        undefined = ir.Constant(_LANES, ir.Undefined)
        lanes = self.builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
        places = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return self.builder.shuffle_vector(lanes, undefined, places)

    def spread_at(self, row: IRValue, column: IRValue) -> IRValue:
        """The number at this place of a row in every lane."""
        return self.spread(self.builder.load(self.builder.gep(row, [column])))

    def fused(self, factor: IRValue, other: IRValue, addend: IRValue) -> IRValue:
        """Factor · other + addend, rounded once."""
        suffix = "f64" if factor.type == _DOUBLE else "v8f64"
        signature = ir.FunctionType(factor.type, [factor.type] * 3)
        function = cgutils.get_or_insert_function(self.builder.module, signature, f"llvm.fma.{suffix}")
        return self.builder.call(function, [factor, other, addend])

    def halved(self, lanes: IRValue, join: Callable[[IRValue, IRValue], IRValue]) -> IRValue:
        """One number of the lanes: halves joined with each other until one is left."""
        count = WIDTH
        while count > 1:
            count //= 2
            kind, undefined = ir.VectorType(ir.IntType(32), count), ir.Constant(lanes.type, ir.Undefined)
            halves = (range(count), range(count, 2 * count))
            lanes = join(*(self.builder.shuffle_vector(lanes, undefined, ir.Constant(kind, [*at])) for at in halves))
        return self.builder.extract_element(lanes, ir.Constant(ir.IntType(32), 0))

    def totals(self, count: int, start: IRValue = _ZEROS) -> list[IRValue]:
        """Variables of lanes."""
        totals = [cgutils.alloca_once(self.builder, _LANES) for _ in range(count)]
        for total in totals:
            self.builder.store(start, total)
        return totals

    def add_product(self, total: IRValue, factor: IRValue, other: IRValue) -> None:
        """Add factor · other to a variable."""
        self.builder.store(self.fused(factor, other, self.builder.load(total)), total)

    def blocks(self, start: IRValue | int, stop: IRValue, blocks: int = 1) -> Iterator[IRValue]:
        """A loop over the columns from start to stop, ``blocks`` times the width at a time."""
        wide = ir.Constant(_INT, blocks * WIDTH)
        with cgutils.for_range_slice(self.builder, self.whole(start), stop, wide, intp=_INT) as (column, _):
            yield column

    def side_by_side(self, stop: IRValue) -> Iterator[list[IRValue]]:
        """Loops over several blocks at once, so that one multiply-add need not wait for the last; then what is left."""
        start = ir.Constant(_INT, 0)
        for blocks in (4, 3, 2, 1):
            wide = ir.Constant(_INT, blocks * WIDTH)
            end = self.builder.sub(stop, self.builder.srem(self.builder.sub(stop, start), wide))
            for column in self.blocks(start, end, blocks):
                yield [self.plus(column, b * WIDTH) for b in range(blocks)]
            start = end

    def counting(self, stop: IRValue) -> Iterator[IRValue]:
        """A loop over 0 … stop - 1."""
        with cgutils.for_range(self.builder, stop, intp=_INT) as loop:
            yield loop.index


def _row_operation(kinds: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An intrinsic of arrays (a), whole numbers (i) and real ones (f), for which the function writes the code."""

    def make(write: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(write)
        def typed(typing_context: TypingContext, *arguments: types.Type) -> tuple[Signature, Generator]:
            fixed = {"i": types.int64, "f": types.float64}
            signature = types.void(*(fixed.get(kind, type_) for kind, type_ in zip(kinds, arguments, strict=True)))

            def generate(
                context: BaseContext, builder: ir.IRBuilder, signature: Signature, values: Sequence[IRValue]
            ) -> IRValue:
                code, parts = _Code(context, builder), zip(kinds, arguments, values, strict=True)
                write(code, *(code.rows(type_, value) if kind == "a" else value for kind, type_, value in parts))
                return context.get_dummy_value()

            return signature, generate

        operation: Callable[..., None] = intrinsic(typed)
        return operation

    return make


@intrinsic  # type: ignore[untyped-decorator]
def _fma(
    typing_context: TypingContext, factor: types.Type, other: types.Type, addend: types.Type
) -> tuple[Signature, Generator]:
    """``factor * other + addend`` with a single rounding."""
    signature = types.float64(types.float64, types.float64, types.float64)
    return signature, lambda context, builder, _, args: _Code(context, builder).fused(*args)


@intrinsic  # type: ignore[untyped-decorator]
def _high_product(typing_context: TypingContext, left: types.Type, right: types.Type) -> tuple[Signature, Generator]:
    """The upper 64 bits of the product of two unsigned 64-bit numbers."""
    signature = types.uint64(types.uint64, types.uint64)

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[IRValue]) -> IRValue:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return signature, generate


@_row_operation("aaiaii")
def _dot_four(code: _Code, target: Rows, left: Rows, i: IRValue, right: Rows, j: IRValue, stop: IRValue) -> None:
    """target[k, i] = Σ_c left[i, c] · right[k, c] over c < stop, for the four rows k = j … j + 3."""
    rows = [code.plus(j, k) for k in range(4)]
    first, others, totals = left(i), [right(row) for row in rows], code.totals(4)
    for column in code.blocks(0, stop):
        x = code.load(first, column)
        for total, other in zip(totals, others, strict=True):
            code.add_product(total, x, code.load(other, column))
    for total, row in zip(totals, rows, strict=True):
        whole = code.halved(code.builder.load(total), code.builder.fadd)
        code.builder.store(whole, code.builder.gep(target(row), [i]))


@_row_operation("aiaifii")
def _add_row(
    code: _Code, target: Rows, i: IRValue, source: Rows, j: IRValue, factor: IRValue, start: IRValue, stop: IRValue
) -> None:
    """target[i, c] += factor · source[j, c] for start ≤ c < stop; ``start`` a multiple of the width."""
    into, row, factors = target(i), source(j), code.spread(factor)
    for column in code.blocks(start, stop):
        code.store(code.fused(factors, code.load(row, column), code.load(into, column)), into, column)


@_row_operation("aaiaiaii")
def _add_rows(
    code: _Code,
    target: Rows,
    base: Rows,
    i: IRValue,
    factors: Rows,
    j: IRValue,
    source: Rows,
    rows: IRValue,
    stop: IRValue,
) -> None:
    """target[i, c] = base[i, c] + Σ_{k < rows} factors[j, k] · source[k, c] for c < stop, added in the order of k."""
    into, base_row, factor_row = target(i), base(i), factors(j)
    for columns in code.side_by_side(stop):
        totals = [code.totals(1, code.load(base_row, at))[0] for at in columns]
        for k in code.counting(rows):
            row, factor = source(k), code.spread_at(factor_row, k)
            for total, at in zip(totals, columns, strict=True):
                code.add_product(total, factor, code.load(row, at))
        for total, at in zip(totals, columns, strict=True):
            code.store(code.builder.load(total), into, at)


@_row_operation("aaiaii")
def _multiply_tile(
    code: _Code, target: Rows, factors: Rows, j: IRValue, source: Rows, rows: IRValue, stop: IRValue
) -> None:
    """target[r, c] = Σ_{k < rows} factors[j + r, k] · source[k, c] for r < 4 and c < stop, added in the order of k."""
    into, factor_rows = [target(r) for r in range(4)], [factors(code.plus(j, r)) for r in range(4)]
    for column in code.blocks(0, stop):
        totals = code.totals(4)
        for k in code.counting(rows):
            lanes = code.load(source(k), column)
            for total, factor_row in zip(totals, factor_rows, strict=True):
                code.add_product(total, code.spread_at(factor_row, k), lanes)
        for total, row in zip(totals, into, strict=True):
            code.store(code.builder.load(total), row, column)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _first_largest(
    typing_context: TypingContext, values: types.Type, rows: types.IntegerLiteral, stop: types.Type, slack: types.Type
) -> tuple[Signature, Generator]:
    """For each r < rows the first c < stop with values[r, c] ≥ top - slack · |top|, top the largest of these.

    ``rows`` is a literal number: the rows are gone through side by side. Where top is not finite, c is 0.
    """
    places = types.containers.UniTuple(types.int64, rows.literal_value)
    signature = places(values, rows, types.int64, types.float64)

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[IRValue]) -> IRValue:
        def greater(a: IRValue, b: IRValue) -> IRValue:
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        code, zero, stop = _Code(context, builder), ir.Constant(_INT, 0), args[2]
        pointers = [code.rows(values, args[0])(r) for r in range(rows.literal_value)]
        best = code.totals(len(pointers), ir.Constant(_LANES, [-math.inf] * WIDTH))
        first = [cgutils.alloca_once(builder, _INT) for _ in pointers]
        for place in first:
            builder.store(ir.Constant(_INT, -1), place)
        for column in code.blocks(0, stop):
            for lanes, row in zip(best, pointers, strict=True):
                builder.store(greater(code.load(row, column), builder.load(lanes)), lanes)
        tops = [code.halved(builder.load(lanes), greater) for lanes in best]
        slacks = [builder.fmul(args[3], greater(top, builder.fneg(top))) for top in tops]
        bars = [code.spread(builder.fsub(top, below)) for top, below in zip(tops, slacks, strict=True)]
        for column in code.blocks(0, stop):
            for place, row, bar in zip(first, pointers, bars, strict=True):
                reached = builder.fcmp_unordered(">=", code.load(row, column), bar)
                bits = builder.zext(builder.bitcast(reached, ir.IntType(WIDTH)), _INT)
                at = builder.add(column, builder.cttz(bits, ir.Constant(ir.IntType(1), 0)))
                known = builder.load(place)
                fresh = builder.and_(builder.icmp_signed("<", known, zero), builder.icmp_signed("!=", bits, zero))
                builder.store(builder.select(fresh, at, known), place)
        return context.make_tuple(builder, places, [builder.load(place) for place in first])

    return signature, generate


@_row_operation("aaiii")
def _add_products(code: _Code, target: Rows, source: Rows, i: IRValue, column: IRValue, rows: IRValue) -> None:
    """target[j, c] += Σ_{k < rows} source[k, j] · source[k, c], added in the order of k, for a tile of four rows
    j = i … i + 3 and eight columns c = column … column + 7.
    """
    tile, totals = [code.plus(i, q) for q in range(4)], code.totals(4)
    for k in code.counting(rows):
        row = source(k)
        lanes = code.load(row, column)
        for total, j in zip(totals, tile, strict=True):
            code.add_product(total, code.spread_at(row, j), lanes)
    for total, j in zip(totals, tile, strict=True):
        into = target(j)
        code.store(code.builder.fadd(code.load(into, column), code.builder.load(total)), into, column)


@_row_operation("aiaiaii")
def _multiply_row(
    code: _Code, target: Rows, i: IRValue, left: Rows, j: IRValue, right: Rows, k: IRValue, stop: IRValue
) -> None:
    """target[i, c] = left[j, c] · right[k, c] for c < stop."""
    into, first, second = target(i), left(j), right(k)
    for column in code.blocks(0, stop):
        code.store(code.builder.fmul(code.load(first, column), code.load(second, column)), into, column)


@_row_operation("aiaifi")
def _add_squares(
    code: _Code, target: Rows, i: IRValue, source: Rows, j: IRValue, factor: IRValue, stop: IRValue
) -> None:
    """target[i, c] += factor · source[j, c]² for c < stop."""
    into, row, factors = target(i), source(j), code.spread(factor)
    for column in code.blocks(0, stop):
        x = code.load(row, column)
        code.store(code.fused(x, code.builder.fmul(x, factors), code.load(into, column)), into, column)


@_row_operation("aaaii")
def _triangular_squares(code: _Code, target: Rows, matrix: Rows, source: Rows, rows: IRValue, stop: IRValue) -> None:
    """target[0, c] = Σ_{j < rows} (Σ_{k ≤ j} matrix[j, k] · source[k, c])² for c < stop, added in these orders."""
    into, load = target(0), code.builder.load
    for columns in code.side_by_side(stop):
        squares = code.totals(len(columns))
        for j in code.counting(rows):
            factor_row, sums = matrix(j), code.totals(len(columns))
            for k in code.counting(code.plus(j, 1)):
                row, factor = source(k), code.spread_at(factor_row, k)
                for total, at in zip(sums, columns, strict=True):
                    code.add_product(total, factor, code.load(row, at))
            for square, total in zip(squares, sums, strict=True):
                code.add_product(square, load(total), load(total))
        for square, at in zip(squares, columns, strict=True):
            code.store(load(square), into, at)
