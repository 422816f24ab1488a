"""The one thread of a process that writes to a database: what many callers hand in is committed at once."""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from rareswitch.errors import StoreError
from rareswitch.store.sql_attempts import PATIENCE
from rareswitch.store.store import DecisionRow, RewardRow

#: Rows that are committed together at the most, and calls that may wait for their turn.
MOST_ROWS, MOST_WAITING = 20_000, 10_000


class Job:
    """What one caller hands in, and what becomes of it."""

    __slots__ = ("call", "decisions", "done", "error", "overwrite", "result", "rewards", "then")

    def __init__(
        self,
        decisions: Sequence[DecisionRow] = (),
        rewards: Sequence[RewardRow] = (),
        overwrite: bool = False,
        call: Callable[[Any], Any] | None = None,
        then: Callable[["Job"], None] | None = None,
    ) -> None:
        self.decisions, self.rewards, self.overwrite = decisions, rewards, overwrite
        #: Takes the connection; a transaction of its own.
        self.call = call
        self.result: Any = None
        self.error: StoreError | None = None
        #: Called in the thread of the writer in the end, where nobody waits.
        self.then = then
        if then is None:
            self.done = threading.Lock()  # the cheapest thing that another thread can wake
            self.done.acquire()

    def finish(self) -> None:
        """Tell whoever handed it in that it is durable, or why not."""
        if self.then is None:
            self.done.release()
        else:
            try:
                self.then(self)
            except Exception:  # the thread goes on for all the others
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def wait(self) -> Any:
        """What came of it, when it is durable."""
        self.done.acquire()
        if self.error is not None:
            raise type(self.error)(*self.error.args) from self.error  # several callers may share the cause
        return self.result


class Writer:
    """Takes jobs from any thread and lets ``commit`` carry out all that have gathered, together.

    While one commit waits for the disk the next ones gather: the more callers, the more each commit holds.

    Parameters
    ----------
    commit
        Called in the thread of the writer with jobs that go into one transaction; it fills in their results, or raises.
    end
        Called there at the end.
    """

    def __init__(self, commit: Callable[[list[Job]], None], end: Callable[[], None]) -> None:
        self._commit, self._end = commit, end
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._closing = threading.Lock()  # held while jobs go in: none comes after the last, where nobody would see it
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="rareswitch writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Any:
        """Hand in a job and wait until it is durable."""
        end = time.monotonic() + PATIENCE
        while self._queue.qsize() >= MOST_WAITING and time.monotonic() < end:
            time.sleep(0.005)
        self.post(job)
        return job.wait()

    def post(self, job: Job) -> None:
        """Hand in a job, if there is room."""
        with self._closing:
            if self._closed:
                raise StoreError("the store is closed. Open it again.")
            if self._queue.qsize() >= MOST_WAITING:
                raise StoreError(f"the store is busy: {MOST_WAITING:,} calls wait for it. Nothing was kept; try again.")
            self._queue.put(job)

    def close(self) -> None:
        """Carry out what was handed in, and end."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        ending = False
        while not ending:
            jobs, ending = self._gathered()
            for together in _transactions(jobs):
                self._carry_out(together)
        self._end()

    def _gathered(self) -> tuple[list[Job], bool]:
        """All jobs that wait, up to a number of rows; and whether there will be no more."""
        jobs: list[Job] = []
        rows, job = 0, self._queue.get()
        while job is not None:
            jobs.append(job)
            rows += len(job.decisions) + len(job.rewards)
            if rows >= MOST_ROWS:
                return jobs, False
            try:
                job = self._queue.get_nowait()
            except Empty:
                return jobs, False
        return jobs, True

    def _carry_out(self, jobs: list[Job]) -> None:
        try:
            self._commit(jobs)
        except BaseException as error:
            if len(jobs) > 1 and not isinstance(error, StoreError):  # one of them holds what cannot be kept
                for job in jobs:
                    self._carry_out([job])
                return
            for job in jobs:
                job.error = error if isinstance(error, StoreError) else _refused(error)
        for job in jobs:
            job.finish()


def _refused(error: BaseException) -> StoreError:
    refused = StoreError(f"the database refuses what was given: {str(error).splitlines()[0]}. Nothing of it was kept.")
    refused.__cause__ = error
    return refused


def _transactions(jobs: list[Job]) -> list[list[Job]]:
    """Jobs in their order; those that are calls on their own."""
    found: list[list[Job]] = []
    for job in jobs:
        if job.call is not None or not found or found[-1][0].call is not None:
            found.append([])
        found[-1].append(job)
    return found
