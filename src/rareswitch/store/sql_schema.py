"""The version of the schema that a database has: written with its tables, and checked when it is opened."""

from typing import Any

from rareswitch.errors import StoreError
from rareswitch.store.sql_tables import tables
from rareswitch.version import __version__

#: The version that this release reads and writes.
SCHEMA = 1


def found_schema(connection: Any) -> int | None:
    """The version of a database, None where it never held an experiment."""
    import sqlalchemy as sa

    if not sa.inspect(connection).has_table(tables().schema.name):
        return None
    return int(connection.execute(sa.select(tables().schema.c.version)).scalar())


def check_schema(version: int, shown: str) -> None:
    """Refuse a database of another release."""
    if version != SCHEMA:
        raise StoreError(
            f"{shown} has schema version {version}; rareswitch {__version__} reads and writes version {SCHEMA}. Open "
            "it with the release of rareswitch that made it, or with a newer one."
        )


def make_tables(connection: Any) -> None:
    """Make what experiments are kept in, within the transaction of this connection."""
    import sqlalchemy as sa

    tables().metadata.create_all(connection)
    connection.execute(sa.insert(tables().schema).values(version=SCHEMA))
