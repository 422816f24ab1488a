"""Whatever bit of a part flips: it is refused, or its rows are what they were."""

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest

from rareswitch.core.parquet_files import check_footer
from rareswitch.errors import FileFormatError
from rareswitch.log import write_part
from rareswitch.log.parts import blocks, open_part


@pytest.fixture
def part(tmp_path: Path) -> Path:
    rng, path = np.random.default_rng(1), tmp_path / "p.parquet"
    write_part(
        path,
        policy_id="ab" * 32,
        ids=range(24),
        features=rng.standard_normal((24, 2)),
        propensities=np.full(24, 0.5),
        rewards=np.where(np.arange(24) % 5 == 0, np.nan, rng.standard_normal(24)),
        contexts={k: rng.standard_normal((2, 2)) for k in range(0, 24, 3)},
        times=10.0 * np.arange(24),
        reward_times=10.0 * np.arange(24) + 1.0,
    )
    return path


def content(path: Path) -> list[Any]:
    with open_part(str(path), 2) as file:
        return [block.batch.to_pylist() for block in blocks(str(path), file, file.schema_arrow.names)]


def flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def passed_with_other_rows(path: Path, bits: list[int]) -> list[int]:
    """Flip each of these bits, and see which pass though the rows are others."""
    data, rows, found = path.read_bytes(), content(path), []
    for bit in bits:
        path.write_bytes(flipped(data, bit))
        with suppress(FileFormatError):
            found += [bit] if content(path) != rows else []
    return found


@pytest.mark.parametrize("where", ["the header of the first page, which no checksum covers", "pages", "footer"])
def test_a_flipped_bit_is_noticed(where: str, part: Path) -> None:
    size = part.stat().st_size
    footer = int.from_bytes(part.read_bytes()[-8:-4], "little") + 8
    bits = range(8 * 30)
    if where in ("pages", "footer"):
        bits = range(8 * 2000) if where == "pages" else range(8 * (size - footer), 8 * size)
    assert passed_with_other_rows(part, random.Random(2).sample(bits, min(len(bits), 250))) == []


def test_a_flipped_bit_of_another_writers_footer_is_no_crash(part: Path) -> None:
    """Without a seal it may pass, as a change of a name does; it must not end the process."""
    parquet.write_table(parquet.read_table(part).replace_schema_metadata(), part)
    data = part.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    told = 0
    for bit in random.Random(20).sample(range(8 * (len(data) - footer), 8 * len(data)), 400):
        part.write_bytes(flipped(data, bit))
        try:
            content(part)
        except FileFormatError:
            told += 1
    assert told > 100


def test_what_looks_like_a_seal_in_an_id_is_none(tmp_path: Path) -> None:
    """The statistics of a column stand in the footer, before the seal."""
    path = tmp_path / "p.parquet"
    ids = ["rareswitch-sha256:" + 64 * "0", "rareswitch-sha256:"]
    write_part(path, policy_id="ab" * 32, ids=ids, features=[[1.0, 2.0]] * 2, propensities=[1, 1], rewards=[0, 1])
    assert [row["id"] for row in content(path)[0]] == ids


def test_a_part_that_another_program_writes_again_is_one_of_another_writer(tmp_path: Path) -> None:
    """Rows may be filled in with any tool: the seal is of the file, and is not copied with its rows."""
    path = tmp_path / "part.parquet"
    write_part(path, policy_id="p", features=[[1.0, 2.0]], ids=[1], propensities=[0.5], rewards=[None])
    parquet.write_table(parquet.read_table(path), tmp_path / "again.parquet")
    for part in (path, tmp_path / "again.parquet"):
        with part.open("rb") as file:
            check_footer(file, part)
    data = bytearray(path.read_bytes())
    assert b"rareswitch-sha256:" in data
    assert b"rareswitch-sha256:" not in (tmp_path / "again.parquet").read_bytes()
