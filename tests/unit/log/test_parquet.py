import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from rareswitch.core import id_keys, sample_order
from rareswitch.decisions import DecisionLog
from rareswitch.design import Uniform
from rareswitch.errors import EmptySetError, FileFormatError, ParameterError
from rareswitch.log import ParquetLog, write_log, write_part
from rareswitch.policy import Policy
from reference.logged import log_of
from reference.refusals import raises

DIM = 3


def policy(edition: int = 0) -> Policy:
    return Policy(dim=DIM, sampler=Uniform(), edition=edition)


def test_a_baseline_that_was_not_offered_is_not_written(tmp_path: Path) -> None:
    available = np.array([[True, False]])
    log = DecisionLog(arm_indices=[0], propensities=[1.0], rewards=[1.0], available=available, baselines=[1])
    raises(ParameterError, "those of offered arms", write_log, tmp_path / "log.parquet", log)


def part(path: Path, ids: Any, *, name: str = "first", keep: Any = None, seed: int = 3, **more: Any) -> dict[str, Any]:
    """A part as those write it who know nothing of places, with sets of two to four arms."""
    rng = np.random.default_rng(seed)
    ids = list(ids)
    sets = {one: rng.standard_normal((2 + k % 3, DIM)) for k, one in enumerate(ids)}
    places = [k % len(arms) for k, arms in enumerate(sets.values())]
    columns: dict[str, Any] = {
        "features": np.array([arms[at] for arms, at in zip(sets.values(), places, strict=True)]).reshape(-1, DIM),
        "propensities": np.full(len(ids), 0.5),
        "rewards": rng.standard_normal(len(ids)),
        "contexts": sets if keep is None else {one: arms for one, arms in sets.items() if one in keep},
    }
    columns |= more
    write_part(path, policy_id=name, ids=ids, **columns)
    return columns | {"arm_indices": places}


def changed(path: Path, **columns: Any) -> Path:
    """A part with other columns: None takes one away."""
    table = parquet.read_table(path)
    for name, column in columns.items():
        if name in table.column_names:
            table = table.drop_columns([name])
        if column is not None:
            table = table.append_column(name, column if isinstance(column, pa.Array) else pa.array(column))
    parquet.write_table(table, path)
    return path


def test_places_are_found_by_the_vectors(tmp_path: Path) -> None:
    told = part(tmp_path / "1.parquet", range(30))
    (chunk,) = ParquetLog(tmp_path / "*.parquet").chunks()
    assert chunk.arm_indices.tolist() == told["arm_indices"]
    assert chunk.arms is None
    assert chunk.contexts.shape == (30, 4, DIM)
    np.testing.assert_array_equal(chunk.contexts[np.arange(30), chunk.arm_indices], told["features"])


def test_of_arms_with_one_vector_the_first_is_taken_unless_the_place_is_told(tmp_path: Path) -> None:
    same = {0: np.ones((3, DIM)), 1: np.ones((3, DIM))}
    part(tmp_path / "1.parquet", range(2), features=np.ones((2, DIM)), contexts=same)
    assert next(ParquetLog(tmp_path / "1.parquet").chunks()).arm_indices.tolist() == [0, 0]
    changed(tmp_path / "1.parquet", arm_index=[1, 2])
    assert next(ParquetLog(tmp_path / "1.parquet").chunks()).arm_indices.tolist() == [1, 2]


def test_arms_may_be_told_by_their_ids(tmp_path: Path) -> None:
    columns = {
        "id": [1, 2],
        "policy": ["p", "p"],
        "propensity": [0.5, 0.5],
        "reward": [1, 0],
        "arm": ["b", "c"],
        "names": ['["a","b"]', '["b", "c"]'],
    }
    parquet.write_table(pa.table(columns), tmp_path / "1.parquet")
    (chunk,) = ParquetLog(tmp_path / "1.parquet").chunks()
    assert (chunk.arm_indices.tolist(), chunk.arms, chunk.dim) == ([1, 1], ("a", "b", "c"), None)


def test_batches_have_the_order_of_policies_or_of_their_first_rows(tmp_path: Path) -> None:
    one, two = policy(1), policy(2)
    part(tmp_path / "1.parquet", range(3), name=two.id)
    part(tmp_path / "2.parquet", range(3), name=one.id)
    assert ParquetLog(tmp_path / "*.parquet").batch_names == (two.id, one.id)
    log = ParquetLog(tmp_path / "*.parquet", [one, policy(7), two])
    assert log.batch_names == (one.id, two.id)
    assert [*log.policies] == [one.id, policy(7).id, two.id]  # also one that has not decided
    assert [chunk.batches.tolist() for chunk in log.chunks(contexts=False)] == [[1] * 3, [0] * 3]
    assert ParquetLog(tmp_path / "*.parquet", [one]).batch_names == (two.id, one.id)
    raises(ParameterError, "policies must be those that decided", ParquetLog, tmp_path / "*.parquet", [policy(7)])


def test_a_keyed_sample_is_read_and_another_is_refused(tmp_path: Path) -> None:
    ids = list(range(200))
    ranks = sample_order(id_keys(ids))
    part(tmp_path / "1.parquet", ids, keep={one for one in ids if ranks[one] < 0.3})
    (chunk,) = ParquetLog(tmp_path / "1.parquet").chunks()
    assert chunk.ids[:, 0].tolist() == [one for one in ids if ranks[one] < 0.3]
    assert len(next(ParquetLog(tmp_path / "1.parquet").chunks(contexts=False))) == 200
    part(tmp_path / "2.parquet", ids, keep=set(range(0, 200, 3)))
    raises(FileFormatError, "not a random sample", list, ParquetLog(tmp_path / "2.parquet").chunks())
    part(tmp_path / "3.parquet", ids, keep={0} if ranks[0] > ranks.min() else {1})
    raises(FileFormatError, "not a random sample", list, ParquetLog(tmp_path / "3.parquet").chunks())


@pytest.mark.parametrize("text", [True, False])
def test_copies_count_once_with_the_reward_that_one_of_them_knows(tmp_path: Path, text: bool) -> None:
    ids: list[Any] = [f"r{k}" if text else k for k in range(50)]
    rewards = np.random.default_rng(5).standard_normal(50)
    early = np.where(np.arange(50) % 2, rewards, np.nan)
    part(tmp_path / "1.parquet", ids, rewards=early)
    part(tmp_path / "2.parquet", ids, rewards=rewards)
    part(tmp_path / "3.parquet", ids, name="second", rewards=rewards)
    log = ParquetLog(tmp_path / "*.parquet")
    assert (log.decisions, log.copies) == (100, 50)
    for contexts in (True, False):
        found = DecisionLog.joined([*log.chunks(contexts=contexts)])
        np.testing.assert_array_equal(found.rewards, np.tile(rewards, 2))
        assert found.batches.tolist() == [0] * 50 + [1] * 50


def test_what_files_say_of_themselves(tmp_path: Path) -> None:
    for number, text in enumerate(("frequencies", "a model")):
        ids = range(40 * number, 40 * number + 40)
        write_log(tmp_path / f"{number}.parquet", log_of(1, count=40, ids=ids, estimated=text))
    log = ParquetLog(tmp_path / "*.parquet")
    assert log.estimated == "frequencies; a model"
    assert log.batch_names == ("second", "first")  # as they appear


def test_vectors_may_be_lists_of_any_length_in_the_schema(tmp_path: Path) -> None:
    told = part(tmp_path / "1.parquet", range(5))
    changed(tmp_path / "1.parquet", features=pa.array(told["features"].tolist(), pa.list_(pa.float64())))
    log = ParquetLog(tmp_path / "1.parquet")
    assert log.dim == DIM
    np.testing.assert_array_equal(next(log.chunks()).features, told["features"])
    odd = told["features"].tolist()
    odd[2] = [1.0]
    changed(tmp_path / "1.parquet", features=pa.array(odd, pa.list_(pa.float64())))
    raises(FileFormatError, r"row 2 .* has 1 features", list, ParquetLog(tmp_path / "1.parquet").chunks())


def test_copies_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    part(tmp_path / "1.parquet", range(20))
    rewards = parquet.read_table(tmp_path / "1.parquet")["reward"].to_numpy().copy()
    rewards[7] += 1.0
    part(tmp_path / "2.parquet", range(20), rewards=rewards)
    with pytest.raises(
        FileFormatError, match=r"contradict each other; the first are .*1\.parquet, row 7 and .*2\.parquet, row 7"
    ):
        ParquetLog(tmp_path / "*.parquet")
    part(tmp_path / "3.parquet", range(20), propensities=np.full(20, 0.4))
    raises(FileFormatError, "contradict", ParquetLog, [tmp_path / "1.parquet", tmp_path / "3.parquet"])


def test_an_attribution_window(tmp_path: Path) -> None:
    times: dict[str, Any] = {"times": np.arange(4) * 100.0, "reward_times": np.array([10.0, 190.0, 210.0, 310.0])}
    part(tmp_path / "1.parquet", range(4), rewards=np.ones(4), **times)
    asked: list[tuple[dict[str, Any], list[float]]] = [
        ({}, [1.0] * 4),
        ({"window": 50.0}, [1.0, np.nan, 1.0, np.nan]),
        ({"window": 50.0, "now": 1000.0, "default": -1.0}, [1.0, -1.0, 1.0, 1.0]),
        ({"window": 50.0, "default": -1.0}, [1.0, -1.0, 1.0, np.nan]),
    ]
    for how, wanted in asked:
        for contexts in (True, False):
            (chunk,) = ParquetLog(tmp_path / "1.parquet", **how).chunks(contexts=contexts)
            np.testing.assert_array_equal(chunk.rewards, wanted)
    stamps = {
        name: pa.array(1000 * column).cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))
        for name, column in (("time", times["times"]), ("reward_time", times["reward_times"]))
    }
    (chunk,) = ParquetLog(changed(tmp_path / "1.parquet", **stamps), window=50.0).chunks()
    np.testing.assert_array_equal(chunk.rewards, [1.0, np.nan, 1.0, np.nan])
    part(tmp_path / "2.parquet", range(4), name="second")
    with pytest.raises(FileFormatError, match=r"2\.parquet: row 0 .* has no time"):
        [*ParquetLog(tmp_path / "*.parquet", window=1.0).chunks()]


def test_an_empty_log_and_one_row(tmp_path: Path) -> None:
    part(tmp_path / "1.parquet", [])
    raises(EmptySetError, "one decision at least", ParquetLog, tmp_path / "1.parquet")
    told = part(tmp_path / "2.parquet", ["only"])
    log = ParquetLog(tmp_path / "*.parquet")
    assert [len(chunk) for chunk in log.chunks()] == [1]
    np.testing.assert_array_equal(next(log.chunks()).features, told["features"])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"features": [[9.0] * DIM] * 6}, "row 0 .* features that are none of its contexts"),
        ({"propensity": [0.5, 0.0, 0.5, 0.5, 0.5, 0.5]}, "row 1 .* has the propensity 0.0"),
        ({"propensity": None}, "propensity is missing"),
        ({"reward": [1.0, 1.0, float("inf"), 1.0, 1.0, 1.0]}, "row 2 .* reward inf"),
        ({"arm_index": [5, 0, 0, 0, 0, 0]}, "row 0 .* has the arm_index 5, of 2 arms"),
        ({"arm_index": [-1, 0, 0, 0, 0, 0]}, "row 0 .* has the arm_index -1"),
        ({"arm_index": [1, 1, 2, 0, 1, 2]}, "row 0 .* other features than the arm at its arm_index, 1"),
        ({"arm_index": ["0"] * 6}, "column 'arm_index' must be int64"),
        ({"baseline": [0, 3, 0, 0, 0, 0]}, "row 1 .* has the baseline 3, of 3 arms"),
        ({"names": ["[]"] * 6}, r"row 0 .* has the names '\[\]'\. Write the ids"),
        ({"names": ["no JSON"] * 6}, "row 0 .* has the names 'no JSON'"),
        ({"names": ['["a","a"]'] * 6}, "must have different ids"),
        ({"names": ['["a","b"]'] * 6}, "row 1 .* has 2 names, for 3 arms"),
        ({"behavior_probs": [[1.0]] * 6}, "row 0 .* has 1 numbers of behavior_probs, not 2"),
        ({"behavior_probs": pa.array([[0.1, 0.1], [0.1] * 3, [0.1] * 4] * 2)}, "propensity 0.5 and behavior_probs 0.1"),
        ({"features": None}, "needs the column 'features'"),
        ({"contexts": [[1.0] * 4] * 6}, "row 0 .* has contexts of 4 numbers, for arms of 3 features"),
        ({"contexts": [[float("nan")] * 6] * 6}, "row 0 .* has contexts that are not finite"),
        ({"contexts": [[1e120] * 6] * 6}, "row 0 .* has a number above 1e[+]100"),
        ({"policy": [None] * 6}, "policy"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_row(tmp_path: Path, columns: dict[str, Any], said: str) -> None:
    path = tmp_path / "1.parquet"
    part(path, range(6))
    changed(path, **columns)
    with pytest.raises(FileFormatError, match=said) as caught:
        [*ParquetLog(path).chunks()]
    assert "1.parquet" in str(caught.value)


def test_an_arm_must_be_among_the_names_and_at_its_place(tmp_path: Path) -> None:
    path = tmp_path / "1.parquet"
    part(path, range(3))
    names = [json.dumps([*"abcd"[:size]]) for size in (2, 3, 4)]
    changed(path, names=names, arm=["a", "b", "c"], arm_index=[0, 1, 2])
    assert next(ParquetLog(path).chunks()).chosen_names == ["a", "b", "c"]
    changed(path, arm=["a", "c", "c"])
    raises(FileFormatError, r"row 1 .* an arm that is not the one at its arm_index, 1", list, ParquetLog(path).chunks())
    changed(path, arm=["a", "z", "c"])
    raises(FileFormatError, r"row 1 .* an arm that is none of its names", list, ParquetLog(path).chunks())


def test_parts_of_different_logs_are_refused(tmp_path: Path) -> None:
    part(tmp_path / "1.parquet", range(3))
    write_log(tmp_path / "2.parquet", log_of(1, contexts=None))
    raises(FileFormatError, "parts of one log", ParquetLog, tmp_path / "*.parquet")


def test_many_rows_come_in_chunks_and_reading_may_stop(tmp_path: Path) -> None:
    count = 70_000
    features = np.arange(count, dtype=float)[:, None] * np.ones(DIM)
    told = {"features": features, "propensities": np.ones(count), "rewards": np.zeros(count)}
    write_part(tmp_path / "1.parquet", policy_id="first", ids=range(count), **told)
    log = ParquetLog(tmp_path / "1.parquet")
    chunks = [*log.chunks(contexts=False)]
    assert len(chunks) > 1
    np.testing.assert_array_equal(np.concatenate([chunk.features for chunk in chunks]), features)
    assert [*log.chunks()] == []
    for _ in log.chunks(contexts=False):
        break
