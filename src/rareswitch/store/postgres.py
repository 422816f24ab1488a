"""An experiment in PostgreSQL: for several processes and machines."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from rareswitch.errors import MissingExtraError, ParameterError, StoreError
from rareswitch.store.connections import Connection, Job, SqlRow
from rareswitch.store.store import Store

if TYPE_CHECKING:
    import psycopg

#: Distinguishes our advisory locks from those of other applications.
LOCKS = 0x72617265
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

    def each(self, query: str, rows: Sequence[Sequence[SqlRow]]) -> list[SqlRow]:
        """Without waiting for the answer to one before the next is sent."""
        cursor, answers = self.raw.cursor(binary=True), []
        cursor.executemany(query.replace("?", "%s").encode(), rows, returning=True)
        for result in cursor.results():
            answers += result.fetchall() if result.description else []
        return answers

    def added(self, query: str, rows: Sequence[Sequence[SqlRow]]) -> dict[bytes, int]:
        """By rows that come back."""
        return dict(self.each(f"{query} RETURNING key, seq", rows))

    def close(self) -> None:
        self.raw.close()


class PostgresStore(Store):
    """An experiment in a PostgreSQL database, which must be there; its tables are made when they are needed.

    Sequence numbers are handed out before rows can be seen. So everyone who adds rows shares an advisory lock until
    the commit, and who freezes the marks of an update takes it alone: no row below a mark appears later.
    """

    kinds, row_lock, floored = _KINDS, "FOR UPDATE", "CAST(floor({}) AS BIGINT)"
    seq = "coalesce(?, nextval(pg_get_serial_sequence('rareswitch_{table}', 'seq')))"

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

    def _keep(self, connection: Connection, jobs: Sequence[Job]) -> None:
        connection.execute(f"SELECT pg_advisory_xact_lock_shared({LOCKS}, {self.number})")
        super()._keep(connection, jobs)

    def _settle(self, connection: Connection) -> None:
        """Match rewards and decisions that came at the same time in two processes, neither seeing the other.

        Each looks again after its commit, so the later one sees both.
        """
        if self._loose and self._unmatched(connection):
            self._match(connection, self._loose)
        self._loose = []

    def _next_seq(self, connection: Connection, table: str) -> int:
        query = f"SELECT nextval(pg_get_serial_sequence('rareswitch_{table}', 'seq'))"
        return int(connection.execute(query).fetchone()[0])


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
