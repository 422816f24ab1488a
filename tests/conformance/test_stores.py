"""What holds for every store."""

import threading
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from rareswitch.decisions import ArmCodes
from rareswitch.errors import DeletedError, StoreError
from rareswitch.store import Marks, Store, open_store
from rareswitch.store.postgres import PostgresStore
from reference.plain_store import PlainStore, reward_value
from reference.refusals import raises
from reference.rows import SHARED, STORES, decision, decisions, reward, version

Address = Callable[[str], str]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, store_url: Address) -> Iterator[Store]:
    """A store with a first version and nothing else."""
    opened = open_store(store_url(request.param), uuid4().hex)
    opened.create("{}", version(1))
    yield opened
    opened.close()


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, store_url: Address) -> tuple[str, str]:
    """The URL of a new experiment and its name."""
    url, name = store_url(request.param), uuid4().hex
    opened = open_store(url, name)
    opened.create("{}", version(1))
    opened.close()
    return url, name


def marks_of(store: Store) -> Marks:
    started = store.start_update(store.head(), "{}")
    return started[1]


def table_of(
    store: Store, upto: Marks, of: int = 1, *, sums: bool = False, window: float | None = None
) -> dict[str, list[Any]]:
    """The columns of all slices of a version, one after the other; None where a reward is not there."""
    columns: dict[str, list[Any]] = {}
    for part in store.slices(of, upto, sums=sums, window=window):
        for name in ("ids", "features", "propensities", "times", "rewards", "reward_times"):
            (log,) = part.read()
            known = [None if value != value else value for value in getattr(log, name).tolist()]
            columns.setdefault(name, []).extend(known)
    return columns


def numbers_of(columns: dict[str, list[Any]]) -> list[int]:
    return [int(features[0]) for features in columns.get("features", [])]


def test_cautions_are_counted_once_for_each_decision_that_is_new(store: Store, request: pytest.FixtureRequest) -> None:
    assert store.cautions() == {}
    first = decision(1)._replace(cautions='[["devce", "extra"], ["device", "missing"]]')
    again = decision(2)._replace(cautions='[["device", "missing"]]')
    store.add_decisions([first, again, again, decision(3)])
    store.add_decisions([first._replace(cautions='[["other", "extra"]]'), decision(4)])
    wanted = {("devce", "extra"): 1, ("device", "missing"): 2}
    assert store.cautions() == wanted
    assert store.totals().repeated_decisions == 2
    if store.url != "memory:":  # another process sees them too
        other = open_store(request.getfixturevalue("store_url")(request.node.callspec.params["store"]), store.name)
        assert other.cautions() == wanted
        other.close()


@pytest.mark.parametrize("kind", STORES)
def test_an_experiment_is_created_once(kind: str, store_url: Address) -> None:
    store = open_store(store_url(kind), uuid4().hex)
    raises(StoreError, r"Create|no experiment", store.description)
    store.create('{"learner": "≤ ☃"}', version(1))
    assert store.description() == '{"learner": "≤ ☃"}'
    assert store.versions() == [version(1)]
    assert store.head() == 1
    raises(StoreError, "already", store.create, "another", version(1))
    assert store.description() == '{"learner": "≤ ☃"}'
    store.close()


@pytest.mark.parametrize("kind", SHARED)
def test_a_closed_store_neither_reads_nor_writes(kind: str, store_url: Address) -> None:
    store = open_store(store_url(kind), uuid4().hex)
    store.create("{}", version(1))
    for _ in range(2):
        store.close()
    for call in (store.head, store.totals, lambda: store.add_decisions([decision(0)]), lambda: store.find([b"-" * 16])):
        raises(StoreError, r"the store is closed. Open it again", call)


def test_a_decision_is_kept_as_it_came(store: Store) -> None:
    rows = [decision(0), decision(1, kept=True), decision(2, kept=True)]
    assert store.add_decisions(rows) == rows
    assert store.find([rows[1].key, b"-" * 16, rows[2].key, rows[0].key]) == [
        (rows[1], []),
        None,
        (rows[2], []),
        (rows[0], []),
    ]
    assert not store.add_decisions([])
    assert store.find([]) == []


def test_a_reward_that_came_first_is_matched_by_the_commit_of_its_decision(
    shared: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresStore, "_settle", lambda *_: None)  # as if the process ended after the commit
    store = open_store(*shared)
    store.add_rewards([reward(1, 0.5)])
    store.add_decisions([decision(1)])
    store.close()
    again = open_store(*shared)
    assert list(again.rows(0, again.marks())) == [[(decision(1), [reward(1, 0.5)])]]
    assert (again.totals().unmatched, again.counts()[0].rewarded) == (0, 1)
    again.close()


def test_rewards_of_one_call_come_one_after_the_other(store: Store) -> None:
    given = [reward(1, 1.0), reward(1, 2.0), reward(2, 5.0), reward(1, 3.0)]
    assert store.add_rewards(given, overwrite=True) == [None, reward(1, 1.0), None, reward(1, 2.0)]
    store.add_decisions(decisions([1, 2]))
    assert table_of(store, marks_of(store))["rewards"] == [3.0, 5.0]


def test_rewards_with_events_are_summed_in_any_order(store: Store) -> None:
    values = [0.1, 0.7, 1e16, -1e16, 0.2, 3.3, 1e-9, 5.5, 7.7, 2.2]
    store.add_decisions(decisions([1, 2, 3]))
    store.add_rewards([reward(1, value, event=str(k), time=k) for k, value in enumerate(values)])
    store.add_rewards([reward(2, value, event=str(-k), time=-k) for k, value in enumerate(values[::-1])])
    columns = table_of(store, marks_of(store), sums=True, window=1e10)
    assert columns["rewards"][0] == columns["rewards"][1] == reward_value(values, sums=True)
    assert columns["rewards"][2] is None
    assert columns["reward_times"] == [9, 0, None]


def test_of_summed_rewards_those_that_came_in_time_count(store: Store) -> None:
    made = decisions([1, 2])
    store.add_decisions(made)
    for number, after in ((1, (5.0, 20.0)), (2, (30.0, 40.0))):
        at = made[number - 1].time
        store.add_rewards([reward(number, 2.0**k, event=str(k), time=at + late) for k, late in enumerate(after)])
    columns = table_of(store, marks_of(store), sums=True, window=10.0)
    assert columns["rewards"] == [1.0, 3.0]  # all of the second were late, and that is for the learner to count
    assert columns["reward_times"] == [made[0].time + 5.0, made[1].time + 40.0]


def test_the_first_to_start_an_update_decides(store: Store) -> None:
    store.add_decisions(decisions(range(3)))
    first = store.start_update(1, '{"now": 1}')
    store.add_decisions([decision(3)])
    assert store.start_update(1, '{"now": 2}') == first
    assert first[0] == '{"now": 1}'
    assert store.start_update(2, "{}") is None
    store.abandon_update(2)
    assert store.start_update(1, "{}") == first
    store.abandon_update(1)
    again = store.start_update(1, '{"now": 3}')
    assert again[0] == '{"now": 3}'
    assert len(table_of(store, again[1])["ids"]) == 4
    store.publish(version(2))
    assert store.start_update(1, "{}") is None
    store.abandon_update(1)
    assert store.start_update(2, "{}") is not None


def test_refusals_are_kept_in_their_order_and_end_the_update(store: Store) -> None:
    store.add_decisions(decisions(range(3)))
    assert store.refusals(1) == []
    first = store.start_update(1, '{"now": 1}')
    store.add_decisions([decision(3)])
    store.refuse_update(1, 1, '{"why": "≤ ☃"}')
    assert not store.started(1)
    second = store.start_update(1, '{"now": 2}')
    assert (second[0], second[1].decisions > first[1].decisions) == ('{"now": 2}', True)
    for late in (1, 3):  # who learned the same as the first, and a number that is not the next one
        store.refuse_update(1, late, "late")
    assert store.started(1)
    store.abandon_update(1)
    assert not store.started(1)
    assert store.start_update(1, "{}") is not None
    store.refuse_update(1, 2, "again")
    assert store.refusals(1) == ['{"why": "≤ ☃"}', "again"]
    assert store.start_update(1, "{}") is not None
    store.publish(version(2))
    store.refuse_update(1, 3, "too late")
    store.refuse_update(3, 1, "too early")
    assert [store.refusals(parent) for parent in (1, 2, 3)] == [['{"why": "≤ ☃"}', "again"], [], []]


def test_the_first_to_publish_makes_the_version(store: Store) -> None:
    other = version(2)._replace(policy=b"another")
    assert store.publish(version(2)) == version(2)
    assert store.publish(other) == version(2)
    assert store.head() == 2
    assert store.versions(1) == [version(2)]
    assert store.versions() == [version(1), version(2)]


def test_a_version_without_its_parent_is_refused(store: Store) -> None:
    raises(StoreError, "version 3 needs version 2; the head is 1", store.publish, version(3))
    assert store.head() == 1


def test_slices_have_a_largest_size_and_leave_nothing_out(store: Store) -> None:
    store.add_decisions([decision(number, of=1 + number % 2) for number in range(47)])
    slices = store.slices(2, marks_of(store), sums=False, size=10)
    assert [len(log) for part in slices for log in part.read()] == [10, 10, 3]
    assert numbers_of(table_of(store, marks_of(store), of=2)) == list(range(1, 47, 2))
    assert store.slices(3, marks_of(store), sums=False) == []


def test_slices_hold_what_was_offered_where_it_was_kept(store: Store) -> None:
    rows = [decision(number, kept=number % 2 == 0)._replace(baseline=number or None) for number in range(5)]
    store.add_decisions(rows)
    (part,) = store.slices(1, marks_of(store), sums=False)
    (log, where, offers), kept = part.read_offers(ArmCodes()), rows[::2]
    assert log.ids.tolist() == next(part.read()).ids.tolist()
    assert (where.tolist(), offers["baselines"].tolist()) == ([0, 2, 4], [-1, 2, 4])
    assert offers["arm_indices"].tolist() == [row.arm_index for row in kept]
    sets = [arms[there].tobytes() for arms, there in zip(offers["contexts"], offers["available"], strict=True)]
    assert sets == [row.contexts for row in kept]


def test_exports_go_on_where_they_stopped(store: Store) -> None:
    rows = [decision(number, kept=number < 5) for number in range(2100)]
    store.add_decisions(rows)
    store.add_rewards([reward(7, 1.0), reward(7, 2.0, event="b"), reward(2050, 3.0)])
    marks = marks_of(store)
    pages = list(store.rows(0, marks))
    together = [row for page in pages for row in page]
    assert [row for row, _ in together] == rows
    assert together[7][1] == [reward(7, 1.0), reward(7, 2.0, event="b")]
    assert together[2050][1] == [reward(2050, 3.0)]
    assert list(store.rows(marks.decisions - len(rows) + len(pages[0]), marks)) == pages[1:]


@pytest.mark.parametrize("kind", STORES)
def test_a_long_history_reads_as_it_does_in_plain_lists(
    kind: str, store_url: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions in any order; rewards before, after and between decisions, twice, several of one, and others instead."""
    monkeypatch.setattr("rareswitch.store.store.STEP", 9)
    monkeypatch.setattr("rareswitch.store.store.SETS", 5)
    rng = np.random.default_rng(7)
    stores: list[Any] = [PlainStore(), open_store(store_url(kind), uuid4().hex)]
    for store in stores:
        store.create("{}", version(1))
    marks: list[list[Marks]] = [[], []]
    for step in range(60):
        many = [int(number) for number in rng.integers(0, 150 if step % 2 else 30, rng.integers(1, 30))]
        arm = "ab"[int(rng.integers(2))]
        rows = [decision(number, of=1 + number % 3, kept=number % 4 == 0, arm=arm) for number in many]
        given = [reward(number, float(rng.integers(3)), event="ab"[number % 2]) for number in many[::-1]]
        overwrite = bool(rng.random() < 0.3)
        if rng.random() < 0.5:
            assert stores[0].add_decisions(rows) == stores[1].add_decisions(rows)
        else:
            here, there = (store.add_rewards(given, overwrite=overwrite) for store in stores)
            assert here == there
        if step % 20 == 19:
            for found, store in zip(marks, stores, strict=True):
                found.append(marks_of(store))
                store.publish(version(2 + step // 20))
        assert stores[0].totals() == stores[1].totals()
        assert stores[0].counts() == stores[1].counts()
    for mark, other in zip(*marks, strict=True):
        assert stores[0].counts(mark) == stores[1].counts(other)
        assert [row for page in stores[0].rows(0, mark) for row in page] == [
            row for page in stores[1].rows(0, other) for row in page
        ]
        for of in (1, 2, 3):
            for sums in (False, True):
                assert table_of(stores[0], mark, of, sums=sums) == table_of(stores[1], other, of, sums=sums)
            assert list(stores[0].sample(of, mark)) == list(stores[1].sample(of, other))
    stores[1].close()


def test_threads_that_ask_at_once_get_one_answer(store: Store) -> None:
    answers: list[list[str]] = []
    start = threading.Barrier(8)

    def ask(arm: str) -> None:
        start.wait()
        rows = [decision(number, arm=arm) for number in range(40)]
        answers.append([kept.arm for row in rows for kept in store.add_decisions([row])])

    threads = [threading.Thread(target=ask, args=(f"arm {k}",)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)
    assert store.totals().repeated_decisions == 7 * 40
    assert [one.decisions for one in store.counts()] == [40]


def test_experiments_of_one_database_do_not_meet(shared: tuple[str, str]) -> None:
    url, name = shared
    one, two = open_store(url, name), open_store(url, name + " 2")
    two.create("{}", version(1))
    one.add_decisions(decisions(range(3)))
    one.add_rewards([reward(0, 1.0), reward(9, 1.0)])
    two.add_decisions(decisions(range(1, 5)))
    two.add_rewards([reward(0, 2.0)])
    assert numbers_of(table_of(one, marks_of(one))) == [0, 1, 2]
    assert numbers_of(table_of(two, marks_of(two))) == [1, 2, 3, 4]
    assert one.totals().unmatched == two.totals().unmatched == 1
    assert table_of(two, marks_of(two))["rewards"] == [None] * 4
    one.publish(version(2))
    assert (one.head(), two.head()) == (2, 1)
    one.close()
    two.close()


def work(url: str, name: str, mine: int, rounds: int, answers: Any) -> None:
    """Add rows, some of which others add too, and advance again and again; report what was seen at each mark."""
    store = open_store(url, name)
    seen: list[tuple[int, Marks, int, bool]] = []
    for step in range(rounds):
        numbers = [step * 100 + k for k in range(20)] + [10_000 * mine + step * 100 + k for k in range(20)]
        store.add_rewards([reward(number, float(number)) for number in numbers[::2]])
        store.add_decisions([decision(number, arm=str(mine), of=store.head()) for number in numbers])
        store.add_rewards([reward(number, float(number)) for number in numbers])
        parent = store.head()
        started = store.start_update(parent, str(mine))
        if started is not None:
            count = sum(one.decisions for one in store.counts(started[1]))
            made = store.publish(version(parent + 1)._replace(report=str(mine)))
            seen.append((parent, started[1], count, made.report == str(mine)))
    store.close()
    answers.put(seen)


def test_processes_share_one_experiment(shared: tuple[str, str]) -> None:
    context, rounds = get_context("spawn"), 6
    answers: Any = context.Queue()
    workers = [context.Process(target=work, args=(*shared, mine, rounds, answers)) for mine in (1, 2)]
    for worker in workers:
        worker.start()
    seen = [row for _ in workers for row in answers.get(timeout=60)]
    for worker in workers:
        worker.join()
    store = open_store(*shared)
    numbers = [step * 100 + k for step in range(rounds) for k in range(20)]
    numbers += [10_000 * mine + number for mine in (1, 2) for number in numbers[: 20 * rounds]]
    found = store.find([decision(number).key for number in numbers])
    assert all(row is not None and [one.value for one in row[1]] == [n] for n, row in zip(numbers, found, strict=True))
    assert sum(one.decisions for one in store.counts()) == sum(one.rewarded for one in store.counts()) == len(numbers)
    assert store.totals().unmatched == 0
    parents = {parent for parent, _, _, _ in seen}
    assert len(store.versions()) == len(parents) + 1 == store.head()
    for parent in parents:
        group = [row for row in seen if row[0] == parent]
        assert len({marks for _, marks, _, _ in group}) == 1
        assert sum(mine for _, _, _, mine in group) <= 1
        # and no row below a mark appears later
        assert {count for _, _, count, _ in group} == {sum(one.decisions for one in store.counts(group[0][1]))}
    store.close()


def test_a_store_is_ended_once_and_deleted_alone(shared: tuple[str, str]) -> None:
    url, name = shared
    store, other = open_store(url, name), open_store(url, uuid4().hex)
    other.create("{}", version(1))
    for opened in (store, other):
        opened.add_decisions(decisions([1, 2], kept=True))
        opened.add_rewards([reward(1, 0.5), reward(9, 1.0)])
    assert store.ended() is None
    for moment in (5.0, 6.0):
        store.end(moment)
    assert (store.ended(), other.ended()) == (5.0, None)
    before, elsewhere = other.marks(), open_store(url, name)
    elsewhere.add_decisions([decision(3)])
    store.delete()
    again = open_store(url, name)
    again.create("{}", version(1))
    raises(DeletedError, "was deleted", elsewhere.add_decisions, [decision(4)])
    raises(DeletedError, "was deleted", elsewhere.add_rewards, [reward(4, 1.0)])
    elsewhere.close()
    assert (again.ended(), again.counts(), again.totals().unmatched) == (None, [], 0)
    again.add_decisions(decisions([1]))
    assert again.marks().decisions > before.decisions  # numbers are not given out twice
    again.add_rewards([reward(1, 1.0)])
    again.add_rewards([reward(1, 2.0)], overwrite=True)
    assert list(again.rows(0, again.marks())) == [[(decision(1), [reward(1, 2.0)])]]
    assert [count.decisions for count in other.counts()] == [2]
    assert other.find([decision(1).key])[0][0].record == decision(1, kept=True).record
    for opened in (again, other):
        opened.close()


def test_a_proposal_is_replaced_published_and_withdrawn(store: Store) -> None:
    assert store.proposal() is None
    assert not store.propose(version(3))
    for number in (b"first", b"second"):
        store.start_update(1, "{}")
        assert store.propose(version(2)._replace(policy=number))
        assert not store.started(1)
    proposed = store.proposal()
    assert (proposed, store.head()) == (version(2)._replace(policy=b"second"), 1)
    assert proposed is not None
    store.publish(proposed)
    assert (store.proposal(), store.head()) == (None, 2)
    assert store.propose(version(3))
    store.withdraw()
    assert (store.proposal(), store.versions(1)) == (None, [proposed])
