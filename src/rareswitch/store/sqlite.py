"""An experiment in an SQLite file: one machine, one file, several processes; or in memory, for tries and tests.

SQLite keeps processes apart by POSIX locks, which belong to a process and a file: whoever closes the file drops all
locks that the process has on it, whichever handle took them (https://www.sqlite.org/howtocorrupt.html, 2.2). Another
process then believes itself alone, and deletes the write-ahead log under this one. So nothing here opens a file that
SQLite may have open. A forked process has no locks of its own, and SQLite's memory of its parent's: it may not use
these files at all (same page, 2.6).
"""

import os
import shutil
import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from rareswitch.core import replacing
from rareswitch.errors import StoreError
from rareswitch.store.connections import Connection, Job, Pool, SqlRow, attempt
from rareswitch.store.store import Store

T = TypeVar("T")
#: The file behind a path, by device and inode: another one if it was deleted or replaced.
Identity = tuple[int, int]
#: Stores of this process that have a file open, by its path; 0 where one had.
_OPEN = Counter[str]()
#: Files that were open in the parent when this process was forked.
_INHERITED = set[str]()
#: Files that were deleted or replaced while stores of this process had them open, as long as one has.
_LOST = set[str]()
#: Held while a file is created, and while it is first opened.
_LOCK = threading.Lock()
REMEDY = (
    "Start processes by the 'spawn' method (multiprocessing.get_context('spawn')), or open experiments only after "
    "forking."
)
#: Pages in the log before they are moved into the file.
LOG_PAGES = 4000
#: Bytes by which the log grows before it is compared with what is free on the disk.
LOG_STEP = 1 << 18
#: Bytes that must be free on the disk for a store to say that it can be written to.
LEAST_FREE = 1 << 20
#: KiB of pages kept in memory: by who writes, and by who reads, mostly each row once, which a larger cache slows down.
WRITER_KIB, READER_KIB = 65536, 8192
#: Some releases of SQLite would look through all rewards in place of the few in this index.
UNMATCHED = "INDEXED BY rareswitch_rewards_unmatched"


class SqliteConnection(sqlite3.Connection):
    """A connection that knows its write-ahead log."""

    log: Identity | None = None
    #: The size at which the log is compared with what is free on the disk.
    log_limit = LOG_STEP

    def __del__(self) -> None:
        """One that nobody closed is closed when it is forgotten."""
        with suppress(sqlite3.ProgrammingError):  # it was never opened
            self.close()

    def each(self, query: str, rows: Sequence[Sequence[SqlRow]]) -> list[SqlRow]:
        """By single statements, prepared once: the fastest way into SQLite."""
        return [answer for row in rows for answer in self.execute(query, row)]

    def added(self, query: str, rows: Sequence[Sequence[SqlRow]]) -> dict[bytes, int]:
        """By what cursors know: rows that come back take half as long again."""
        cursors = ((row[2], self.execute(query, row)) for row in rows)
        return {key: cursor.lastrowid or 0 for key, cursor in cursors if cursor.rowcount == 1}


class SqliteTables(Store):
    """An experiment in tables of SQLite."""

    unmatched_hint = UNMATCHED
    # rows one after the other as they lie in the file, which takes half the time of looking each up
    scan_hint = "NOT INDEXED"
    # numbers are never given out again, so that no row comes below a mark after another experiment was deleted
    kinds = dict.fromkeys(("number", "large"), "INTEGER") | {
        "counter": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "sequence": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "real": "REAL",
        "text": "TEXT",
        "data": "BLOB",
    }

    def _schema(self, connection: Connection) -> int | None:
        known = "SELECT 1 FROM sqlite_master WHERE name = 'rareswitch_schema'"
        if connection.execute(known).fetchone() is None:
            return None
        return int(connection.execute("SELECT version FROM rareswitch_schema").fetchone()[0])

    def _next_seq(self, connection: Connection, table: str) -> int:
        query = "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = ? RETURNING seq"
        return int(connection.execute(query, (f"rareswitch_{table}",)).fetchall()[0][0])

    def _judged(self, error: Exception) -> tuple[bool, str]:
        return _judged(self.url, error)

    def faults(self) -> list[str]:
        return self._read(_faults)


class SqliteStore(SqliteTables):
    """An experiment in an SQLite file.

    Every commit is on the disk when a call returns (write-ahead log, ``synchronous=FULL``). The file may be used by
    several processes of one machine at the same time, not over a network file system. A new file can be read and
    written by its owner alone.
    """

    # as a writer from the start: one that becomes it later fails if another was faster
    begin = "BEGIN IMMEDIATE"

    def __init__(self, path: str | Path, name: str) -> None:
        super().__init__(f"sqlite:///{path}", name)
        self.path = Path(path).resolve()  # one name for one file
        self.address = str(self.path)
        self._log = f"{self.path}-wal"
        self._file: Identity | None = None

    def _reached(self, create: bool) -> None:
        first = open_file(self.path, create=create)
        try:
            self._file = identity_of(self.path)
            if first and size_of(f"{self.path}-wal"):
                attempt(self._check_recovered, self._judged)
        except BaseException:
            close_file(self.path)
            raise

    def _check_recovered(self) -> None:
        """Check the file if the last process that used it did not close it: there is a log, and nobody uses it."""
        with closing(_connection(str(self.path))) as connection:
            try:
                connection.execute("PRAGMA journal_mode = DELETE")  # which moves the log into the file, if all is quiet
            except sqlite3.OperationalError:
                return  # others have it open, or it cannot be written
            if not size_of(f"{self.path}-wal") and (faults := _faults(connection)):
                raise StoreError(
                    f"{self.path} is damaged; the last process that used it did not end well: {faults[0]}. Restore a "
                    "backup."
                )

    def _connect(self, *, writing: bool = False) -> SqliteConnection:
        connection = _connection(str(self.path))
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
            connection.execute(f"PRAGMA cache_size = -{WRITER_KIB if writing else READER_KIB}")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # which opens the log
            connection.log = identity_of(self._log)
            if writing:  # after a commit that failed it is another one
                self._make_room(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_room(self, connection: SqliteConnection) -> None:
        """Move the log into the file and empty it, where it takes more of the disk than is left.

        It holds each page once for each commit that changed it, and may be many times as long as what it adds to the
        file. SQLite looks at it only after a commit, which never comes on a disk that it has filled.
        """
        if size_of(self._log) > self._free():
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.log_limit = size_of(self._log) + LOG_STEP

    def _free(self) -> int:
        return shutil.disk_usage(self.path.parent).free

    def check_writable(self) -> None:
        super().check_writable()
        free = self._free()  # a row that is written as it is may need no room
        if free < LEAST_FREE:
            raise StoreError(f"{self.path} cannot grow: its disk has {free:,} bytes left. Make room.")

    def _begin(self, connection: SqliteConnection) -> None:
        self._check_file(connection)
        try:
            connection.execute(self.begin)
        except sqlite3.OperationalError:
            attempt(partial(connection.execute, self.begin), self._judged)

    def _check_file(self, connection: SqliteConnection) -> int:
        """The bytes of the log; raise if it, or the file, is not the one that was opened."""
        with suppress(OSError):
            file, log = os.stat(self.path), os.stat(self._log)
            if (file.st_dev, file.st_ino) == self._file and (log.st_dev, log.st_ino) == connection.log:
                return log.st_size
        check_there(self.path, self._file, connection.log)
        return 0

    def _settle(self, connection: SqliteConnection) -> None:  # type: ignore[override]
        if self._check_file(connection) >= connection.log_limit:
            with suppress(sqlite3.OperationalError):  # what was committed stays so
                self._make_room(connection)

    def _check_place(self) -> None:
        check_there(self.path, self._file)

    def _forked(self) -> str:
        return f"Its file cannot be used in this one, not even if it is opened again. {REMEDY}"

    def _founded(self) -> None:
        for path in (self.path, *(Path(f"{self.path}{more}") for more in ("-wal", "-shm"))):
            with suppress(FileNotFoundError):
                os.chmod(path, 0o600)

    def _released(self) -> None:
        close_file(self.path)

    def backup(self, path: str | Path) -> None:
        if os.path.lexists(path):
            raise StoreError(f"there is a file {path} already. Name another, or remove it first.")
        self._ready()
        self._check_place()
        with replacing(path) as temporary:
            os.chmod(temporary, 0o600)
            attempt(lambda: self._copy(temporary), self._judged)

    def _copy(self, path: Path) -> None:
        # of one moment: in a write-ahead log, who reads for long neither waits for writers nor holds them up
        with closing(_connection(str(self.path))) as source, closing(_connection(str(path))) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # so that it is one file, whole without a log beside it
            if faults := _faults(target):
                raise StoreError(
                    f"{self.path} is damaged, and so its copy would be: {faults[0]}. Nothing was written; restore an "
                    "earlier backup."
                )


class MemoryStore(SqliteTables):
    """An experiment in the memory of this process, as long as somebody holds the store; closing it changes nothing."""

    def __init__(self, name: str) -> None:
        super().__init__("memory:", name)
        self._shared = _SharedConnection()
        weakref.finalize(self, self._shared.close)

    def _new_pool(self) -> "_SharedConnection":
        return self._shared

    def _connect(self, *, writing: bool = False) -> SqliteConnection:
        return self._shared.held

    def _start(self, create: bool) -> Pool[SqliteConnection]:
        return super()._start(create=True)

    def _try_commit(self, jobs: Sequence[Job]) -> None:
        with self._shared.lock:
            super()._try_commit(jobs)

    def _discard(self, connection: sqlite3.Connection) -> None:  # type: ignore[override]
        connection.rollback()

    def _forked(self) -> str:
        return "It is in the memory of that process. Keep it in a file, or create it after forking."

    def backup(self, path: str | Path) -> None:
        raise StoreError("an experiment in memory has no file to copy. Copy it to another store: copy_experiment.")

    def close(self) -> None:
        pass


class _SharedConnection(Pool[SqliteConnection]):
    """The one connection to a database in memory."""

    def __init__(self) -> None:
        super().__init__(lambda: self.held, "memory:")
        self.held = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, factory=SqliteConnection)
        self.lock = threading.RLock()

    def use(self, call: Callable[[SqliteConnection], T]) -> T:
        with self.lock:
            return call(self.held)

    def close(self) -> None:
        with self.lock:
            self.held.close()


#: What callers may cause by what they give.
_GIVEN = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)
_FAULTS = {
    "SQLITE_BUSY": (True, "is locked by another process"),
    "SQLITE_LOCKED": (True, "is locked by another process"),
    "SQLITE_FULL": (False, "has no room: the disk is full. Nothing of this call was kept; free some and call again"),
    "SQLITE_READONLY": (False, "is read-only. Nothing was kept; make the file and its folder writable"),
    "SQLITE_CANTOPEN": (False, "cannot be opened: look at the rights of the file and of its folder"),
    "SQLITE_CORRUPT": (False, "is damaged. Nothing of this call was kept; restore the file from a copy"),
    "SQLITE_NOTADB": (False, "is not an SQLite database. Correct the address"),
    "SQLITE_IOERR": (False, "cannot be read or written: the disk fails or is full. Nothing of this call was kept"),
}


def _judged(shown: str, error: Exception) -> tuple[bool, str]:
    if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, _GIVEN):
        return False, ""
    name = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
    for start, (again, text) in _FAULTS.items():
        if name.startswith(start):
            return again, f"{shown} {text} ({name}: {error})."
    return False, f"{shown} cannot be used ({name}: {error})."


def _faults(connection: Connection) -> list[str]:
    """What is damaged in a file, as far as its structure tells."""
    lines = [text.split("\n")[-1] for (text,) in connection.execute("PRAGMA quick_check(20)")]
    return [] if lines == ["ok"] else lines


def _connection(path: str) -> SqliteConnection:
    # transactions begin where they are asked for; whoever finds the file locked tries again by itself
    return sqlite3.connect(
        uri(path, mode="rw"),
        uri=True,
        factory=SqliteConnection,
        timeout=0.01,
        isolation_level=None,
        check_same_thread=False,
    )


# the files that this process has open, and those that its parent had open when it was forked


def _after_fork() -> None:
    global _LOCK
    _LOCK = threading.Lock()  # which another thread of the parent may hold
    _INHERITED.update(path for path, stores in _OPEN.items() if stores)
    _OPEN.clear()
    _LOST.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def refuse_inherited(path: Path) -> None:
    """Raise if the parent of this process had a file open when this process was forked."""
    if str(path) in _INHERITED:
        raise StoreError(
            f"{path} was open in the parent of this process when it was forked, and cannot be used here: what is "
            f"written could be lost. {REMEDY}"
        )


def open_file(path: Path, *, create: bool) -> bool:
    """Before the first connection of a store to its file, which is created if it may be.

    Returns whether no other store of this process has it open.
    """
    with _LOCK:  # who creates a file closes it before anyone else here connects to it
        refuse_inherited(path)
        check_there(path)
        if create:
            _create(path)
        elif not path.is_file():
            raise StoreError(f"there is no file {path}. Create an experiment there, or correct the address.")
        _OPEN[str(path)] += 1
        return _OPEN[str(path)] == 1


def close_file(path: Path) -> None:
    """After the last connection of a store was closed."""
    with _LOCK:
        _OPEN[str(path)] -= 1
        if not _OPEN[str(path)]:
            _LOST.discard(str(path))


def _create(path: Path) -> None:
    """An empty file for its owner alone, if there is none; one that is there is never opened."""
    if os.path.lexists(path):
        return
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass  # another process was faster
    except OSError as error:
        raise StoreError(f"sqlite:///{path} cannot be written: {error.strerror}.") from error


def size_of(path: str | Path) -> int:
    """Bytes of a file, which is not opened; 0 where there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def uri(path: str, *, mode: str = "ro") -> str:
    """A file as the URI by which SQLite opens it, by default for reading; never is one created.

    Where nobody can write, as on read-only media, SQLite reads without a log, if all is in the file.

    >>> uri("/data/50% of it?.db")
    'file:/data/50%25%20of%20it%3F.db?mode=ro'
    """
    effective = {"effective_ids": True} if os.access in os.supports_effective_ids else {}
    folder = os.path.dirname(path)
    fixed = os.path.exists(path) and not os.access(folder, os.W_OK, **effective) and not size_of(f"{path}-wal")
    return f"file:{quote(path)}?mode={'ro&immutable=1' if fixed else mode}"


def identity_of(path: str | Path) -> Identity | None:
    """That of the file that is there now, which is not opened; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def check_there(path: Path, opened: Identity | None = None, log: Identity | None = None) -> None:
    """Raise if a file, or its write-ahead log, is not the one that was opened; and ever after, until it is closed.

    As long as a process has the file open nobody deletes the log, unless the locks of that process were dropped.
    A connection that is made later would mix the old log with a new one, so there must be none.
    """
    if opened is not None and identity_of(path) != opened:
        _LOST.add(str(path))
    if log is not None and identity_of(f"{path}-wal") != log:
        _LOST.add(str(path))
    if str(path) in _LOST:
        raise StoreError(
            f"{path} or its log, {path.name}-wal, was deleted or replaced while this process had it open, or was "
            "opened here by other means than SQLite. This call is not acknowledged. Close all experiments of this file "
            "in this process; put the files back or restore a backup if they are gone; then open the experiments again."
        )
