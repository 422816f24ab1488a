"""The engine that runs everything here."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from rareswitch.engine.engine import MOST_WORKERS, Engine
from rareswitch.validation import whole


class Serial(Engine):
    """Runs shards in this process, one after the other or, for functions that release the GIL, in threads.

    A shard that runs in a thread cannot be stopped: closing the engine waits for its end.

    >>> list(Serial().map(abs, [-1, 2]))
    [1, 2]
    >>> with Serial(threads=2) as engine:
    ...     print(engine, list(engine.map(abs, [-1, 2])))
    <engine serial:2> [1, 2]
    """

    _pack = staticmethod(lambda what, value: value)
    _unpack = staticmethod(lambda where, future: future.result())

    def __init__(self, threads: int = 1) -> None:
        super().__init__("serial", whole("threads", threads, high=MOST_WORKERS))
        if threads == 1:
            self.name, self._ahead = "serial", 1
        self._pool = None if threads == 1 else ThreadPoolExecutor(threads, thread_name_prefix="rareswitch")

    def _start(self, function: Any, shard: Any) -> Future[Any]:
        if self._pool is not None:
            return self._pool.submit(function, shard)
        future: Future[Any] = Future()
        try:
            future.set_result(function(shard))
        except Exception as error:
            future.set_exception(error)
        return future

    def _stop(self, closing: bool) -> None:
        if closing and self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
