"""The revision of a database: checked when it is opened, and brought up to date by Alembic."""

from functools import cache
from pathlib import Path
from typing import Any

from rareswitch.errors import StoreError
from rareswitch.store.sql_tables import REVISION_TABLE
from rareswitch.version import __version__


@cache
def _scripts() -> Any:
    from alembic.script import ScriptDirectory

    folder = str(Path(__file__).with_name("migrations"))
    return ScriptDirectory(folder, version_locations=[folder])


def newest_revision() -> str:
    """The revision that this release writes and reads.

    >>> newest_revision()
    '2'
    """
    return str(_scripts().get_current_head())


def found_revision(connection: Any) -> str | None:
    """The revision of a database, None where it never held an experiment."""
    import sqlalchemy as sa

    if not sa.inspect(connection).has_table(REVISION_TABLE):
        return None
    return connection.execute(sa.text(f"SELECT version_num FROM {REVISION_TABLE}")).scalar()  # type: ignore[no-any-return]


def check_revision(found: str | None, shown: str) -> bool:
    """Whether a database must be migrated; an error where it is of a later release.

    >>> [check_revision(found, "sqlite:///spring.db") for found in ("1", "2")]
    [True, False]
    """
    if found == newest_revision():
        return False
    if found is not None and found not in {script.revision for script in _scripts().walk_revisions()}:
        raise StoreError(
            f"{shown} has schema revision {found}; rareswitch {__version__} knows revisions up to "
            f"{newest_revision()}. Open it with a newer release of rareswitch."
        )
    return True


def migrate(connection: Any) -> None:
    """Bring a database to the newest revision, within the transaction of this connection."""
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    scripts = _scripts()
    options = {"version_table": REVISION_TABLE, "fn": lambda found, _: scripts._upgrade_revs("head", found)}
    context = MigrationContext.configure(connection, opts=options)
    with Operations.context(context):
        context.run_migrations()
