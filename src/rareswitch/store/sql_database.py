"""A database of experiments: how it is opened, read, and written to by one thread."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar

from rareswitch.errors import MissingExtraError, StoreError
from rareswitch.store.sql_attempts import attempt
from rareswitch.store.sql_recording import Recording
from rareswitch.store.sql_schema import check_schema, found_schema, make_tables
from rareswitch.store.sql_writer import Job, Writer

T = TypeVar("T")
#: Of the pool of connections for reading.
CONNECTIONS: dict[str, Any] = {"pool_size": 8, "max_overflow": 0}


class SqlDatabase(ABC):
    """A database of experiments.

    Nothing is touched before it is first used; what is not there is made only where that is asked for. Reading uses
    connections of a pool; everything that is written goes through one thread, see
    :class:`~rareswitch.store.sql_writer.Writer`. What can be tried again, as when another process holds the lock or
    the server is gone, is tried for ten seconds: all that is handed in must bear to be carried out again.
    """

    def __init__(self, url: str) -> None:
        if find_spec("sqlalchemy") is None:
            raise MissingExtraError(
                "experiments in a database need more packages. Install them with: pip install 'rareswitch[experiment]'"
            )
        self.url = url
        self._lock = threading.RLock()
        self._engine: Any = None
        self._reading: Any = None
        self._writer: Writer | None = None
        self._writing: Any = None  # the writer's connection, used by its thread alone
        self._process = os.getpid()
        self._closed = False

    # what kinds of databases differ in

    @abstractmethod
    def _connect(self, create: bool) -> tuple[Any, Any]:
        """Two SQLAlchemy engines, for writing and for reading, over one pool; the database is made if it may be."""

    @abstractmethod
    def _judged(self, error: Exception) -> tuple[bool, str]:
        """Whether what failed may be tried again; and what to say, '' where it is the fault of what was given."""

    @abstractmethod
    def _recording(self, connection: Any) -> Recording:
        """What keeps the rows of a group of callers."""

    @abstractmethod
    def _alone(self, connection: Any) -> None:
        """From here to the end of the transaction nobody else adds to the experiment, and all before is visible."""

    @abstractmethod
    def _begin(self, connection: Any) -> None:
        """What a transaction that writes begins with."""

    def _forked(self) -> str:
        """How to go on in a process that was forked from the one that opened the store."""
        return "Open it again in this one."

    def _check_place(self) -> None:  # noqa: B027
        """Raise if the database is not where it was when it was opened."""

    def _check_kept(self) -> None:  # noqa: B027
        """Raise if what was committed just now will not be found there."""

    def _founded(self) -> None:  # noqa: B027
        """The first experiment of a database is about to be kept."""

    def _released(self) -> None:  # noqa: B027
        """All connections are closed."""

    # connections

    def _open(self, create: bool = False) -> Any:
        """The engine, connected."""
        if os.getpid() != self._process:
            raise StoreError(f"the store was opened in another process, of which this is a fork. {self._forked()}")
        if self._closed:
            raise StoreError("the store is closed. Open it again.")
        if self._engine is None:
            with self._lock:
                if self._engine is None:
                    attempt(partial(self._start, create), self._judged)
        self._check_place()
        return self._engine

    def _start(self, create: bool) -> None:
        engine, reading = self._connect(create)
        try:
            with engine.connect() as connection:
                schema = found_schema(connection)
            if schema is None and not create:
                raise StoreError(f"{self.url} holds no experiments. Create one first, or correct the address.")
            if schema is None:
                self._founded()
                with engine.begin() as connection:
                    self._begin(connection)
                    self._alone(connection)
                    if (schema := found_schema(connection)) is None:  # else another process was faster
                        make_tables(connection)
            if schema is not None:
                check_schema(schema, self.url)
        except BaseException:
            engine.dispose()
            self._released()
            raise
        self._writer = Writer(self._commit, self._end)
        self._engine, self._reading = engine, reading

    def _read(self, call: Callable[[Any], T]) -> T:
        self._open()

        def one() -> T:
            from sqlalchemy.exc import TimeoutError as NoConnection

            try:
                connection = self._reading.connect()
            except NoConnection as error:
                raise StoreError(f"{self.url} is busy: all connections are in use. Try again.") from error
            with connection:
                return call(connection)

        return attempt(one, self._judged)

    def _submit(self, job: Job) -> Any:
        self._open()
        assert self._writer is not None  # since it is open
        return self._writer.submit(job)

    def _commit(self, jobs: list[Job]) -> None:
        """In the thread of the writer: carry out jobs in one transaction."""
        attempt(partial(self._try_commit, jobs), self._judged)

    def _try_commit(self, jobs: list[Job]) -> None:
        if self._writing is None:
            self._writing = self._engine.connect()
        try:
            with self._writing.begin():
                self._begin(self._writing)
                if jobs[0].call is not None:
                    jobs[0].result = jobs[0].call(self._writing)
                else:
                    recording = self._recording(self._writing)
                    recording.keep(jobs)
            if jobs[0].call is None:
                recording.settle()
            self._check_kept()
        except BaseException:
            broken, self._writing = self._writing, None
            broken.invalidate()
            broken.close()
            raise

    def _end(self) -> None:
        if self._writing is not None:
            self._writing.close()

    def close(self) -> None:
        if os.getpid() != self._process:
            return  # connections are its parent's; and a thread that is not here may hold the lock
        with self._lock:
            if self._writer is not None and not self._closed:
                self._writer.close()
                self._engine.dispose()
                self._released()
            self._closed = True
