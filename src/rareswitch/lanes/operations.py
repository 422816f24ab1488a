"""Row operations by name, for kernels to call.

A row operation names its own order of summation and its own fused multiply-adds, so a kernel built from them returns
the same bits on every processor, whatever the width of its vector unit. Rows must be padded to a multiple of
:data:`WIDTH`; the padding is computed with and must hold finite numbers (zeros). What each of them does is said where
its instructions are written, in ``instructions.py``.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from rareswitch.lanes.kernel import compiled

if TYPE_CHECKING:
    from numba.core.types import Type

WIDTH = 8


class Operation:
    """An operation that only kernels can use; its instructions are loaded when one of these is compiled."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def _numba_type_(self) -> "Type":
        """What Numba asks for where a kernel uses it."""
        from rareswitch.lanes.instructions import operation_type

        return operation_type(self.name)

    def __call__(self, *operands: Any) -> Any:
        raise TypeError(f"{self.name} can be called by kernels alone")

    def __reduce__(self) -> str:
        return self.name


fma = Operation("fma")
high_product = Operation("high_product")
first_largest = Operation("first_largest")
dot_four = Operation("dot_four")
add_row = Operation("add_row")
add_rows = Operation("add_rows")
add_products = Operation("add_products")
add_squares = Operation("add_squares")
multiply_row = Operation("multiply_row")
multiply_tile = Operation("multiply_tile")
triangular_squares = Operation("triangular_squares")


@compiled
def padded_length(length: int) -> int:
    """Smallest multiple of the lane width that holds ``length`` entries.

    >>> padded_length(20)
    24
    """
    return (length + WIDTH - 1) // WIDTH * WIDTH


@compiled
def lane_zeros(rows, columns):  # type: ignore[no-untyped-def]
    """Zeros (rows, columns) that begin on a cache line, so that no block of a row straddles two."""
    flat = np.zeros(rows * columns + WIDTH)
    shift = -(flat.ctypes.data // 8) % WIDTH
    return flat[shift : shift + rows * columns].reshape((rows, columns))
