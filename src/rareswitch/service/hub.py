"""The experiments of a store, opened once each, for callers that do not block."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

from rareswitch.errors import DeletedError, RareswitchError
from rareswitch.experiment import Choice, Experiment, Request, open_experiment
from rareswitch.policy import Key
from rareswitch.store import experiment_names

__all__ = ["BusyError", "Hub", "Together"]

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")
Answer = TypeVar("Answer")
#: Calls that may wait for an experiment.
MOST_WAITING = 2_000
#: Threads for what is not a decision: rewards, reports, updates; and calls that may be carried out or wait for one.
THREADS, MOST_CALLS = 16, 500


class BusyError(RareswitchError):
    """Too many calls wait: nothing was kept, and the same call may be made again."""


def _busy(waiting: int) -> BusyError:
    return BusyError(f"the service is busy: {waiting:,} calls wait. Nothing was kept; try again.")


class MissingError(RareswitchError):
    """There is no such thing."""


class Together(Generic[Item, Answer]):
    """Hands what many callers ask to one call at a time: one that ``blocks`` in a thread of its own.

    What comes while a call runs is handed over together, so that a commit is shared. Nothing waits for others to come.
    """

    def __init__(
        self,
        call: Callable[[list[Item]], Sequence[Answer | Exception]],
        *,
        most: int = MOST_WAITING,
        blocks: bool = True,
    ) -> None:
        self._call, self._most = call, most
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rareswitch-decide") if blocks else None
        self._task: asyncio.Task[None] | None = None

    async def ask(self, item: Item) -> Answer:
        """The answer, or its error."""
        if len(self._waiting) >= self._most:
            raise _busy(self._most)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        self._waiting.append((item, future))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._carry_out())
        return await future

    async def _carry_out(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            asked, self._waiting = self._waiting, []
            items = [item for item, _ in asked]
            try:
                thread = self._thread
                answers = self._call(items) if thread is None else await loop.run_in_executor(thread, self._call, items)
            except Exception as error:
                answers = [error] * len(asked)
            for (_, future), answer in zip(asked, answers, strict=True):
                if future.done():  # its caller has gone
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    def close(self) -> None:
        """Wait for what was begun."""
        if self._thread is not None:
            self._thread.shutdown()


class Hub:
    """The experiments of a store."""

    #: Whether a decision waits for something, such as a disk.
    blocks = True

    def __init__(self, url: str, *, key: Key | None = None) -> None:
        self.url, self.key = url, key
        self._lock, self._closing = threading.Lock(), False
        self._trials: dict[str, Experiment] = {}
        #: Those that were deleted: who still asks them learns it; they are closed in the end.
        self._deleted: list[Experiment] = []
        self._together: dict[Experiment, Together[Request, Choice]] = {}
        self._threads, self._calls = ThreadPoolExecutor(THREADS, thread_name_prefix="rareswitch"), 0

    async def names(self) -> list[str]:
        """Of its experiments, the oldest first."""
        return await self.run(self._names)

    def _names(self) -> list[str]:
        file = self.url.removeprefix("sqlite:///")
        new = "://" not in file and not self._trials and not Path(file).exists()  # a file that none has begun
        return [*self._trials] if new or self.url == "memory:" else experiment_names(self.url)

    async def trial(self, name: str) -> Experiment:
        """An experiment by its name."""
        trial = self._trials.get(name)
        return trial if trial is not None else await self.run(self._open, name)

    def _open(self, name: str) -> Experiment:
        with self._lock:
            if name not in self._trials:
                if name not in self._names():
                    raise MissingError(
                        f"there is no experiment {name!r:.100} in this store.", parameter="name", given=name
                    )
                self._trials[name] = open_experiment(self.url, name, key=self.key)
            return self._trials[name]

    def add(self, trial: Experiment) -> None:
        """Take over an experiment that was opened elsewhere."""
        with self._lock:
            self._drop(trial.name)
            self._trials[trial.name] = trial

    async def decide(self, trial: Experiment, request: Request) -> Choice:
        """A decision, kept together with those of others."""
        if trial not in self._together:
            self._together[trial] = Together(trial.decide_together, blocks=self.blocks)
        try:
            return await self._together[trial].ask(request)
        except DeletedError:
            await self.run(self._drop_deleted)
            raise

    async def run(self, call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """What a call that blocks returns."""
        if self._calls >= MOST_CALLS:
            raise _busy(self._calls)
        work: Callable[[], T] = partial(call, *arguments, **options)
        answer: Coroutine[Any, Any, T] | asyncio.Future[T]
        self._calls += 1
        try:
            answer = asyncio.get_running_loop().run_in_executor(self._threads, work)
            return await answer
        except DeletedError:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._drop_deleted)
            raise
        finally:
            self._calls -= 1

    def _drop_deleted(self) -> None:
        """Forget experiments that were deleted, as their names may be given again."""
        with self._lock:
            for name, trial in [*self._trials.items()]:
                try:
                    trial.store.ended()
                except DeletedError:
                    self._drop(name)

    def _drop(self, name: str) -> None:
        if name in self._trials:
            self._deleted.append(self._trials.pop(name))

    def go_on(self, *_: int) -> None:
        """Called by long work that nobody waits for: an error where the service ends."""
        if self._closing:
            raise BusyError("the service ends.")

    def now(self) -> float:
        """What the page takes for the current time, in seconds since 1970."""
        return time.time()

    async def watch(self) -> None:
        """What is to be done beside answering requests."""

    def check(self) -> None:
        """Raise if the store cannot be written to, or a policy is not what was signed."""
        for trial in [*self._trials.values()]:
            try:
                trial.check()
            except DeletedError:
                self._drop_deleted()

    def close(self) -> None:
        """Finish what was begun, and let go of all files and connections."""
        self._closing = True
        for together in self._together.values():
            together.close()
        self._threads.shutdown()
        for trial in (*self._trials.values(), *self._deleted):
            trial.close()
