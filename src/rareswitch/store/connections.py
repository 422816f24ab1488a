"""How callers reach a database: connections, attempts that are made again, and one commit for all who wait."""

import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from rareswitch.errors import StoreError, UnreachableError
from rareswitch.store.rows import DecisionRow, RewardRow, check_schema, statements

__all__ = ["Job"]

T = TypeVar("T")
#: Rows that are committed together at the most, and calls that may wait for their turn.
MOST_ROWS, MOST_WAITING = 20_000, 10_000
#: Connections for reading, at the most.
READERS = 8
#: Seconds for which a database may be gone, or locked by others.
PATIENCE = 10.0
#: The number of this process, which is looked at with each call: to ask for it is to go into the kernel.
_THIS = [os.getpid()]
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _THIS.__setitem__(0, os.getpid()))
#: And for which a call waits for a place in the queue.
QUEUE_PATIENCE = PATIENCE


#: A row of a result, whose values are as the query says.
SqlRow: TypeAlias = Any


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> SqlRow: ...

    def fetchall(self) -> list[SqlRow]: ...

    def __iter__(self) -> Iterator[SqlRow]: ...


class Connection(Protocol):
    """What drivers of databases have in common; parameters stand for question marks."""

    def execute(self, query: str, parameters: Sequence[SqlRow] = ..., /) -> Cursor: ...

    def each(self, query: str, rows: Sequence[Sequence[SqlRow]]) -> list[SqlRow]:
        """Run a statement once for each of these parameters; all rows that it returns."""

    def added(self, query: str, rows: Sequence[Sequence[SqlRow]]) -> dict[bytes, int]:
        """Insert rows whose third column is a key: the sequence numbers of those that are new, by their keys."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Connection)


class OvertakenError(Exception):
    """Another process was faster; all is to be looked at again."""


class Pool(Generic[C]):
    """Connections that are used one after the other, and kept for the next who needs one."""

    def __init__(self, connect: Callable[[], C], shown: str) -> None:
        self._connect, self._shown = connect, shown
        self._room = threading.Semaphore(READERS)
        self._idle: list[C] = []
        self._closed = False

    def use(self, call: Callable[[C], T]) -> T:
        """Call with a connection that nobody else uses; after an error it is not used again."""
        if not self._room.acquire(timeout=PATIENCE):
            raise StoreError(f"{self._shown} is busy: all connections are in use. Try again.")
        try:
            connection = self._idle.pop() if self._idle else self._connect()
            try:
                result = call(connection)
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)
            if self._closed:
                self.close()
            return result
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
            again, reason = (True, str(error)) if isinstance(error, OvertakenError) else judged(error)
            if not reason:
                raise
            if not again or time.monotonic() > end:
                if again:
                    raise UnreachableError(f"{reason} It was tried for {PATIENCE:.0f} s.") from error
                raise StoreError(reason) from error
        time.sleep(random.uniform(0.5, 1.5) * pause)
        pause = min(1.5 * pause, 0.02)


class Job:
    """What one caller hands in, and what becomes of it: rows, or a request that becomes a row when its turn comes."""

    #: Of jobs that are requests: fills in the decisions of all that are committed together, or their errors.
    prepare: Callable[[Sequence["Job"]], None] | None = None
    #: Whether it is a transaction of its own.
    alone = False
    #: What is kept of each decision, and what was there before each reward.
    stored: Sequence[DecisionRow] = ()
    before: Sequence[RewardRow | None] = ()
    #: Of its rewards, how many have no decision yet.
    unmatched = 0
    #: Keys of deferred decisions, and when each is activated; what became of it: True where it was activated now, False
    #: where it counted before, None where there is no such decision.
    activations: Sequence[tuple[bytes, float]] = ()
    activated: Sequence[bool | None] = ()
    error: Exception | None = None
    done = False
    decisions: Sequence[DecisionRow] = ()
    rewards: Sequence[RewardRow] = ()
    overwrite = False
    #: Held until the job is done, or it is its caller's turn to lead.
    woken: threading.Lock

    def __init__(
        self,
        decisions: Sequence[DecisionRow] = (),
        rewards: Sequence[RewardRow] = (),
        overwrite: bool = False,
        activations: Sequence[tuple[bytes, float]] = (),
    ) -> None:
        self.decisions, self.rewards, self.overwrite, self.activations = decisions, rewards, overwrite, activations


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

    def submit(self, *jobs: Job, last: bool = False) -> None:
        """Hand in jobs and wait until they are durable, or have errors of their own; the last closes the queue."""
        if len(self._waiting) >= MOST_WAITING:
            self._wait_for_room()
        try:
            with self._lock:
                if self._closed:
                    raise StoreError("the store is closed. Open it again.")
                self._closed = last
                for job in jobs:
                    if self._leader is None:
                        self._leader = job
                    else:
                        job.woken = threading.Lock()
                        job.woken.acquire()
                self._waiting += jobs
            for job in jobs:
                if self._leader is not job:
                    job.woken.acquire()
                if not job.done:
                    self._lead(job)
                if self._leader is job:
                    self._leave(job)
        finally:
            for job in jobs:
                if self._leader is job or not job.done:  # not done: by Ctrl-C, which may come at any moment
                    self._leave(job)
        if len(jobs) == 1 and jobs[0].error is not None:
            raise jobs[0].error

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
        requests = [job for job in jobs if job.prepare is not None]
        try:
            if requests and (prepare := requests[0].prepare) is not None:  # of the one experiment of the store
                prepare(requests)
        except Exception as error:
            if len(requests) == 1:
                requests[0].error = error
            else:
                for job in requests:
                    self._carry_out([job])
        full = [job for job in jobs if job.decisions or job.rewards or job.activations or job.alone]
        if sound := [job for job in full if not job.done and job.error is None]:
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
        rows += len(job.decisions) + len(job.rewards) + len(job.activations) + 1
    return len(jobs)


class Transaction(Job, Generic[T]):
    """A transaction of its own, while nobody else adds to the experiment."""

    alone = True
    result: T

    def __init__(self, call: Callable[[Connection], T]) -> None:
        super().__init__()
        self.call = call

    def run(self, connection: Connection) -> None:
        """Carry it out."""
        self.result = self.call(connection)


class Database(ABC):
    """How an experiment reaches its database: connections to read with, and one queue for all that is written.

    What can be tried again, as when another process holds the lock or the server is gone, is tried for ten seconds.
    """

    #: What a transaction that writes begins with.
    begin = "BEGIN"
    #: What columns of each kind are called.
    kinds: Mapping[str, str]

    def __init__(self, url: str, name: str) -> None:
        #: As it was opened: ``memory:``, ``sqlite:///spring.db``, ``postgresql://…``.
        self.url, self.name = url, name
        #: By which another process opens it; it may hold a password.
        self.address = url
        self._lock = threading.RLock()
        self._pool: Pool[Any] | None = None
        self._queue = GroupCommit(self._commit, self._count)
        #: Used by whoever leads the queue.
        self._writing: Connection | None = None
        self._process = _THIS[0]
        self._closed = False

    # what kinds of databases differ in

    @abstractmethod
    def _connect(self, *, writing: bool = False) -> Any:
        """A new connection, for reading or for all that is written."""

    @abstractmethod
    def _schema(self, connection: Connection) -> int | None:
        """The version of the schema, None where the database never held an experiment."""

    @abstractmethod
    def _judged(self, error: Exception) -> tuple[bool, str]:
        """Whether what failed may be tried again; and what to say, '' where it is the fault of what was given."""

    @abstractmethod
    def _keep(self, connection: Connection, jobs: Sequence[Job]) -> None:
        """Keep all rows of a group of callers, in their order, and fill in the results."""

    @abstractmethod
    def _count(self, jobs: Sequence[Job]) -> None:
        """By the leader of the queue, when those who wait were answered."""

    def _begin(self, connection: Any) -> None:
        connection.execute(self.begin)

    def _alone(self, connection: Connection) -> None:  # noqa: B027
        """From here to the end of the transaction nobody else adds to the experiment, and all before is visible."""

    def _settle(self, connection: Connection) -> None:  # noqa: B027
        """What is left to do after a commit of rows; raise if they will not be found again."""

    def _forked(self) -> str:
        """How to go on in a process that was forked from the one that opened the store."""
        return "Open it again in this one."

    def _reached(self, create: bool) -> None:  # noqa: B027
        """Before the first connection; what is not there is made only where that is asked for."""

    def _founded(self) -> None:  # noqa: B027
        """The first experiment of a database is about to be kept."""

    def _check_place(self) -> None:  # noqa: B027
        """Raise if the database is not where it was when it was opened."""

    def _released(self) -> None:  # noqa: B027
        """All connections are closed."""

    # connections

    def _ready(self, create: bool = False) -> Pool[Any]:
        """Connections to a database that is there, and has tables."""
        if _THIS[0] != self._process:
            raise StoreError(f"the store was opened in another process, of which this is a fork. {self._forked()}")
        if self._closed:
            raise StoreError("the store is closed. Open it again.")
        if self._pool is None:
            with self._lock:
                if self._pool is None:
                    self._pool = attempt(partial(self._start, create), self._judged)
        return self._pool

    def _start(self, create: bool) -> Pool[Any]:
        self._reached(create)
        pool = self._new_pool()
        try:
            pool.use(partial(self._check_tables, create=create))
        except BaseException:
            pool.close()
            self._released()
            raise
        return pool

    def _check_tables(self, connection: Connection, create: bool) -> None:
        """Refuse tables of another release; make them where there are none."""
        schema = self._schema(connection)
        if schema is None and not create:
            raise StoreError(f"{self.url} holds no experiments. Create one first, or correct the address.")
        if schema is None:
            self._founded()
            self._begin(connection)
            self._alone(connection)
            if (schema := self._schema(connection)) is None:  # else another process was faster
                for statement in statements(self.kinds):
                    connection.execute(statement)
            connection.execute("COMMIT")
        if schema is not None:
            check_schema(schema, self.url)

    def _new_pool(self) -> Pool[Any]:
        return Pool(self._connect, self.url)

    def _read(self, call: Callable[[Connection], T]) -> T:
        pool = self._ready()
        self._check_place()
        return attempt(partial(pool.use, call), self._judged)

    def _rows(self, query: str, *parameters: int | float | str | bytes) -> list[SqlRow]:
        return self._read(lambda connection: connection.execute(query, parameters).fetchall())

    def _write(self, call: Callable[[Connection], T]) -> T:
        """Carry out a transaction of its own."""
        job = Transaction(call)
        self.submit(job)
        return job.result

    def submit(self, *jobs: Job) -> None:
        """Hand in jobs, and wait until they are durable with all others that wait, or have errors of their own."""
        if self._pool is None or self._closed or _THIS[0] != self._process:
            self._ready()
        self._queue.submit(*jobs)

    def _commit(self, jobs: Sequence[Job]) -> None:
        """By the leader of the queue: carry out jobs in one transaction."""
        attempt(partial(self._try_commit, jobs), self._judged)

    def _try_commit(self, jobs: Sequence[Job]) -> None:
        if self._writing is None:
            self._check_place()
            self._writing = self._connect(writing=True)
        connection = self._writing
        try:
            self._begin(connection)
            if isinstance(jobs[0], Transaction):
                self._alone(connection)
                jobs[0].run(connection)
            else:
                self._keep(connection, jobs)
            connection.execute("COMMIT")
            self._settle(connection)
        except BaseException:
            self._discard(connection)
            raise

    def _discard(self, connection: Connection) -> None:
        self._writing = None
        connection.close()

    def close(self) -> None:
        """Let go of files and connections; what was acknowledged stays."""
        if _THIS[0] != self._process:
            return  # connections are its parent's; and a thread that is not here may hold the lock
        with self._lock:
            if self._pool is not None and not self._closed:
                self._queue.submit(Job(), last=True)
                if self._writing is not None:
                    self._writing.close()
                self._pool.close()
                self._released()
            self._closed = True
