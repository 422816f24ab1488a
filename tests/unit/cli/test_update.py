import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.cli import main
from rareswitch.learner import LEARNERS, BatchLinUCBKW, Foresight, settings_of
from rareswitch.log import find_parts, update, write_part
from rareswitch.store import Deployment


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


def test_a_level_that_the_features_do_not_explain_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, "begin", "--dim", "2", "--horizon", "1e3", "--out", "one")
    contexts = np.random.default_rng(1).standard_normal((60, 3, 2))
    features, rewards = contexts[:, 0], 1000.0 + contexts[:, 0, 0]
    told: Any = {"policy_id": Deployment.load("one").policy.id, "propensities": np.full(60, 0.5)}
    write_part(
        "p.parquet", ids=range(60), features=features, rewards=rewards, contexts=dict(enumerate(contexts)), **told
    )
    given = ("update", "--log", "p.parquet", "--policy", "one", "--out")
    assert "noticed: rewards lie around 999.9" in done(capsys, *given, "two")
    (note,) = json.loads(done(capsys, *given, "three", "--json"))["notes"]
    assert (note["update"], round(note["level"])) == (1, 1000)


def test_begin_play_and_update_twice(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = done(capsys, "begin", "--dim", "3", "--horizon", "1e3", "--updates", "4", "--out", "one")
    first = Deployment.load("one")
    assert f"foresight begins. Policy 1, {first.policy.id[:12]}…, makes the decisions 0 to 11 of 1,000, as far" in out
    out = done(capsys, "play", "--policy", "one", "--seed", "3", "--arms", "5", "--out", "logs/1")
    assert "12 decisions in 4 parts written; learn from them with: --log 'logs/1/part-*.parquet'" in out
    out = done(capsys, "update", "--log", "logs/1/part-*.parquet", "--policy", "one", "--out", "two")
    second = Deployment.load("two")
    assert f"Policy 2, {second.policy.id[:12]}…, makes the decisions 12 to 51 of 1,000, as far as is planned.\n" in out
    assert "written to two" in out
    (note,) = second.state.notes
    assert f"certificate: a decision of it costs at most {note['certificate']:.3g} on average, if its inter" in out
    assert f"learned: the noise is {note['noise']:.3g}; the next policy explores at {note['scale']:g} times" in out
    assert second.policy.id == update(first, ["logs/1/part-*.parquet"]).deployment.policy.id
    play = ("play", "--policy", "two", "--seed", "3", "--arms", "5", "--parts", "2", "--out", "logs/2")
    done(capsys, *play, "--count", "60", "--missing", "0.2")
    out = done(capsys, "update", "--log", "logs/*/part-*.parquet", "--policy", "two", "--out", "three")
    rows = {line.rsplit(maxsplit=1)[0].strip(): line.split()[-1] for line in out.splitlines() if line.strip()}
    assert (rows["rows"], rows["decisions of the batch, as planned"], rows["decisions that came"]) == ("72", "40", "60")
    assert int(rows["learned from"]) + int(rows["whose reward is not known"]) == 60
    assert rows["of earlier batches, used"] == "12"
    assert f"used: 12 rows of policy {first.policy.id[:12]}…, that of batch 1, with 0 new rewards" in out
    assert "The batches were not those planned (12, 60 decisions for 12, 40)" in out
    log = ("--log", "logs/2/part-*.parquet")
    out = done(capsys, "update", *log, "--policy", "two", "--out", "json", "--json", "--ahead", "300", "400")
    found = json.loads(out)
    assert found["next_policy"] == Deployment.load("json").policy.id
    assert (found["earlier"], found["updates"], found["done"], found["ahead"]) == ({}, 3, False, [300, 400])
    assert (found["parts"], found["out"], found["planned"], found["decided"]) == (2, "json", 40, 60)
    assert found["holds"].startswith("The batches were not those planned")
    assert [note["certificate"] > 0.0 for note in found["notes"]] == [True]
    done(capsys, "update", *log, "--policy", "two", "--out", "over", "--ahead", "0")
    assert Deployment.load("over").state.done


class Full(io.StringIO):
    """A disk without space."""

    def flush(self) -> None:
        if self.getvalue():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_report_that_cannot_be_shown_says_what_was_written(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, out in (
        (("begin", "--dim", "3", "--horizon", "1e3", "--out", "one"), "one"),
        (("play", "--policy", "one", "--arms", "5", "--out", "logs"), "logs/part-*.parquet"),
        (("update", "--log", "logs/*", "--policy", "one", "--out", "two"), "two"),
        (("update", "--log", "logs/*", "--policy", "one", "--out", "three", "--json"), "three"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", Full())
            assert main(arguments) == 2
        (line,) = said(capsys.readouterr().err)
        assert line.startswith("rareswitch: error: the report could not be shown (No space left on device)")
        assert f"but {out} was written, and is whole" in line
    assert Deployment.load("two").policy.id == Deployment.load("three").policy.id


def test_verify(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    done(capsys, "begin", "--dim", "3", "--horizon", "1e3", "--updates", "4", "--out", "one")
    done(capsys, "play", "--policy", "one", "--out", "logs")
    done(capsys, "update", "--log", "logs/part-*.parquet", "--policy", "one", "--out", "two")
    assert "Everything is learned again from the summaries." in done(capsys, "verify", "two")
    assert json.loads(done(capsys, "verify", "two", "--json"))["holds"] is True
    monkeypatch.setattr("rareswitch.learner.planning.SCALES", (0.37,))
    assert main(("verify", "two")) == 1
    assert "policy 2, " in (out := capsys.readouterr().out)
    assert "would now be learned otherwise" in out


def test_late_rewards_windows_and_conflicts(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, "begin", "--dim", "3", "--out", "one")
    now = Deployment.load("one")
    given: dict[str, Any] = {
        "policy_id": now.policy.id,
        "features": [[0.1, 0.2, float(k)] for k in range(9)],
        "ids": range(9),
    }
    given |= {"propensities": [0.5] * 9, "contexts": {k: [[0.1, 0.2, float(k)]] * 2 for k in range(9)}}
    given |= {"times": [3600.0 * k for k in range(9)], "reward_times": [3600.0 * k + 60 * k for k in range(9)]}
    write_part("a.parquet", rewards=[float(k % 4) for k in range(9)], **given)
    common = ("update", "--policy", "one", "--window", "300", "--json", "--log", "a.parquet")
    found = json.loads(done(capsys, *common, "--out", "two"))
    assert (found["used"], found["waiting"], found["expired"]) == (6, 1, 2)
    found = json.loads(done(capsys, *common, "--out", "three", "--now", "1970-01-01T06:02:00"))
    assert (found["used"], found["waiting"], found["expired"]) == (6, 3, 0)
    found = json.loads(done(capsys, *common, "--out", "four", "--now", "1970-01-02T01:00:00+01:00"))
    assert (found["used"], found["waiting"], found["expired"]) == (6, 0, 3)
    write_part("b.parquet", rewards=[7.0] * 9, **given)
    both = ("update", "--policy", "one", "--log", "*.parquet", "--out", "five")
    assert "9 decisions have rows that contradict" in refused(capsys, *both)
    Path("b.parquet").unlink()
    write_part("b.parquet", rewards=[0.0] * 8 + [7.0], **given | {"ids": range(1, 10), "contexts": {}})
    assert "--leave-out-conflicts" in refused(capsys, *both)
    assert "  that contradict each other, of 8 decisions: left out" in done(capsys, *both, "--leave-out-conflicts")
    with pytest.raises(SystemExit):
        main((*both, "--now", "monday"))
    assert "'monday' is not a time such as" in capsys.readouterr().err


def test_rows_of_earlier_policies_can_be_left_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, "begin", "--dim", "3", "--horizon", "1e3", "--out", "one")
    done(capsys, "play", "--policy", "one", "--out", "logs/1")
    done(capsys, "update", "--log", "logs/1/*", "--policy", "one", "--out", "two")
    done(capsys, "play", "--policy", "two", "--out", "logs/2")
    Path("logs/1/part-0001-0002.parquet").unlink()
    common = ("update", "--log", "logs/*/*", "--policy", "two", "--out", "three")
    line = refused(capsys, *common)
    assert "batch 1 was learned from with 12 decisions, 12 of them rewarded; the log has 9 and 9 of it" in line
    assert "part-0001-0001.parquet" in line
    assert "not used: 9 rows of policy" in done(capsys, *common, "--no-late")


def test_a_run_comes_to_its_end(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--dim", "2", "--arms", "3", "--horizon", "60", "--grid", "30", "60"]
    given = ["--noise", "0.5", "--delta", "0.1", "--confidence", "1"]
    done(capsys, "begin", "--learner", "batch-linucb-kw", *sizes, *given, "--out", "d0")
    learner = Deployment.load("d0").learner
    assert isinstance(learner, BatchLinUCBKW)
    assert (learner.arms, learner.grid.ends, learner.noise, learner.confidence) == (3, (30, 60), 0.5, 1.0)
    for batch in range(2):
        done(capsys, "play", "--policy", f"d{batch}", "--parts", "1", "--out", f"logs{batch}")
        out = done(capsys, "update", "--log", f"logs{batch}/*", "--policy", f"d{batch}", "--out", f"d{batch + 1}")
    assert "The run is over: 60 decisions have been learned from." in out
    assert "this run is over" in refused(capsys, "play", "--policy", "d2", "--out", "logs2")
    assert "this run is over" in refused(capsys, "update", "--log", "logs1/*", "--policy", "d2", "--out", "d3")


def test_settings_of_foresight(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--intercept", "--floor", "0.01", "--seed", "4"]
    done(capsys, "begin", "--learner", "foresight", "--dim", "3", *given, "--out", "d")
    expected = Foresight(dim=3, intercept=True, floor=0.01, seed=4)
    assert Deployment.load("d").learner == expected


def test_every_setting_that_is_a_number_or_a_text_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(("begin", "--help"))
    out = capsys.readouterr().out
    for kind in LEARNERS.values():
        for entry in settings_of(kind):
            assert (f"--{entry.name.replace('_', '-')} " in out) == (entry.name not in ("designer", "g_optimal"))


def test_engines_on_the_command_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, "begin", "--dim", "3", "--horizon", "1e3", "--out", "one")
    done(capsys, "play", "--policy", "one", "--out", "logs")
    for name in ("serial", "serial:2"):
        done(capsys, "update", "--log", "logs/*", "--policy", "one", "--out", name, "--engine", name, "--quiet")
    assert Deployment.load("serial").policy.id == Deployment.load("serial:2").policy.id
    err = refused(capsys, "update", "--log", "logs/*", "--policy", "one", "--out", "next", "--engine", "spark")
    assert "no engine is called 'spark'" in err


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
            ("begin", "--learner", "oful", "--dim", "3", *out),
            "oful decides by looking at each",
        ),
        (
            ("begin", "--learner", "batch-linucb-kw", "--dim", "3", "--horizon", "1e3", *out),
            "batch-linucb-kw needs arms",
        ),
        (("begin", "--dim", "0", "--horizon", "1e3", *out), "dim must be at least 1"),
        (("begin", "--dim", "3", "--noise", "1", *out), "--noise means nothing to foresight; it is for batch-linucb,"),
        (("begin", *out), "foresight needs dim"),
        (("verify", "logs"), "logs: not the folder of a deployment"),
        (("play", *policy, "--env", "mars", "--out", "more"), "there is no world 'mars'"),
        (("play", *policy, "--env", "digits", "--out", "more"), "for any number of arms in 3 dimensions"),
        (("play", *policy, "--parts", "0", "--out", "more"), "parts must be at least 1"),
        (("play", *policy, "--out", "logs"), "logs: exists already, and a log is never overwritten. Name another"),
    ):
        assert words in refused(capsys, *arguments)
    assert sorted(os.listdir()) == ["logs", "one"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks there whether a part is being read")
def test_ctrl_c_leaves_nothing_half_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done(capsys, "begin", "--dim", "3", "--horizon", "4e4", "--grid", "3e4", "4e4", "--out", "one")
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
