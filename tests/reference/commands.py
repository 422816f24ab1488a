"""Commands that are run in this process: what they print, and how they refuse."""

import pytest

from rareswitch.cli import main


def said(errors: str) -> list[str]:
    """Lines besides the one that a fresh machine shows."""
    return [line for line in errors.splitlines() if "compiling kernels" not in line]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """What a command prints."""
    assert main(arguments) == status
    return capsys.readouterr().out


def done(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """What a command prints that has nothing to warn of."""
    assert main(arguments) == status
    captured = capsys.readouterr()
    assert said(captured.err) == []
    return captured.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a command that is refused."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = said(captured.err)
    assert line.startswith("rareswitch: error: ")
    return line
