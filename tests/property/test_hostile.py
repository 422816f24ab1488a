"""Files that claim more than they hold are refused; benchmarks/hostile.py tries 10,000 of them, and measures memory."""

import pytest

from rareswitch.errors import FileFormatError
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
