"""Worker processes: how they are started, and the engine that runs shards in them."""

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import current_process, parent_process, resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from rareswitch.engine.engine import GRACE, Engine
from rareswitch.engine.pickling import Outcome, attempt
from rareswitch.errors import EngineError

#: Name of the processes that are started here.
WORKER = "rareswitch worker"
#: Exit status of a worker that was about to start workers while it imported the script.
UNGUARDED = 78
GUARD = "Put what the script does under 'if __name__ == \"__main__\":', in a file, or use the engine 'serial'."
SINGLE_THREADED = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}


class Processes(Engine):
    """Runs shards in processes of this machine, each with one thread.

    A worker that is killed, runs out of memory or crashes costs its own shard only, which a fresh worker does
    again; after ``tries`` lost workers the shard is given up with an :class:`~rareswitch.errors.EngineError`.
    Workers start when they are needed, never more than there are shards, and stay for later maps. They import the
    script that was started, which therefore needs ``if __name__ == "__main__":``.

    >>> import math
    >>> with Processes(workers=2) as engine:
    ...     list(engine.map(math.sqrt, [1.0, 4.0, 9.0]))
    [1.0, 2.0, 3.0]

    Parameters
    ----------
    workers
        How many processes; by default as many as there are processors for this one.
    tries
        How often a shard may start.
    """

    def __init__(self, workers: int | None = None, tries: int = 3) -> None:
        super().__init__("processes", workers, tries)
        self._workers: list[_Worker] = []

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """Process ids of the workers that live."""
        return tuple(worker.process.pid or 0 for worker in self._workers if worker.process.is_alive())

    def _start(self, function: bytes, shard: bytes) -> Future[Outcome]:
        while True:
            self._workers += [] if any(worker.future is None for worker in self._workers) else [_Worker()]
            worker = next(worker for worker in self._workers if worker.future is None)
            with suppress(BrokenProcessPool):
                if worker.process.is_alive():
                    worker.future = worker.pool.submit(attempt, function, shard)
                    return worker.future
            self._end([worker])  # it was killed while idle

    def _losses(self, future: Future[Outcome]) -> tuple[int, str]:
        worker = next(worker for worker in self._workers if worker.future is future)
        worker.future = None
        if not isinstance(future.exception(), BrokenProcessPool):
            return 0, ""
        self._workers.remove(worker)
        worker.pool.shutdown()  # after which the exit code is known
        code = worker.process.exitcode or 0
        end = f"was killed by signal {-code}" if code < 0 else f"ended with exit status {code}"
        if worker.ready.exception() is not None and code >= 0:  # one that was killed may be an accident
            raise EngineError(f"a worker {end} before it was ready; what it printed, if anything, says why. {GUARD}")
        return 1, end

    def _stop(self, closing: bool) -> None:
        wait(self._running, GRACE)
        for worker in self._workers:
            worker.future = None if worker.future is None or worker.future.done() else worker.future
        self._end(worker for worker in self._workers if closing or worker.future is not None)

    def _end(self, workers: Iterable["_Worker"]) -> None:
        """End workers: those that run a shard at once, and others if they do not end by themselves."""
        ending = list(workers)
        self._workers = [worker for worker in self._workers if worker not in ending]
        for worker in ending:
            worker.pool.shutdown(wait=False, cancel_futures=True)
            if worker.future is not None:
                worker.process.kill()
        for worker in ending:
            worker.process.join(2.0)
            worker.process.kill()


class _Worker:
    """A pool of one process. A process that dies breaks its pool, and with it this one shard and no other."""

    def __init__(self) -> None:
        check_may_start()
        context = _Context()
        try:
            self.pool = ProcessPoolExecutor(1, context, initializer=_set_up)
            with starting_workers():
                self.ready = self.pool.submit(os.getpid)  # which starts the process
        except OSError as error:
            raise EngineError(f"a worker cannot be started ({error.strerror}). Use fewer workers.") from error
        self.process = context.process
        #: Of the shard that it runs.
        self.future: Future[Outcome] | None = None
        # the process has these ends of the pipes; open here, they would hide its death in the middle of a message
        self.pool._call_queue._reader.close()  # type: ignore[attr-defined]
        self.pool._result_queue._writer.close()  # type: ignore[attr-defined]


class _Context(SpawnContext):
    """Starts the process of a pool: as a daemon, which cannot start workers of its own, and with our name."""

    def Process(self, **settings: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        self.process = SpawnProcess(**settings, name=WORKER, daemon=True)
        return self.process


def _set_up() -> None:
    """Prepare a worker: Ctrl-C is for its parent, and it ends if that is killed, even in the middle of a shard."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent: Any = parent_process()
    threading.Thread(target=lambda: os._exit(parent.join() or 1), daemon=True).start()


def check_may_start() -> None:
    """Refuse to start processes where that cannot end well: in a script that is being imported, and in a worker."""
    process = current_process()
    importing = getattr(process, "_inheriting", False)  # so multiprocessing marks a process that imports the script
    if importing and process.name == WORKER:
        raise SystemExit(UNGUARDED)  # without a word: the engine that started this process says it once
    if importing or process.daemon:
        raise EngineError(f"a worker cannot start workers of its own. Inside of it use the engine 'serial'. {GUARD}")


@contextmanager
def starting_workers() -> Iterator[None]:
    """Around the start of workers: they get one thread each and never see Ctrl-C, which is held back until the end.

    >>> with starting_workers():
    ...     os.environ["OMP_NUM_THREADS"]
    '1'
    """
    before = dict(os.environ)
    os.environ.update(SINGLE_THREADED)
    masks = hasattr(signal, "pthread_sigmask")  # not on Windows
    if masks:
        resource_tracker.ensure_running()  # which would lift the mask if it were started inside
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
