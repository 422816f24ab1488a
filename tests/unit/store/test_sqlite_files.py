"""Who else opens, closes, forks, deletes or replaces the file of an experiment: what was acknowledged stays."""

import itertools
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.errors import StoreError
from rareswitch.experiment import Experiment, create, open_experiment
from rareswitch.store import open_store
from reference.refusals import raises
from reference.rows import decision, decisions, version

VECTORS = np.eye(2)
MANY = 6
#: Opens a file as any other program would, says so, and closes it when it is told to.
BYSTANDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM rareswitch_decisions").fetchall()
print("open", flush=True)
sys.stdin.read()
connection.close()
"""
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")


class Bystander:
    """Another process that has a file open."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-I", "-c", BYSTANDER, str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"open\n"

    def close(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0


def serve(trial: Experiment, first: int) -> None:
    for number in range(first, first + MANY):
        trial.decide(VECTORS, id=number)
        trial.reward(number, 1.0)


def in_child(call: Callable[[], object], seconds: int = 60) -> Any:
    """What a call gives in a forked process, or the text of its error; 'ended' where it was killed, or hung."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        try:
            result: object = call()
        except StoreError as error:
            result = str(error)
        except BaseException as error:
            result = repr(error)
        os.write(writing, json.dumps(result).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else "ended"


# others that open and close the file


@forks
@pytest.mark.parametrize(
    ("second", "order"),
    [
        *(("b", order) for order in itertools.permutations(("first", "second", "bystander"))),
        *((name, ("killed",)) for name in "ab"),
    ],
    ids=str,
)
def test_whoever_opens_and_closes_the_file_nothing_acknowledged_is_lost(
    second: str, order: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "trial.db"
    url = f"sqlite:///{path}"

    def live() -> None:
        first = create(url, "a", dim=2)
        other = create(url, "b", dim=2) if second == "b" else open_experiment(url, "a")
        Bystander(path).close()
        serve(first, 0)
        bystander = Bystander(path)
        serve(first, MANY)
        closes = {"first": first.close, "second": other.close, "bystander": bystander.close}
        for name in order:
            if name == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            closes[name]()

    assert in_child(live) == (None if order != ("killed",) else "ended")
    Bystander(path).close()
    with open_experiment(url, "a") as trial:
        (batch,) = trial.status().batches
        assert (batch.decisions, batch.rewarded) == (2 * MANY, 2 * MANY)


def test_a_file_that_is_there_is_opened_by_the_database_alone(tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    with closing(open_store(f"sqlite:///{path}", "a")) as store:
        store.create("{}", version(1))
        opened: list[str] = []

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event == "open" and watching:
                opened.append(str(arguments[0]))

        watching = True
        sys.addaudithook(hook)  # for good: there is no way to remove one
        with closing(open_store(f"sqlite:///{path}", "b")) as other:
            other.create("{}", version(1))
            other.add_decisions(decisions(range(3)))
        watching = False
        assert [name for name in opened if name.startswith(str(path))] == []


@pytest.mark.parametrize("harm", ["copied here", "deleted", "replaced", "log deleted"])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(harm: str, tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    url = f"sqlite:///{path}"
    with create(url, "a", dim=2) as trial, open_experiment(url, "a") as second:
        serve(trial, 0)
        trial.backup(tmp_path / "copy.db")
        if harm == "copied here":  # which drops the locks of this process, so that another one deletes the log
            shutil.copy(path, tmp_path / "harmful.db")
            Bystander(path).close()
        elif harm == "log deleted":
            Path(f"{path}-wal").unlink()
        else:
            for file in tmp_path.glob("trial.db*"):
                file.unlink()
        if harm == "replaced":
            shutil.copy(tmp_path / "copy.db", path)
        for call in (
            lambda: trial.decide(VECTORS, id=99),
            lambda: trial.reward(0, 1.0),
            lambda: trial.decide_many([VECTORS] * 3, ids=[100, 101, 102]),
            lambda: second.decide(VECTORS, id=99),
            lambda: open_experiment(url, "a"),  # not before all are closed
        ):
            raises(StoreError, r"trial\.db.*(was deleted or replaced|there is no file)", call)
    if harm in ("copied here", "replaced"):
        with open_experiment(url, "a") as trial:
            assert trial.status().decisions == MANY
            serve(trial, MANY)
            assert trial.status().decisions == 2 * MANY


# copies


def test_a_backup_that_is_made_while_others_decide_opens_and_verifies(tmp_path: Path) -> None:
    with create(f"sqlite:///{tmp_path}/trial.db", "a", dim=2, schedule=[MANY, 1000]) as trial:
        serve(trial, 0)
        assert trial.advance().made
        with deciding(trial):
            copies = [tmp_path / f"copy-{number}.db" for number in range(3)]
            for copy in copies:
                trial.backup(copy)
        whole = trial.status().decisions
        raises(StoreError, r"there is a file .* already", trial.backup, copies[0])
    counts = []
    for copy in copies:
        assert (copy.stat().st_mode & 0o777, [*copy.parent.glob(f"{copy.name}?*")]) == (0o600, [])
        with open_experiment(f"sqlite:///{copy}", "a") as restored:
            assert restored.verify().holds
            counts.append(restored.status().decisions)
            serve(restored, 5000)
            assert restored.status().decisions == counts[-1] + MANY
    assert MANY <= counts[0] <= counts[1] <= counts[2] <= whole
    assert counts[2] > counts[0]


def test_what_is_no_file_says_how_it_is_copied(postgres: str, tmp_path: Path) -> None:
    for url, remedy in (("memory:", "copy_experiment"), (postgres, "pg_dump")):
        with create(url, "a", dim=2) as trial, pytest.raises(StoreError, match=remedy):
            trial.backup(tmp_path / "copy.db")


# forks


@forks
def test_a_store_that_is_open_at_a_fork_refuses_in_the_child(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trial.db"
    with create(url, "a", dim=2) as trial:
        calls: list[Callable[[], object]] = [
            *(lambda: trial.decide(VECTORS, id=1), lambda: trial.reward(1, 1.0), trial.status, trial.advance),
            *(lambda: open_experiment(url, "a"), lambda: create(url, "b", dim=2)),
            lambda: in_child(lambda: open_experiment(url, "a")),  # and in a child of the child
        ]
        for call in calls:
            assert "'spawn'" in in_child(call)
        assert in_child(trial.close) is None
        trial.decide(VECTORS, id=1)
    assert in_child(lambda: open_experiment(url, "a").status().decisions) == 1  # nobody has it open any more


@forks
def test_what_a_child_was_acknowledged_is_kept_whenever_its_parent_opens_and_closes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trial.db"
    create(url, "a", dim=2).close()

    def live() -> int:
        with open_experiment(url, "a") as trial:
            serve(trial, 0)
            return trial.status().decisions

    assert in_child(live) == MANY
    with open_experiment(url, "a") as trial:
        assert trial.status().decisions == MANY


@contextmanager
def deciding(trial: Experiment) -> Iterator[None]:
    """Threads that decide all the while."""
    ended, number = threading.Event(), itertools.count(1000)

    def decide() -> None:
        while not ended.is_set():
            trial.decide(VECTORS, id=next(number))

    threads = [threading.Thread(target=decide) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@forks
def test_a_child_that_is_forked_while_threads_decide_does_not_hang(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trial.db"

    def tries() -> list[str]:
        said = []
        for call in (
            *(lambda: trial.decide(VECTORS, id=1), lambda: trial.reward(1, 1.0), trial.status, trial.close),
            lambda: open_experiment(url, "a"),
        ):
            try:
                call()
                said.append("")
            except StoreError as error:
                said.append("spawn" if "'spawn'" in str(error) else str(error))
        return said

    with create(url, "a", dim=2) as trial, deciding(trial):
        answers = [in_child(tries, seconds=30) for _ in range(12)]
    assert answers == [["spawn", "spawn", "spawn", "", "spawn"]] * 12


def in_spawned(url: str) -> None:
    with open_experiment(url, "a") as trial:
        serve(trial, MANY)


def test_a_process_that_is_spawned_opens_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/trial.db"
    with create(url, "a", dim=2) as trial:
        serve(trial, 0)
        process = multiprocessing.get_context("spawn").Process(target=in_spawned, args=(url,))
        process.start()
        process.join()
        assert (process.exitcode, trial.status().decisions) == (0, 2 * MANY)


@forks
def test_slices_of_a_store_that_is_open_in_the_parent_are_refused_in_the_child(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/trial.db", "a")) as store:
        store.create("{}", version(1))
        store.add_decisions([decision(number) for number in range(5)])
        (part,) = store.slices(1, store.marks(), sums=False)
        assert "'spawn'" in in_child(lambda: len(next(part.read())))
