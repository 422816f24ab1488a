import json
from pathlib import Path

import pytest

from rareswitch.cli import main
from rareswitch.lab.worlds import LowerBoundWorld
from rareswitch.learner import LEARNERS

SMALL = ["--world", "lower-bound", "--horizon", "3000", "--seeds", "2", "--caps", "1", "4", "--quiet"]


def test_learners_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learners"]) == 0
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(LEARNERS)
    assert main(["learners", "--json"]) == 0
    assert [set(row) for row in json.loads(capsys.readouterr().out)] == [{"name", "text", "policies", "regret"}] * len(
        LEARNERS
    )


def test_a_tradeoff_is_a_table_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tradeoff", *SMALL, "--learners", "oful", "linucb", "--plot", str(tmp_path / "t.png")]) == 0
    out = capsys.readouterr().out
    assert LowerBoundWorld(horizon=3000, stages=1).describe().splitlines()[0] in out
    rows = [line for line in out.splitlines() if line.split()[:1] in (["1"], ["4"], ["no"])]
    assert len(rows) == 3
    assert rows[2].endswith("(3,000)")
    assert (tmp_path / "t.png").read_bytes()[:4] == b"\x89PNG"


def test_a_tradeoff_as_json_is_resumable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["tradeoff", *SMALL, "--learners", "oful", "--json", "--out", str(tmp_path / "runs.parquet")]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    assert [(run["cap"], run["seed"]) for run in first] == [(1, 0), (1, 1), (4, 0), (4, 1), (None, 0), (None, 1)]
    assert all(run["cap"] is None or run["policies"] <= run["cap"] for run in first)
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out) == first  # to the second, so they were not run again


def test_every_learner_can_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", "--learners", "all", "--worlds", "gaussian", "--horizons", "60", "--dim", "3", "--arms", "4"]
    assert main([*command, "--seeds", "1", "--plot", str(tmp_path / "all.png"), "--quiet"]) == 0
    captured = capsys.readouterr()
    found = {line.split()[0] for line in captured.out.splitlines() if line.split()}
    assert found >= set(LEARNERS) - {"base", "fixed-set-elimination", "e4"}
    assert "base was not run in gaussian: base is for plain arms" in captured.err
    assert "fixed-set-elimination was not run in gaussian" in captured.err


def test_a_cap_holds_for_every_learner(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", "--learners", "all", "--worlds", "plain", "--horizons", "200", "--arms", "4", "--seeds", "1"]
    assert main([*command, "--cap", "2", "--json", "--quiet"]) == 0
    runs = json.loads(capsys.readouterr().out)
    assert len(runs) == len(LEARNERS)
    assert {run["policies"] for run in runs} == {2}
