"""Stores by their URLs."""

from rareswitch.errors import ParameterError
from rareswitch.store.sqlite import MemoryStore, SqliteStore
from rareswitch.store.store import Store

__all__ = ["experiment_names", "open_store"]

SQLITE, POSTGRES = "sqlite:///", ("postgresql://", "postgres://")
FILES = (".db", ".sqlite", ".sqlite3")


def open_store(url: str, name: str) -> Store:
    """The store of one experiment; nothing is made or looked at before the first call.

    Parameters
    ----------
    url
        ``memory:``; ``sqlite:///spring.db`` (four slashes before an absolute path) or a path that ends in ``.db``,
        ``.sqlite`` or ``.sqlite3``; ``postgresql://user:password@host/database``.
    name
        Of the experiment: a database holds any number of them.

    Examples
    --------
    >>> open_store("sqlite:///spring.db", "campaign").url
    'sqlite:///spring.db'
    >>> open_store("postgresql://ann:secret@localhost/trials", "campaign").url
    'postgresql://ann:***@localhost/trials'
    """
    if not isinstance(name, str) or not name or len(name) > 200 or not name.isprintable():
        raise ParameterError(f"name must be 1 to 200 printable characters; got {name!r:.100}.")
    if url == "memory:":
        return MemoryStore(name)
    return _database(str(url), name)


def experiment_names(url: str) -> list[str]:
    """The experiments that a database holds, the oldest first."""
    if url == "memory:":
        return []
    store = _database(str(url), "")
    try:
        return store.names()
    finally:
        store.close()


def _database(url: str, name: str) -> Store:
    if url.startswith(POSTGRES):
        from rareswitch.store.postgres import PostgresStore

        return PostgresStore(url, name)
    path = url.removeprefix(SQLITE)
    bare = "://" not in url and not url.startswith("sqlite:") and path.endswith(FILES)
    if path and path != ":memory:" and "\0" not in path and (bare or url.startswith(SQLITE)):
        return SqliteStore(path, name)
    scheme = url.partition("://")[0] + "://…" if "://" in url else url  # what comes after may hold a password
    raise ParameterError(
        f"url must be memory:, sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE; got {scheme!r:.100}."
    )
