import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from rareswitch.errors import FileFormatError, MissingExtraError
from rareswitch.lab.context_files import read_context_file
from reference.refusals import raises

MANY = "set,a,b\nleft,1,0\nright,0.5,0.5\nleft,0,1\n"


def test_csv_rows_are_grouped_in_order_of_appearance(tmp_path: Path) -> None:
    path = tmp_path / "sets.csv"
    path.write_text(MANY)
    file = read_context_file(path)
    assert file.names == ("left", "right")
    assert file.features == ("a", "b")
    assert file.arm_counts.tolist() == [2, 1]
    np.testing.assert_array_equal(file.sets.contexts[0], [[1, 0], [0, 1]])
    np.testing.assert_array_equal(file.sets.available, [[True, True], [True, False]])


@pytest.mark.parametrize("text", ["1,2\n3,4\n", "a,b\n1,2\n3,4\n", "\ufeffa,b\r\n1,2\r\n\r\n3,4\r\n"])
def test_csv_without_a_set_column_is_one_set(tmp_path: Path, text: str) -> None:
    path = tmp_path / "one.csv"
    path.write_text(text, encoding="utf-8", newline="")
    np.testing.assert_array_equal(read_context_file(path).sets.contexts, [[[1, 2], [3, 4]]])


def test_arrays_come_back(tmp_path: Path) -> None:
    contexts = np.random.default_rng(1).standard_normal((3, 4, 2))
    np.save(tmp_path / "one.npy", contexts[0])
    np.save(tmp_path / "many.npy", contexts)
    available = np.arange(4) < np.array([[1], [2], [4]])
    np.savez(tmp_path / "masked.npz", contexts=contexts, available=available)
    np.savez(tmp_path / "alone.npz", contexts[0])
    np.savez(tmp_path / "onemasked.npz", contexts=contexts[0], available=available[0])
    np.testing.assert_array_equal(read_context_file(tmp_path / "one.npy").sets.contexts, contexts[:1])
    np.testing.assert_array_equal(read_context_file(tmp_path / "many.npy").sets.contexts, contexts)
    np.testing.assert_array_equal(read_context_file(tmp_path / "masked.npz").sets.available, available)
    np.testing.assert_array_equal(read_context_file(tmp_path / "alone.npz").sets.contexts, contexts[:1])
    np.testing.assert_array_equal(read_context_file(tmp_path / "onemasked.npz").sets.available, available[:1])


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    columns = {"user": [7, 8, 7], "a": [1.0, 0.5, 0.0], "b": [0, 1, 1]}
    parquet.write_table(pa.table(columns), tmp_path / "sets.parquet")
    file = read_context_file(tmp_path / "sets.parquet", set_column="user")
    assert file.names == ("7", "8")
    np.testing.assert_array_equal(file.sets.contexts[0], [[1, 0], [0, 1]])


def save(path: Path, content: Any) -> Path:
    if isinstance(content, str):
        path.write_text(content)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict) and path.suffix == ".parquet":
        parquet.write_table(pa.table(content), path)
    elif isinstance(content, dict):
        np.savez(path, **content)
    else:
        np.save(path, content, allow_pickle=True)
    return path


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.csv", "", "empty"),
        ("x.csv", "\n\n", "empty"),
        ("x.csv", "a,b\n", "no rows, only the names of columns"),
        ("x.csv", "a,b\n1,2\n3\n", "line 3: 1 cells, and there are 2 columns"),
        ("x.csv", "a,b\n1,red\n", "line 2: the column 'b' must hold finite numbers; got 'red'"),
        ("x.csv", "a,b\n1,\n", "line 2: the column 'b' must not be empty"),
        ("x.csv", "a,b\n1,nan\n", "line 2: .* finite numbers; got 'nan'"),
        ("x.csv", "1,2O\n3,4\n", "line 1: it must be all names or all numbers; it holds '2O'"),
        ("x.csv", 'a,b\n"1,2\n', "not CSV"),
        ("x.csv", "set,a\n,1\n", "line 2: the column 'set' must not be empty"),
        ("x.csv", "a;b\n1;2\n", "Separate columns by commas"),
        ("x.csv", "a,a\n1,2\n", "different names; 'a' is there twice"),
        ("x.csv", "set\n1\n", "no feature column"),
        ("x.csv", b"a,b\n\xff\xfe,1\n", "UTF-8"),
        ("x.txt", "1,2\n", "must end in one of"),
        ("x.npy", b"not numpy at all", "not a readable NumPy file"),
        ("x.npy", np.ones(3), r"\(3,\)"),
        ("x.npy", np.array([{"a": 1}], dtype=object), "never loaded"),
        ("x.npy", np.array([["a"]]), "real numbers"),
        ("x.npy", np.ones((2, 0)), "at least one arm"),
        ("x.npy", np.ones((1, 1, 1, 1)), r"\(1, 1, 1, 1\)"),
        ("x.npz", {"a": np.ones((2, 2)), "b": np.ones(2)}, "named 'contexts'"),
        ("x.npz", {"contexts": np.ones((2, 2)), "available": np.zeros(2, dtype=bool)}, "kills every arm"),
        ("x.npz", b"PK\x03\x04 truncated", "not a readable NumPy file"),
        ("x.parquet", b"PAR1 truncated", "not a readable Parquet file"),
        ("x.parquet", {"a": ["x"]}, "row 1: the column 'a' must hold finite numbers"),
        ("x.parquet", {"a": pa.array([1.0, None])}, "row 2: the column 'a' must not be empty"),
        ("x.parquet", {"a": pa.array([], type=pa.float64())}, "no rows"),
        ("x.parquet", {"set": pa.array(["u", None]), "a": [1.0, 2.0]}, "row 2: the column 'set' must not be empty"),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path: Path, name: str, content: Any, words: str) -> None:
    path = save(tmp_path / name, content)
    with pytest.raises(FileFormatError, match=words) as error:
        read_context_file(path)
    assert str(path) in str(error.value)


def test_missing_files_and_columns_are_named(tmp_path: Path) -> None:
    raises(FileFormatError, r"none\.csv: cannot be read", read_context_file, tmp_path / "none.csv")
    with pytest.raises(FileFormatError, match="no column 'user'; it has set, a, b"):
        read_context_file(save(tmp_path / "x.csv", MANY), set_column="user")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "x.parquet", {"a": [1.0]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    raises(MissingExtraError, r"rareswitch\[parquet\]", read_context_file, path)


def test_folders_and_hopeless_paddings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rareswitch.lab import context_files

    folder = tmp_path / "folder.csv"
    folder.mkdir()
    raises(FileFormatError, "cannot be read", read_context_file, folder)
    monkeypatch.setattr(context_files, "_MOST_ENTRIES", 5)
    with pytest.raises(FileFormatError, match="2 sets padded to the largest, of 2 arms"):
        read_context_file(save(tmp_path / "x.csv", MANY))


def test_an_array_that_claims_more_than_there_is_memory_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "huge.npy").open("wb") as file:
        shape = {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**5)}
        np.lib.format.write_array_header_1_0(file, shape)
        file.write(bytes(64))
    raises(FileFormatError, r"huge\.npy: not a readable NumPy file", read_context_file, tmp_path / "huge.npy")
