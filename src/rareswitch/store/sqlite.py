"""An experiment in an SQLite file: one machine, one file, several processes."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rareswitch.errors import StoreError
from rareswitch.files import pyarrow, replacing
from rareswitch.store.checksums import of_decisions, of_rewards
from rareswitch.store.sql_attempts import PATIENCE, attempt
from rareswitch.store.sql_database import CONNECTIONS
from rareswitch.store.sql_recording import Recording, context_columns
from rareswitch.store.sql_slices import ROWS, Stretch, slice_fault
from rareswitch.store.sql_store import SqlStore
from rareswitch.store.sqlite_files import (
    REMEDY,
    Identity,
    check_there,
    close_file,
    is_inherited,
    open_file,
    size_of,
    uri,
    was_opened,
)
from rareswitch.store.sqlite_reader import SqliteReader
from rareswitch.store.store import DecisionRow, Marks, RewardRow, Slice

#: Pages in the log before they are moved into the file, and KiB of pages that the writer keeps in memory.
LOG_PAGES, CACHE_KIB = 4000, 65536
#: Some releases of SQLite would look through all rewards in place of the few in this index.
UNMATCHED = "INDEXED BY rareswitch_rewards_unmatched"


class SqliteStore(SqlStore):
    """An experiment in an SQLite file.

    Every commit is on the disk when a call returns (write-ahead log, ``synchronous=FULL``). The file may be used by
    several processes of one machine at the same time, not over a network file system. A new file can be read and
    written by its owner alone.
    """

    unmatched_hint = UNMATCHED

    def __init__(self, path: str | Path, name: str) -> None:
        super().__init__(f"sqlite:///{path}", name)
        self.path = Path(path).resolve()  # one name for one file
        self._file: Identity | None = None

    def _connect(self, create: bool) -> tuple[Any, Any]:
        import sqlalchemy as sa

        first = open_file(self.path, create=create)
        try:
            self._file = Identity.of(self.path)
            if first and size_of(f"{self.path}-wal"):
                attempt(self._check_recovered, self._judged)
        except BaseException:
            close_file(self.path)
            raise
        engine = sa.create_engine(
            "sqlite://",
            creator=self._driver_connection,
            poolclass=sa.pool.QueuePool,
            pool_timeout=PATIENCE,
            pool_reset_on_return=None,  # reading happens outside of transactions
            **CONNECTIONS,
        )
        return engine, engine

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

    def _driver_connection(self) -> "_Connection":
        connection = _connection(str(self.path))
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # which opens the log
            connection.log = Identity.of(f"{self.path}-wal")
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self, connection: Any) -> None:
        # as a writer from the start: one that becomes it later fails if another was faster
        raw = connection.connection.driver_connection
        check_there(self.path, self._file, raw.log)
        attempt(lambda: raw.execute("BEGIN IMMEDIATE"), self._judged)

    def _alone(self, connection: Any) -> None:
        pass  # as every transaction here is

    def _forked(self) -> str:
        return f"Its file cannot be used in this one, not even if it is opened again. {REMEDY}"

    def _check_place(self) -> None:
        check_there(self.path, self._file)

    def _check_kept(self) -> None:
        check_there(self.path, self._file, self._writing.connection.driver_connection.log)

    def _founded(self) -> None:
        for path in (self.path, *(Path(f"{self.path}{more}") for more in ("-wal", "-shm"))):
            with suppress(FileNotFoundError):
                os.chmod(path, 0o600)

    def _released(self) -> None:
        close_file(self.path)

    def _judged(self, error: Exception) -> tuple[bool, str]:
        return _judged(self.url, error)

    def _recording(self, connection: Any) -> Recording:
        return SqliteRecording(connection, self.number)

    def slices(
        self, version: int, upto: Marks, *, sums: bool, window: float | None = None, propensities: bool = False
    ) -> Sequence[Slice]:
        found = super().slices(version, upto, sums=sums, window=window, propensities=propensities)
        if len(found) > 1:
            _start_readers()
        return found

    def start_update(self, parent: int, plan: str) -> tuple[str, Marks] | None:
        started = super().start_update(parent, plan)
        if started is not None and started[1].decisions > ROWS:
            _start_readers()  # they will be needed in a moment, and take one to start
        return started

    def faults(self) -> list[str]:
        return self._read(lambda connection: _faults(connection.connection.driver_connection))

    def backup(self, path: str | Path) -> None:
        if os.path.lexists(path):
            raise StoreError(f"there is a file {path} already. Name another, or remove it first.")
        self._open()
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

    def close(self) -> None:
        super().close()
        for reader in _READERS:
            reader.close()

    def _slice(self, stretch: Stretch) -> "SqliteSlice":
        return SqliteSlice(str(self.path), stretch)


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
    cause = getattr(error, "orig", error)
    if not isinstance(cause, sqlite3.OperationalError | sqlite3.DatabaseError) or isinstance(cause, _GIVEN):
        return False, ""
    name = getattr(cause, "sqlite_errorname", "SQLITE_ERROR")
    for start, (again, told) in _FAULTS.items():
        if name.startswith(start):
            return again, f"{shown} {told} ({name}: {cause})."
    return False, f"{shown} cannot be used ({name}: {cause})."


def _faults(connection: sqlite3.Connection) -> list[str]:
    """What is damaged in a file, as far as its structure tells."""
    lines = [text.split("\n")[-1] for (text,) in connection.execute("PRAGMA quick_check(20)")]
    return [] if lines == ["ok"] else lines


class _Connection(sqlite3.Connection):
    """A connection that knows its write-ahead log."""

    log: Identity | None = None


def _connection(path: str) -> _Connection:
    # transactions begin where they are asked for; whoever finds the file locked tries again by itself
    settings: dict[str, Any] = {"timeout": 0.01, "isolation_level": None, "check_same_thread": False}
    return sqlite3.connect(uri(path, mode="rw"), uri=True, factory=_Connection, **settings)


def unmatched_query(number: int) -> str:
    """Whether there are rewards whose decision has not come."""
    return f"SELECT 1 FROM rareswitch_rewards {UNMATCHED} WHERE experiment = {number} AND decision IS NULL LIMIT 1"


class SqliteRecording(Recording):
    """Rows by single inserts, prepared once: the fastest way into SQLite."""

    def insert_decisions(self, rows: Sequence[DecisionRow]) -> dict[bytes, int]:
        before, changes = self._newest("decisions"), self.raw.total_changes
        columns = ", ".join(DecisionRow._fields[:11])
        self.raw.executemany(
            f"INSERT INTO rareswitch_decisions (experiment, {columns}, checksum) VALUES ({self.number}{', ?' * 12}) "
            "ON CONFLICT (experiment, key) DO NOTHING",
            [(*row[:11], checksum) for row, checksum in zip(rows, of_decisions(rows), strict=True)],
        )
        if self.raw.total_changes - changes == len(rows):
            new = {row.key: seq for seq, row in enumerate(rows, before + 1)}
        else:
            new = dict(self.raw.execute("SELECT key, seq FROM rareswitch_decisions WHERE seq > ?", (before,)))
        kept = {row.key: row for row in reversed(rows) if row.contexts is not None and row.key in new}
        self.raw.executemany(
            f"INSERT INTO rareswitch_contexts (seq, experiment, version, rank, data, names, checksum) "
            f"VALUES (?, {self.number}, ?, ?, ?, ?, ?)",
            [(new[key], *context_columns(row)) for key, row in kept.items()],
        )
        if self._unmatched():
            self.raw.executemany(self._matching("= ?1"), [(key,) for key in new])
        return new

    def insert_rewards(self, rows: Sequence[RewardRow]) -> int | set[tuple[bytes, str]]:
        before, changes = self._newest("rewards"), self.raw.total_changes
        self.raw.executemany(
            f"{self._adding()} ON CONFLICT (experiment, key, event) WHERE superseded IS NULL DO NOTHING",
            [(*row, checksum) for row, checksum in zip(rows, of_rewards(rows), strict=True)],
        )
        if self.raw.total_changes - changes == len(rows):
            return len(rows)
        return set(self.raw.execute("SELECT key, event FROM rareswitch_rewards WHERE seq > ?", (before,)))

    def replace_reward(self, row: RewardRow, before: RewardRow, seq: int) -> int:
        new = self._newest("rewards") + 1
        step_back = "UPDATE rareswitch_rewards SET superseded = ?, checksum = ? WHERE seq = ?"
        self.raw.execute(step_back, (new, *of_rewards([before], [new]), seq))
        self.raw.execute(self._adding(), (*row, *of_rewards([row])))
        return new

    def match_all(self) -> None:
        self.raw.execute(self._matching("IS NOT NULL"))

    def _adding(self) -> str:
        return (
            f"INSERT INTO rareswitch_rewards (experiment, key, id, event, value, time, checksum, decision, version) "
            f"VALUES ({self.number}, ?1, ?2, ?3, ?4, ?5, ?6, "
            f"(SELECT seq FROM rareswitch_decisions WHERE experiment = {self.number} AND key = ?1), "
            f"(SELECT version FROM rareswitch_decisions WHERE experiment = {self.number} AND key = ?1))"
        )

    def _matching(self, keys: str) -> str:
        return (
            f"UPDATE rareswitch_rewards SET decision = d.seq, version = d.version FROM rareswitch_decisions AS d "
            f"WHERE d.experiment = {self.number} AND d.key = rareswitch_rewards.key "
            f"AND rareswitch_rewards.experiment = {self.number} AND rareswitch_rewards.key {keys} "
            "AND rareswitch_rewards.decision IS NULL"
        )

    def _unmatched(self) -> bool:
        return self.raw.execute(unmatched_query(self.number)).fetchone() is not None

    def _newest(self, table: str) -> int:
        return self.raw.execute(f"SELECT max(seq) FROM rareswitch_{table}").fetchone()[0] or 0


class SqliteSlice(NamedTuple):
    """Decisions of a version between two sequence numbers."""

    path: str
    stretch: Stretch

    def read(self) -> Any:
        """Through ADBC, where this process has not opened the file as a store; otherwise through the cursor for few
        decisions, and by a process that reads for this one, see :class:`SqliteReader`, for many.
        """
        if not was_opened(self.path):
            return attempt(lambda: self._read(self._by_adbc), partial(slice_fault, self.path))
        many = is_inherited(self.path) or self.stretch.last - self.stretch.first >= ROWS - 1
        table = self._by_readers if many else self._by_cursor
        return attempt(lambda: self._read(table), partial(_judged, self.path))

    def _read(self, tables: Callable[[tuple[str, str]], Iterable[Any]]) -> Any:
        # rows one after the other as they lie in the file, which takes half the time of looking each up
        try:
            return self.stretch.table(*tables(self.stretch.queries("NOT INDEXED")))
        except (ArithmeticError, TypeError, ValueError) as error:  # of a column with values of several kinds
            raise self.stretch.unreadable(error) from error

    def _by_readers(self, queries: tuple[str, str]) -> Iterable[Any]:
        return _READERS[self.stretch.first // ROWS % len(_READERS)].tables(self.path, queries)

    def _by_cursor(self, queries: tuple[str, str]) -> Iterator[Any]:
        pa, _ = pyarrow()
        connection = _connection(self.path)
        try:
            for query in queries:
                cursor = connection.execute(query)
                names = [column[0] for column in cursor.description]
                columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(names)
                yield pa.table(dict(zip(names, map(pa.array, columns), strict=True)))
        finally:
            connection.close()

    def _by_adbc(self, queries: tuple[str, str]) -> Iterator[Any]:
        import adbc_driver_sqlite.dbapi as adbc

        with adbc.connect(uri(self.path)) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": ROWS})
            for query in queries:
                cursor.execute(query)
                yield cursor.fetch_arrow_table()


#: Two, so that one reads the next slice while the other one reads this.
_READERS = (SqliteReader(), SqliteReader())


def _start_readers() -> None:
    for reader in _READERS:
        reader.start()
