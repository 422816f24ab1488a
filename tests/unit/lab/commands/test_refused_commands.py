"""What commands of the laboratory refuse: in one line, with status 2."""

from pathlib import Path

import pytest

from rareswitch.cli import main

CONTEST = ["contest", "--horizons", "60", "--seeds", "2", "--quiet", "--learners", "linucb 1", "thompson 0.5", "falcon"]
SHORT = ["--horizon", "500", "--seeds", "1"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            [*CONTEST, "--suite", "field", "--half", "reporting", "--worlds", "iris", "wine"],
            "wine: not of the reporting",
        ),
        ([*CONTEST, "--suite", "field", "--tables", "/nowhere"], "/nowhere: --tables must be a folder with some of"),
        ([*CONTEST, "--horizons", "1"], "--horizons must be at least 2; got 1"),
        ([*CONTEST, "--markdown", "/nowhere/c.md"], "there is no folder /nowhere"),
        ([*CONTEST, "--plots", "/dev/null/p"], "no folder can be made there"),
        (["simulate", "--learner", "batch-linucb", "--horizon", "1"], "horizon must be at least 2"),
        (["simulate", "--learner", "batch-linucb", "--seeds", "0"], "--seeds must be between 1 and 1000000; got 0"),
        (["simulate", "--learner", "batch-linucb", "--noise", "-1"], "--noise must be a finite number at least 0"),
        (["simulate", "--learner", "batch-linucb", "--grid", "10", "20"], "the grid ends at 20 where the horizon is 1"),
        (["simulate", "--learner", "batch-linucb", "--intercept"], "--intercept is no setting of batch-linucb. Leave"),
        (["simulate", "--learner", "foresight", "--confidence", "1"], "--confidence is no setting of foresight"),
        (["simulate", "--learner", "linucb", "--growth", "2", *SHORT], "--growth is no setting of linucb. Leave it ou"),
        (["simulate", "--learner", "oful", "--policies", "2", *SHORT], "--policies is no setting of oful. Leave it ou"),
        (["simulate", "--learner", "base", "--world", "gaussian", *SHORT], "base is for plain arms"),
        (["design", "square.csv", "--tol", "0"], "tol must be a finite number at least 1e-08; got 0.0"),
        (["design", "square.csv", "--plot-set", "none", "--plot", "x.png"], "--plot-set must name a set"),
        (["design", "square.csv", "--distributional"], "at least two context sets"),
        (["design", "square.csv", "--method", "core"], "--method is for --distributional"),
        (["design", "square.csv", "--distributional", "--power", "2"], "--power is for --method core; got --method"),
        (
            ["design", "square.csv", "--distributional", "--method", "core", "--g-optimal-share", "0.1"],
            "--g-optimal-share is for",
        ),
        (["design", "square.csv", "--sets", "5"], "--sets is for sets that are drawn from a world; got the file"),
        (["design", "square.csv", "--plot", "/nowhere/x.png"], "cannot be written"),
        (["design", "square.csv", "--plot", "x.nonsense"], "must end in .png"),
        *((["compare", "--learners", "oful", "--engine", name], name) for name in ("spark", "processes:0")),
        (["compare", "--learners", "oful", "--engine", "dask:tcp://127.0.0.1:9"], "127.0.0.1:9"),
    ],
)
def test_bad_commands_give_one_line_and_status_2(
    command: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("square.csv").write_text("x,y\n1,0\n0,1\n0.1,0.1\n")
    assert main(command) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "compiling kernels" not in line]
    assert line.startswith("rareswitch: error: ") or "was not run" in line
    assert words in line
