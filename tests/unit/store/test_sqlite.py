"""What is special about SQLite."""

import pickle
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.core import make_executor, run_shards
from rareswitch.errors import StoreError
from rareswitch.store import Job, Slice, open_store
from rareswitch.store.sqlite import SqliteStore
from reference.refusals import raises
from reference.rows import decisions, reward, version


def read(part: Slice) -> list[object]:
    (columns,) = part.read()
    return [columns.ids.tolist(), columns.features.tolist(), np.nan_to_num(columns.rewards, nan=-1.0).tolist()]


@pytest.mark.parametrize("url", ["sqlite:///{}/100% ?#.db", "memory:"])
def test_a_slice_reads_the_same_in_a_worker(url: str, tmp_path: Path) -> None:
    with closing(open_store(url.format(tmp_path), "trial")) as store:
        store.create("{}", version(1))
        store.add_decisions(decisions(range(50)))
        store.add_rewards([reward(number, 0.5 * number) for number in range(0, 50, 3)])
        marks = store.start_update(1, "{}")
        (part,) = store.slices(1, marks[1], sums=False)
        rows = read(part)
        with make_executor("processes:1") as executor:
            assert list(run_shards(read, [part], executor)) == [rows]
        assert read(pickle.loads(pickle.dumps(part))) == rows
    assert rows[2][:4] == [0.0, -1.0, -1.0, 1.5]


class UnseenCommit(SqliteStore):
    """A store whose first commit is made, and seems to fail."""

    seen = False

    def _try_commit(self, jobs: Sequence[Job]) -> None:
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
        raises(StoreError, "already", store.create, "{}", version(1))


def test_the_connection_that_writes_has_a_log_and_synchronizes_it(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "trial.db", "trial")) as store:
        store.create("{}", version(1))

        def asked(connection: Any) -> list[object]:
            return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]

        assert store._write(asked) == ["wal", 2]  # 2: FULL
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
    trace, calls = tmp_path / "trace", "trace=write,pwrite64,fsync,fdatasync"
    command = ["strace", "-f", "--seccomp-bpf", "-y", "-o", str(trace), "-e", calls, sys.executable, "-c", DECIDES]
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
