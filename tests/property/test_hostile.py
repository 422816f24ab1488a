"""Files that claim more than they hold are refused; benchmarks/faults.py tries many more, and measures memory."""

from pathlib import Path

import pytest

from rareswitch.errors import FileFormatError, RareswitchError
from reference import hostile


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_intact_files_are_read(kind: str) -> None:
    for file in hostile.intact()[kind]:
        assert hostile.fault(file, file.data, hostile.load(kind, file.data)) == ""


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_no_crafted_or_mutated_file_is_read_as_what_it_is_not(kind: str) -> None:
    for number in range(8 * len(hostile.CHANGES)):
        how, file, data = hostile.mutated(kind, number, seed=1)
        try:
            found = hostile.load(kind, data)
        except FileFormatError:
            continue
        assert hostile.fault(file, data, found) == "", (how, number)


@pytest.mark.parametrize("ending", hostile.LOGS)
def test_no_mutated_log_ends_a_reader_or_is_read_as_what_no_log_is(ending: str, tmp_path: Path) -> None:
    path, refused = tmp_path / f"log{ending}", 0
    for number in range(20 * len(hostile.LOG_CHANGES)):
        path.write_bytes(hostile.mutated_log(ending, number, seed=1))
        try:
            parts = hostile.load_log(path)
        except RareswitchError:
            refused += 1
            continue
        assert hostile.log_fault(parts) == "", number
    assert refused > 0


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".json"])
def test_intact_logs_are_read(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"log{ending}"
    path.write_bytes(hostile.intact_log(ending))
    parts = hostile.load_log(path)
    assert hostile.log_fault(parts) == ""
    assert all(len(part) == 40 for part in parts)
