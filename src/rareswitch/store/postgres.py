"""An experiment in PostgreSQL: for several processes and machines."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rareswitch.errors import MissingExtraError, ParameterError, StoreError
from rareswitch.store.checksums import of_decisions, of_rewards
from rareswitch.store.sql_attempts import PATIENCE, attempt
from rareswitch.store.sql_database import CONNECTIONS
from rareswitch.store.sql_recording import Recording, context_columns
from rareswitch.store.sql_slices import Stretch, slice_fault
from rareswitch.store.sql_store import SqlStore
from rareswitch.store.sql_writer import Job
from rareswitch.store.store import DecisionRow, RewardRow

#: By which our advisory locks are told from those of others.
LOCKS = 0x72617265
_NEXT = "nextval(pg_get_serial_sequence('rareswitch_rewards', 'seq'))"
#: What a server says when trying again does not help.
_FINAL = (
    "authentication",
    "password",
    "does not exist",
    "pg_hba.conf",
    "not permitted to log in",
    "translate host name",
)


#: Parameters of an address that nobody but the server may see.
_SECRETS = ("password", "sslpassword")


class PostgresStore(SqlStore):
    """An experiment in a PostgreSQL database, which must be there; its tables are made when they are needed.

    Sequence numbers are handed out before rows can be seen. So everyone who adds rows shares an advisory lock until
    the commit, and who freezes the marks of an update takes it alone: no row below a mark appears later.
    """

    def __init__(self, url: str, name: str) -> None:
        try:
            import psycopg  # noqa: F401
            from sqlalchemy.engine import make_url
        except ImportError as error:
            raise MissingExtraError(
                "experiments in PostgreSQL need more packages. Install them with: pip install 'rareswitch[postgres]'"
            ) from error
        try:
            self._address = make_url(url).set(drivername="postgresql")
        except Exception:
            # which may quote the password
            raise ParameterError("url cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE.") from None
        super().__init__(_shown(self._address), name)

    def _connect(self, create: bool) -> tuple[Any, Any]:
        import sqlalchemy as sa

        address = self._address.set(drivername="postgresql+psycopg")
        settings = {"connect_timeout": 5, "application_name": "rareswitch"}
        settings = {name: value for name, value in settings.items() if name not in address.query}
        engine = sa.create_engine(address, connect_args=settings, pool_timeout=PATIENCE, **CONNECTIONS)
        return engine, engine.execution_options(isolation_level="AUTOCOMMIT")

    def _begin(self, connection: Any) -> None:
        pass

    def _alone(self, connection: Any) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCKS}, {self._number or 0})")

    def _judged(self, error: Exception) -> tuple[bool, str]:
        import psycopg

        cause = getattr(error, "orig", error)
        if not isinstance(cause, psycopg.Error):
            return False, ""
        said = (str(cause).strip() or type(cause).__name__).splitlines()[0]
        for secret in (self._address.password, *(self._address.query.get(name) for name in _SECRETS)):
            if secret and len(str(secret)) > 2:
                said = said.replace(str(secret), "***")
        codes = psycopg.errors
        if isinstance(cause, codes.DiskFull):
            return False, f"{self.url} has no room: the disk is full. Nothing of this call was kept ({said})."
        if isinstance(cause, codes.InsufficientPrivilege | codes.ReadOnlySqlTransaction):
            return False, f"{self.url} may not be written. Nothing of this call was kept ({said})."
        if isinstance(cause, codes.DeadlockDetected | codes.SerializationFailure):
            return True, f"{self.url} is changed by others at the same time ({said})."
        if isinstance(cause, codes.DataCorrupted | codes.IndexCorrupted):
            return False, f"{self.url} is damaged. Nothing of this call was kept; restore it from a copy ({said})."
        if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
            again = cause.sqlstate is not None and cause.sqlstate[:2] in ("08", "53", "55", "57")
            again = again or (cause.sqlstate is None and not any(part in said for part in _FINAL))
            return again, f"{self.url} cannot be reached ({said})."
        given = isinstance(cause, psycopg.DataError | psycopg.IntegrityError)
        return False, "" if given else f"{self.url} cannot be used ({said})."

    def _recording(self, connection: Any) -> Recording:
        return PostgresRecording(connection, self.number)

    def faults(self) -> list[str]:
        return []  # the server looks after its files; it has checksums of their pages

    def backup(self, path: str | Path) -> None:
        raise StoreError(
            f"{self.url} is a PostgreSQL database, which its own tools copy while it is used: pg_dump --format=custom "
            f"--file={path} DATABASE, and pg_restore brings it back."
        )

    def _slice(self, stretch: Stretch) -> "PostgresSlice":
        address = self._address.render_as_string(hide_password=False)
        return PostgresSlice(address, stretch)


class PostgresRecording(Recording):
    """All rows of a group by one statement, as arrays of their columns."""

    def __init__(self, connection: Any, number: int) -> None:
        super().__init__(connection, number)
        #: Of new decisions, and of rewards whose decision is not there.
        self._loose: list[bytes] = []

    def keep(self, jobs: list[Job]) -> None:
        self.raw.execute(f"SELECT pg_advisory_xact_lock_shared({LOCKS}, {self.number})")
        super().keep(jobs)
        self._match()

    def insert_decisions(self, rows: Sequence[DecisionRow]) -> dict[bytes, int]:
        fields = (*DecisionRow._fields[:11], "checksum")
        columns = [*zip(*(row[:11] for row in rows), strict=True), of_decisions(rows)]
        new = dict(
            self.raw.execute(
                f"INSERT INTO rareswitch_decisions (experiment, {', '.join(fields)}) SELECT {self.number}, given.* "
                f"FROM unnest({_arrays(*(_KINDS[name] for name in fields))}) AS given "
                "ON CONFLICT (experiment, key) DO NOTHING RETURNING key, seq",
                [list(column) for column in columns],
            ).fetchall()
        )
        kept = {row.key: row for row in reversed(rows) if row.contexts is not None and row.key in new}
        if kept:
            sets = [(new[key], *context_columns(row)) for key, row in kept.items()]
            self.raw.execute(
                f"INSERT INTO rareswitch_contexts (seq, experiment, version, rank, data, names, checksum) "
                f"SELECT seq, {self.number}, version, rank, data, names, checksum "
                f"FROM unnest({_arrays('bigint', 'int', 'float8', 'bytea', 'text', 'bigint')}) "
                "AS given (seq, version, rank, data, names, checksum)",
                [list(column) for column in zip(*sets, strict=True)],
            )
        self._loose += new
        return new

    def insert_rewards(self, rows: Sequence[RewardRow]) -> int | set[tuple[bytes, str]]:
        new = self.raw.execute(
            f"{self._adding('ORDER BY given.place')} "
            "ON CONFLICT (experiment, key, event) WHERE superseded IS NULL DO NOTHING RETURNING key, event, decision",
            [*(list(column) for column in zip(*rows, strict=True)), of_rewards(rows)],
        ).fetchall()
        self._loose += [key for key, _, decision in new if decision is None]
        return len(rows) if len(new) == len(rows) else {(key, event) for key, event, _ in new}

    def replace_reward(self, row: RewardRow, before: RewardRow, seq: int) -> int:
        import psycopg

        # the old one must step back before the index lets the new one in, so its number is drawn first
        new = int(self.raw.execute(f"SELECT {_NEXT}").fetchone()[0])
        marked = "UPDATE rareswitch_rewards SET superseded = %s, checksum = %s WHERE seq = %s AND superseded IS NULL"
        if self.raw.execute(marked, (new, *of_rewards([before], [new]), seq)).rowcount != 1:
            raise psycopg.errors.SerializationFailure("another process has overwritten the same reward")
        decision = self.raw.execute(
            f"{self._adding('', str(new))} RETURNING decision", [[value] for value in (*row, *of_rewards([row]))]
        ).fetchone()
        self._loose += [row.key] if decision[0] is None else []
        return new

    def settle(self) -> None:
        """Match rewards and decisions that came at the same time in two processes, neither seeing the other.

        Each looks again after its commit, so the later one sees both.
        """
        with self.connection.begin():
            self._match()

    def _match(self) -> None:
        if self._loose and self.raw.execute(unmatched_query(self.number)).fetchone():
            self.raw.execute(f"{self._matching()} AND reward.key = ANY(%b)", (self._loose,))

    def match_missed(self) -> None:
        self.match_all()

    def match_all(self) -> None:
        self.raw.execute(self._matching())

    def _matching(self) -> str:
        return (
            "UPDATE rareswitch_rewards AS reward SET decision = made.seq, version = made.version "
            f"FROM rareswitch_decisions AS made WHERE made.experiment = {self.number} AND made.key = reward.key "
            f"AND reward.experiment = {self.number} AND reward.decision IS NULL"
        )

    def _adding(self, order: str, seq: str = _NEXT) -> str:
        return (
            "INSERT INTO rareswitch_rewards (seq, experiment, key, id, event, value, time, checksum, decision, "
            f"version) SELECT {seq}, {self.number}, given.key, name, event, value, given.time, given.checksum, "
            "made.seq, version "
            f"FROM unnest({_arrays('bytea', 'text', 'text', 'float8', 'float8', 'bigint')}) WITH ORDINALITY "
            "AS given (key, name, event, value, time, checksum, place) LEFT JOIN rareswitch_decisions AS made "
            f"ON made.experiment = {self.number} AND made.key = given.key {order}"
        )


def unmatched_query(number: int) -> str:
    """Whether there are rewards whose decision has not come; in the order of an index of these alone."""
    waiting = f"rareswitch_rewards WHERE experiment = {number} AND decision IS NULL"
    return f"SELECT key FROM {waiting} ORDER BY experiment, key LIMIT 1"


def _shown(address: Any) -> str:
    """An address as people may see it, without passwords."""
    hidden = {name: "***" for name in _SECRETS if name in address.query}
    return str(address.update_query_dict(hidden).render_as_string(hide_password=True))


#: Of the columns of a decision.
_KINDS = {
    **dict.fromkeys(("key", "features", "digest"), "bytea"),
    **dict.fromkeys(("id", "arm"), "text"),
    **dict.fromkeys(("version", "place", "baseline"), "int"),
    **dict.fromkeys(("propensity", "time", "rank"), "float8"),
    "checksum": "bigint",
}


def _arrays(*kinds: str) -> str:
    return ", ".join(f"%b::{kind}[]" for kind in kinds)


class PostgresSlice(NamedTuple):
    """Decisions of a version between two sequence numbers; read through ADBC, anywhere."""

    address: str
    stretch: Stretch

    def __repr__(self) -> str:  # the address holds the password
        return f"PostgresSlice({self.stretch})"

    def read(self) -> Any:
        from sqlalchemy.engine import make_url

        return attempt(self._read, partial(slice_fault, _shown(make_url(self.address))))

    def _read(self) -> Any:
        import adbc_driver_postgresql.dbapi as adbc

        tables = []
        with adbc.connect(self.address) as connection, connection.cursor() as cursor:
            for query in self.stretch.queries():
                cursor.execute(query)
                tables.append(cursor.fetch_arrow_table())
        return self.stretch.table(*tables)
