"""Shards of work on any executor of ``concurrent.futures``: processes, a Dask cluster, or none at all."""

import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from rareswitch.errors import EngineError, InputError, MissingEngineError, ParameterError, did_you_mean

__all__ = ["make_executor", "run_shards"]

S = TypeVar("S")
R = TypeVar("R")

#: Shards that are submitted for each worker, counted from the one whose result is next: what bounds memory.
AHEAD = 4
#: Workers that a shard may lose before it is given up.
TRIES = 3
MOST_WORKERS = 1024
#: Seconds within which a scheduler of Dask must answer, and have a worker.
TIMEOUT, PATIENCE = 5.0, 30.0
KINDS = "serial, processes, processes:N and dask:HOST:PORT"
REMEDY = (
    "Make shards that need less memory, or debug with the engine 'serial'. A script that starts processes must do so "
    "under 'if __name__ == \"__main__\":'."
)
#: Where a pool of processes keeps the settings that it was made with.
_SETTINGS = ("_max_workers", "_mp_context", "_initializer", "_initargs")
SINGLE_THREADED = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


def run_shards(
    function: Callable[[S], R], shards: Iterable[S], executor: Executor | None = None, *, label: str = "shard"
) -> Iterator[R]:
    """Apply a pure function to every shard; yield the results in the order of the shards.

    A shard whose worker died runs again, in a new pool if that was one of processes; after three lost workers an
    :class:`~rareswitch.errors.EngineError` names it. Dask repeats such shards by itself. Errors of the function are
    raised as they are when their shard's turn comes, and a note says which shard it was. Shards are taken as they are
    needed, so ``shards`` may be an endless iterator. Those that wait are cancelled when the iterator is closed.

    >>> list(run_shards(abs, [-1, 2]))
    [1, 2]

    Parameters
    ----------
    function
        Called with one shard. Processes need one that can be pickled: from the top level of a module, or a
        ``functools.partial`` of such a one.
    executor
        Where the shards run; here, one after the other, by default.
    label
        What a shard is called in errors, before its number, which counts from 0.
    """
    if executor is not None:
        yield from _Map(function, executor).results(iter(shards), label)
        return
    for number, shard in enumerate(shards):
        with _naming(f"{label} {number}"):
            result = function(shard)
        yield result


def make_executor(text: str) -> AbstractContextManager[Executor | None]:
    """The executor of a name, to be used in a ``with`` statement, whose end stops what still runs.

    >>> with make_executor("processes:2") as executor:
    ...     list(run_shards(abs, [-1, 2], executor))
    [1, 2]

    Parameters
    ----------
    text
        ``serial``, which is none; ``processes`` or ``processes:N``, of one thread each; or ``dask:ADDRESS``, such as
        ``dask:tcp://127.0.0.1:8786``, whose workers must be able to import rareswitch.
    """
    kind, colon, rest = str(text).partition(":")
    if kind not in {"serial", "processes", "dask"}:
        raise InputError(f"no engine is called '{kind}'; there are: {KINDS}.{did_you_mean(kind, KINDS.split(', '))}")
    if kind == "dask" and ":" in rest:
        return _dask(rest)
    # not int(rest) alone, which takes ' 4', '1_0' and other alphabets' digits
    counted = rest.isascii() and rest.isdigit() and len(rest) <= 9 and 1 <= int(rest) <= MOST_WORKERS
    if kind == "dask" or (colon and not (kind == "processes" and counted)):
        rules = {"serial": "'serial' stands alone", "dask": "after 'dask:' comes the address of a scheduler, host:port"}
        rule = rules.get(kind, f"after 'processes:' comes a whole number between 1 and {MOST_WORKERS}")
        raise ParameterError(f"{rule}; got '{text:.60}'.")
    if kind == "serial":
        return nullcontext()
    return Processes(int(rest) if colon else _processors(), get_context("spawn"), _end_with_parent)


class Processes(ProcessPoolExecutor):
    """Processes of one thread each. The end of its ``with`` block stops shards that run: nobody waits for them.

    Workers import the script that was started, which therefore needs ``if __name__ == "__main__":``.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers at once."""
        _kill(self)
        super().shutdown(wait, cancel_futures=True)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_with_parent() -> None:
    """In a worker: end if the program is killed, even in the middle of a shard."""
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _kill(pool: ProcessPoolExecutor) -> None:
    """Kill the workers, and close the end of the pipe that would hide the death of one in the middle of its answer."""
    waiting, results = pool._pending_work_items, pool._result_queue
    for number in [number for number, item in list(waiting.items()) if item.future.cancelled()]:
        waiting.pop(number, None)  # which the pool, once broken, would take for running
    for process in _processes(pool):
        process.kill()
    if results is not None:
        results._writer.close()  # type: ignore[attr-defined]


def _renew(pool: ProcessPoolExecutor) -> None:
    """Let a broken pool begin anew, with the settings that it was made with."""
    ProcessPoolExecutor.__init__(pool, *(getattr(pool, name) for name in _SETTINGS))


def _processes(pool: ProcessPoolExecutor) -> list[BaseProcess]:
    return list((pool._processes or {}).values())


def _call(packed: bytes) -> Any:
    """In a worker: call a function with a shard."""
    function, shard = pickle.loads(packed)
    try:
        return function(shard)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # of an error whose __init__ takes other arguments than it keeps, most often
            raise EngineError(f"{type(error).__name__}: {error}") from error
        raise


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    """The executor of a Dask cluster that is there."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingEngineError("the engine 'dask' needs Dask: pip install 'rareswitch[dask]'") from error
    with ExitStack() as stack:
        try:
            client = Client(address, timeout=TIMEOUT, set_as_default=False)
            stack.callback(client.close, timeout=60.0)
            client.wait_for_workers(1, timeout=PATIENCE)
        except Exception as error:
            problem = f"no Dask scheduler could be reached at '{address}' within {TIMEOUT:g} s, or it has no worker"
            remedy = "Give the address that `dask scheduler` prints, or use the engine 'processes'."
            raise EngineError(f"{problem} ({type(error).__name__}: {error}). {remedy}") from error
        yield client.get_executor(pure=False)


@contextmanager
def _naming(shard: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"raised by {shard}")
        raise


@contextmanager
def _starting_workers() -> Iterator[None]:
    """Around a call that may start processes: they get one thread each and never see Ctrl-C."""
    before = dict(os.environ)
    os.environ.update(SINGLE_THREADED)
    masks = hasattr(signal, "pthread_sigmask")  # not on Windows
    if masks:
        resource_tracker.ensure_running()  # which would lift the mask if it were started inside
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        for name in SINGLE_THREADED.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@dataclass(eq=False)
class _Task(Generic[S, R]):
    """A shard that was taken."""

    name: str
    shard: S
    #: None before it is submitted, and again when its worker was lost.
    future: Future[R] | None = None
    lost: int = 0


class _Map(Generic[S, R]):
    """One call of :func:`run_shards` with an executor."""

    def __init__(self, function: Callable[[S], R], executor: Executor) -> None:
        self.function, self.executor = function, executor
        #: Taken and not yet yielded, in their order.
        self.tasks: deque[_Task[S, R]] = deque()

    def results(self, shards: Iterator[S], label: str) -> Iterator[R]:
        """The results, in the order of the shards."""
        client = getattr(self.executor, "_client", None)  # of Dask
        workers = getattr(self.executor, "_max_workers", None) or _processors()
        most = AHEAD * (workers if client is None else max(1, sum(client.nthreads().values())))
        failure: Exception | None = None
        with ExitStack() as stack:
            stack.callback(lambda: [task.future.cancel() for task in self.tasks if task.future is not None])
            for number in count():
                # those under way when a worker died run again one by one, which tells the one that kills its workers
                while failure is None and len(self.tasks) < most and all(task.future for task in self.tasks):
                    try:
                        self.tasks.append(_Task(f"{label} {number + len(self.tasks)}", next(shards)))
                        self.submit(self.tasks[-1])
                    except Exception as error:  # also StopIteration; others are raised after the results before them
                        failure = error
                if not self.tasks:
                    break
                result = self.result(self.tasks[0])
                self.tasks.popleft()
                yield result
        if failure is not None and not isinstance(failure, StopIteration):
            raise failure

    def submit(self, task: _Task[S, R]) -> Future[R]:
        """Let a shard run; where the processes of the pool are lost, in new ones."""
        if not isinstance(self.executor, ProcessPoolExecutor):
            task.future = self.executor.submit(self.function, task.shard)
            return task.future
        try:
            packed = pickle.dumps((self.function, task.shard))
        except Exception as error:
            problem = f"{task.name} or its function cannot be sent to a process ({type(error).__name__}: {error})"
            remedy = "Use plain data and functions from the top level of a module, or functools.partial of them"
            raise EngineError(f"{problem}. {remedy}; or the engine 'serial'.") from error
        with _starting_workers():
            try:
                task.future = self.executor.submit(_call, packed)
            except BrokenExecutor:
                _renew(self.executor)
                task.future = self.executor.submit(_call, packed)
        return task.future

    def result(self, task: _Task[S, R]) -> R:
        """Wait for the result of a shard, which runs again if its worker is lost."""
        while True:
            future = self.submit(task) if task.future is None else task.future
            while not wait([future], 1.0).done:
                pool = self.executor
                if isinstance(pool, ProcessPoolExecutor) and any(process.exitcode for process in _processes(pool)):
                    _kill(pool)  # else a worker that died in the middle of its answer would never be noticed
            try:
                with _naming(task.name):
                    return future.result()
            except BrokenExecutor as error:
                task.lost += 1
                if task.lost == TRIES:
                    raise EngineError(f"{task.name} lost its worker {TRIES} times. {REMEDY}") from error
                for other in self.tasks:
                    running = other.future is not None and not other.future.done()
                    if running or (other.future and isinstance(other.future.exception(), BrokenExecutor)):
                        other.future = None
            except CancelledError as error:
                problem = (
                    f"{task.name} was cancelled: its executor was closed, or the scheduler of its cluster was lost"
                )
                raise EngineError(f"{problem}. Start it again, or use the engine 'processes'.") from error
            except Exception as error:
                if type(error).__name__ == "KilledWorker":  # by Dask, which has tried it several times
                    raise EngineError(f"{task.name} lost all its workers ({error}). {REMEDY}") from error
                raise
