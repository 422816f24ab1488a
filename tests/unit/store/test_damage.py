"""Bytes of a file that change: the same numbers, or an error that says so."""

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.decisions import ArmCodes
from rareswitch.errors import StoreError
from rareswitch.experiment import create, open_experiment
from rareswitch.store import DecisionRow, RewardRow, open_store
from reference.refusals import raises
from reference.rows import decision, reward, version

FLIPS = 80
READ = ("ids", "features", "propensities", "times", "rewards", "reward_times")


def content(path: Path) -> Any:
    """All that is learned from, evaluated and shown of an experiment."""
    with closing(open_store(f"sqlite:///{path}", "spring")) as store:
        marks = store.marks()
        return (
            store.counts(),
            [
                [np.nan_to_num(getattr(log, name), nan=-1.0).tolist() for log in part.read() for name in READ]
                for number in (1, 2)
                for part in store.slices(number, marks, sums=True, window=1e12)
            ],
            [
                [np.asarray(column, dtype=object).tolist() for column in part.read_offers(ArmCodes())[2].values()]
                for number in (1, 2)
                for part in store.slices(number, marks, sums=True)
            ],
            [list(store.sample(number, marks)) for number in (1, 2)],
            [evaluated(row, rewards) for page in store.rows(0, marks) for row, rewards in page],
        )


def evaluated(row: DecisionRow, rewards: list[RewardRow]) -> Any:
    """What is evaluated of a decision: names and places only where its context set was kept."""
    learned = row.key, row.version, row.propensity, row.features, row.time
    return (learned if row.contexts is None else row), [(one.key, one.value, one.time) for one in rewards]


def test_flipped_bytes_give_the_same_numbers_or_an_error(tmp_path: Path) -> None:
    path, damaged = tmp_path / "trial.db", tmp_path / "damaged.db"
    with closing(open_store(f"sqlite:///{path}", "spring")) as store:
        store.create("{}", version(1))
        rows = [decision(number, of=1 + number // 100, kept=number % 2 == 0) for number in range(150)]
        store.add_decisions(rows)
        store.add_rewards([reward(number, 0.1 * number) for number in range(140)])
        store.add_rewards([reward(number, 5.0) for number in range(0, 140, 20)], overwrite=True)
        assert store.start_update(1, "{}") is not None
    whole, data = content(path), path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        names = "'rareswitch_decisions', 'rareswitch_rewards', 'rareswitch_contexts', 'rareswitch_tallies'"
        tables = f"SELECT pageno FROM dbstat WHERE name IN ({names}) OR name LIKE 'rareswitch_%!_%!_%' ESCAPE '!'"
        try:
            pages = [page - 1 for (page,) in connection.execute(tables)]
        except sqlite3.OperationalError:  # of a library without this table
            pages = list(range(1, len(data) // 4096))
    draw, outcomes = np.random.default_rng(1), {"same": 0, "refused": 0}
    for page, offset, bit in zip(
        draw.choice(pages, FLIPS), draw.integers(0, 4096, FLIPS), draw.integers(0, 8, FLIPS), strict=True
    ):
        changed = bytearray(data)
        changed[page * 4096 + offset] ^= 1 << int(bit)
        damaged.write_bytes(changed)
        try:
            found = content(damaged)
        except StoreError:
            outcomes["refused"] += 1
        else:
            assert found == whole, f"bit {bit} of byte {offset} of page {page}"
            outcomes["same"] += 1
    assert min(outcomes.values()) > FLIPS // 10


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE rareswitch_decisions SET propensity = 0.123 WHERE seq = 3", r"the decision 3 "),
        ("UPDATE rareswitch_decisions SET time = time + 1 WHERE seq = 3", r"the decision 3 "),
        ("UPDATE rareswitch_rewards SET value = 117236185237 WHERE seq = 4", r"the reward of decision 4 "),
        ("UPDATE rareswitch_rewards SET decision = 5 WHERE seq = 4", r"the reward of decision 5 |should hold"),
        ("UPDATE rareswitch_rewards SET superseded = 1 WHERE seq = 4", r"the reward of decision 4 "),
        ("UPDATE rareswitch_decisions SET version = 2 WHERE seq = 3", r"should hold 20 decisions"),
    ],
)
def test_a_row_that_was_changed_is_named_and_not_learned_from(change: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    with create(f"sqlite:///{path}", "spring", dim=2, schedule=[20, 100], policies=2, horizon=100) as trial:
        for number in range(20):
            trial.decide(np.eye(2), id=number)
            trial.reward(number, 1.0)
        trial.store.start_update(1, '{"now": 0}')
        trial.store.abandon_update(1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(change)
    with open_experiment(f"sqlite:///{path}", "spring") as trial:
        raises(StoreError, rf"'spring' is damaged.*{told}.*Restore a backup", trial.advance)
        assert len(trial.policies) == 1


def broken(path: Path) -> None:
    """Damage an index that is not looked at when the file is opened, so that its structure tells."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'rareswitch_decisions_time'"
        ((page,),) = connection.execute(query)
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 + 3 : (page - 1) * 4096 + 7] = b"\xff" * 4
    path.write_bytes(data)


def test_verifying_checks_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    with create(f"sqlite:///{path}", "spring", dim=2) as trial:
        for number in range(100):
            trial.decide(np.eye(2), id=number)
        assert (trial.verify().holds, trial.verify().faults) == (True, ())
    broken(path)
    with open_experiment(f"sqlite:///{path}", "spring") as trial:
        found = trial.verify()
        assert not found.holds
        assert "The store is damaged. Restore a backup." in str(found)
        raises(StoreError, r"damaged.*restore an earlier backup", trial.backup, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_file_is_checked_when_the_last_process_did_not_end_well(tmp_path: Path) -> None:
    path, other = tmp_path / "trial.db", tmp_path / "other.db"
    with create(f"sqlite:///{path}", "spring", dim=2) as trial:
        trial.decide_many([np.eye(2)] * 1000, ids=range(1000))
    child = os.fork()
    if child == 0:
        killed = open_experiment(f"sqlite:///{path}", "spring")
        killed.decide(np.eye(2), id="last")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    shutil.copy(path, other)
    broken(other)
    open_experiment(f"sqlite:///{other}", "spring").close()  # after a good end nobody looks
    shutil.copy(f"{path}-wal", f"{other}-wal")
    with pytest.raises(StoreError, match=r"other\.db is damaged.*did not end well.*Restore a backup"):
        open_experiment(f"sqlite:///{other}", "spring")
    with open_experiment(f"sqlite:///{path}", "spring") as trial:
        assert trial.status().decisions == 1001
