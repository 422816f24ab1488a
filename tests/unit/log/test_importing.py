"""Logs into stores and out of them: every row counted, nothing twice, and the same policies learned."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest

from rareswitch.core import id_keys, key_bytes
from rareswitch.errors import ConflictError, FileFormatError
from rareswitch.learner import Learner, State, make_learner, summaries_to_bytes
from rareswitch.log import StoredLog, export_parts, find_parts, import_parts, summarize
from rareswitch.store import Marks, RewardRow, Store, VersionRow, open_store
from reference.logs import Row, Run, dealt, in_memory, played, write_log, write_rows


def begun() -> tuple[Learner, State]:
    learner = make_learner("foresight", dim=3, horizon=2000, grid=[60, 400, 1000, 2000])
    return learner, learner.begin()


def store_at(url: str, name: str = "spring") -> Store:
    store = open_store(url, name)
    store.create("described", VersionRow(1, b"", b"", b"", "{}", "", 0.0))
    return store


@pytest.fixture(params=["memory:", "sqlite"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Store]]:
    kinds = {"sqlite": f"sqlite:///{tmp_path}/spring.db", "memory:": "memory:"}
    opened = []

    def make(name: str) -> Store:
        opened.append(store_at(kinds[request.param], name))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


def summed(learner: Learner, state: State, store: Store) -> bytes:
    return summaries_to_bytes([summarize(learner, state, StoredLog(store, [state.policy], dim=learner.dim))])


def content(store: Store) -> list[Any]:
    return [row for some in store.rows(0, store.marks()) for row in some]


def messy(rows: list[Row], seed: int) -> list[list[Row]]:
    """Rows again without their rewards, again whole, and of other policies; in another order."""
    found = [*rows, *rows[::3], *(replace(row, reward=None, reward_time=None) for row in rows[::2])]
    found += [replace(row, policy="f" * 64) for row in rows[::7]]
    return [*dealt(found, seed=seed, parts=3), []]


@pytest.mark.parametrize("names", [None, "visit-"])
def test_a_log_is_learned_from_as_if_its_decisions_had_been_made_here(
    names: str | None, made: Callable[[str], Store], tmp_path: Path
) -> None:
    learner, state = begun()
    rows = [
        replace(row, time=100.0 + k, reward_time=200.0 + k)
        for k, row in enumerate(played(Run.of(learner, state), names=names))
    ]
    rows = [replace(row, reward=None) if k % 5 == 0 else row for k, row in enumerate(rows)]
    parts = messy(rows, seed=1)
    store, log = made("spring"), write_log(tmp_path / "log", parts, 3)
    seen: list[tuple[int, int]] = []
    told: dict[str, Any] = {"learner": learner, "policies": [state.policy.id]}
    report = import_parts(store, log, **told, progress=lambda done, total: seen.append((done, total)))
    expected = summaries_to_bytes([in_memory(learner, state, rows)])
    assert summed(learner, state, store) == expected
    first, rewarded = set[Any](), set[Any]()
    counts: Counter[str] = Counter(rows=sum(map(len, parts)))
    for row in [row for part in parts for row in part if row.policy == state.policy.id]:
        earns = row.reward is not None and row.id not in rewarded
        counts["new" if row.id not in first else "rewarded" if earns else "copies"] += 1
        counts["rewards"] += earns
        first.add(row.id)
        rewarded |= {row.id} if earns else set()
    found = report.as_dict()
    assert {name: found[name] for name in counts} == counts
    assert counts["rewarded"]
    assert report.rows == report.new + report.rewarded + report.copies + report.conflicting + sum(
        report.foreign.values()
    )
    assert (report.foreign, report.parts, seen[-1]) == ({"f" * 64: 9}, 4, (4, 4))
    again = import_parts(store, log, **told)
    assert (again.new, again.rewarded, again.rewards, again.copies) == (0, 0, 0, report.rows - 9)
    assert summed(learner, state, store) == expected
    kept, rewards = content(store)[0]
    row = next(row for row in rows if row.id == parts[0][0].id)
    assert (kept.time, kept.propensity, kept.version) == (row.time, row.propensity, 1)
    assert np.frombuffer(kept.contexts).reshape(-1, 3)[kept.arm_index].tolist() == list(row.features)
    assert [(one.value, one.time) for one in rewards] == ([] if row.reward is None else [(row.reward, row.reward_time)])


def test_what_is_written_is_read_into_another_store_as_it_was(made: Callable[[str], Store], tmp_path: Path) -> None:
    learner, state = begun()
    one, other = made("one"), made("other")
    told: dict[str, Any] = {"learner": learner, "policies": [state.policy.id, "e" * 64]}
    rows = [replace(row, time=float(k), reward_time=k + 0.5) for k, row in enumerate(played(Run.of(learner, state)))]
    later = [replace(row, id=f"é{row.id}", policy="e" * 64, contexts=None) for row in rows[:20]]
    import_parts(one, write_log(tmp_path / "log", [rows[:40], later, rows[40:]], 3), **told)
    kept = [row._replace(arm="red", baseline=1, names='["a"]') for row, _ in content(one)]
    third = made("third")
    third.add_decisions(kept)
    third.add_rewards([reward for _, rewards in content(one) for reward in rewards])
    seen: list[tuple[int, int]] = []
    paths = export_parts(
        third, tmp_path / "out", policies=told["policies"], progress=lambda done, total: seen.append((done, total))
    )
    assert paths == find_parts([tmp_path / "out" / "*.parquet"])
    assert [parquet.read_table(path).num_rows for path in paths] == [40, 20, 20]  # ids of a part are of one kind
    assert seen == [(40, 80), (60, 80), (80, 80)]
    report = import_parts(other, paths, **told)
    assert (report.new, report.rewards, report.rows) == (80, 80, 80)
    assert content(other) == content(third)
    with pytest.raises(FileFormatError, match=r"part-00001.parquet: exists already, and a log is never overwritten"):
        export_parts(third, tmp_path / "out", policies=told["policies"])


def test_rewards_that_came_before_and_several_of_a_decision_are_written_as_their_sum(tmp_path: Path) -> None:
    learner, state = begun()
    store = store_at("memory:")
    rows = [replace(row, reward=None) for row in played(Run.of(learner, state), count=2)]
    import_parts(store, write_log(tmp_path / "log", [rows], 3), learner=learner, policies=[state.policy.id])
    (key,) = key_bytes(id_keys([rows[1].id]))
    store.add_rewards([RewardRow(key, "1", f"sale {k}", 0.5 + k, 10.0 + k) for k in range(2)])
    (path,) = export_parts(store, tmp_path / "out", policies=[state.policy.id])
    table = parquet.read_table(path).to_pydict()
    assert (table["reward"], table["reward_time"]) == ([None, 2.0], [None, 11.0])
    assert export_parts(store, tmp_path / "none", policies=[], upto=Marks(0, 0)) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": (0.1, 0.2, 0.3), "contexts": None}, "was decided otherwise"),
        ({"propensity": 0.123}, "was decided otherwise"),
        ({"policy": "e" * 64}, "was decided otherwise: another version"),
        ({"reward": 99.0}, "has another reward"),
    ],
)
def test_what_contradicts_is_named_or_left_out_on_purpose(
    change: dict[str, Any], words: str, made: Callable[[str], Store], tmp_path: Path
) -> None:
    learner, state = begun()
    rows = played(Run.of(learner, state), count=12)
    wrong = [*rows[:5], replace(rows[5], **change)]
    log = write_log(tmp_path, [rows[:10], wrong, rows[10:]], 3)
    told: dict[str, Any] = {"learner": learner, "policies": [state.policy.id, "e" * 64]}
    with pytest.raises(
        ConflictError, match=rf"part-001.parquet: row 5 .* decision {rows[5].id} {words}.*conflicts=True"
    ):
        import_parts(made("strict"), log, **told)
    store = made("lenient")
    report = import_parts(store, log, **told, conflicts=True)
    assert (report.new, report.copies, report.conflicting, report.rewards) == (12, 5, 1, 12)
    expected = in_memory(learner, state, rows)
    assert summed(learner, state, store) == summaries_to_bytes([expected])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": (3.0, 0.0, 0.0), "contexts": None}, "has a vector of length 3"),
        ({"contexts": (0.1, 0.2, 0.3)}, "has features that are none of its contexts"),
        ({"time": np.inf}, "has a time that is not finite"),
    ],
)
def test_a_bad_row_is_named_with_file_and_row(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    learner = make_learner("linucb-grid", dim=3, arms=5, horizon=2000, policies=5)
    state = learner.begin()
    rows = [replace(row, time=1.0) for row in played(Run.of(learner, state), count=8)]
    rows[6] = replace(rows[6], **change)
    store = store_at("memory:")
    with pytest.raises(FileFormatError, match=rf"part-000.parquet: row 6 \(the first is 0\) {words}"):
        import_parts(store, write_log(tmp_path, [rows], 3), learner=learner, policies=[state.policy.id])
    assert store.counts() == []


def test_a_log_without_times_is_of_now_and_its_rewards_came_at_once(tmp_path: Path) -> None:
    learner, state = begun()
    store, log = store_at("memory:"), write_log(tmp_path, [played(Run.of(learner, state), count=4)], 3)
    import_parts(store, log, learner=learner, policies=[state.policy.id], now=77.0)
    assert [(row.time, rewards[0].time) for row, rewards in content(store)] == [(77.0, 77.0)] * 4


def test_many_foreign_policies_are_counted_together(tmp_path: Path) -> None:
    learner, state = begun()
    (row,) = played(Run.of(learner, state), count=1)
    log = write_log(tmp_path, [[replace(row, policy=f"{k:064d}") for k in range(130)] + [row]], 3)
    report = import_parts(store_at("memory:"), log, learner=learner, policies=[state.policy.id])
    assert (len(report.foreign), report.foreign[""], report.new, report.rows) == (101, 30, 1, 131)
    assert "30 of policy (all others), which this experiment never had, left out" in str(report)


@pytest.mark.parametrize("ids", [[*range(20)], [f"visit {k}" for k in range(20)]])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_of_other_tools_are_imported_by_the_names_of_their_columns(
    ending: str, ids: list[Any], tmp_path: Path
) -> None:
    learner, state = begun()
    rows = [replace(row, id=one) for row, one in zip(played(Run.of(learner, state), count=20), ids, strict=True)]
    own, foreign = (store_at("memory:", name) for name in ("own", "foreign"))
    write_rows(tmp_path / "own.parquet", rows, 3)
    table = parquet.read_table(tmp_path / "own.parquet").to_pydict()
    names = {"id": "visit", "policy": "model", "features": "chosen", "propensity": "p", "reward": "click"}
    frame = pd.DataFrame({name: table[role] for role, name in names.items()} | {"arm": "one"})
    path = tmp_path / f"foreign.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    policies = [state.policy.id]
    report = import_parts(foreign, [path], learner=learner, policies=policies, columns=names)
    import_parts(own, [tmp_path / "own.parquet"], learner=learner, policies=policies)
    assert (report.rows, report.new) == (20, 20)
    stored = [
        [
            (row.key, row.id, row.features, row.propensity, [one.value for one in rewards])
            for row, rewards in content(store)
        ]
        for store in (own, foreign)
    ]
    assert stored[0] == stored[1]
    with pytest.raises(FileFormatError, match="needs the ids of decisions and vectors of 3 features, and here ids"):
        import_parts(foreign, [path], learner=learner, policies=policies, columns=names | {"id": None})
