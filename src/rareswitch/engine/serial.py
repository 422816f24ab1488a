"""The engine that runs everything here."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from rareswitch.engine.engine import MOST_WORKERS, Engine, Job
from rareswitch.validation import whole

S = TypeVar("S")
R = TypeVar("R")


class Serial(Engine):
    """Runs shards in this process, one after the other or, for functions that release the GIL, in threads.

    A shard that runs in a thread cannot be stopped: closing the engine waits for its end.

    >>> list(Serial().map(abs, [-1, 2]))
    [1, 2]
    >>> with Serial(threads=2) as engine:
    ...     print(engine, list(engine.map(abs, [-1, 2])))
    <engine serial:2> [1, 2]
    """

    def __init__(self, threads: int = 1) -> None:
        super().__init__(workers=whole("threads", threads, high=MOST_WORKERS))
        self._count = threading.Lock()
        self._pool = None if threads == 1 else ThreadPoolExecutor(threads, thread_name_prefix="rareswitch")

    @property
    def name(self) -> str:
        return "serial" if self.workers == 1 else f"serial:{self.workers}"

    @property
    def _window(self) -> int:
        return 1 if self._pool is None else super()._window

    def _job(self, function: Callable[[S], R], label: str) -> Job[S, R]:
        def counted(shard: S) -> R:
            with self._count:
                self.executions += 1
            return function(shard)

        return _Here(counted) if self._pool is None else _Threads(counted, self._pool)

    def _shut_down(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


class _Here(Job[S, R]):
    def __init__(self, function: Callable[[S], R]) -> None:
        self.function = function
        self.shards: dict[int, S] = {}

    def submit(self, number: int, shard: S) -> None:
        self.shards[number] = shard

    def result(self, number: int) -> R:
        return self.function(self.shards.pop(number))

    def cancel(self) -> None:
        self.shards.clear()


class _Threads(Job[S, R]):
    def __init__(self, function: Callable[[S], R], pool: ThreadPoolExecutor) -> None:
        self.function = function
        self.pool = pool
        self.futures: dict[int, Future[R]] = {}

    def submit(self, number: int, shard: S) -> None:
        self.futures[number] = self.pool.submit(self.function, shard)

    def result(self, number: int) -> R:
        return self.futures.pop(number).result()

    def cancel(self) -> None:
        for future in self.futures.values():
            future.cancel()
