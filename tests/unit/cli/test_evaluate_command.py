"""``rareswitch evaluate``: experiments and files, what is answered and what is refused, in text, JSON and a picture."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.cli import main
from rareswitch.cli.logs import ESTIMATORS, RULES
from rareswitch.decisions import DecisionLog
from rareswitch.evaluation import ESTIMATORS as KNOWN_ESTIMATORS
from rareswitch.evaluation import RULES as KNOWN_RULES
from rareswitch.experiment import create, open_experiment
from rareswitch.log import write
from rareswitch.policy import save_policy
from reference.commands import done, refused

HERE = ("spring.db", "banner")
ROWS = 900


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment with a baseline and two policies, its log as Parquet, and logs in CSV."""
    made = tmp_path_factory.mktemp("evaluate")
    rng = np.random.default_rng(1)
    start = 1_772_409_600.0  # a Monday
    contexts = rng.normal(size=(2, ROWS, 3, 2))
    with create(
        f"sqlite:///{made}/spring.db", "banner", dim=2, horizon=4000, policies=4, baseline=True, now=start, seed=1
    ) as trial:
        for week, sets in enumerate(contexts):
            ids = [f"{week}-{k}" for k in range(ROWS)]
            now = start + week * 7 * 86400.0
            choices = trial.decide_many(list(sets), ["a", "b", "c"], ids=ids, baseline=["a"] * ROWS, now=now)
            arms = np.array(["abc".index(choice.arm) for choice in choices])
            trial.reward_many(ids, (sets[np.arange(ROWS), arms, 0] + rng.normal(size=ROWS)).tolist(), now=now)
            if week == 0:
                trial.advance(force=True, now=now + 86400.0)
    places = rng.integers(2, size=ROWS)
    told: dict[str, Any] = {"arms": ["red", "blue"], "rewards": rng.random(ROWS) < 0.1 + 0.1 * places}
    write(made / "log.csv", DecisionLog(arm_indices=places, propensities=np.full(ROWS, 0.5), **told))
    write(made / "certain.csv", DecisionLog(arm_indices=np.zeros(ROWS, dtype=int), propensities=np.ones(ROWS), **told))
    return made


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_names_are_those_of_the_library() -> None:
    assert ESTIMATORS == KNOWN_ESTIMATORS
    assert RULES == KNOWN_RULES


def test_of_an_experiment_the_lift_comes_first_then_what_is_usual(capsys: pytest.CaptureFixture[str]) -> None:
    lines = done(capsys, "evaluate", *HERE).splitlines()
    assert lines[0].startswith("Lift over the baseline so far: ")
    assert max(map(len, lines)) <= 100
    names = [line.split("  ")[0] for line in lines]
    assert (
        names.count("uniform") == names.count("baseline") == names.count("policy 1") == 2
    )  # an answer, and its ground
    assert "1,800 decisions of 2 policies" in " ".join(lines)


def test_candidates_are_named_by_what_was_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    policy = tmp_path / "mine.policy"
    assert main(["experiment", "export", *HERE, "--policy", str(policy), "--quiet"]) == 0
    capsys.readouterr()
    asked = ("--version", "1", "2", "--always", "a", "b", "--rule", "logged", "--policy", str(policy))
    found = json.loads(done(capsys, "evaluate", *HERE, *asked, "--json"))
    names = [value["candidate"] for value in found["values"]]
    assert names == ["logged", "always a", "always b", "policy 1", "policy 2", "mine"]
    second, mine = found["values"][-2:]
    assert mine | {"candidate": "policy 2"} == second
    assert second["overlap"]["decisions"] == ROWS  # those since it was learned
    assert found["lift"][0]["name"] == "so far"
    assert len(found["lift"]) == 3


def test_a_parquet_log_says_what_its_experiment_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["experiment", "export", *HERE, "--out", str(tmp_path / "parts"), "--quiet"]) == 0
    capsys.readouterr()
    own = json.loads(done(capsys, "evaluate", *HERE, "--rule", "uniform", "--json"))
    log = json.loads(done(capsys, "evaluate", f"{tmp_path}/parts/*.parquet", "--json"))
    assert log["values"][0]["others"]["ips"]["value"] == pytest.approx(own["values"][0]["others"]["ips"]["value"])
    assert log["decisions"] == own["decisions"] == 2 * ROWS
    policies = []
    with open_experiment("sqlite:///spring.db", "banner") as trial:
        for number, policy in enumerate(trial.policies, 1):
            policies.append(str(tmp_path / f"{number}.policy"))
            save_policy(policy, policies[-1])
    exact = json.loads(
        done(capsys, "evaluate", f"{tmp_path}/parts/*.parquet", "--json", "--behavior-policy", *policies)
    )
    assert exact["values"][0]["overlap"]["unsupported"] == own["values"][0]["overlap"]["unsupported"] is not None


def test_what_a_log_cannot_answer_has_a_status_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    text = done(capsys, "evaluate", "certain.csv", "--always", "blue", status=3)
    assert "Not identifiable, always blue:" in text
    assert "with min_propensity=0.05 about" in text
    assert "Not identifiable, always grey:" in done(capsys, "evaluate", *HERE, "--always", "grey", status=3)
    assert "not identifiable" not in done(capsys, "evaluate", "certain.csv", "--rule", "logged")
    assert json.loads(done(capsys, "evaluate", "certain.csv", "--json", status=3))["values"][0]["interval"] is None


def test_options_reach_the_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    def of(*options: str) -> Any:
        return json.loads(done(capsys, "evaluate", "log.csv", "--always", "blue", "--json", *options))["values"][0]

    usual = of()
    assert usual["estimator"] == "dr"
    assert usual["interval"]["kind"] == "by batch"
    for estimator in ESTIMATORS:
        found = of("--estimator", estimator)
        assert found["interval"]["value"] == pytest.approx(usual["others"][estimator]["value"])
    width = usual["interval"]["high"] - usual["interval"]["low"]
    for options in (["--level", "0.99"], ["--anytime"], ["--anytime", "--bounds", "0", "1"]):
        other = of(*options)["interval"]
        assert other["high"] - other["low"] > width
    assert of("--anytime")["interval"]["kind"] == "anytime"


def test_batches_and_a_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    out = done(capsys, "evaluate", *HERE, "--batches", "--plot", str(picture))
    assert "uniform, by batch" in out
    assert out.endswith(f"picture written to {picture}\n")
    assert picture.stat().st_size > 10_000


def test_what_makes_no_sense_is_refused_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--version is the number of a policy of an experiment" in refused(
        capsys, "evaluate", "log.csv", "--version", "1"
    )
    assert "--version must be a policy of banner, from 1 to 2; got 3." in refused(
        capsys, "evaluate", *HERE, "--version", "3"
    )
    assert "--key-file is for an experiment" in refused(capsys, "evaluate", "log.csv", "--key-file", "key")
    assert "missing.policy: cannot be read" in refused(capsys, "evaluate", "log.csv", "--policy", "missing.policy")
    assert "an experiment has its policies" in refused(capsys, "evaluate", *HERE, "--behavior-policy", "log.csv")
    assert "a picture's name must end" in refused(capsys, "evaluate", "log.csv", "--plot", "picture")
    assert "bounds must hold for all rewards" in refused(
        capsys, "evaluate", "log.csv", "--anytime", "--bounds", "0", "0.5"
    )


def test_wrong_options_are_refused_before_anything_is_loaded() -> None:
    script = """
import sys
from rareswitch.cli import main
for wrong in (["--level", "2"], ["--estimator", "dm"], ["--rule", "unifrom"], ["--bounds", "1"], ["--version", "x"]):
    try:
        main(["evaluate", "log.csv", *wrong])
    except SystemExit as end:
        assert end.code == 2
    else:
        raise AssertionError(wrong)
sys.exit(" ".join(name for name in ("numpy", "scipy", "numba") if name in sys.modules) or 0)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
