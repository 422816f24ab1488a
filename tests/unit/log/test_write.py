from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest

from rareswitch.errors import FileFormatError, InputError, NonFiniteError, ParameterError, ShapeError
from rareswitch.log import LogWriter, log_schema, write_part
from reference.refusals import raises

ID = "a" * 64
GOOD: dict[str, Any] = {
    "ids": [5, 6, 9],
    "features": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "propensities": [1.0, 0.5, 0.25],
    "rewards": [0.5, np.nan, -1.0],
    "contexts": {9: [[5.0, 6.0], [0.0, 1.0]], 5: [[1.0, 2.0]]},
}


def test_a_part_holds_what_was_given(tmp_path: Path) -> None:
    write_part(tmp_path / "p.parquet", policy_id=ID, **GOOD)
    table = parquet.read_table(tmp_path / "p.parquet")
    assert table.schema.equals(log_schema(2))
    assert table.to_pydict() == {
        "id": [5, 6, 9],
        "policy": [ID] * 3,
        "features": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        "propensity": [1.0, 0.5, 0.25],
        "reward": [0.5, None, -1.0],
        "contexts": [[1.0, 2.0], None, [5.0, 6.0, 0.0, 1.0]],
    }
    assert [path.name for path in tmp_path.iterdir()] == ["p.parquet"]


def test_strings_truth_values_and_times(tmp_path: Path) -> None:
    days = np.array(["2026-03-01", "NaT", "2026-03-02T12:00"], dtype="datetime64[us]")
    given = GOOD | {"ids": ["a", "b", "c"], "rewards": [True, None, False], "contexts": {"c": [[5.0, 6.0]]}}
    write_part(tmp_path / "p.parquet", policy_id=ID, **given, times=days[[0, 0, 2]], reward_times=days)
    table = parquet.read_table(tmp_path / "p.parquet")
    assert table["id"].to_pylist() == ["a", "b", "c"]
    assert table["reward"].to_pylist() == [1.0, None, 0.0]
    assert table["contexts"].to_pylist() == [None, None, [5.0, 6.0]]
    assert table["time"].to_pylist() == [1772323200.0, 1772323200.0, 1772452800.0]
    assert table["reward_time"].to_pylist() == [1772323200.0, None, 1772452800.0]


def test_all_rows_of_a_part_have_the_same_columns(tmp_path: Path) -> None:
    raises(ShapeError, "the same columns of the same types", _two_kinds, tmp_path / "p.parquet")
    assert list(tmp_path.iterdir()) == []


def _two_kinds(path: Path) -> None:
    with LogWriter(path, dim=2, policy_id=ID) as part:
        part.write(**GOOD)
        part.write(**GOOD | {"ids": ["a", "b", "c"], "contexts": {}})


def test_rows_are_put_into_groups_however_they_come(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    features = np.zeros((30_000, 1))
    with LogWriter(path, dim=1, policy_id=ID) as part:
        for first in range(0, 150_000, 30_000):
            features[:] = np.arange(first, first + 30_000)[:, None]  # the writer must not look at it later
            part.write(
                ids=np.arange(first, first + 30_000),
                features=features,
                propensities=np.ones(30_000),
                rewards=np.zeros(30_000),
            )
        assert not path.exists()
    metadata = parquet.ParquetFile(path).metadata
    assert [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)] == [65_536, 65_536, 18_928]
    table = parquet.read_table(path)
    np.testing.assert_array_equal(table["id"].to_numpy(), np.arange(150_000))
    np.testing.assert_array_equal(table["features"].combine_chunks().flatten().to_numpy(), np.arange(150_000.0))


def test_nothing_stays_of_a_part_that_fails(tmp_path: Path) -> None:
    def interrupted() -> None:
        with LogWriter(tmp_path / "p.parquet", dim=2, policy_id=ID) as part:
            part.write(**GOOD)
            raise KeyboardInterrupt

    raises(KeyboardInterrupt, None, interrupted)
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_not_overwritten(tmp_path: Path) -> None:
    write_part(tmp_path / "p.parquet", policy_id=ID, **GOOD)
    raises(FileFormatError, "exists already", write_part, tmp_path / "p.parquet", policy_id=ID, **GOOD)
    raises(FileFormatError, "cannot be written", write_part, tmp_path / "nowhere" / "p.parquet", policy_id=ID, **GOOD)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"ids": [5, "6", 9]}, ShapeError, "these are both"),
        ({"features": [1.0, 2.0, 3.0]}, ShapeError, r"features must have shape \(n, dim\)"),
        ({"propensities": [1.5, 0.5, 1.0]}, ParameterError, r"propensities must be above 0 and at most 1"),
        ({"contexts": {7: [[1.0, 2.0]]}}, ShapeError, "contexts must be of decisions that are written"),
        ({"contexts": {5: [[1.0]]}}, ShapeError, r"must be its arms \(K, 2\)"),
        ({"contexts": {5: [[np.inf, 1.0]]}}, NonFiniteError, "contexts must be finite"),
    ],
)
def test_bad_rows_are_refused(tmp_path: Path, change: dict[str, Any], kind: type[InputError], words: str) -> None:
    raises(kind, words, write_part, tmp_path / "p.parquet", policy_id=ID, **GOOD | change)
    assert list(tmp_path.iterdir()) == []
