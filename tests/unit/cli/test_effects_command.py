"""``rareswitch effects``: a table, JSON and a picture of what arms and features do."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.cli import main
from rareswitch.decisions import DecisionLog
from rareswitch.evaluation import effects
from rareswitch.log import read, write
from reference.commands import printed


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """1,500 decisions among three arms, of which the second pays more, with vectors, as a file."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    places = rng.integers(3, size=1500)
    contexts = np.broadcast_to(np.eye(3), (1500, 3, 3))
    rewards = (rng.random(1500) < 0.2 + 0.2 * (places == 1)).astype(float)
    facts: dict[str, Any] = {
        "arm_indices": places,
        "propensities": np.full(1500, 1.0 / 3.0),
        "arms": ["red", "blue", "green"],
    }
    write("log.csv", DecisionLog(rewards=rewards, contexts=contexts, **facts))
    return "log.csv"


def test_every_arm_is_a_row(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "effects", log)
    assert out == f"{effects(read(log))}\n"
    assert out.index("blue") < out.index("red")
    assert "better" in out


def test_one_arm_by_group_as_json(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["effects", log, "--arm", "blue", "--against", "red", "--by", "position", "--level", "0.9", "--json"]
    found = json.loads(printed(capsys, *command))
    assert [one["group"] for one in found["effects"]] == ["", "place 1"]
    assert found["level"] == 0.9
    interval = effects(read(log), "blue", "red", level=0.9)["blue"].interval
    assert found["effects"][0]["interval"]["low"] == interval.low > 0.0


def test_groups_may_be_a_column_of_a_table(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path(log).read_text().splitlines()
    facts = ["country,age", *(f"{'DE' if row % 3 else ''},{row % 40}" for row in range(len(lines) - 1))]
    Path("own.csv").write_text("\n".join(map(",".join, zip(lines, facts, strict=True))))
    asked = ["effects", "own.csv", "--arm", "blue", "--against", "red", "--json", "--by"]
    by_country = json.loads(printed(capsys, *asked, "country"))
    assert [one["group"] for one in by_country["effects"]] == ["", "(empty)", "DE"]
    assert sum(one["decisions"] for one in by_country["effects"][1:]) == by_country["effects"][0]["decisions"] == 1500
    by_age = json.loads(printed(capsys, *asked, "age"))
    assert [(one["group"], one["decisions"]) for one in by_age["effects"][1:]] == [("age > 19", 740), ("age ≤ 19", 760)]
    assert main([*asked, "shoe"]) == 2
    assert "--by must be a column of own.csv" in capsys.readouterr().out


@pytest.mark.parametrize("asked", [[], ["--arm", "blue", "--by", "position"]])
def test_pictures_are_written(log: str, asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "picture written to found.png" in printed(capsys, "effects", log, *asked, "--plot", "found.png")
    assert Path("found.png").read_bytes()[:4] == b"\x89PNG"


def test_an_experiment_is_asked_by_store_and_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rareswitch.experiment import create

    monkeypatch.chdir(tmp_path)
    ids, pays = [f"r{k}" for k in range(600)], np.random.default_rng(1).random(600)
    with create("sqlite:///spring.db", "banner", dim=2, policies=2, horizon=1200, seed=1, now=0.0) as trial:
        decided = trial.decide_many([np.eye(2).tolist()] * 600, arms=[["red", "blue"]] * 600, ids=ids, now=1.0)
        paid = [bool(pay < (0.5 if one.arm == "blue" else 0.2)) for one, pay in zip(decided, pays, strict=True)]
        trial.reward_many(ids, paid, now=2.0)
    assert "better" in printed(capsys, "effects", "spring.db", "banner", "--arm", "blue", "--against", "red")


def test_a_log_that_cannot_tell_has_a_status_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    facts: dict[str, Any] = {"arm_indices": [0] * 200, "propensities": [1.0] * 200, "rewards": [0.0, 1.0] * 100}
    write("log.csv", DecisionLog(arms=("red", "blue"), **facts))
    out = printed(capsys, "effects", "log.csv", "--arm", "blue", "--plot", "none.png", status=3)
    assert "not identifiable" in out
    assert "min_propensity=" in out
    assert Path("none.png").exists()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--arm", "pink"], "--arm must be one of the arms"),
        (["--arm", "blue", "--against", "pink"], "--against must be"),
        (["--arm", "blue", "--by", "device"], "--by must be a column of log.csv"),
        (["--by", "position"], "--by says for whom"),
        (["--level", "2"], "--level"),
        (["--plot", "found.txt"], "must end in"),
    ],
)
def test_what_is_asked_wrongly_is_refused_by_option(
    log: str, asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["effects", log, *asked]) == 2
    assert said in capsys.readouterr().err
