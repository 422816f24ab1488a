"""What is counted and kept is found without looking at all rows; that it is right, conformance asks of every store."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
import psycopg
import pytest

from rareswitch.errors import StoreError
from rareswitch.experiment import create
from rareswitch.experiment.rewards import Rewards
from rareswitch.store import open_store
from rareswitch.store.sqlite import SqliteStore
from reference.rows import decisions, reward, version


def test_a_row_that_is_gone_since_it_was_tallied_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    with closing(open_store(f"sqlite:///{path}", "spring")) as store:
        store.create("{}", version(1))
        store.add_decisions(decisions(range(20)))
        store.add_rewards([reward(number, 1.0) for number in range(20)])
        assert store.start_update(1, "{}") is not None
    for table in ("rewards", "decisions"):
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute(f"DELETE FROM rareswitch_{table} WHERE seq = 7")
        told = r"'spring' is damaged: it should hold 20 decisions.*Restore a backup"
        with closing(open_store(f"sqlite:///{path}", "spring")) as store, pytest.raises(StoreError, match=told):
            store.slices(1, store.marks(), sums=False)


class Traced(SqliteStore):
    """A store that notes the statements of all its connections."""

    statements: ClassVar[list[str]] = []

    def _connect(self, *, writing: bool = False) -> Any:
        connection = super()._connect(writing=writing)
        connection.set_trace_callback(self.statements.append)
        return connection


def test_a_decision_a_look_and_an_update_that_is_not_due_look_nothing_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trial.db"
    monkeypatch.setattr(Traced, "statements", [])
    monkeypatch.setattr("rareswitch.store.opening.SqliteStore", Traced)
    with create(f"sqlite:///{path}", "spring", dim=2, schedule=[100, 200], rewards=Rewards(window="1h")) as trial:
        trial.reward("early", 1.0)
        for number in range(20):
            trial.decide(np.eye(2), id=number)
        Traced.statements.clear()
        trial.decide(np.eye(2), id="early")
        trial.decide(np.eye(2), id="again")
        trial.decide(np.eye(2), id="again")
        trial.reward("again", 1.0)
        trial.reward("again", 0.5, overwrite=True)
        trial.status()
        assert not trial.advance().made
        statements = {text for text in Traced.statements if text.startswith(("SELECT", "INSERT", "UPDATE"))}
    assert len(statements) > 20
    steps = set()
    with closing(sqlite3.connect(path)) as connection:
        for text in statements:
            steps |= {(row[3], text) for row in connection.execute(f"EXPLAIN QUERY PLAN {text}")}
    large = ("decisions", "rewards", "contexts", "reward", "made", "d", "other")
    scans = [step for step in steps if step[0].split()[0] == "SCAN" and step[0].split()[1].split("_")[-1] in large]
    assert scans == []
    # by the experiment alone, all of its rows are looked through; those of the index of few do not matter
    wide = [step for step in steps if step[0].endswith("(experiment=?)") and "_unmatched" not in step[0]]
    assert [step for step in wide if "rewards" in step[0] or "decisions" in step[0] or "contexts" in step[0]] == []
    assert any("rareswitch_rewards_unmatched" in step for step, _ in steps)


def test_postgres_finds_unmatched_rewards_by_their_index(postgres: str) -> None:
    with closing(open_store(postgres, uuid4().hex)) as store:
        store.create("{}", version(1))
        query = store.unmatched_query
    with psycopg.connect(postgres) as connection:
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute(f"EXPLAIN {query}".encode()).fetchall()
    assert "rareswitch_rewards_unmatched" in str(plan)
