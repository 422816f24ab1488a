"""Row operations by name, for kernels to call.

A row operation names its own order of summation and its own fused multiply-adds, so a kernel built from them returns
the same bits on every processor, whatever the width of its vector unit. Rows must be padded to a multiple of
:data:`WIDTH`; the padding is computed with and must hold finite numbers (zeros). What each of them does is said where
its instructions are written, in ``instructions.py``.
"""

from typing import Any

import numpy as np

from rareswitch.lanes.kernel import compiled

WIDTH = 8


class Operation:
    """An operation that only kernels can use; its instructions are loaded when one of these is compiled."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def _numba_type_(self) -> Any:
        """What Numba asks for where a kernel uses it."""
        from rareswitch.lanes.instructions import operation_type

        return operation_type(self.name)

    def __reduce__(self) -> str:
        return self.name


fma: Any = Operation("fma")
high_product: Any = Operation("high_product")
first_largest: Any = Operation("first_largest")
dot_four: Any = Operation("dot_four")
add_row: Any = Operation("add_row")
add_rows: Any = Operation("add_rows")
add_products: Any = Operation("add_products")
add_squares: Any = Operation("add_squares")
multiply_row: Any = Operation("multiply_row")
multiply_tile: Any = Operation("multiply_tile")
triangular_squares: Any = Operation("triangular_squares")


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
