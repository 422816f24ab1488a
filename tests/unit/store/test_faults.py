"""Databases that are full, locked, damaged, gone or of another release."""

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest

from rareswitch.errors import ParameterError, StoreError
from rareswitch.store import Store, experiment_names, open_store
from rareswitch.store.rows import SCHEMA
from rareswitch.store.sqlite import LOG_STEP, SqliteConnection, size_of
from reference.postgres import database, start
from reference.refusals import raises
from reference.rows import decision, decisions, reward, version


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with an experiment 'trial' of 3 decisions."""
    with closing(open_store(f"sqlite:///{tmp_path}/trial.db", "trial")) as store:
        store.create("{}", version(1))
        store.add_decisions(decisions(range(3)))
    return tmp_path / "trial.db"


def opened(path: Path) -> "closing[Store]":
    return closing(open_store(f"sqlite:///{path}", "trial"))


def kept(store: Store) -> int:
    return sum(one.decisions for one in store.counts())


@contextmanager
def without_rights(path: Path) -> Iterator[None]:
    """The file and its folder can be read and not written; for root too, who then is nobody for a while."""
    for folder in (path.parent, *path.parent.parents[:-2]):
        os.chmod(folder, folder.stat().st_mode | 0o055)
    os.chmod(path, 0o444)
    os.chmod(path.parent, 0o555)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)
        yield
    finally:
        os.seteuid(user)
        os.chmod(path.parent, 0o755)
        os.chmod(path, 0o600)


def test_a_file_on_read_only_media_can_be_read_and_not_written(path: Path) -> None:
    with without_rights(path), opened(path) as store:
        assert (kept(store), store.head(), store.totals().rewards) == (3, 1, 0)
        assert [len(next(part.read())) for part in store.slices(1, store.marks(), sums=False)] == [3]
        raises(StoreError, "read-only", store.add_decisions, [decision(7)])
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    with opened(path) as store:
        assert store.add_decisions([decision(7)]) == [decision(7)]
        assert kept(store) == 4


def test_a_damaged_page_is_reported(path: Path) -> None:
    with opened(path) as store:
        store.add_decisions([decision(number, kept=True) for number in range(3, 3000)])
        marks = store.start_update(1, "{}")
        slices = store.slices(1, marks[1], sums=False)
    data = bytearray(path.read_bytes())
    data[40 * 4096 : -4096] = os.urandom(len(data) - 41 * 4096)
    path.write_bytes(data)
    with opened(path) as store:
        for call in (
            lambda: store.slices(1, marks[1], sums=False),
            lambda: next(replace(slices[0], store=store).read()),
            lambda: store.add_decisions(decisions(range(5000, 6000))),
            lambda: store.find([decision(number).key for number in range(3000)]),
        ):
            raises(StoreError, r"damaged.*restore the file from a copy", call)


@pytest.mark.parametrize("content", [b"not a database, whatever its name says\n" * 500, b"PAR1" + bytes(5000)])
def test_a_file_that_is_no_database_is_reported_and_left_alone(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    path.write_bytes(content)
    with opened(path) as store, pytest.raises(StoreError, match="not an SQLite database"):
        store.head()
    with opened(path) as store, pytest.raises(StoreError, match="not an SQLite database"):
        store.create("{}", version(1))
    assert path.read_bytes() == content


def test_opening_never_makes_a_file(tmp_path: Path) -> None:
    path = tmp_path / "absent.db"
    with opened(path) as store:
        for call in (store.head, store.description, store.totals, lambda: store.add_decisions([decision(1)])):
            raises(StoreError, "there is no file", call)
    assert not path.exists()
    with opened(tmp_path / "nowhere" / "trial.db") as store, pytest.raises(StoreError, match="No such file"):
        store.create("{}", version(1))
    with opened(tmp_path) as store, pytest.raises(StoreError, match="there is no file"):
        store.head()


def test_an_empty_file_and_a_foreign_database_hold_no_experiments(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as foreign:
        foreign.execute("CREATE TABLE users (name TEXT)")
    for name in ("empty.db", "foreign.db"):
        with opened(tmp_path / name) as store, pytest.raises(StoreError, match="holds no experiments"):
            store.head()
        with opened(tmp_path / name) as store:
            store.create("{}", version(1))
            assert store.head() == 1


def test_another_name_is_refused_with_those_that_are_there(path: Path) -> None:
    with (
        closing(open_store(f"sqlite:///{path}", "trail")) as store,
        pytest.raises(StoreError, match=r"no experiment 'trail'.*'trial'"),
    ):
        store.add_decisions([decision(1)])
    assert experiment_names(f"sqlite:///{path}") == ["trial"]


@pytest.mark.parametrize("schema", [0, 99])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_another_schema_is_refused_and_both_versions_named(
    kind: str, schema: int, path: Path, postgres_server: str
) -> None:
    with database(postgres_server, f"later-{uuid4().hex}") as url:
        changed = f"UPDATE rareswitch_schema SET version = {schema}"
        if kind == "sqlite":
            url = f"sqlite:///{path}"
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute(changed)
        else:
            with closing(open_store(url, "trial")) as store:
                store.create("{}", version(1))
            with psycopg.connect(url) as remote:
                remote.execute(changed.encode())
        told = rf"schema version {schema};.*writes version {SCHEMA}\. Open it with"
        with closing(open_store(url, "trial")) as store:
            raises(StoreError, told, store.head)
            raises(StoreError, told, store.create, "{}", version(1))


@pytest.mark.parametrize("kind", ["new", "empty", "foreign"])
def test_a_file_is_for_its_owner_alone_when_it_holds_an_experiment(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "there.db"
    if kind != "new":
        path.touch()
    if kind == "foreign":
        with closing(sqlite3.connect(path)) as foreign:
            foreign.execute("PRAGMA journal_mode = WAL")
            foreign.execute("CREATE TABLE users (name TEXT)")
    if kind != "new":
        path.chmod(0o644)
    with opened(path) as store:
        store.create("{}", version(1))
        assert {entry.stat().st_mode & 0o777 for entry in tmp_path.iterdir()} == {0o600}
    path.chmod(0o640)  # by somebody who wants it so
    with closing(open_store(f"sqlite:///{path}", "second")) as store:
        store.create("{}", version(1))
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_queue_that_is_full_answers_busy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rareswitch.store.connections.QUEUE_PATIENCE", 0.1)
    monkeypatch.setattr("rareswitch.store.connections.MOST_WAITING", 3)
    with closing(sqlite3.connect(path, isolation_level=None)) as other, opened(path) as store:
        store.add_decisions([decision(9)])
        other.execute("BEGIN IMMEDIATE")
        callers = [threading.Thread(target=store.add_decisions, args=([decision(20 + k)],)) for k in range(4)]
        for caller in callers:  # the first one leads, the others wait
            caller.start()
            time.sleep(0.05)
        raises(StoreError, r"busy: 3 calls wait.*Nothing was kept", store.add_decisions, [decision(30)])
        other.execute("ROLLBACK")
        for caller in callers:
            caller.join()
        assert kept(store) == 8


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_cannot_be_kept_is_refused_and_others_of_its_group_are_kept(
    kind: str, path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{path}" if kind == "sqlite" else str(request.getfixturevalue("postgres"))
    with closing(open_store(url, uuid4().hex)) as store:
        store.create("{}", version(1))
        wrong = decision(1)._replace(arm_index=1 << 70)
        problems: list[StoreError] = []

        def add(row: Any) -> None:
            try:
                store.add_decisions([row])
            except StoreError as error:
                problems.append(error)

        callers = [threading.Thread(target=add, args=(row,)) for row in (decision(0), wrong, *decisions(range(2, 9)))]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert kept(store) == 8
        (problem,) = problems
        assert "refuses what was given" in str(problem)
        with pytest.raises(StoreError, match="refuses what was given"):
            store.add_decisions([decision(11), decision(12)._replace(propensity=None)])  # type: ignore[arg-type]
        assert kept(store) == 8


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A PostgreSQL server that may be stopped, with a role that has a password."""
    import tempfile

    server = start(Path(tempfile.mkdtemp(prefix="rareswitch-postgres-")))
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE ROLE ann LOGIN PASSWORD 'spring-secret'")
            connection.execute("GRANT ALL ON SCHEMA public TO ann")
            rules = Path(connection.execute("SHOW hba_file").fetchone()[0])
            rules.write_text("local all ann scram-sha-256\n" + rules.read_text())
            connection.execute("SELECT pg_reload_conf()")
        yield server
    finally:
        server.cleanup()


def by_ann(server: Any, password: str) -> str:
    parts = urlsplit(str(server.get_uri()))
    return parts._replace(netloc=f"ann:{password}@{parts.netloc.rpartition('@')[2]}").geturl()


def test_a_wrong_password_is_reported_and_never_shown(own_server: Any, caplog: pytest.LogCaptureFixture) -> None:
    with (
        closing(open_store(by_ann(own_server, "winter-secret"), "trial")) as store,
        pytest.raises(StoreError, match=r"ann:\*\*\*@.*password authentication failed") as caught,
    ):
        store.head()
    with closing(open_store(by_ann(own_server, "spring-secret"), "trial")) as store:
        store.create("{}", version(1))
        store.add_decisions([decision(1)])
        marks = store.start_update(1, "{}")
        slices = store.slices(1, marks[1], sums=False)
        assert len(next(slices[0].read())) == 1
        shown = f"{caught.value}{store.url}{store!r}{slices!r}{slices[0]}{caplog.text}"
    assert "secret" not in shown


@pytest.mark.parametrize(
    "url", ["postgresql://ann:secret@host:port/x", "mysql://ann:secret@host/x", "sqlite://ann:secret@host", "x.csv", ""]
)
def test_other_addresses_are_refused_without_what_is_secret_in_them(url: str) -> None:
    with pytest.raises(ParameterError, match=r"^url ") as caught:
        open_store(url, "trial")
    assert "secret" not in str(caught.value)


def test_a_server_that_is_gone_for_a_while_costs_nothing_but_time(own_server: Any) -> None:
    with closing(open_store(own_server.get_uri(), "gone")) as store:
        store.create("{}", version(1))
        acknowledged: list[int] = []
        ending = threading.Event()

        def add() -> None:
            while not ending.is_set():
                number = len(acknowledged)
                assert store.add_decisions([decision(number)])[0].key == decision(number).key
                store.add_rewards([reward(number, 1.0)])
                acknowledged.append(number)

        caller = threading.Thread(target=add)
        caller.start()
        while len(acknowledged) < 20:
            time.sleep(0.01)
        own_server.stop()
        before = len(acknowledged)
        time.sleep(2.0)
        assert len(acknowledged) <= before + 1
        own_server.start()
        assert store.head() == 1
        while len(acknowledged) < before + 20 and caller.is_alive():
            time.sleep(0.01)
        ending.set()
        caller.join()
        assert len(acknowledged) >= before + 20
        found = store.find([decision(number).key for number in acknowledged])
        assert all(row is not None and row[1] == [reward(n, 1.0)] for n, row in zip(acknowledged, found, strict=True))
        assert kept(store) == len(acknowledged)


def test_a_server_that_stays_away_is_reported(own_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rareswitch.store.connections.PATIENCE", 0.3)
    address = f"{own_server.get_uri().partition('?')[0]}?host=/nowhere"
    with closing(open_store(address, "trial")) as store, pytest.raises(StoreError, match=r"cannot be reached.*tried"):
        store.head()


def test_a_store_whose_disk_is_full_cannot_be_written_to(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is written as it is goes into room that is there already."""
    with opened(path) as store:
        store.check_writable()
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))
            raises(StoreError, "trial.db cannot grow: its disk has 4,096 bytes left. Make room.", store.check_writable)
        store.check_writable()


def test_a_log_gives_the_disk_back_before_it_has_filled_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds a page for each commit that changed it, and is emptied where it is longer than what is left."""
    free, log = 1 << 19, Path(f"{path}-wal")
    lengths = list[int]()
    with opened(path) as store, opened(path) as other:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free - size_of(log)))
        for number in range(10, 210):
            assert store.add_decisions([decision(number)]) == [decision(number)]
            lengths.append(size_of(log))
            assert kept(other) == number - 6
    assert max(lengths) < free / 2 + LOG_STEP + 100 * 4096
    assert sum(after < before for before, after in pairwise(lengths)) > 1


def test_a_writer_that_found_no_room_empties_the_log_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(":memory:")) as limited:
        limited.execute("PRAGMA max_page_count = 1")
        with pytest.raises(sqlite3.OperationalError) as caught:
            limited.execute("CREATE TABLE full (x)")

    def refuse(*_: Any) -> Any:
        raise caught.value

    with opened(path) as store:
        for number in range(10, 50):
            store.add_decisions([decision(number)])
        log, held = Path(f"{path}-wal"), size_of(f"{path}-wal")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
        with monkeypatch.context() as patch:
            patch.setattr(SqliteConnection, "added", refuse)
            raises(StoreError, "the disk is full", store.add_decisions, [decision(60)])
        assert size_of(log) == held > 100 * 4096
        assert store.add_decisions([decision(60)]) == [decision(60)]
        assert size_of(log) < held / 4
        assert kept(store) == 44
