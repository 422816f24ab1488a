"""What goes with starting Python processes: one thread each, no Ctrl-C for them, scripts that can be imported."""

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from multiprocessing import resource_tracker

from rareswitch.errors import EngineError

WORKER = "rareswitch worker"
"""Name of the processes that are started here."""
UNGUARDED = 78
"""Exit status of a worker that was about to start workers while it imported the script."""
FINE = 79
"""Exit status of a process that got as far as it should."""
SINGLE_THREADED = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
GUARD = (
    "Each worker imports the script that was started: put what the script does under\n\n"
    '    if __name__ == "__main__":\n\n'
    "and keep it in a file, or use the engine 'serial'."
)


def check_may_start() -> None:
    """Refuse to start processes where that cannot end well: in a script that is being imported, and in a worker."""
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False):  # so multiprocessing marks a process that imports the script
        if process.name == WORKER:
            raise SystemExit(UNGUARDED)  # without a word: the engine that started this process says it once
        raise EngineError(f"workers cannot be started while a process imports the script. {GUARD}")
    if process.daemon:
        raise EngineError("a worker cannot start workers of its own. Use the engine 'serial' inside of it.")


def check_importable() -> None:
    """See that a process can be started, with one that does nothing; for those who start them without looking."""
    process = multiprocessing.get_context("spawn").Process(target=sys.exit, args=(FINE,), name=WORKER, daemon=True)
    with no_interrupt():
        process.start()
    try:
        process.join()
        if process.exitcode is not None and process.exitcode != FINE:
            raise not_started(process.exitcode)
    finally:
        process.kill()
        process.join()
        process.close()


def not_started(code: int) -> EngineError:
    """The error for a worker that ended, with this exit code, before it was ready."""
    if code == UNGUARDED:
        return EngineError(f"a worker cannot start, because it would start workers itself. {GUARD}")
    return EngineError(
        f"a worker could not start: it {told_end(code)} before it was ready. What it printed says why. {GUARD}"
    )


def told_end(code: int) -> str:
    """How a process ended, of its exit code, which is negative for a signal.

    >>> told_end(-9)
    'was killed by SIGKILL, as happens when memory runs out'
    >>> told_end(3)
    'ended with exit status 3'
    """
    if code >= 0:
        return f"ended with exit status {code}"
    names = {each.value: each.name for each in signal.Signals}
    name = names.get(-code, f"signal {-code}")
    return f"was killed by {name}" + (", as happens when memory runs out" if name == "SIGKILL" else "")


@contextlib.contextmanager
def kept_environment() -> Iterator[None]:
    """Put the environment variables back at the end."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        for name, value in before.items():
            if os.environ.get(name) != value:
                os.environ[name] = value


@contextlib.contextmanager
def no_interrupt() -> Iterator[None]:
    """Hold Ctrl-C back until the end. Threads and processes that are started inside never see it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which would lift the mask if it were started inside
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
