import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rareswitch.lab
from rareswitch.cli import main
from rareswitch.lab import load_runs
from rareswitch.learner import LEARNERS, takes
from reference.commands import printed
from reference.refusals import raises

SMALL = ["--dim", "3", "--arms", "5", "--seeds", "2", "--noise", "0.3"]


def is_png(path: Path) -> bool:
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_simulate_prints_runs_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate", "--learner", "batch-linucb-dg", "--world", "gaussian", "--horizon", "1e3", *SMALL, "--json"]
    runs = json.loads(printed(capsys, *command))
    assert [(r["learner"], r["world"], r["horizon"], r["seed"]) for r in runs] == [
        ("batch-linucb-dg", "gaussian", 1000, 0),
        ("batch-linucb-dg", "gaussian", 1000, 1),
    ]
    assert all(r["policies"] == 5 and r["regret"] > 0 and r["seconds"] > 0 for r in runs)
    assert runs[0]["linear_regret"] == runs[0]["regret"]
    assert set(runs[0]) == {"learner", "world", "horizon", "seed", "regret", "linear_regret", "policies", "seconds"}


def test_compare_shows_a_table_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compare", "--learners", "batch-linucb", "batch-linucb-kw", "--worlds", "gaussian", "fixed"]
    command += ["--horizons", "300", "600", *SMALL, "--plot", str(tmp_path / "c.png")]
    out = printed(capsys, *command)
    assert "batch-linucb-kw plays as batch-linucb" in out
    out = out.split("\n\n", 1)[1]
    assert out.splitlines()[0].split()[:6] == ["learner", "world", "horizon", "policies", "regret", "worst"]
    assert len([line for line in out.splitlines() if line.startswith("batch-linucb")]) == 8
    assert is_png(tmp_path / "c.png")


def test_ctrl_c_reports_what_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    command = [sys.executable, "-m", "rareswitch", "simulate", "--learner", "batch-linucb", "--horizon", "20000"]
    command += ["--seeds", "2000", "--out", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not (path.exists() and load_runs(path)):
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "stopped after" in err
    assert "batch-linucb" in out
    assert len(load_runs(path)) >= 1


def test_the_demo_shows_a_table_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "demo", "--days", "3", "--plot", str(tmp_path / "demo.png"))
    rows = {line.split("  ")[0]: line.split() for line in out.splitlines()}
    assert rows["never"][1] == "1"
    assert rows["every click at once"][4] == "540"
    assert int(rows["best times"][2]) > 1
    assert "This takes about a minute." in out
    assert is_png(tmp_path / "demo.png")
    facts = json.loads((Path(rareswitch.lab.__file__).parent / "headline.json").read_text())
    assert f"lose {facts['best']} times" in out
    assert f"{facts['weekly']} times every week" in out
    assert re.search(r"with seed 3, in \d+ s", out)
    *_, last = out.splitlines()
    command = re.fullmatch(r"Next, how many policies you need: \S+ (plan .*)", last)[1].split()
    assert "Recommended:" in printed(capsys, *command)


def test_the_demo_has_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    regrets = []
    for seed in "3", "4":
        assert main(["demo", "--days", "1", "--seed", seed, "--json"]) == 0
        regrets.append([row["regret"] for row in json.loads(capsys.readouterr().out)])
    assert regrets[0] != regrets[1]


def test_every_setting_of_a_learner_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    """What a class of learners takes can be said on the command line, but for objects; a shared default is shown."""
    with pytest.raises(SystemExit) as caught:
        main(["simulate", "--help", "--learner", *LEARNERS])
    assert caught.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name in LEARNERS:
        for setting in set(takes(name)) - {"g_optimal", "designer", "seed"}:
            assert f"--{setting.replace('_', '-')} " in shown, (name, setting)
    assert (
        "share of decisions that explore by design; a tenth of it in the last batch. 0.03 can cost 4 times the regret"
        in shown
    )
    raises(SystemExit, None, main, ["simulate", "--learner", "thompson", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "settings of thompson: --" in shown
    assert "parameters that a policy holds" in shown
    assert "--policies" not in shown
    raises(SystemExit, None, main, ["compare", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "rareswitch compare --learners NAME … --help lists them" in shown


def test_settings_reach_the_learners_that_take_them(capsys: pytest.CaptureFixture[str]) -> None:
    common = ["compare", "--horizons", "200", *SMALL, "--json", "--learners", "foresight", "oful", "linucb-grid"]
    assert main([*common, "--grid", "20", "60", "200", "--growth", "1e9", "--intercept"]) == 0
    policies = {run["learner"]: run["policies"] for run in json.loads(capsys.readouterr().out)}
    assert (policies["foresight"], policies["linucb-grid"]) == (3, 3)
    assert policies["oful"] <= 2


SHARED = ("--dim", "3", "--arms", "4", "--horizon", "600")


def test_agents_share_batches(capsys: pytest.CaptureFixture[str]) -> None:
    one, five = json.loads(printed(capsys, "agents", *SHARED, "--agents", "1", "5", "--json"))
    assert one["decisions"] == five["decisions"]
    assert one["regret"] == pytest.approx(five["regret"])
    assert (one["rounds"], five["rounds"]) == (8, 8)
    assert one["parallel_time"] == 600
    assert 120 <= five["parallel_time"] <= 128
    assert main(["agents", *SHARED, "--agents", "1", "5", "--engine", "processes:2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[1]["policies"] == five["policies"]


def test_agents_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "agents", *SHARED, "--agents", "2", "--learner", "batch-linucb-kw")
    assert "bytes from all agents" in text
    assert "time in decisions" in text
    assert "one agent's + M·A" in printed(capsys, "agents", *SHARED, "--agents", "1", "4", "--learner", "oful")
