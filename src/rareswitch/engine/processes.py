"""The engine of many processes on one machine."""

import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import SpawnProcess
from multiprocessing.process import BaseProcess
from typing import TypeVar

from rareswitch.engine.engine import GRACE, MOST_WORKERS, Engine, Job, cores
from rareswitch.engine.parcels import attempt, packed
from rareswitch.engine.remote import RemoteJob
from rareswitch.engine.spawning import (
    SINGLE_THREADED,
    WORKER,
    check_may_start,
    kept_environment,
    no_interrupt,
    not_started,
    told_end,
)
from rareswitch.errors import EngineError
from rareswitch.validation import whole

S = TypeVar("S")
R = TypeVar("R")

FAREWELL = 2.0
"""Seconds that workers are given to end by themselves."""
READY = b"ready"


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
        super().__init__(workers=cores() if workers is None else whole("workers", workers, high=MOST_WORKERS))
        self.tries = whole("tries", tries, high=1000)
        self._staff: list[_Worker] = []

    @property
    def name(self) -> str:
        return f"processes:{self.workers}"

    @property
    def worker_pids(self) -> tuple[int, ...]:
        """Process ids of the workers that live."""
        return tuple(worker.pid for worker in self._staff if worker.alive)

    def _job(self, function: Callable[[S], R], label: str) -> Job[S, R]:
        check_may_start()
        return _Shift(self, packed("the function", function), label)

    def _hire(self) -> None:
        with kept_environment(), no_interrupt():
            os.environ.update(SINGLE_THREADED)
            try:
                self._staff.append(_Worker())
            except OSError as error:
                raise EngineError(
                    f"worker {len(self._staff) + 1} of {self.workers} cannot be started "
                    f"({error.strerror or error}). Use fewer workers."
                ) from error

    def _dismiss(self, workers: Iterable["_Worker"]) -> None:
        """End these workers, at once if they are at work."""
        leaving = list(workers)
        self._staff = [worker for worker in self._staff if worker not in leaving]
        for worker in leaving:
            worker.connection.close()  # an idle worker ends when it reads this
            if worker.shard is not None or not worker.ready or not worker.intact:
                worker.process.terminate()
        deadline = time.monotonic() + FAREWELL
        for worker in leaving:
            worker.process.join(max(0.0, deadline - time.monotonic()))
        for worker in leaving:
            worker.ended()

    def _shut_down(self) -> None:
        self._dismiss(self._staff)


class _Worker:
    """A process and the pipe to it, as its parent sees them."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=serve, args=(theirs,), name=WORKER, daemon=True)
        try:
            self.process.start()
        finally:
            theirs.close()
        self.pid = self.process.pid or 0
        self.ready = False
        self.intact = True
        """Whether what was said on the pipe is understood: not if Ctrl-C came in the middle of it."""
        self.shard: int | None = None
        """The number of the shard it is at."""
        self.token: object = None
        """Of the map whose function it holds."""

    @property
    def alive(self) -> bool:
        return self.process.exitcode is None

    def give(self, number: int, shard: bytes, function: bytes, token: object) -> None:
        """Send a shard, and the function if the worker has another."""
        self.shard = number
        self.intact = False
        with suppress(OSError):  # of a worker that has just died, which is seen when it is waited for
            self.connection.send_bytes(b"" if self.token is token else function)
            self.connection.send_bytes(shard)
        self.token = token
        self.intact = True

    def take(self) -> bytes | None:
        """The next message; None when there will be no more."""
        try:
            return self.connection.recv_bytes()
        except (EOFError, OSError):
            return None

    def ended(self) -> int:
        """Make sure that the process is gone; its exit code, negative for a signal."""
        self.connection.close()
        self.process.join(FAREWELL)
        if self.alive:
            self.process.kill()
            self.process.join()
        code = self.process.exitcode
        self.process.close()
        return code or 0


class _Shift(RemoteJob[S, R]):
    """One map of the processes."""

    def __init__(self, engine: Processes, function: bytes, label: str) -> None:
        super().__init__(function, label)
        self.engine = engine
        self.token = object()
        self.shards: dict[int, bytes] = {}
        """Those without an outcome."""
        self.waiting: deque[int] = deque()
        """Those that no worker is at."""
        self.losses: Counter[int] = Counter()
        """How many workers died of a shard."""
        self.stillborn = 0

    def submit(self, number: int, shard: S) -> None:
        try:
            self.shards[number] = packed(self._where(number), shard)
        except EngineError as error:
            self.outcomes[number] = error
        else:
            self.waiting.append(number)

    def cancel(self) -> None:
        self.engine._dismiss(w for w in self.engine._staff if not w.intact)
        deadline = time.monotonic() + GRACE
        while busy := [w for w in self.engine._staff if w.shard is not None]:
            answers = connection.wait([w.connection for w in busy], max(0.0, deadline - time.monotonic()))
            if not answers:
                self.engine._dismiss(busy)
            for worker in busy:
                if worker.connection in answers:
                    self._hear(worker)

    def _advance(self, timeout: float) -> None:
        """Give out shards, wait until a worker says something or dies, and take what there is."""
        self._give_out()
        staff = self.engine._staff
        pipes = {worker.connection: worker for worker in staff}
        moved = connection.wait([*pipes, *(worker.process.sentinel for worker in staff)], timeout)
        for pipe, worker in pipes.items():
            if pipe in moved:
                self._hear(worker)
        for worker in [w for w in self.engine._staff if not w.alive]:
            while worker.connection.poll() and self._hear(worker):  # it may have answered before it died
                pass
            if worker in self.engine._staff:
                self._bury(worker)
        if moved:
            self._give_out()

    def _give_out(self) -> None:
        idle = [w for w in self.engine._staff if w.ready and w.shard is None and w.alive]
        while idle and self.waiting:
            number = self.waiting.popleft()
            self.engine.executions += 1
            self.engine.retries += self.losses[number] > 0
            idle.pop().give(number, self.shards[number], self.function, self.token)
        coming = sum(not w.ready for w in self.engine._staff)
        while len(self.engine._staff) < self.engine.workers and coming < len(self.waiting):
            self.engine._hire()
            coming += 1

    def _hear(self, worker: _Worker) -> bool:
        """Take a message of a worker; whether there was one."""
        worker.intact = False
        message = worker.take()
        if message is None:
            self._bury(worker)
            return False
        if not worker.ready:
            worker.ready = True
            self.stillborn = 0
        elif worker.shard is not None:
            self.outcomes[worker.shard] = message
            del self.shards[worker.shard]
            worker.shard = None
        worker.intact = True
        return True

    def _bury(self, worker: _Worker) -> None:
        """Take a dead worker off the staff and see to its shard."""
        self.engine._staff.remove(worker)
        code = worker.ended()
        number = worker.shard
        if not worker.ready:
            self._mourn(code)
        elif number is not None:
            self.losses[number] += 1
            if self.losses[number] < self.engine.tries:
                self.waiting.appendleft(number)
            else:
                del self.shards[number]
                lost = "once" if self.engine.tries == 1 else f"{self.engine.tries} times"
                self.outcomes[number] = EngineError(
                    f"{self._where(number)} lost its worker {lost}; the last one {told_end(code)}. Make shards "
                    "that need less memory, or use the engine 'serial' to see the failure."
                )

    def _mourn(self, code: int) -> None:
        """A worker died before it was ready. One that was killed may be an accident."""
        self.stillborn += 1
        if code < 0 and self.stillborn < self.engine.tries:
            return
        self.engine._dismiss(w for w in self.engine._staff if not w.ready)
        raise not_started(code)


def serve(pipe: connection.Connection) -> None:
    """Do shards until the pipe is closed: what a worker runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # held back until here
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_outlive, args=(parent,), daemon=True).start()
    function = b""
    with suppress(EOFError, OSError):  # the parent closed the pipe
        pipe.send_bytes(READY)
        while True:
            function = pipe.recv_bytes() or function
            pipe.send_bytes(attempt(function, pipe.recv_bytes()))


def _outlive(parent: BaseProcess) -> None:
    """End when the parent was killed, even in the middle of a shard."""
    parent.join()
    os._exit(1)
