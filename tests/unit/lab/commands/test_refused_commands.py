"""What commands of the laboratory refuse: in one line, with status 2."""

from pathlib import Path

import pytest

from rareswitch.cli import main

AGENTS = ["agents", "--dim", "3", "--arms", "4", "--horizon", "600"]
CONTEST = ["contest", "--horizons", "60", "--seeds", "2", "--quiet", "--learners", "linucb 1", "thompson 0.5", "falcon"]
TRADEOFF = ["tradeoff", "--world", "lower-bound", "--horizon", "3000", "--seeds", "2", "--caps", "1", "4", "--quiet"]
SHORT = ["--horizon", "500", "--seeds", "1"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([*AGENTS, "--agents", "0"], "agents must be between 1 and 600; got 0"),
        ([*AGENTS, "--agents", "2", "601"], "agents must be between 1 and 600; got 601"),
        ([*AGENTS, "--learner", "oful", "--agents", "601"], "agents must be between 1 and 600; got 601"),
        ([*AGENTS, "--learner", "nobody"], "nobody"),
        ([*AGENTS, "--engine", "cloud"], "cloud"),
        ([*CONTEST, "--learners", "nobody"], "nobody in the contest is called 'nobody'"),
        ([*CONTEST, "--worlds", "nowhere"], "there is no world 'nowhere'"),
        ([*CONTEST, "--worlds", "movielens"], "needs a folder of ratings"),
        ([*CONTEST, "--worlds", "segment"], "the world 'segment' needs a folder of tables. Give it as tables (--table"),
        ([*CONTEST, "--suite", "eleven"], "there is no suite 'eleven'; the suites are ten, field, changing"),
        ([*CONTEST, "--half", "reporting"], "this suite has no halves"),
        (
            [*CONTEST, "--suite", "field", "--half", "reporting", "--worlds", "iris", "wine"],
            "wine: not of the reporting",
        ),
        ([*CONTEST, "--suite", "field", "--half", "better"], "the halves of a suite are development and reporting"),
        ([*CONTEST, "--suite", "field", "--tables", "/nowhere"], "/nowhere: --tables must be a folder with some of"),
        ([*CONTEST, "--seeds", "0"], "seeds must be at least 1; got 0"),
        ([*CONTEST, "--horizons", "1"], "--horizons must be at least 2; got 1"),
        ([*CONTEST, "--data", "/nowhere"], "no such folder. Name a folder that holds"),
        ([*CONTEST, "--markdown", "/nowhere/c.md"], "there is no folder /nowhere"),
        ([*CONTEST, "--plots", "/dev/null/p"], "no folder can be made there"),
        (["simulate", "--learner", "ucb"], "there is no learner 'ucb'"),
        (["simulate", "--learner", "batch-linucb", "--world", "mars"], "there is no world 'mars'"),
        (["simulate", "--learner", "batch-linucb", "--horizon", "1"], "horizon must be at least 2"),
        (["simulate", "--learner", "batch-linucb-dg", "--horizon", "0"], "horizon must be at least 2"),
        (["simulate", "--learner", "batch-linucb", "--dim", "0"], "dim must be at least 1"),
        (["simulate", "--learner", "batch-linucb", "--arms", "0"], "arms must be at least 1"),
        (["simulate", "--learner", "batch-linucb", "--seeds", "0"], "seeds must be at least 1"),
        (["simulate", "--learner", "batch-linucb", "--first-seed", "-1"], "seed must be at least 0"),
        (["simulate", "--learner", "batch-linucb", "--noise", "-1"], "--noise must be a finite number at least 0"),
        (["simulate", "--learner", "batch-linucb", "--delta", "2"], "delta must be"),
        (["simulate", "--learner", "batch-linucb", "--confidence", "bold"], "'paper', 'tight' or a number"),
        (["simulate", "--learner", "batch-linucb", "--policies", "0"], "policies must be"),
        (["simulate", "--learner", "batch-linucb", "--grid", "10", "20"], "the grid ends at 20 where the horizon is 1"),
        (["simulate", "--learner", "batch-linucb", "--grid", "20", "10"], "strictly increasing"),
        (["simulate", "--learner", "batch-linucb", "--policies", "2", "--grid", "10", "100000"], "not both"),
        (["simulate", "--learner", "foresight", "--design-share", "2"], "design-share must be"),
        (["simulate", "--learner", "batch-linucb", "--intercept"], "--intercept is no setting of batch-linucb. Leave"),
        (["simulate", "--learner", "foresight", "--confidence", "1"], "--confidence is no setting of foresight"),
        ([*TRADEOFF, "--caps", "0"], "--caps must be at least 1; got 0"),
        ([*TRADEOFF, "--dim", "3"], "dim must be even"),
        ([*TRADEOFF, "--world", "lower-bound:9"], "Use at most 4"),
        ([*TRADEOFF, "--world", "lower-bound:x"], "whole number of stages; got 'x'"),
        ([*TRADEOFF, "--learners", "nobody"], "there is no learner 'nobody'"),
        ([*TRADEOFF, "--seeds", "0"], "--seeds must be at least 1"),
        (["simulate", "--learner", "oful", "--growth", "1", *SHORT], "growth, the factor C by which determinants grow"),
        (["simulate", "--learner", "linucb", "--growth", "2", *SHORT], "--growth is no setting of linucb. Leave it ou"),
        (["simulate", "--learner", "oful", "--policies", "2", *SHORT], "--policies is no setting of oful. Leave it ou"),
        (["simulate", "--learner", "oful", "--cap", "0", *SHORT], "cap must be at least 1; got 0"),
        (["simulate", "--learner", "base", "--world", "gaussian", *SHORT], "base is for plain arms"),
        (["simulate", "--learner", "oful", "--world", "lower-bound", "--dim", "5", *SHORT], "dim must be even"),
        (["simulate", "--learner", "oful", "--world", "nowhere.npy", *SHORT], "nowhere.npy"),
        (["design", "square.csv", "--tol", "0"], "tol must be a finite number at least 1e-08; got 0.0"),
        (["design", "square.csv", "--threads", "0"], "threads must be at least 1"),
        (["design", "square.csv", "--plot-set", "none", "--plot", "x.png"], "--plot-set must name a set"),
        (["design", "square.csv", "--set-column", "user"], "no column 'user'"),
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
        (["design", "square.csv", "--plot", ""], "--plot must not be empty"),
        (["design", "square.csv", "--show", "-1"], "show must be at least 0"),
        *((["compare", "--learners", "oful", "--engine", name], name) for name in ("spark", "processes:0")),
        (["compare", "--learners", "oful", "--engine", "dask:tcp://127.0.0.1:9"], "127.0.0.1:9"),
        (["simulate", "--world", "table:gone.csv", "--learner", "oful"], "gone.csv: cannot be read (No such file or"),
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
