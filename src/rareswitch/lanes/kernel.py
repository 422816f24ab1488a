"""Kernels: functions that become machine code when they are first called."""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numba.core.types import Type

#: What is called, each once, before something is compiled in this process.
notices: list[Callable[[], None]] = []
#: Of all modules that are loaded.
kernels: list["Kernel"] = []
_making = threading.RLock()


class Kernel:
    """A function that runs as machine code and without the GIL; also other kernels can call it.

    Numba is imported by the first kernel that is called: who calls none does not wait for it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        kernels.append(self)

    def __call__(self, *arguments: Any) -> Any:
        # each kernel is of a class of its own, so that later calls go straight to Numba: a call more would be felt
        type(self).__call__ = staticmethod(self.dispatcher)  # type: ignore[method-assign]
        return self(*arguments)

    @property
    def dispatcher(self) -> Any:
        """Numba's own object."""
        with _making:
            if "made" not in vars(self):
                from rareswitch.lanes.machine_code import make_dispatcher

                self.made = make_dispatcher(self)
            return self.made

    @property
    def _numba_type_(self) -> "Type":
        """What Numba asks for where a kernel calls this one."""
        numba_type: Type = self.dispatcher._numba_type_
        return numba_type

    def __reduce__(self) -> str:
        return self.function.__qualname__


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
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
