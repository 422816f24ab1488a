"""A few of the kills of benchmarks/faults.py."""

from pathlib import Path

import pytest

from reference.kills import COMMANDS, Bench, Command, kept_of_two


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_killed_command_leaves_nothing_half_written_and_can_be_run_again(command: Command, tmp_path: Path) -> None:
    bench = Bench.prepared(tmp_path, (command,))
    last = bench.calls[command.name]
    for call in (last // 3, 2 * last // 3, last - 1):  # two in the middle, one while it cleans up
        assert bench.kill_at(command, call) == []
    assert bench.kills == 3


def test_two_commands_into_one_file_both_keep_their_runs(tmp_path: Path) -> None:
    kept, wanted = kept_of_two(tmp_path / "pair", seeds=4)
    assert kept == wanted == 8
