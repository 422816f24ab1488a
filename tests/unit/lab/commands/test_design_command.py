import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.cli import main
from rareswitch.core import FloatArray
from rareswitch.design import GOptimal, core_learning, deviation, g_optimal, staged_design, variation
from rareswitch.lab.commands.design import split_sets
from rareswitch.lab.context_files import read_context_file
from rareswitch.lab.distributions import Gaussian, OneBig
from rareswitch.policy import load_policy
from reference.commands import printed

SQUARE = "x,y\n1,0\n0,1\n0.1,0.1\n"


@pytest.fixture
def square(tmp_path: Path) -> Path:
    path = tmp_path / "square.csv"
    path.write_text(SQUARE)
    return path


@pytest.fixture
def many(tmp_path: Path) -> Path:
    path = tmp_path / "many.npy"
    np.save(path, OneBig(dim=3, arms=5).draw(60, seed=1).contexts)
    return path


def is_png(path: Path) -> bool:
    return path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_table_shows_support_weights_and_certificate(square: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "design", str(square), "--tol", "1e-6")
    lines = out.splitlines()
    assert lines[0] == "set 0: 3 arms in 2 dimensions"
    assert lines[3].split() == ["0", "0.5000", "2.0000", "1", "0"]
    assert "certificate: max leverage 2.0000 = 1.0000 × rank 2" in out


def test_json_gives_every_set_in_input_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sets.csv"
    path.write_text("set,x,y\nb,1,0\na,0,2\nb,0,1\nb,1,0\n")
    sets = json.loads(printed(capsys, "design", str(path), "--json"))["sets"]
    assert [one["name"] for one in sets] == ["b", "a"]
    assert [len(one["weights"]) for one in sets] == [3, 1]
    assert [one["rank"] for one in sets] == [2, 1]
    expected = g_optimal([[1, 0], [0, 1], [1, 0]])
    assert sets[0]["weights"] == expected.weights.tolist()
    assert sets[0]["max_leverage"] == float(expected.max_leverage)
    assert all(one["certified"] for one in sets)


def test_the_distributional_policy_is_judged_on_the_other_half(many: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(printed(capsys, "design", str(many), "--distributional", "--json", "--regularization", "1e-4"))
    assert (data["learned_from"], data["held_out"]) == (30, 30)
    by_name = {row["sampler"]: row["variation"] for row in data["on_held_out"]}
    assert by_name["certified mixture"] < by_name["G-optimal of each set"] < by_name["uniform"]
    inside = {row["sampler"]: row["variation"] for row in data["on_learned_from"]}
    assert inside["certified mixture"] == pytest.approx(data["certificate"]["variation"])
    assert data["certificate"]["variation"] <= data["certificate"]["bound"] == pytest.approx(1.05 * 3 / 0.8)
    assert np.shape(data["policy"]["matrices"])[1:] == (3, 3)
    assert "certified mixture, learned from 30 sets" in printed(capsys, "design", str(many), "--distributional")


@pytest.mark.parametrize("method", ["mixed-argmax", "mixed-softmax", "core"])
def test_the_papers_algorithms_learn_the_policy_that_the_library_learns(
    many: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, method: str
) -> None:
    kept = tmp_path / "kept"
    asked = ["design", str(many), "--distributional", "--method", method, "--regularization", "1e-3"]
    data = json.loads(printed(capsys, *asked, "--json", "--out", str(kept)))
    half, other = split_sets(read_context_file(many).sets, 0)
    told: dict[str, Any] = {"regularization": 1e-3, "g_optimal": GOptimal(tol=0.05)}
    if method == "core":
        found = core_learning(half.contexts, half.available, **told)
        staged = found
        assert data["core"] == {"size": len(found.core.indices), "of": 30, "iterations": found.core.iterations}
    else:
        staged = staged_design(
            half.contexts, half.available, form="argmax" if "argmax" in method else "softmax", **told
        )
        assert "core" not in data
    assert data["method"] == method
    assert data["policy"]["weights"] == staged.policy.weights.tolist()
    assert np.array_equal(data["policy"]["matrices"], staged.policy.matrices)
    assert data["stages"]["count"] == len(staged.stage_lengths) <= data["stages"]["most"]
    assert data["stages"]["played"] == len(staged.atom_stages)
    for name, sets in (("on_learned_from", half), ("on_held_out", other)):
        row = data[name][-1]
        assert row["variation"] == variation(staged.policy, sets.contexts, sets.available, regularization=1e-3)
        assert row["deviation"] == deviation(staged.policy, sets.contexts, sets.available, regularization=1e-3)
    assert load_policy(kept).sampler.weights.tolist() == data["policy"]["weights"]  # type: ignore[attr-defined]
    out = printed(capsys, *asked, "--show", "1", "--plot", str(tmp_path / "out.png"))
    assert f"stages: {data['stages']['count']} (at most {data['stages']['most']} = d log(4d + 1) + 1)" in out
    assert f"… and {len(data['policy']['weights']) - 1} more" in out
    assert ("core: 30 of 30 sets after 1 iteration" in out) == (method == "core")
    assert is_png(tmp_path / "out.png")


def test_sets_are_drawn_from_a_world(capsys: pytest.CaptureFixture[str]) -> None:
    """The core leaves out a rare set at a small power, and none at the paper's."""
    asked = ["design", "counterexample", "--sets", "40", "--dim", "6", "--distributional", "--method", "core", "--json"]
    data = json.loads(printed(capsys, *asked))
    assert (data["learned_from"], data["core"]["size"], np.shape(data["policy"]["matrices"])[1:]) == (20, 20, (6, 6))
    assert main(["design", "gaussian", "--sets", "3", "--dim", "2", "--arms", "4", "--json", "--seed", "5"]) == 0
    sets = json.loads(capsys.readouterr().out)["sets"]
    drawn = Gaussian(dim=2, arms=4).draw(3, seed=5)
    assert [one["weights"] for one in sets] == g_optimal(drawn.contexts).weights.tolist()


def test_a_small_power_prunes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    axes = np.zeros((60, 1, 3))
    axes[:, 0, 0] = 1.0
    axes[:4, 0] = np.eye(3)[1]
    axes[4:30, 0] = np.eye(3)[2]
    np.save(tmp_path / "axes.npy", axes)
    asked = ["design", str(tmp_path / "axes.npy"), "--distributional", "--method", "core", "--json"]
    sizes = []
    for power in ("6", "2"):  # d^c = 729 and 9
        assert main([*asked, "--power", power, "--regularization", "1e-3"]) == 0
        sizes.append(json.loads(capsys.readouterr().out)["core"]["size"])
    rare = int((split_sets(read_context_file(tmp_path / "axes.npy").sets, 0)[0].contexts[:, 0, 1] == 1.0).sum())
    assert 0 < rare < 3  # of 30 sets: too rare for 9
    assert sizes == [30, 30 - rare]


@pytest.mark.parametrize("options", [[], ["--plot-set", "7"], ["--distributional"]])
def test_pictures_are_written(many: Path, tmp_path: Path, options: list[str]) -> None:
    picture = tmp_path / "out.png"
    assert main(["design", str(many), "--plot", str(picture), *options]) == 0
    assert is_png(picture)


@pytest.mark.parametrize("points", [np.eye(2), np.ones((3, 2)), np.zeros((2, 2)), np.ones((1, 1))])
def test_degenerate_sets_can_be_drawn(tmp_path: Path, points: FloatArray) -> None:
    np.save(tmp_path / "x.npy", points)
    picture = tmp_path / "out.png"
    assert main(["design", str(tmp_path / "x.npy"), "--plot", str(picture)]) == 0
    assert is_png(picture)


def test_a_missing_plot_extra_is_named(
    square: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["design", str(square), "--plot", "x.png"]) == 2
    assert "pip install 'rareswitch[plot]'" in capsys.readouterr().err


def test_uncertified_designs_are_named_and_give_status_1(
    many: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rareswitch.design import goptimal

    design_sets = goptimal.design_sets

    def fails_on_second(*arguments: Any) -> None:
        design_sets(*arguments)
        arguments[-1][1] = goptimal.NOT_MET

    monkeypatch.setattr(goptimal, "design_sets", fails_on_second)
    assert main(["design", str(many), "--json", "--plot", str(many.parent / "x.png"), "--plot-set", "1"]) == 1
    captured = capsys.readouterr()
    sets = json.loads(captured.out)["sets"]
    assert [s for s, one in enumerate(sets) if not one["certified"]] == [1]
    assert sets[1]["weights"] is None
    assert "1 of 60 designs could not be certified" in captured.err
    assert "NOT certified: sets 1" in printed(capsys, "design", str(many), status=1)


def test_bounds_are_shown_as_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", [[1.0, 0.0], [0.01, 0.0], [0.01, 0.0], [0.01, 0.0]])
    out = printed(capsys, "design", str(tmp_path / "x.npy"), "--tol", "1")
    assert "≤ 4.0000" in out
    assert "at most 4, the number of arms" in out
    assert main(["design", str(tmp_path / "x.npy"), "--tol", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sets"][0]["exact"] is False


def test_held_out_sets_were_not_learned_from() -> None:
    sets = OneBig(dim=3, arms=4).draw(41, seed=1)
    left, right = split_sets(sets, seed=5)
    seen = {one.tobytes() for one in left.contexts}
    assert (len(left), len(right), len(seen)) == (21, 20, 21)
    assert not any(one.tobytes() in seen for one in right.contexts)
    assert not np.array_equal(split_sets(sets, seed=6)[0].contexts, left.contexts)


def test_a_full_disk_is_an_error_of_one_line(square: Path) -> None:
    command = [sys.executable, "-m", "rareswitch", "design", str(square)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "rareswitch: error: the output could not be written (No space left on device), but the command has done its "
        "work.\n"
    )


def test_the_first_run_says_that_it_compiles_and_the_second_does_not(square: Path, tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "rareswitch", "design", str(square)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    first, second = run(), run()
    assert "compiling kernels, once on this machine" in first.stderr
    assert second.stderr == ""
    assert first.stdout == second.stdout


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    path = tmp_path / "many.npy"
    np.save(path, Gaussian(dim=2, arms=4).draw(3000, seed=1).contexts)
    command = f"{sys.executable} -m rareswitch design {path} --show 3000 | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "set 0: 4 arms in 2 dimensions\n"
    assert done.stderr == ""
