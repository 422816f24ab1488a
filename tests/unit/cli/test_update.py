import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rareswitch.cli import main
from rareswitch.log import Deployment, find_parts, update


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def done(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert said(captured.err) == []
    return captured.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = said(captured.err)
    assert line.startswith("rareswitch: error: ")
    return line


def said(errors: str) -> list[str]:
    """Lines besides the one that a fresh machine shows."""
    return [line for line in errors.splitlines() if "compiling kernels" not in line]


def test_begin_play_and_update_twice(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = done(capsys, "begin", "--dim", "3", "--horizon", "1e3", "--updates", "4", "--out", "one")
    first = Deployment.load("one")
    assert f"foresight begins. Policy 1, {first.policy.id[:12]}…, makes the decisions 0 to 11 of 1,000." in out
    out = done(capsys, "play", "--policy", "one", "--seed", "3", "--arms", "5", "--out", "logs")
    assert "4 parts written; learn from them with: --log 'logs/part-0001-*.parquet'" in out
    out = done(capsys, "update", "--log", "logs/part-*.parquet", "--policy", "one", "--out", "two")
    second = Deployment.load("two")
    assert f"Policy 2, {second.policy.id[:12]}…, makes the decisions 12 to 51 of 1,000.\nwritten to two" in out
    assert second.policy.id == update(first, ["logs/part-*.parquet"]).deployment.policy.id
    out = done(capsys, "play", "--policy", "two", "--seed", "3", "--arms", "5", "--parts", "2", "--out", "logs")
    out = done(capsys, "update", "--log", "logs/part-*.parquet", "--policy", "two", "--out", "three")
    rows = {line.rsplit(maxsplit=1)[0].strip(): line.split()[-1] for line in out.splitlines() if line.strip()}
    assert rows["rows"] == "52"
    assert rows["learned from"] == rows["decisions of the batch"] == "40"
    assert rows["of earlier policies of this deployment: not used"] == "12"
    assert f"not used: 12 rows of policy {first.policy.id[:12]}…, an earlier policy of this deployment" in out
    out = done(capsys, "update", "--log", "logs/part-0002-*.parquet", "--policy", "two", "--out", "json", "--json")
    found = json.loads(out)
    assert found["next_policy"] == Deployment.load("three").policy.id == Deployment.load("json").policy.id
    assert (found["used"], found["earlier"], found["updates"], found["done"]) == (40, {}, 3, False)
    assert (found["parts"], found["out"]) == (2, "json")


def test_a_run_comes_to_its_end(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--dim", "2", "--arms", "3", "--horizon", "60", "--ends", "30", "60"]
    given = ["--noise", "0.5", "--delta", "0.1", "--confidence", "1"]
    done(capsys, "begin", "--learner", "batch-linucb-kw", *sizes, *given, "--out", "d0")
    settings = {"dim": 2, "arms": 3, "horizon": 60, "grid": [30, 60], "noise": 0.5, "delta": 0.1, "confidence": 1.0}
    assert Deployment.load("d0").settings == settings
    for batch in range(2):
        done(capsys, "play", "--policy", f"d{batch}", "--parts", "1", "--out", "logs")
        log = f"logs/part-000{batch + 1}-*.parquet"
        out = done(capsys, "update", "--log", log, "--policy", f"d{batch}", "--out", f"d{batch + 1}")
    assert "The run is over: all 60 decisions have been learned from." in out
    assert "this run is over" in refused(capsys, "play", "--policy", "d2", "--out", "logs")
    assert "this run is over" in refused(capsys, "update", "--log", "logs/*", "--policy", "d2", "--out", "d3")


def test_settings_of_foresight(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--intercept", "--floor", "0.01", "--seed", "4"]
    done(capsys, "begin", "--learner", "foresight", "--dim", "3", "--horizon", "500", *given, "--out", "d")
    assert Deployment.load("d").settings == {"dim": 3, "horizon": 500, "intercept": True, "floor": 0.01, "seed": 4}


def test_engines_on_the_command_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, "begin", "--dim", "3", "--horizon", "1e3", "--out", "one")
    done(capsys, "play", "--policy", "one", "--out", "logs")
    for name in ("serial", "serial:2"):
        done(capsys, "update", "--log", "logs/*", "--policy", "one", "--out", name, "--engine", name, "--quiet")
    assert Deployment.load("serial").policy.id == Deployment.load("serial:2").policy.id
    err = refused(capsys, "update", "--log", "logs/*", "--policy", "one", "--out", "next", "--engine", "spark")
    assert "no engine is called 'spark'" in err


def test_an_incomplete_log(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, "begin", "--dim", "3", "--horizon", "1e3", "--out", "one")
    done(capsys, "play", "--policy", "one", "--out", "logs")
    Path("logs/part-0001-0002.parquet").unlink()
    common = ("update", "--log", "logs/*", "--policy", "one", "--out", "two")
    assert "of its 12 decisions, 0 to 11, 3 not in the log (3, 4, 5)" in refused(capsys, *common)
    assert not Path("two").exists()
    assert "  that are not in the log" in done(capsys, *common, "--incomplete")
    assert Deployment.load("two").learner.updates == 2


def test_bad_input_gives_one_line_and_status_2(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, "begin", "--dim", "3", "--horizon", "1e3", "--out", "one")
    done(capsys, "play", "--policy", "one", "--out", "logs")
    log, policy, out = ("--log", "logs/*"), ("--policy", "one"), ("--out", "two")
    for arguments, words in (
        (("update", "--log", "none-*.parquet", *policy, *out), "no file matches this pattern"),
        (("update", "--log", "logs", *policy, *out), "a folder; name the files in it"),
        (("update", *log, "--policy", "nowhere", *out), "nowhere: not the folder of a deployment"),
        (("update", *log, *policy, "--out", "one"), "one: exists already, and a deployment is never overwritten"),
        (("begin", "--dim", "3", "--horizon", "1e3", "--out", "one"), "exists already"),
        (
            ("begin", "--learner", "oful", "--dim", "3", "--arms", "4", "--horizon", "1e3", *out),
            "oful decides by looking at each",
        ),
        (
            ("begin", "--learner", "batch-linucb-kw", "--dim", "3", "--horizon", "1e3", *out),
            "batch-linucb-kw needs arms",
        ),
        (("begin", "--dim", "0", "--horizon", "1e3", *out), "dim must be at least 1"),
        (("begin", "--dim", "3", "--horizon", "1e3", "--noise", "1", *out), "foresight does not take noise"),
        (("play", *policy, "--env", "mars", "--out", "more"), "there is no world 'mars'"),
        (("play", *policy, "--env", "digits", "--out", "more"), "for at most"),
        (("play", *policy, "--parts", "0", "--out", "more"), "parts must be at least 1"),
        (("play", *policy, "--out", "logs"), "part-0001-0001.parquet: exists already"),
    ):
        assert words in refused(capsys, *arguments)
    assert sorted(os.listdir()) == ["logs", "one"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks there whether a part is being read")
def test_ctrl_c_leaves_nothing_half_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, "begin", "--dim", "3", "--horizon", "4e4", "--ends", "3e4", "4e4", "--out", "one")
    done(capsys, "play", "--policy", "one", "--parts", "30", "--arms", "5", "--out", "logs")
    for k, path in enumerate(find_parts(["logs/*"]) * 40):
        shutil.copy(path, f"logs/copy-{k:04d}.parquet")
    before = sorted(os.listdir())
    command = [sys.executable, "-m", "rareswitch", "update", "--log", "logs/*", "--policy", "one", "--out", "two"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and "logs" not in " ".join(_open_files(process.pid)):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "rareswitch: stopped."
    assert sorted(os.listdir()) == before


def _open_files(pid: int) -> list[str]:
    folder, found = Path(f"/proc/{pid}/fd"), []
    for entry in folder.iterdir() if folder.exists() else ():
        try:
            found.append(os.readlink(entry))
        except OSError:
            continue
    return found
