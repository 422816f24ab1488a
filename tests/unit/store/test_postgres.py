"""What is special about PostgreSQL: rows that others have written and not yet committed."""

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import numpy as np
import psycopg
import pytest

from rareswitch.errors import StoreError
from rareswitch.store import Job, Marks, Slice, open_store
from rareswitch.store.postgres import LOCKS, PostgresStore
from reference.rows import decision, decisions, reward, version


@pytest.fixture
def store(postgres: str) -> Iterator[PostgresStore]:
    opened = open_store(postgres, uuid4().hex)
    assert isinstance(opened, PostgresStore)
    with closing(opened):
        opened.create("{}", version(1))
        yield opened


class Other:
    """Another process in the middle of a transaction."""

    def __init__(self, url: str, name: str) -> None:
        self.store = PostgresStore(url, name)
        self.connection = self.store._connect()
        self.connection.execute("BEGIN")

    def keep(self, *jobs: Job) -> None:
        self.store._keep(self.connection, jobs)

    def commit(self) -> None:
        self.connection.execute("COMMIT")

    def close(self) -> None:
        self.connection.close()
        self.store.close()


def started(call: Any) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(call()))
    thread.start()
    thread.join(0.5)
    return thread, answers


def test_marks_wait_for_rows_that_are_not_committed(store: PostgresStore, postgres: str) -> None:
    other = Other(postgres, store.name)
    other.keep(Job(decisions=decisions([1])), Job(rewards=[reward(1, 4.0)]))
    store.add_decisions(decisions([2, 3]))  # whose numbers are higher, and which do not wait
    thread, answers = started(lambda: store.start_update(1, "{}"))
    assert not answers, "the marks were read while a row below them could still appear"
    other.commit()
    other.close()
    thread.join()
    marks: Marks = answers[0][1]
    (part,) = store.slices(1, marks, sums=False)
    assert next(part.read()).rewards.tolist() == pytest.approx([4.0, np.nan, np.nan], nan_ok=True)


def test_rows_wait_while_marks_are_read(store: PostgresStore, postgres: str) -> None:
    with psycopg.connect(postgres) as other:
        other.execute(f"SELECT pg_advisory_xact_lock({LOCKS}, {store.number})".encode())
        thread, answers = started(lambda: store.add_decisions(decisions([1])))
        assert not answers
        other.commit()
        thread.join()
    assert answers == [decisions([1])]


@pytest.mark.parametrize("settled", [True, False])
def test_a_reward_finds_a_decision_that_was_made_at_the_same_time(
    settled: bool, store: PostgresStore, postgres: str
) -> None:
    other = Other(postgres, store.name)
    other.keep(Job(decisions=decisions([1])))
    store.add_rewards([reward(1, 4.0)])
    assert store.totals().unmatched == 1
    other.commit()
    if settled:  # otherwise it was killed after its commit
        other.store._settle(other.connection)
        assert store.totals().unmatched == 0
    other.close()
    answer = store.start_update(1, "{}")
    assert store.totals().unmatched == 0
    (part,) = store.slices(1, answer[1], sums=False)
    assert next(part.read()).rewards.tolist() == [4.0]


def test_a_reward_that_two_processes_overwrite_is_overwritten_twice(store: PostgresStore, postgres: str) -> None:
    store.add_decisions([decision(1)])
    store.add_rewards([reward(1, 1.0)])
    other = Other(postgres, store.name)
    other.keep(Job(rewards=[reward(1, 2.0)], overwrite=True))
    thread, answers = started(lambda: store.add_rewards([reward(1, 3.0)], overwrite=True))
    assert not answers
    other.commit()
    other.close()
    thread.join()
    assert answers == [[reward(1, 2.0)]]
    assert store.find([decision(1).key]) == [(decision(1), [reward(1, 3.0)])]
    assert store.totals().overwritten == 2


@pytest.mark.parametrize(
    "address", ["postgresql://ann:hush@127.0.0.1:9/trials", "postgresql://127.0.0.1:9/trials?user=ann&password=hush"]
)
def test_a_password_is_nowhere_to_be_seen(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rareswitch.store.connections.PATIENCE", 0.0)
    with closing(open_store(f"{address}&sslpassword=hush" if "?" in address else address, "trial")) as store:
        with pytest.raises(StoreError) as raised:
            store.head()
        store.number = 1
        frozen: dict[str, Any] = {"upto": Marks(9, 9), "sums": False, "window": None}
        part = Slice(store=store, version=1, first=1, last=9, rows=9, width=8, **frozen)
        with pytest.raises(StoreError) as unread:
            next(part.read())
    for text in (store.url, str(raised.value), str(unread.value), repr(part)):
        assert "hush" not in text
        assert "ann" in text or text == repr(part)
