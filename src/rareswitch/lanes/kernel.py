"""Kernels, functions that become machine code when they are first called, and row operations for them to call.

A row operation names its own order of summation and its own fused multiply-adds, so a kernel built from them returns
the same bits on every processor, whatever the width of its vector unit. Rows must be padded to a multiple of
:data:`WIDTH`; the padding is computed with and must hold finite numbers (zeros). What each of them does is said where
its instructions are written, in ``instructions.py``.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numba.core.registry import CPUDispatcher
    from numba.core.types import Type

__all__ = ["WIDTH", "add_products", "add_row", "add_rows", "add_squares", "announced", "compiled", "dot_four"]
__all__ += ["first_largest", "fma", "high_product", "kernels", "lane_zeros", "multiply_row", "multiply_tile"]
__all__ += ["padded_length", "triangular_squares"]

#: What may become a kernel.
Function: TypeAlias = Callable[..., Any]
WIDTH = 8
#: What is called, each once, before something is compiled in this process.
notices: list[Callable[[], None]] = []
#: Of all modules that are loaded.
kernels: list["Kernel"] = []
_making = threading.RLock()


class Kernel:
    """A function that runs as machine code and without the GIL; also other kernels can call it.

    Numba is imported by the first kernel that is called: who calls none does not wait for it.
    """

    def __init__(self, function: Function) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        kernels.append(self)

    def __call__(self, *arguments: Any) -> Any:
        # each kernel is of a class of its own, so that later calls go straight to Numba: a call more would be felt
        type(self).__call__ = staticmethod(self.dispatcher)  # type: ignore[method-assign]
        return self(*arguments)

    @property
    def dispatcher(self) -> "CPUDispatcher":
        """Numba's own object."""
        with _making:
            if "numba_dispatcher" not in vars(self):
                from rareswitch.lanes.machine_code import make_dispatcher

                self.numba_dispatcher = make_dispatcher(self)
            return self.numba_dispatcher

    @property
    def _numba_type_(self) -> "Type":
        """What Numba asks for where a kernel calls this one."""
        numba_type: Type = self.dispatcher._numba_type_
        return numba_type

    def __reduce__(self) -> str:
        return self.function.__qualname__


def compiled(function: Function) -> Function:
    """Compile on first call, to run without the GIL; the machine code is cached on disk."""
    kernel: Kernel = type(function.__name__, (Kernel,), {})(function)
    return kernel


@contextmanager
def announced(notice: Callable[[], None]) -> Iterator[None]:
    """Around work: have this called once, as soon as something must be compiled; what is cached on disk need not be."""
    notices.append(notice)
    try:
        yield
    finally:
        with suppress(ValueError):  # it was called
            notices.remove(notice)


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
