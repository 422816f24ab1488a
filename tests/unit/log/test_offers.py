from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from rareswitch.errors import FileFormatError
from rareswitch.log.offers import Offers
from rareswitch.log.schema import open_part


def offers(path: Path, lists: list[Any], kind: Any, group: int = 10) -> Offers:
    table = pa.table({"decision": np.arange(len(lists)), "contexts": pa.array(lists, type=kind)})
    parquet.write_table(table, path, row_group_size=group)
    return Offers(str(path), open_part(str(path)).metadata, 2)


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.large_list(pa.float64()), pa.list_(pa.float64(), 4)])
@pytest.mark.parametrize("pieces", [1 << 23, 1])
def test_sets_of_single_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, pieces: int) -> None:
    """Asked for in several calls, over row groups in which no set is wanted."""
    monkeypatch.setattr("rareswitch.log.offers._BYTES", pieces)
    lists = [None if row % 7 == 3 else [row, 1.0, 2.0, row] for row in range(300)]
    for group in (10, 64, 100, 1000):
        there = offers(tmp_path / "p.parquet", lists, kind, group)
        for rows in ([3, 4, 5], [5], [], [47, 88, 150], [150, 151, 299]):
            found = there.at(np.array(rows, dtype=np.int64))
            expected = [None if row % 7 == 3 else [[row, 1.0], [2.0, row]] for row in rows]
            assert [None if arms is None else arms.tolist() for arms in found] == expected
        there.close()


def test_sets_of_different_sizes(tmp_path: Path) -> None:
    lists = [[float(k)] * (2 * (k % 4)) for k in range(40)]
    found = offers(tmp_path / "p.parquet", lists, pa.list_(pa.float64())).at(np.arange(40))
    assert [0 if arms is None else len(arms) for arms in found] == [k % 4 for k in range(40)]


def test_a_part_may_have_no_sets(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"decision": [1, 2]}), tmp_path / "p.parquet")
    there = Offers("p.parquet", open_part(str(tmp_path / "p.parquet")).metadata, 2)
    assert there.at(np.array([0, 1])) == [None, None]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([1.0, None], "a null among its contexts"),
        ([1.0], "contexts of 1 numbers, which is no multiple of the 2 features"),
        ([1.0, float("inf")], "contexts that are not finite"),
    ],
)
def test_bad_sets_are_named(tmp_path: Path, bad: list[Any], words: str) -> None:
    there = offers(tmp_path / "p.parquet", [[1.0, 2.0]] * 25 + [bad] * 2, pa.list_(pa.float64()))
    assert [len(arms) for arms in there.at(np.array([24])) if arms is not None] == [1]
    with pytest.raises(FileFormatError, match=rf"p.parquet: row 26 \(the first is 0\) has {words}"):
        there.at(np.array([26]))
