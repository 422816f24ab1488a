"""The machine code of kernels, and where it is kept on disk.

Numba's own cache watches the file of a kernel and not what is compiled into it from elsewhere: the kernels it calls,
their constants, the instructions of row operations. Here the name of a cached file holds a digest of all of that, taken
from the code that Python has loaded. What was compiled from other code, or by other versions, is therefore never run.
"""

import dis
import functools
import hashlib
import importlib.util
from collections.abc import Iterator
from contextlib import suppress
from importlib.abc import InspectLoader
from pathlib import Path
from types import CodeType, ModuleType

import llvmlite
import numba
import numpy as np
from numba.core import event
from numba.core.base import BaseContext
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler import CompileResult
from numba.core.event import Event
from numba.core.registry import CPUDispatcher
from numba.core.typing import Signature

from rareswitch.lanes.kernel import WIDTH, Kernel, Operation, notices

_OPTIONS = {"nogil": True, "error_model": "numpy"}
_VERSIONS = (numba.__version__, llvmlite.__version__, np.__version__)


def make_dispatcher(kernel: Kernel) -> CPUDispatcher:
    """Numba's object for a kernel; not cached where no folder can be written to."""
    dispatcher: CPUDispatcher = numba.njit(**_OPTIONS)(kernel.function)
    with suppress(RuntimeError):
        dispatcher._cache = _Cache(kernel)
    return dispatcher


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, in the folder that Numba chooses, with files that are named by what they were compiled from."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.function)
        digested = digest(kernel)
        self.name, _, rest = self._impl.filename_base.rpartition("-")
        self.python = rest.partition(".")[2]
        self.base = f"{self.name}-{digested[:24]}.{self.python}"
        self._cache_file = IndexDataCacheFile(self.cache_path, self.base, digested)

    def load_overload(self, signature: Signature, context: BaseContext) -> CompileResult | None:
        """What is there, unless it is damaged: that is compiled again."""
        try:
            return super().load_overload(signature, context)
        except Exception:
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, signature: Signature, data: CompileResult) -> None:
        """Keep it, if that is possible, in place of what was compiled from other code."""
        with suppress(OSError):
            super().save_overload(signature, data)
            for path in Path(self.cache_path).glob(f"{self.name}-*.{self.python}.*"):
                if not path.name.startswith(self.base):
                    path.unlink(missing_ok=True)


@functools.cache
def digest(part: Kernel | Operation) -> str:
    """Of all that is compiled into a kernel: its code, the numbers it names and, likewise, the kernels it calls."""
    hashed = hashlib.sha256(repr((_VERSIONS, _OPTIONS, WIDTH)).encode())
    if isinstance(part, Operation):
        spec = importlib.util.find_spec("rareswitch.lanes.instructions")
        loader = None if spec is None else spec.loader
        assert isinstance(loader, InspectLoader)
        code = loader.get_code("rareswitch.lanes.instructions")
        assert code is not None
        hashed.update(_described(code))
        return hashed.hexdigest()
    code, known = part.function.__code__, part.function.__globals__
    hashed.update(_described(code))
    for name in sorted(set(_globals(code)) & known.keys()):
        value = known[name]
        if isinstance(value, (Kernel, Operation)):
            hashed.update(repr((name, digest(value))).encode())
        elif isinstance(value, (bool, int, float, str, tuple)):
            hashed.update(repr((name, value)).encode())
        elif not isinstance(value, ModuleType) or value.__name__.startswith("rareswitch"):
            raise TypeError(f"{part.function.__qualname__} uses {name}; kernels know numbers, kernels and modules only")
    return hashed.hexdigest()


def _described(code: CodeType) -> bytes:
    """What a piece of code does, but for the values of its global names."""
    constants = [
        _described(constant) if isinstance(constant, CodeType) else repr(constant) for constant in code.co_consts
    ]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount)
    return repr((code.co_code, constants, names, code.co_exceptiontable)).encode()


def _globals(code: CodeType) -> Iterator[str]:
    """The global names that a piece of code looks up."""
    yield from (step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)


class _Compiling(event.Listener):  # type: ignore[misc]
    """Tells those who asked that something is being compiled."""

    def on_start(self, event: Event) -> None:
        while notices:
            notices.pop()()

    def on_end(self, event: Event) -> None:
        pass


event.register("numba:compile", _Compiling())
