"""How callers reach a database: connections, attempts that are made again, and one commit for all who wait."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from rareswitch.errors import StoreError, UnreachableError
from rareswitch.store.rows import DecisionRow, RewardRow

T = TypeVar("T")
#: Rows that are committed together at the most, and calls that may wait for their turn.
MOST_ROWS, MOST_WAITING = 20_000, 10_000
#: Connections for reading, at the most.
READERS = 8
#: Seconds for which a database may be gone, or locked by others.
PATIENCE = 10.0
#: And for which a call waits for a place in the queue.
QUEUE_PATIENCE = PATIENCE


class Cursor(Protocol):
    """What came of a statement."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What drivers of databases have in common; parameters stand for question marks."""

    def execute(self, query: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...

    def close(self) -> None: ...


C = TypeVar("C", bound=Connection)


class Pool(Generic[C]):
    """Connections that are used one after the other, and kept for the next who needs one."""

    def __init__(self, connect: Callable[[], C], shown: str) -> None:
        self._connect, self._shown = connect, shown
        self._room = threading.Semaphore(READERS)
        self._idle: list[C] = []
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[C]:
        """One that nobody else uses; after an error it is not used again."""
        if not self._room.acquire(timeout=PATIENCE):
            raise StoreError(f"{self._shown} is busy: all connections are in use. Try again.")
        try:
            connection = self._idle.pop() if self._idle else self._connect()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)
            if self._closed:
                self.close()
        finally:
            self._room.release()

    def close(self) -> None:
        """Close those that nobody uses; the others when they come back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def attempt(call: Callable[[], T], judged: Callable[[Exception], tuple[bool, str]]) -> T:
    """Carry something out, again and again while it is worth it.

    Parameters
    ----------
    call
        May be carried out again although it failed, or although its end was not seen.
    judged
        Says of an error whether trying again may help; and what to tell, '' where it is raised as it is.

    Examples
    --------
    >>> results = iter([OSError("gone"), 7])
    >>> def call():
    ...     if isinstance(result := next(results), OSError):
    ...         raise result
    ...     return result
    >>> attempt(call, lambda error: (True, "the server is gone."))
    7
    """
    end, pause = time.monotonic() + PATIENCE, 0.001
    while True:
        try:
            return call()
        except StoreError:
            raise
        except Exception as error:
            again, told = judged(error)
            if not told:
                raise
            if not again or time.monotonic() > end:
                if again:
                    raise UnreachableError(f"{told} It was tried for {PATIENCE:.0f} s.") from error
                raise StoreError(told) from error
        time.sleep(random.uniform(0.5, 1.5) * pause)
        pause = min(1.5 * pause, 0.02)


class Job:
    """What one caller hands in, and what becomes of it: rows, or a request that becomes a row when its turn comes."""

    #: Of jobs that are requests: fills in the decisions of all that are committed together, or their errors.
    prepare: Callable[[Sequence["Job"]], None] | None = None
    #: Whether it is a transaction of its own.
    alone = False
    #: What is kept of each decision, and what was there before each reward.
    kept: Sequence[DecisionRow] = ()
    before: Sequence[RewardRow | None] = ()
    error: Exception | None = None
    done = False
    decisions: Sequence[DecisionRow] = ()
    rewards: Sequence[RewardRow] = ()
    overwrite = False
    #: Held until the job is done, or it is its caller's turn to lead.
    woken: threading.Lock

    def __init__(
        self, decisions: Sequence[DecisionRow] = (), rewards: Sequence[RewardRow] = (), overwrite: bool = False
    ) -> None:
        self.decisions, self.rewards, self.overwrite = decisions, rewards, overwrite


class GroupCommit:
    """Takes jobs from any thread and lets ``commit`` carry out all that wait, together.

    There is no thread of its own: whoever finds nobody at work leads, carries out all that wait by then, and hands over
    to a caller who came meanwhile. What is carried out must bear to be carried out again.

    Parameters
    ----------
    commit
        Called with jobs that go into one transaction; it fills in their results, or raises.
    after
        Called by the leader when those of a commit were answered.
    """

    def __init__(self, commit: Callable[[Sequence[Job]], None], after: Callable[[Sequence[Job]], None]) -> None:
        self._commit, self._after = commit, after
        self._lock = threading.Lock()
        self._waiting: list[Job] = []
        #: Whose caller is at work for all; None while nobody waits.
        self._leader: Job | None = None
        self._closed = False

    def submit(self, job: Job, *, last: bool = False) -> None:
        """Hand in a job and wait until it is durable; the last one closes the queue."""
        if len(self._waiting) >= MOST_WAITING:
            self._wait_for_room()
        job.woken = threading.Lock()
        job.woken.acquire()
        try:
            with self._lock:
                if self._closed:
                    raise StoreError("the store is closed. Open it again.")
                self._closed = last
                self._waiting.append(job)
                if self._leader is None:
                    self._leader = job
            if self._leader is not job:
                job.woken.acquire()
            if not job.done:
                self._lead(job)
        finally:
            if self._leader is job or not job.done:  # not done: by Ctrl-C, which may come at any moment
                self._leave(job)
        if job.error is not None:
            raise job.error

    def _wait_for_room(self) -> None:
        end = time.monotonic() + QUEUE_PATIENCE
        while len(self._waiting) >= MOST_WAITING:
            if time.monotonic() > end:
                raise StoreError(f"the store is busy: {MOST_WAITING:,} calls wait for it. Nothing was kept; try again.")
            time.sleep(0.005)

    def _lead(self, leader: Job) -> None:
        """Carry out the jobs that wait, its own first."""
        jobs: list[Job] = []
        try:
            with self._lock:
                count = 1 if len(self._waiting) == 1 else _together(self._waiting)
                jobs, self._waiting = self._waiting[:count], self._waiting[count:]
            self._carry_out(jobs)
        except BaseException:  # Ctrl-C is meant for the thread that it comes to; the others go on
            with self._lock:
                self._waiting = [job for job in jobs if job is not leader and not job.done] + self._waiting
            raise
        finally:
            for job in jobs:
                if job is not leader and job.done:
                    job.woken.release()
        self._after(jobs)

    def _leave(self, job: Job) -> None:
        """Wait no longer; who led lets the next caller lead, if there is one."""
        with self._lock:
            job.done = True
            if job in self._waiting:
                self._waiting.remove(job)
            if self._leader is job:
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader is not None:
                    self._leader.woken.release()

    def _carry_out(self, jobs: Sequence[Job]) -> None:
        """Let requests become rows, and keep all; requests that fail together are prepared one by one."""
        for prepare in {job.prepare for job in jobs if job.prepare is not None}:
            requests = [job for job in jobs if job.prepare == prepare]
            try:
                prepare(requests)
            except Exception as error:
                if len(requests) == 1:
                    requests[0].error = error
                else:
                    for job in requests:
                        self._carry_out([job])
        waiting = [job for job in jobs if not job.done and job.error is None]
        if sound := [job for job in waiting if job.alone or job.decisions or job.rewards]:
            self._keep(sound)
        for job in jobs:
            job.done = True

    def _keep(self, jobs: Sequence[Job]) -> None:
        try:
            self._commit(jobs)
        except StoreError as error:
            for job in jobs:
                job.error = type(error)(*error.args)  # each caller raises its own
                job.error.__cause__ = error.__cause__
        except Exception as error:
            if len(jobs) > 1:  # one of them holds what cannot be kept
                for job in jobs:
                    self._keep([job])
            else:
                text = str(error).splitlines()[0]
                jobs[0].error = StoreError(f"the database refuses what was given: {text}. Nothing of it was kept.")
                jobs[0].error.__cause__ = error


def _together(jobs: Sequence[Job]) -> int:
    """How many of these, from the first on, go into one transaction."""
    rows = 0
    for at, job in enumerate(jobs):
        if job.alone or rows >= MOST_ROWS:
            return max(at, 1)
        rows += len(job.decisions) + len(job.rewards) + 1
    return len(jobs)
