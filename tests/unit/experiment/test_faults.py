"""Experiments whose disk is full, whose file is locked, or whose store was edited by hand."""

import resource
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.errors import FileFormatError, InputError, StoreError, UnreachableError
from rareswitch.evaluation import evaluate
from rareswitch.experiment import Choice, Experiment, create, open_experiment
from rareswitch.experiment.description import Description
from rareswitch.experiment.update import Update
from rareswitch.lab.worlds import make_world
from reference.refusals import raises

pytestmark = pytest.mark.usefixtures("short_plans")
BATCH = 12
CONTEXTS = make_world("gaussian", dim=3, arms=4).draw(2000, seed=7).contexts


def begun(url: str) -> Experiment:
    return create(url, "trial", dim=3, horizon=400, policies=8, schedule=BATCH, seed=7, now=0.0)


def serve(trial: Experiment, first: int, stop: int) -> None:
    ids = list(range(first, stop))
    trial.decide_many(CONTEXTS[ids], ids=ids, now=0.0)
    trial.reward_many(ids, [number % 5 / 4 for number in ids], now=0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with an experiment whose second update is due."""
    with begun(f"sqlite:///{tmp_path}/trial.db") as trial:
        serve(trial, 0, BATCH)
        trial.advance(now=0.0)
        serve(trial, BATCH, 2 * BATCH)
    return tmp_path / "trial.db"


def opened(path: Path) -> Experiment:
    return open_experiment(f"sqlite:///{path}", "trial")


@pytest.fixture
def expected() -> str:
    """The policy that the second update makes where nothing is wrong."""
    trial = begun("memory:")
    for first in (0, BATCH):
        serve(trial, first, first + BATCH)
        made = trial.advance(now=0.0)
    return made.policy_id


@contextmanager
def small_disk(path: Path, more: int = 0) -> Iterator[None]:
    """No file may grow beyond what the log of the database is now, but for some bytes."""
    log = Path(f"{path}-wal")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((log.stat().st_size if log.exists() else 0) + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_up_while_decisions_are_made_loses_none_that_was_answered(path: Path) -> None:
    with opened(path) as trial:
        answers: dict[int, Choice] = {}

        def decides() -> None:
            for number in range(100, 2000):
                answers[number] = trial.decide(CONTEXTS[number], id=number, now=0.0)

        with small_disk(path, 100_000), pytest.raises(StoreError, match=r"full\. Nothing of this call was kept"):
            decides()
        assert answers
        stopped = max(answers) + 1
        answers[stopped] = trial.decide(CONTEXTS[stopped], id=stopped, now=0.0)  # as soon as there is room
        assert not answers[stopped].repeated
    with opened(path) as trial:
        assert trial.status(now=0.0).decisions == 2 * BATCH + len(answers)
        found = [trial.audit(number) for number in answers]
        assert all(one.matches for one in found)
        assert [(one.arm, one.propensity) for one in found] == [(str(a.arm), a.propensity) for a in answers.values()]


@pytest.mark.parametrize("when", ["frozen", "published"])
def test_an_update_for_which_there_is_no_room_is_made_when_there_is(
    when: str, path: Path, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as trial:
        serve(trial, 2 * BATCH - 1, 2 * BATCH)  # so that there is a log
        learn, disk = Update.learn, small_disk(path)
        if when == "frozen":
            with disk, pytest.raises(StoreError, match="full"):
                trial.advance(now=0.0)
        else:

            def fills(update: Update) -> Any:
                learned = learn(update)
                disk.__enter__()
                return learned

            monkeypatch.setattr(Update, "learn", fills)
            try:
                raises(StoreError, "full", trial.advance, now=0.0)
            finally:
                disk.__exit__(None, None, None)
            monkeypatch.undo()
        assert trial.store.head() == 2
        assert trial.status(now=0.0).started == (when == "published")
        assert trial.decide(CONTEXTS[500], id=500, now=0.0).version == 2
        assert trial.advance(now=0.0).version == 3
    if when == "published":  # with what it had frozen, before the decision after it
        with opened(path) as trial:
            assert trial.policy.id == expected


def test_a_file_that_another_process_locks_for_a_while_is_waited_for(path: Path, expected: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other, opened(path) as trial:
        for call in (
            lambda: trial.decide(CONTEXTS[BATCH], id=BATCH, now=0.0),
            lambda: trial.reward(BATCH, BATCH % 5 / 4),
            lambda: trial.advance(now=0.0),
        ):
            other.execute("BEGIN IMMEDIATE")
            timer = threading.Timer(0.7, other.execute, ["COMMIT"])
            timer.start()
            call()
            timer.join()
        assert trial.policy.id == expected


def test_callers_who_wait_for_a_file_that_stays_locked_are_told_together(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rareswitch.store.connections.PATIENCE", 0.3)
    with closing(sqlite3.connect(path, isolation_level=None)) as other, opened(path) as trial:
        commit, sizes, problems = trial.store._queue._commit, list[int](), list[StoreError]()

        def counted(jobs: Any) -> None:
            sizes.append(len(jobs))
            commit(jobs)

        def decide(number: int) -> None:
            try:
                trial.decide(CONTEXTS[number], id=number, now=0.0)
            except UnreachableError as error:
                problems.append(error)

        monkeypatch.setattr(trial.store._queue, "_commit", counted)
        other.execute("BEGIN IMMEDIATE")
        callers = [threading.Thread(target=decide, args=(number,)) for number in range(100, 120)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert sum(sizes) == len(problems) == 20  # nobody was tried again alone, which takes as long each time
        assert all("is locked by another process" in str(problem) for problem in problems)
        assert trial.status(now=0.0).decisions == 2 * BATCH  # reading goes on
        other.execute("ROLLBACK")
        assert trial.decide(CONTEXTS[100], id=100, now=0.0).version == 2
        assert trial.status(now=0.0).decisions == 2 * BATCH + 1


def flipped(data: bytes) -> bytes:
    """One bit is another."""
    return data[:-20] + bytes([data[-20] ^ 1]) + data[-19:]


def edit(path: Path, table: str, column: str, change: Callable[[Any], Any], where: str = "true") -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (given,) = connection.execute(f"SELECT {column} FROM rareswitch_{table} WHERE {where}").fetchone()
        changed = change(given)
        assert changed != given
        connection.execute(f"UPDATE rareswitch_{table} SET {column} = ? WHERE {where}", (changed,))


EDITS: dict[str, Callable[[Any], Any]] = {
    "policy": flipped,
    "state": flipped,
    "summaries": flipped,
    "report": lambda text: text.replace('"decided":12', '"decided":13'),
    "signature": lambda text: "null",
}


@pytest.mark.parametrize("part", EDITS)
def test_a_policy_that_was_edited_by_hand_is_refused_by_its_number(part: str, path: Path) -> None:
    with opened(path) as before:
        edit(path, "versions", part, EDITS[part], "number = 2")
        raises(FileFormatError, r"experiment 'trial' in .*: policy 2 of this experiment is not what", opened, path)
        assert before.decide(CONTEXTS[77], id=77, now=0.0).version == 2  # who had read it goes on with what it read
        before.advance(now=0.0)
    with opened(path) as trial:  # policy 3 is as it was published
        assert trial.audit(1).matches
        raises(FileFormatError, "policy 2 of this experiment is not what was published", trial.audit, BATCH)
        serve(trial, 2 * BATCH, 3 * BATCH)
        raises(FileFormatError, "policy 2 of this experiment is not what was published", trial.advance, now=0.0)
        assert trial.store.head() == 3


def test_a_policy_that_was_put_in_the_place_of_another_is_refused(path: Path) -> None:
    with opened(path) as trial:
        first = trial.store.versions()[0]
    edit(path, "versions", "policy", lambda _: first.policy, "number = 2")
    raises(FileFormatError, "policy 2 of this experiment is not what was published", opened, path)


@pytest.mark.parametrize(
    ("was", "is_now", "message"),
    [
        ('"seed":7', '"seed":8', "it does not have the hash that was kept with it"),
        ('"seed":7', '"seed":', "its description was damaged or edited: it is damaged"),
        ('"signature":{', '"signature":null,"more":{', "its description was damaged or edited"),
    ],
)
def test_a_description_that_was_edited_by_hand_is_refused(was: str, is_now: str, message: str, path: Path) -> None:
    edit(path, "experiments", "description", lambda text: text.replace(was, is_now, 1))
    raises(FileFormatError, f"experiment 'trial' in .*{message}", opened, path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context_sample_rate": 7.0}, "description of the experiment is damaged.*context_sample_rate"),
        ({"more": 1}, "description of the experiment is damaged.*more"),
        ({"learner": "nobody"}, "the learner 'nobody', which this process does not have"),
        ({"warm_start": {"decisions": "many", "rewarded": 1}}, "description of the experiment is damaged.*int"),
        ({"schema": 2}, "experiments have schema 1; this one has 2"),
    ],
)
def test_a_description_of_another_kind_is_refused(change: dict[str, Any], message: str) -> None:
    raises(InputError, message, Description.from_plain, begun("memory:").description.to_plain() | change)


@pytest.mark.parametrize("column", ["propensity", "arm_index", "features"])
def test_an_audit_finds_a_decision_that_was_edited_by_hand(column: str, path: Path) -> None:
    changes: dict[str, Callable[[Any], Any]] = {
        "propensity": lambda value: np.nextafter(value, 2.0),
        "arm_index": lambda arm_index: (arm_index + 1) % 4,
        "features": flipped,
    }
    edit(path, "decisions", column, changes[column], "id = '5'")
    with opened(path) as trial:
        assert [number for number in range(2 * BATCH) if not trial.audit(number).matches] == [5]
        assert trial.audit(5).verdict == "differs"
        assert "DIFFERS: the policy now gives " in str(trial.audit(5))


def test_policies_that_were_taken_back_are_missed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM rareswitch_versions WHERE number = 2")
    with opened(path) as trial:
        trial.store.abandon_update(1)  # what was frozen of it would make the same policy again
        for use in (lambda: evaluate(trial, "uniform"), lambda: trial.advance(now=0.0, force=True)):
            raises(StoreError, r"policy 2 of experiment 'trial' has decided, and .* holds 1: .*Restore", use)
        assert trial.store.head() == 1
