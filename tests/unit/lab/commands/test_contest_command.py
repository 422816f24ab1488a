import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rareswitch.cli import main
from rareswitch.lab import ENTRANTS, SUITES, Run, simulate
from reference.commands import printed
from reference.refusals import raises
from reference.tables import write_tables

SMALL = ["contest", "--horizons", "60", "--seeds", "2", "--quiet"]
SMALL += ["--learners", "linucb 1", "thompson 0.5", "falcon"]


def test_a_contest_is_tables_pictures_and_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SMALL, "--worlds", "gaussian", "fixed", "--horizons", "60", "1e2"]
    command += ["--plots", str(tmp_path / "new" / "p")]
    assert main([*command, "--markdown", str(tmp_path / "c.md")]) == 0
    captured = capsys.readouterr()
    for title in ("gaussian, T = 60", "fixed, T = 100", "Standings at T = 100, 2 worlds, 2", "Ratios by"):
        assert title in captured.out
    assert "movielens" not in captured.err  # it was not asked for
    assert sorted(p.name for p in (tmp_path / "new" / "p").iterdir()) == ["all.png", "fixed.png", "gaussian.png"]
    text = (tmp_path / "c.md").read_text(encoding="utf-8")
    assert "![gaussian](new/p/gaussian.png)" in text
    assert "3 pictures written" in captured.out


def test_a_contest_as_json_is_resumable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SMALL, "--worlds", "fixed", "--out", str(tmp_path / "runs.parquet"), "--first-seed", "4"]
    (first,) = json.loads(printed(capsys, *command, "--json"))
    assert {entry["entry"]: entry["kind"] for entry in first["entries"]} == {
        "linucb 1": "adaptive",
        "thompson 0.5": "adaptive",
        "falcon": "rare",
    }
    assert first["yardstick"] in ("linucb 1", "thompson 0.5")
    assert json.loads(printed(capsys, *command, "--json")) == [first]  # to the second, so nothing was run again
    assert f"6 of 6 runs were taken from {tmp_path / 'runs.parquet'}" in printed(capsys, *command)


def test_the_field_is_a_suite_with_halves_and_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(SUITES["field"], worlds=("movielens", "segment", "banana", "heavy-tails"))
    monkeypatch.setitem(SUITES, "field", short)
    few = ["contest", "--horizons", "40", "--seeds", "1", "--quiet", "--json", "--suite", "field"]
    few += ["--learners", "linucb 1", "foresight 16", "thompson-grid 0.5"]
    assert main([*few, "--half", "reporting"]) == 0
    captured = capsys.readouterr()
    assert "segment is left out; name a folder of its tables with --tables." in captured.err
    assert "movielens" not in captured.err  # which is of the other half
    assert list(json.loads(captured.out)[0]["entries"][0]["worlds"]) == ["heavy-tails"]
    assert main([*few, "--half", "development", "--tables", str(write_tables(tmp_path))]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("left out") == 1
    whole, linear = json.loads(captured.out)
    assert (whole["against"], linear["against"]) == ("best arm", "best linear policy")
    assert list(whole["entries"][0]["worlds"]) == ["banana", "heavy-tails"]
    assert set(whole["rivals"]["ratios"]) == {"foresight 16"}
    assert set(whole["rivals"]["best"].values()) == {"thompson-grid 0.5"}


def test_entries_and_suites_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "contest", "--list")
    assert all(label in out for label in [*ENTRANTS, *SUITES])
    listed = json.loads(printed(capsys, "contest", "--list", "--json"))
    assert [*listed["entries"], *listed["suites"]] == [*ENTRANTS, *SUITES]
    raises(SystemExit, None, main, ["contest", "--help"])
    assert "ten, field or changing" in " ".join(capsys.readouterr().out.split())
    assert list(SUITES) == ["ten", "field", "changing"]
    assert importlib.import_module("rareswitch.lab.contest").SEEDS == 20


def test_ctrl_c_shows_what_is_finished(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 0

    def interrupt(*arguments: Any, **settings: Any) -> Run:
        nonlocal runs
        runs += 1
        if runs == 9:
            raise KeyboardInterrupt
        return simulate(*arguments, **settings)

    monkeypatch.setattr(importlib.import_module("rareswitch.lab.sweep"), "simulate", interrupt)
    assert main([*SMALL, "--worlds", "gaussian", "fixed"]) == 130
    captured = capsys.readouterr()
    assert "stopped after 8 finished runs." in captured.err
    assert "Standings at T = 60, 1 world," in captured.out
    assert "unfinished: fixed" in captured.out
