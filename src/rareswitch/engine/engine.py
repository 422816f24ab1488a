"""What every engine does: map a function over shards and hand the results back in the order of the shards."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Generic, Self, TypeVar

from rareswitch.errors import EngineError, ParameterError

S = TypeVar("S")
R = TypeVar("R")
Shard = TypeVar("Shard", contravariant=True)
Result = TypeVar("Result", covariant=True)

AHEAD = 4
"""Shards taken for each worker, counted from the one whose result is next: what bounds memory."""
MOST_WORKERS = 1024
POLL = 1.0
"""Seconds after which workers are looked at even if none of them moved."""
GRACE = 0.2
"""Seconds in which a shard of an abandoned map may end by itself, which spares the start of another worker."""


class Job(ABC, Generic[Shard, Result]):
    """One map under way, as an engine carries it out."""

    @abstractmethod
    def submit(self, number: int, shard: Shard) -> None:
        """Take a shard. What is wrong with it is raised by :meth:`result`."""

    @abstractmethod
    def result(self, number: int) -> Result:
        """Wait for the result of a shard and forget it, or raise what its function raised."""

    @abstractmethod
    def cancel(self) -> None:
        """Stop whatever still runs. Called at the end of every map, however it ended."""


class Engine(ABC):
    """A place where shards of work run.

    An engine carries out one map at a time. It is closed when its ``with`` block ends, or by :meth:`close`.

    >>> from rareswitch.engine import Serial
    >>> with Serial() as engine:
    ...     print(engine, list(engine.map(abs, [-2, 3])), engine.executions)
    <engine serial> [2, 3] 2
    """

    workers: int
    """How many shards run at the same time, at most."""
    executions: int
    """How often a shard was started since the engine was made, retries included."""
    retries: int
    """How many of these were because a worker was lost."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.executions = 0
        self.retries = 0
        self._closed = False
        self._free = threading.Lock()

    @property
    @abstractmethod
    def name(self) -> str:
        """What :func:`~rareswitch.engine.make_engine` takes for an engine like this one."""

    def __repr__(self) -> str:
        return f"<engine {self.name}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def map(self, function: Callable[[S], R], shards: Iterable[S], *, label: str = "shard") -> Iterator[R]:
        """Apply a pure function to every shard; yield the results in the order of the shards.

        Nothing runs before the first result is asked for. From then on at most ``4 * workers`` shards are taken
        ahead, so ``shards`` may be an endless iterator. The results do not depend on the engine or its workers.

        An exception of the function is raised here when its shard's turn comes, unchanged, with the traceback of
        the worker as a note; the engine can then be used for the next map. Closing the iterator, or dropping it,
        cancels what is under way.

        Parameters
        ----------
        function
            Called with one shard. Processes and clusters need one that can be pickled: from the top level of a
            module, or a ``functools.partial`` of such a one. It runs again for a shard whose worker was lost.
        shards
            What the function is called with, one by one.
        label
            What a shard is called in errors, before its number, which counts from 0.
        """
        if not callable(function):
            raise ParameterError(f"an engine maps a function over shards; got {function!r:.100} as the function.")
        return self._in_order(function, iter(shards), label)

    def close(self) -> None:
        """Stop what runs and let go of the workers. A closed engine maps no more; closing it again does nothing."""
        if not self._closed:
            self._closed = True
            self._shut_down()

    @property
    def _window(self) -> int:
        """How many shards are taken and not yet answered, at most."""
        return AHEAD * max(1, self.workers)

    @abstractmethod
    def _job(self, function: Callable[[S], R], label: str) -> Job[S, R]:
        """Get ready for a map."""

    @abstractmethod
    def _shut_down(self) -> None:
        """Let go of the workers, once."""

    def _in_order(self, function: Callable[[S], R], shards: Iterator[S], label: str) -> Generator[R, None, None]:
        self._check_open()
        if not self._free.acquire(blocking=False):
            raise EngineError(
                f"the engine '{self.name}' carries out one map at a time and another is not finished. Use up its "
                "results or close its iterator first, or make a second engine."
            )
        try:
            job = self._job(function, label)
            try:
                yield from self._results(job, shards)
            finally:
                job.cancel()
        finally:
            self._free.release()

    def _results(self, job: Job[S, R], shards: Iterator[S]) -> Generator[R, None, None]:
        taken = given = 0
        more = True
        broken: Exception | None = None
        while True:
            while more and taken < given + self._window:
                try:
                    shard = next(shards)
                except StopIteration:
                    more = False
                except Exception as error:  # raised after the results of the shards before it, in every engine
                    more, broken = False, error
                else:
                    job.submit(taken, shard)
                    taken += 1
            if given == taken:
                break
            yield job.result(given)
            self._check_open()
            given += 1
        if broken is not None:
            raise broken

    def _check_open(self) -> None:
        if self._closed:
            raise EngineError(f"the engine '{self.name}' is closed. Make a new one.")


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
