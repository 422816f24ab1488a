"""Logs that unpack to far more than they take: they are refused, or read in pieces, before the memory is asked for."""

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from rareswitch.core import files, parquet_files, read_table
from rareswitch.core.parquet_files import column_chunks
from rareswitch.errors import FileFormatError
from rareswitch.log import ParquetLog, parts
from rareswitch.log.dsjson import read_decisions
from reference.refusals import raises


def columns_of(count: int) -> dict[str, Any]:
    return {
        "id": pa.array(np.arange(count)),
        "policy": pa.array(["first"] * count),
        "features": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2 * count)), 2),
        "propensity": pa.array(np.full(count, 0.5)),
        "reward": pa.array(np.ones(count)),
    }


def repeated(text: str, count: int) -> Any:
    """A column that holds a text once and says that it is there again and again."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), pa.array([text]))


def write(path: Path, columns: dict[str, Any], **more: Any) -> Path:
    parquet.write_table(pa.table(columns), path, compression="zstd", store_schema=False, **more)
    return path


def lists(count: int, length: int) -> Any:
    ends = pa.array(np.arange(count + 1) * length, pa.int64())
    return pa.LargeListArray.from_arrays(ends, pa.array(np.zeros(count * length)))


def test_lists_that_unpack_to_far_more_than_the_file_holds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "log.parquet", columns_of(2) | {"contexts": lists(2, 100_000)})
    assert len(next(ParquetLog(path).chunks(contexts=False))) == 2
    monkeypatch.setattr(parquet_files, "EXPANDED", 1 << 20)
    message = (
        r"log.parquet: column 'contexts' would take up to 1,600,000 bytes in memory for [0-9,]+ in the file; at mo"
    )
    raises(FileFormatError, message, ParquetLog, path)
    monkeypatch.setattr(parquet_files, "EXPANSION", 1 << 20)
    assert ParquetLog(path).decisions == 2


def test_missing_vectors_of_a_great_length_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of(4)
    columns["features"] = pa.array([None] * 4, pa.list_(pa.float64(), 100_000))
    path = tmp_path / "log.parquet"
    parquet.write_table(pa.table(columns), path)
    monkeypatch.setattr(parquet_files, "EXPANDED", 1 << 20)
    raises(FileFormatError, r"column 'features' would take up to 3,200,000 bytes .* as lists", ParquetLog, path)


def test_texts_that_end_differently_are_bounded_by_all_they_could_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = {"arm": pa.array([f"{'x' * 1000}{k}" for k in range(1000)])}
    options: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"arm": "DELTA_BYTE_ARRAY"}}
    options["column_encoding"]["policy"] = "DELTA_BYTE_ARRAY"
    path = write(tmp_path / "log.parquet", columns_of(1000) | arms, **options)
    assert ParquetLog(path).decisions == 1000
    monkeypatch.setattr(parquet_files, "EXPANDED", 1 << 20)
    raises(FileFormatError, r"column 'arm' would take up to .* Write it with plain encodings", ParquetLog, path)


@pytest.mark.parametrize("most", [1 << 28, 1000])
def test_texts_that_occur_again_and_again_are_unpacked_in_pieces(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_TEXTS", most)
    arms = {"arm": repeated("x" * 100, 64), "arm_index": pa.array(np.zeros(64, dtype=np.int64))}
    path = write(tmp_path / "log.parquet", columns_of(64) | arms)
    with parts.open_part(str(path), 2) as file:
        blocks = [*parts.blocks(str(path), file, ["id", "arm"])]
    sizes = [len(block.numbers) for block in blocks]
    assert (sum(sizes), max(sizes)) == (64, 64 if most > 1000 else 8)
    assert [number for block in blocks for number in block.numbers] == [*range(64)]
    assert {text for block in blocks for text in block.batch.column("arm").to_pylist()} == {"x" * 100}
    assert [number for block in blocks for number in block.batch.column("id").to_pylist()] == [*range(64)]


def test_a_bomb_is_read_in_little_memory(tmp_path: Path) -> None:
    count = 1 << 16
    arms = {"arm": repeated("x" * 80_000, count), "arm_index": pa.array(np.zeros(count, dtype=np.int64))}
    path = write(tmp_path / "log.parquet", columns_of(count) | arms)
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({4 << 30}, {4 << 30}))
from rareswitch.log.parts import blocks, open_part
with open_part({str(path)!r}, 2) as file:
    print(len(next(blocks({str(path)!r}, file, ["id", "arm"])).numbers))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 80_000 * int(done.stdout) <= 1 << 28


def test_a_footer_that_is_none_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", columns_of(2))
    footer = path.read_bytes()
    assert {chunk.column for chunk in column_chunks(footer)} == {*columns_of(2)}
    length = int.from_bytes(footer[-8:-4], "little")
    for cut in range(length - 1):
        data = footer[-8 - length : -8][:cut]
        raises(OSError, "footer", column_chunks, data + len(data).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("name", ["log.json", "log.json.gz", "log.csv", "log.csv.gz"])
def test_a_line_without_an_end_is_not_read_to_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 100)
    path, text = tmp_path / name, b"a,b\n" * (".csv" in name) + b"x" * 1000
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    line = 2 if ".csv" in name else 1
    message = (
        f"{name}, line {line}: a line has at most 100 characters, and this one has more. Write one decision a line"
    )
    with pytest.raises(FileFormatError, match=message):
        read_table(path) if ".csv" in name else [*read_decisions(path)]


def test_a_compressed_file_that_holds_far_more_than_it_takes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 100_000))
    assert len(read_table(path)) == 100_000
    monkeypatch.setattr(files, "EXPANDED", 1000)
    raises(FileFormatError, r"log.csv.gz: its [0-9]+ bytes are those of more than .*unpack it first", read_table, path)
