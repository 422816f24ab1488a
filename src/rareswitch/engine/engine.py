"""What every engine does: map a function over shards and hand the results back in the order of the shards."""

import contextlib
import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import count
from typing import Any, Self, TypeVar

from rareswitch.engine.pickling import packed, unpacked
from rareswitch.errors import EngineError, ParameterError
from rareswitch.validation import whole

S = TypeVar("S")
R = TypeVar("R")

#: Shards taken for each worker, counted from the one whose result is next: what bounds memory.
AHEAD = 4
MOST_WORKERS = 1024
#: Seconds in which a shard of an abandoned map may end by itself, which spares the start of another worker.
GRACE = 0.2


class Engine(ABC):
    """A place where shards of work run.

    An engine carries out one map at a time. It is closed when its ``with`` block ends, or by :meth:`close`.

    >>> from rareswitch.engine import Serial
    >>> with Serial() as engine:
    ...     print(engine, list(engine.map(abs, [-2, 3])), engine.executions)
    <engine serial> [2, 3] 2
    """

    _ahead = AHEAD
    #: Makes of the function and of every shard, given what it is called, what :meth:`_start` takes.
    _pack: Callable[..., Any] = staticmethod(packed)
    #: Makes of a shard's name and its future the result, or raises what the function raised.
    _unpack: Callable[..., Any] = staticmethod(unpacked)

    def __init__(self, name: str, workers: int | None, tries: int = 3) -> None:
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        #: How many shards run at the same time, at most.
        self.workers = processors if workers is None else whole("workers", workers, high=MOST_WORKERS)
        #: What :func:`~rareswitch.engine.make_engine` takes for an engine like this one.
        self.name = f"{name}:{self.workers}"
        #: How many workers a shard may lose before it is given up.
        self.tries = whole("tries", tries, high=1000)
        #: How often a shard was started since the engine was made, retries included.
        self.executions = 0
        #: How many of these were because a worker was lost.
        self.retries = 0
        #: Of the latest map: futures of the shards that run; what :class:`_Map` knows of each.
        self._running: dict[Future[Any], tuple[int, Any, int]] = {}
        self._closed = False
        self._free = threading.Lock()

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
        return _Map(self, iter(shards), label).results(function)

    def close(self) -> None:
        """Stop what runs and end the workers. A closed engine maps no more; closing it again does nothing."""
        if not self._closed:
            self._closed = True
            self._stop(closing=True)

    @abstractmethod
    def _start(self, function: Any, shard: Any) -> Future[Any]:
        """Start a shard. Called when fewer than ``workers`` shards run."""

    def _check(self) -> None:  # noqa: B027
        """See that there are workers. Called before the first shard, and when none was done for a while."""

    def _losses(self, future: Future[Any]) -> tuple[int, str]:
        """How many workers a shard lost, and how the last one ended. Called once for every future that is done."""
        return 0, ""

    @abstractmethod
    def _stop(self, closing: bool) -> None:
        """Stop the shards that run, at the end of every map, however it ended; and end all workers for closing."""


class _Map:
    """One map under way. A shard that waits or runs is its number, what was packed and how many workers it lost."""

    def __init__(self, engine: Engine, shards: Iterator[Any], label: str) -> None:
        self.engine, self.shards, self.label = engine, shards, label
        self.waiting: deque[tuple[int, Any, int]] = deque()
        self.done: dict[int, Future[Any]] = {}

    def results(self, function: Any) -> Generator[Any, None, None]:
        """Map the function. One map at a time, because shards that run are stopped when their map ends."""
        if not self.engine._free.acquire(blocking=False):
            told = f"the engine '{self.engine.name}' carries out one map at a time and another is not finished"
            raise EngineError(f"{told}. Use up or close its iterator first, or make a second engine.")
        with contextlib.ExitStack() as stack:
            stack.callback(self.engine._free.release)
            stack.callback(self.engine._stop, closing=False)
            self.engine._running.clear()
            yield from self._in_order(self.engine._pack("the function", function))

    def _in_order(self, function: Any) -> Generator[Any, None, None]:
        taken, end = 0, None
        for number in count():
            while end is None and taken < number + self.engine._ahead * max(1, self.engine.workers):
                try:
                    self.waiting.append((taken, self.engine._pack(f"{self.label} {taken}", next(self.shards)), 0))
                    taken += 1
                except Exception as error:  # also StopIteration; others are raised after the results before them
                    end = error
            if number == taken:
                break
            while not self._advance(function, number):
                pass
            yield self.engine._unpack(f"{self.label} {number}", self.done.pop(number))
        if end is not None and not isinstance(end, StopIteration):
            raise end

    def _advance(self, function: Any, number: int) -> bool:
        """Wait for a shard, one second at most, and give more to workers that are free; whether this one is done."""
        done, _ = wait(self.engine._running, 0.0 if number in self.done else 1.0, FIRST_COMPLETED)
        if self.engine._closed:
            raise EngineError(f"the engine '{self.engine.name}' is closed. Make a new one.")
        for future in done:
            self._settle(future, *self.engine._running.pop(future))
        if not done and number not in self.done:
            self.engine._check()
        while self.waiting and len(self.engine._running) < self.engine.workers:
            shard = self.waiting.popleft()
            self.engine._running[self.engine._start(function, shard[1])] = shard
            self.engine.executions += 1
            self.engine.retries += shard[2] > 0
        return number in self.done

    def _settle(self, future: Future[Any], number: int, packed: Any, before: int) -> None:
        """Keep what came of a shard, or let it run again if its worker was lost."""
        lost, end = self.engine._losses(future)
        if lost and before + lost < self.engine.tries:
            self.waiting.appendleft((number, packed, before + lost))
            return
        if lost:
            told = f"{self.label} {number} lost its worker {before + lost} times; the last one {end}"
            future = Future()
            future.set_exception(EngineError(f"{told}. Make shards that need less memory, or debug with 'serial'."))
        self.done[number] = future
