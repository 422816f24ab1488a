"""Errors speak of what was typed; output that cannot be written ends a command in order."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rareswitch.cli import main
from rareswitch.cli.running import _parser

CREATE = ["experiment", "create", "x.db", "x"]
#: A command that loads little and prints a line.
KEY, FULL = "key --scheme hmac --out k", "the output could not be written (No space left on device)"
RUN = ["--horizon", "60", "--dim", "2", "--arms", "3", "--seeds", "1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "--learner", "oful", *RUN, "--noise", "-1"], "--noise must be a finite number at least 0"),
        (["simulate", "--learner", "oful", *RUN, "--first-seed", "-1"], "--first-seed must be at least 0; got -1."),
        (["simulate", "--learner", "oful", *RUN, "--seeds", "1000001"], "--seeds must be between 1 and 1000000"),
        (["simulate", "--learner", "linucb", *RUN, "--norm", "-2"], "--norm must be a finite number at least 0"),
        (["compare", "--horizons", "60", "1"], "--horizons must be at least 2; got 1."),
        (["compare", "--learners", "batch-linucb-kw", "--design-tol", "-1"], "--design-tol must be a finite number"),
        (["compare", "--dim", "100000", "--arms", "100000"], "--dim and arms must be such that a set has at most"),
        (["agents", "--agents", "0"], "--agents must be between 1 and 100000; got 0."),
        ([*CREATE, "--dim", "1000000"], "--dim must be at most 10000, as a learner sums up d × d numbers"),
        ([*CREATE, "--dim", "2", "--horizon", "9", "--grid", "4", "2"], "--grid: batch ends must be"),
        ([*CREATE, "--dim", "2", "--schedule", ""], "--schedule must not be empty; got ''."),
        ([*CREATE, "--features", "\udc80"], r"--features must be valid Unicode; got '\udc80'."),
        ([*CREATE, "--learner", "oful", "--dim", "2"], "oful decides by looking at each decision when its next policy"),
        (["experiment", "status", "", "x"], "STORE must not be empty; got ''."),
        (["compare", "--learners", "oful", ""], "--learners must not be empty; got ''."),
    ],
)
def test_errors_name_the_option_as_it_was_typed(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert f"rareswitch: error: {words}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "kind", "parameter", "given", "words"),
    [
        (["simulate", "--learner", "oful", "--noise", "-1"], "ParameterError", "noise", -1.0, "--noise must be"),
        (["simulate", "--learner", "oful", "--noise", "nan"], "ParameterError", "noise", "nan", "--noise must be"),
        (["compare", "--horizons", "60", "1"], "ParameterError", "horizons", 1, "--horizons must be at least 2"),
        ([*CREATE, "--dim", "2", "--schedule", ""], "ParameterError", "schedule", "", "--schedule must not be empty"),
        (["experiment", "status", "nowhere.db", "x"], "StoreError", None, None, "nowhere.db"),
        (["simulate", "--learner", "nobody"], "InputError", None, None, "there is no learner 'nobody'"),
    ],
)
def test_a_program_that_asked_for_json_gets_errors_as_json(
    arguments: list[str],
    kind: str,
    parameter: str | None,
    given: object,
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, "--json"]) == 2
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    message = answer["error"].pop("message")
    assert answer == {"schema_version": 1, "error": {"type": kind, "parameter": parameter, "given": given}}
    assert words in message
    assert printed.err == ""


def test_options_that_take_several_words_may_be_repeated() -> None:
    asked = [
        "evaluate",
        "log.csv",
        "--always",
        "a",
        "--always",
        "b",
        "c",
        "--columns",
        "arm=x",
        "--columns",
        "reward=y",
    ]
    options = _parser(asked).parse_args(asked)
    assert (options.always, options.columns) == (["a", "b", "c"], ["arm=x", "reward=y"])
    assert _parser(["agents"]).parse_args(["agents", "--agents", "2"]).agents == [2]  # in place of the default


def test_an_unknown_option_is_told_with_the_command_it_is_not_of(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "log.csv", "--candidates", "uniform", "--alway", "a", "--bound5", "0"])
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert "usage: rareswitch evaluate" in error
    assert "unrecognized arguments: --candidates uniform --bound5 0." in error


def test_usage_errors_are_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["key", "--scheme", "rot13", "--out", "k", "--json"])
    assert ended.value.code == 2
    printed = capsys.readouterr()
    error = json.loads(printed.out)["error"]
    assert error["type"] == "UsageError"
    assert "invalid choice: 'rot13'" in error["message"]
    assert printed.err == ""


def test_memory_that_is_not_there_is_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 7 TiB")

    monkeypatch.setattr("rareswitch.experiment.create", full)
    assert main([*CREATE, "--dim", "2"]) == 2
    assert "rareswitch: error: there is not enough memory (Unable to allocate 7 TiB). Use" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (f"{KEY} > /dev/full", 2, f"{FULL}, but the command has done its work."),
        ("--help > /dev/full", 2, f"{FULL}."),
        (f"{KEY} >&-", 0, ""),
        (f"{KEY} <&- > /dev/null", 0, ""),
        (f"{KEY} --nothing >&- 2>&-", 2, ""),
        (f"{KEY} | true; exit ${{PIPESTATUS[0]}}", 0, ""),
        ("experiment create x.db x > /dev/full 2> /dev/full", 2, ""),
    ],
)
def test_streams_that_are_full_or_closed(command: str, status: int, said: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    script = ["bash", "-c", f"'{sys.executable}' -m rareswitch {command}"]
    child = subprocess.run(script, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert (child.returncode, child.stderr.removeprefix("rareswitch: error: ").strip()) == (status, said)


@pytest.mark.parametrize(
    ("arguments", "words"), [(["--bogus"], "unrecognized arguments: --bogus"), ([], "a COMMAND is needed")]
)
def test_without_a_command_what_is_wrong_is_named(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
