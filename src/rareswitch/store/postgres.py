"""An experiment in PostgreSQL: for several processes and machines."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from rareswitch.errors import MissingExtraError, ParameterError, StoreError
from rareswitch.store.connections import Connection, Job
from rareswitch.store.rows import DecisionRow, RewardRow, kinds_of, of_contexts, of_decisions, of_rewards, waiting_seq
from rareswitch.store.store import OWN, Store

if TYPE_CHECKING:
    import psycopg

#: Distinguishes our advisory locks from those of other applications.
LOCKS = 0x72617265
_NEXT = "nextval(pg_get_serial_sequence('rareswitch_rewards', 'seq'))"
_NEXT_DECISION = "nextval(pg_get_serial_sequence('rareswitch_decisions', 'seq'))"
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
#: What columns of each kind are called.
_KINDS = {
    "number": "INTEGER",
    "counter": "SERIAL PRIMARY KEY",
    "sequence": "BIGSERIAL PRIMARY KEY",
    "large": "BIGINT",
    "real": "DOUBLE PRECISION",
    "text": "TEXT",
    "data": "BYTEA",
}


class PostgresConnection:
    """A connection of psycopg, whose results are sent as bytes."""

    def __init__(self, address: str) -> None:
        import psycopg

        settings = {"connect_timeout": 5, "application_name": "rareswitch"}
        named = {name for name, _ in parse_qsl(urlsplit(address).query)}
        more: dict[str, Any] = {name: value for name, value in settings.items() if name not in named}
        self.raw = psycopg.connect(address, autocommit=True, **more)

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> "psycopg.Cursor[Any]":
        """Run a statement; parameters stand for question marks."""
        return self.raw.execute(query.replace("?", "%s").encode(), parameters or None, binary=True)

    def close(self) -> None:
        self.raw.close()


class PostgresStore(Store):
    """An experiment in a PostgreSQL database, which must be there; its tables are made when they are needed.

    Sequence numbers are handed out before rows can be seen. So everyone who adds rows shares an advisory lock until
    the commit, and who freezes the marks of an update takes it alone: no row below a mark appears later.
    """

    kinds, row_lock = _KINDS, "FOR UPDATE"

    def __init__(self, url: str, name: str) -> None:
        try:
            import psycopg.conninfo
        except ImportError as error:
            raise MissingExtraError(
                "experiments in PostgreSQL need more packages. Install them with: pip install 'rareswitch[postgres]'"
            ) from error
        try:
            _ = urlsplit(url).port
            psycopg.conninfo.conninfo_to_dict(url)
        except Exception:
            # which may quote the password
            raise ParameterError("url cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/DATABASE.") from None
        super().__init__(_shown(url), name)
        self.address = url
        #: Keys of new decisions, and of rewards whose decision is not there, of the transaction under way.
        self._loose: list[bytes] = []

    def _connect(self, *, writing: bool = False) -> PostgresConnection:
        return PostgresConnection(self.address)

    def _schema(self, connection: Connection) -> int | None:
        if connection.execute("SELECT to_regclass('rareswitch_schema')::text").fetchone()[0] is None:
            return None
        return int(connection.execute("SELECT version FROM rareswitch_schema").fetchone()[0])

    def _alone(self, connection: Connection) -> None:
        connection.execute(f"SELECT pg_advisory_xact_lock({LOCKS}, {vars(self).get('number', 0)})")

    def _judged(self, error: Exception) -> tuple[bool, str]:
        return _judged(self.address, error)

    def faults(self) -> list[str]:
        return []  # the server looks after its files; it has checksums of their pages

    def backup(self, path: str | Path) -> None:
        raise StoreError(
            f"{self.url} is a PostgreSQL database, which its own tools copy while it is used: pg_dump --format=custom "
            f"--file={path} DATABASE, and pg_restore brings it back."
        )

    # all rows of a group by one statement, as arrays of their columns

    def _keep(self, connection: Connection, jobs: Sequence[Job]) -> None:
        self._loose = []
        connection.execute(f"SELECT pg_advisory_xact_lock_shared({LOCKS}, {self.number})")
        super()._keep(connection, jobs)
        self._match(connection)

    def _settle(self, connection: Connection) -> None:
        """Match rewards and decisions that came at the same time in two processes, neither seeing the other.

        Each looks again after its commit, so the later one sees both.
        """
        self._match(connection)
        self._loose = []

    def _match(self, connection: Connection) -> None:
        if self._loose and connection.execute(unmatched_query(self.number)).fetchone():
            connection.execute(f"{self._matching()} AND reward.key = ANY(?)", (self._loose,))

    def _match_all(self, connection: Connection) -> None:
        connection.execute(self._matching())

    def _matching(self) -> str:
        return (
            "UPDATE rareswitch_rewards AS reward SET decision = made.seq, version = made.version "
            f"FROM rareswitch_decisions AS made WHERE made.experiment = {self.number} AND made.key = reward.key "
            "AND made.seq > 0 "
            f"AND reward.experiment = {self.number} AND reward.decision IS NULL"
        )

    def _insert_decisions(self, connection: Connection, rows: Sequence[DecisionRow]) -> dict[bytes, int]:
        numbers = [waiting_seq() if row.waits else None for row in rows]
        columns = [*zip(*(row[: len(OWN)] for row in rows), strict=True), of_decisions(rows), numbers]
        own = ", ".join(OWN)
        new: dict[bytes, int] = dict(
            connection.execute(
                f"INSERT INTO rareswitch_decisions (experiment, {own}, checksum, seq) SELECT {self.number}, {own}, "
                f"checksum, coalesce(seq, {_NEXT_DECISION}) "
                f"FROM unnest({_arrays('decisions', *OWN, 'checksum')}, ?::BIGINT[]) AS given ({own}, checksum, seq) "
                "ON CONFLICT (experiment, key) DO NOTHING "
                "RETURNING key, seq",
                [list(column) for column in columns],
            ).fetchall()
        )
        first = {row.key: row for row in reversed(rows) if row.key in new}.values()
        if with_sets := [row for row in first if row.contexts is not None]:
            sets = [(new[row.key], row.version, row.rank, row.contexts, row.names) for row in with_sets]
            names = ("seq", "version", "rank", "data", "names", "checksum")
            connection.execute(
                f"INSERT INTO rareswitch_contexts (experiment, {', '.join(names)}) "
                f"SELECT {self.number}, given.* FROM unnest({_arrays('contexts', *names)}) AS given",
                [*(list(column) for column in zip(*sets, strict=True)), of_contexts(with_sets)],
            )
        if recorded := [row for row in first if row.record is not None]:
            connection.execute(
                f"INSERT INTO rareswitch_records (experiment, seq, record) "
                f"SELECT {self.number}, given.* FROM unnest({_arrays('records', 'seq', 'record')}) AS given",
                [[new[row.key] for row in recorded], [row.record for row in recorded]],
            )
        self._loose += new
        return new

    def _next_seq(self, connection: Connection) -> int:
        return int(connection.execute(f"SELECT {_NEXT_DECISION}").fetchone()[0])

    def _activate(self, connection: Connection, times: Mapping[bytes, float]) -> set[bytes]:
        activated = super()._activate(connection, times)
        self._loose += activated
        return activated

    def _insert_rewards(self, connection: Connection, rows: Sequence[RewardRow]) -> dict[tuple[bytes, str], int | None]:
        new = connection.execute(
            f"{self._adding('ORDER BY given.place')} "
            "ON CONFLICT (experiment, key, event) WHERE superseded IS NULL DO NOTHING RETURNING key, event, decision",
            [*(list(column) for column in zip(*rows, strict=True)), of_rewards(rows)],
        ).fetchall()
        self._loose += [key for key, _, decision in new if decision is None]
        return {(key, event): decision for key, event, decision in new}

    def _replace_reward(self, connection: Connection, row: RewardRow, before: RewardRow, seq: int) -> int:
        import psycopg

        # the old one must step back before the index lets the new one in, so its number is drawn first
        new = int(connection.execute(f"SELECT {_NEXT}").fetchone()[0])
        marked = "UPDATE rareswitch_rewards SET superseded = ?, checksum = ? WHERE seq = ? AND superseded IS NULL"
        if connection.execute(marked, (new, *of_rewards([before], [new]), seq)).rowcount != 1:
            raise psycopg.errors.SerializationFailure("another process has overwritten the same reward")
        decision = connection.execute(
            f"{self._adding('', str(new))} RETURNING decision", [[value] for value in (*row, *of_rewards([row]))]
        ).fetchone()
        self._loose += [row.key] if decision[0] is None else []
        return new

    def _adding(self, order: str, seq: str = _NEXT) -> str:
        return (
            "INSERT INTO rareswitch_rewards (seq, experiment, key, id, event, value, time, checksum, decision, "
            f"version) SELECT {seq}, {self.number}, given.key, name, event, value, given.time, given.checksum, "
            "made.seq, version "
            f"FROM unnest({_arrays('rewards', *RewardRow._fields, 'checksum')}) WITH ORDINALITY "
            "AS given (key, name, event, value, time, checksum, place) LEFT JOIN rareswitch_decisions AS made "
            f"ON made.experiment = {self.number} AND made.key = given.key AND made.seq > 0 {order}"
        )


def unmatched_query(number: int) -> str:
    """Whether there are rewards whose decision has not come; in the order of an index of these alone."""
    waiting = f"rareswitch_rewards WHERE experiment = {number} AND decision IS NULL"
    return f"SELECT key FROM {waiting} ORDER BY experiment, key LIMIT 1"


def _arrays(table: str, *names: str) -> str:
    """Parameters that are columns of a table."""
    kinds = kinds_of(table)
    return ", ".join(f"?::{_KINDS[kinds[name]]}[]" for name in names)


def _secrets(address: str) -> list[str]:
    """What nobody but the server may see of an address."""
    parts = urlsplit(address)
    secrets = [value for name, value in parse_qsl(parts.query) if name in _SECRETS]
    return [unquote(parts.password), *secrets] if parts.password else secrets


def _shown(address: str) -> str:
    """An address as people may see it, without passwords.

    >>> _shown("postgresql://ann:secret@localhost/trials?sslpassword=hush")
    'postgresql://ann:***@localhost/trials?sslpassword=***'
    """
    parts = urlsplit(address)
    user, _, host = parts.netloc.rpartition("@")
    if parts.password is not None:
        user = f"{user.partition(':')[0]}:***"
    hidden = [(name, "***" if name in _SECRETS else value) for name, value in parse_qsl(parts.query)]
    query = urlencode(hidden, safe="*/", quote_via=quote)
    return parts._replace(scheme="postgresql", netloc=f"{user}@{host}" if user else host, query=query).geturl()


def _judged(address: str, error: Exception) -> tuple[bool, str]:
    import psycopg

    if not isinstance(error, psycopg.Error):
        return False, ""
    shown, said = _shown(address), (str(error).strip() or type(error).__name__).splitlines()[0]
    for secret in _secrets(address):
        if len(secret) > 2:
            said = said.replace(secret, "***")
    codes = psycopg.errors
    if isinstance(error, codes.DiskFull):
        return False, f"{shown} has no room: the disk is full. Nothing of this call was kept ({said})."
    if isinstance(error, codes.InsufficientPrivilege | codes.ReadOnlySqlTransaction):
        return False, f"{shown} may not be written. Nothing of this call was kept ({said})."
    if isinstance(error, codes.DeadlockDetected | codes.SerializationFailure):
        return True, f"{shown} is changed by others at the same time ({said})."
    if isinstance(error, codes.DataCorrupted | codes.IndexCorrupted):
        return False, f"{shown} is damaged. Nothing of this call was kept; restore it from a copy ({said})."
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        again = error.sqlstate is not None and error.sqlstate[:2] in ("08", "53", "55", "57")
        again = again or (error.sqlstate is None and not any(part in said for part in _FINAL))
        return again, f"{shown} cannot be reached ({said})."
    callers_fault = isinstance(error, psycopg.DataError | psycopg.IntegrityError)
    return False, "" if callers_fault else f"{shown} cannot be used ({said})."
