"""The command ``agents``."""

import json

import pytest

from rareswitch.cli import main

SIZES = ("--dim", "3", "--arms", "4", "--horizon", "600")


def test_agents_share_batches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents", *SIZES, "--agents", "1", "5", "--json"]) == 0
    one, five = json.loads(capsys.readouterr().out)
    assert one["decisions"] == five["decisions"]
    assert one["regret"] == pytest.approx(five["regret"])
    assert (one["rounds"], five["rounds"]) == (8, 8)
    assert one["parallel_time"] == 600
    assert 120 <= five["parallel_time"] <= 128
    assert main(["agents", *SIZES, "--agents", "1", "5", "--engine", "processes:2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[1]["policies"] == five["policies"]


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents", *SIZES, "--agents", "2", "--learner", "batch-linucb-kw"]) == 0
    printed = capsys.readouterr().out
    assert "bytes from all agents" in printed
    assert "time in decisions" in printed
    assert main(["agents", *SIZES, "--agents", "1", "4", "--learner", "oful"]) == 0
    assert "one agent's + M·A" in capsys.readouterr().out
