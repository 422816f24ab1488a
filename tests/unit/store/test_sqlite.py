"""What is special about SQLite."""

import os
import pickle
import queue
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rareswitch.errors import MissingExtraError, StoreError
from rareswitch.executors import make_executor, run_shards
from rareswitch.experiment import create
from rareswitch.store import Marks, Slice, open_store
from rareswitch.store.sql_writer import Job
from rareswitch.store.sqlite import SqliteStore
from rareswitch.store.sqlite_reader import SqliteReader
from reference.rows import decision, decisions, reward, version


def read(part: Slice) -> list[object]:
    return part.read().to_pylist()  # type: ignore[no-any-return]


def test_a_slice_reads_the_same_by_cursor_by_a_reader_and_in_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/100% ?#.db", "trial")) as store:
        store.create("{}", version(1))
        store.add_decisions(decisions(range(50)))
        store.add_rewards([reward(number, 0.5 * number) for number in range(0, 50, 3)])
        marks = store.start_update(1, "{}")
        assert marks is not None
        (part,) = store.slices(1, marks[1], sums=False)
        by_cursor = read(part)
        monkeypatch.setattr("rareswitch.store.sqlite.ROWS", 10)
        assert read(part) == by_cursor
        with make_executor("processes:1") as executor:
            assert list(run_shards(read, [part], executor)) == [by_cursor]
        assert pickle.loads(pickle.dumps(part)) == part
    assert [row["reward"] for row in by_cursor[:4]] == [0.0, None, None, 1.5]  # type: ignore[index]


def test_a_reader_says_what_is_wrong_and_goes_on(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/trial.db", "trial")) as store:
        store.create("{}", version(1))
    reader = SqliteReader()
    with pytest.raises(StoreError, match=r"trial\.db.*no such table: absent"):
        reader.tables(str(tmp_path / "trial.db"), ["SELECT * FROM absent"])[0]
    names = reader.tables(str(tmp_path / "trial.db"), ["SELECT name FROM rareswitch_experiments"])[0]
    assert names.to_pydict() == {"name": ["trial"]}
    reader.close()


def test_decisions_are_kept_without_waiting(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "50% of it?.db", "trial")) as store:
        store.create("{}", version(1))
        answers: queue.SimpleQueue[object] = queue.SimpleQueue()
        store.add_decisions([decision(1)])
        store.post_decisions([decision(1, arm="b"), decision(2)], answers.put)
        assert answers.get(timeout=20) == [decision(1), decision(2)]
        store.post_decisions([decision(3)._replace(place=1 << 70)], answers.put)
        refused = answers.get(timeout=20)
        assert isinstance(refused, StoreError)
        assert [one.decisions for one in store.counts()] == [2]


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="readers do not end by themselves here")
def test_a_reader_that_ends_when_it_is_asked_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/trial.db", "trial")) as store:
        store.create("{}", version(1))
    reader, start, started = SqliteReader(), SqliteReader._started, list[int]()

    def ending(self: SqliteReader) -> "subprocess.Popen[bytes]":
        process = start(self)
        started.append(process.pid)
        if len(started) == 1:
            process.send_signal(signal.SIGALRM)
            process.wait()
        return process

    monkeypatch.setattr(SqliteReader, "_started", ending)
    names = reader.tables(str(tmp_path / "trial.db"), ["SELECT name FROM rareswitch_experiments"])[0]
    reader.close()
    assert (names.to_pydict(), len(started)) == ({"name": ["trial"]}, 2)


def test_an_answer_that_was_not_read_is_not_that_of_the_next_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(_: object) -> None:
        raise MemoryError

    path, reader = str(tmp_path / "trial.db"), SqliteReader()
    with closing(open_store(f"sqlite:///{path}", "trial")) as store:
        store.create("{}", version(1))
    arrow = SimpleNamespace(ipc=SimpleNamespace(open_file=None), memory_map=no_memory, ArrowInvalid=ValueError)
    with monkeypatch.context() as patch:
        patch.setattr("rareswitch.store.sqlite_reader.pyarrow", lambda: (arrow, None))
        with pytest.raises(MemoryError):
            reader.tables(path, ["SELECT 1 AS one"])[0]
    assert reader.tables(path, ["SELECT 2 AS two"])[0].to_pydict() == {"two": [2]}
    reader.close()


class UnseenCommit(SqliteStore):
    """A store whose first commit is made, and seems to fail."""

    seen = False

    def _try_commit(self, jobs: list[Job]) -> None:
        super()._try_commit(jobs)
        if not self.seen:
            self.seen = True
            error = sqlite3.OperationalError("gone before it answered")
            error.sqlite_errorname = "SQLITE_BUSY"
            raise error


def test_an_experiment_whose_creation_was_not_seen_to_end_is_there_once(tmp_path: Path) -> None:
    with closing(UnseenCommit(tmp_path / "trial.db", "trial")) as store:
        store.create("{}", version(1))
        assert (store.names(), store.head()) == (["trial"], 1)
        with pytest.raises(StoreError, match="already"):
            store.create("{}", version(1))


def test_a_closed_store_opens_no_connections(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "trial.db", "trial")) as store:
        store.create("{}", version(1))
        store.head()
    with pytest.raises(StoreError, match="closed"):
        store.head()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_process_that_was_forked_reads_by_a_reader_of_its_own(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/trial.db", "trial")) as store:
        store.create("{}", version(1))
    reader, query = SqliteReader(), (str(tmp_path / "trial.db"), ["SELECT name FROM rareswitch_experiments"])
    reader.start()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # where it waits for the reader of its parent
        named = reader.tables(*query)[0].to_pydict()
        reader.close()
        os._exit(0 if named == {"name": ["trial"]} else 1)
    try:
        assert os.waitpid(child, 0)[1] == 0
        assert reader.tables(*query)[0].to_pydict() == {"name": ["trial"]}
    finally:
        reader.close()


def test_a_slice_without_decisions_is_read(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/trial.db", "trial")) as store:
        store.create("{}", version(1))
        assert store.slices(1, Marks(0, 0), sums=False) == []


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rareswitch\[experiment\]'"):
        create(f"sqlite:///{tmp_path / 'new.db'}", "spring", dim=2)
    assert not list(tmp_path.iterdir())


def test_the_connection_that_writes_has_a_log_and_synchronizes_it(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "trial.db", "trial")) as store:
        store.create("{}", version(1))

        def asked(connection: Any) -> list[object]:
            return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]

        assert store._submit(Job(call=asked)) == ["wal", 2]  # 2: FULL
        assert store._read(asked) == ["wal", 2]


#: Decides and says so, by one write each.
DECIDES = """
import os, sys
import numpy as np
from rareswitch import create
with create(f"sqlite:///{sys.argv[1]}", "trial", dim=2) as trial:
    for number in range(5):
        choice = trial.decide(np.eye(2), id=number)
        os.write(1, f"decided {choice.id}\\n".encode())
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_decision_is_answered_after_its_log_is_on_the_disk(tmp_path: Path) -> None:
    trace, calls = tmp_path / "trace", "openat,write,pwrite64,fsync,fdatasync"
    command = ["strace", "-f", "-y", "-o", str(trace), "-e", f"trace={calls}", sys.executable, "-c", DECIDES]
    run = subprocess.run([*command, str(tmp_path / "trial.db")], capture_output=True, text=True)
    if "ptrace" in run.stderr and run.returncode:
        pytest.skip("processes may not be traced here")
    assert run.stdout.split("\n")[:5] == [f"decided {number}" for number in range(5)], run.stderr
    log, unsynchronized, answers, synchronized = "trial.db-wal>", False, 0, 0
    for line in trace.read_text().splitlines():
        if log in line and "pwrite64(" in line:
            unsynchronized = True
        elif log in line and "sync(" in line and "unfinished" not in line:
            assert line.endswith("= 0")
            unsynchronized, synchronized = False, synchronized + 1
        elif "sync resumed" in line:
            unsynchronized, synchronized = False, synchronized + 1
        elif '"decided ' in line and "write(1<" in line:
            assert not unsynchronized, line
            answers += 1
            assert synchronized > answers  # one for each, and those of creation
    assert answers == 5
