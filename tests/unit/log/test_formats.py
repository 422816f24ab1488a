import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rareswitch
from rareswitch.cli import main
from rareswitch.decisions import DecisionLog
from rareswitch.errors import FileFormatError, ParameterError, ShapeError
from rareswitch.log import estimate_propensities, from_obp, read, read_all, read_csv, read_dsjson, to_obp, write
from rareswitch.policy import Policy
from reference.commands import printed
from reference.logged import log_of, told
from reference.refusals import raises


def test_endings_that_are_not_known(tmp_path: Path) -> None:
    for name in ("log", "log.txt", "log.npz", "log.parquet.gz", "log.gz"):
        raises(FileFormatError, "files that end in", read, tmp_path / name)
        raises(FileFormatError, "files that end in", write, tmp_path / name, log_of(1050))


def test_options_of_another_format_are_refused(tmp_path: Path) -> None:
    raises(ParameterError, "reward is no option of dsjson", read, tmp_path / "log.dsjson", reward="click")
    raises(ParameterError, "arm is no option of Parquet", read, tmp_path / "log.parquet", arm="item")
    with pytest.raises(ParameterError, match="columns are for a single file"):
        read([tmp_path / "a.parquet", tmp_path / "b.parquet"], columns={"arm": "item"})
    with pytest.raises(ParameterError, match="columns of dsjson must be the field of the arm"):
        read(tmp_path / "log.dsjson", columns={"reward": "click"})


def test_logs_are_never_overwritten(tmp_path: Path) -> None:
    for ending in ("csv", "dsjson", "parquet"):
        path = tmp_path / f"log.{ending}"
        write(path, log_of(1051))
        before = path.read_bytes()
        raises(FileFormatError, "never overwritten", write, path, log_of(1052))
        assert path.read_bytes() == before


def test_policies_at_hand_become_probabilities(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    contexts = rng.normal(size=(40, 3, 2)) / 4
    from rareswitch.design import Uniform

    policy = Policy(dim=2, sampler=Uniform())
    decisions = policy.decide(contexts, ids=range(40), seed=1)
    log = DecisionLog(
        arm_indices=decisions.arms,
        propensities=decisions.propensities,
        rewards=np.ones(40),
        contexts=contexts,
        batch_names=(policy.id,),
        policies={policy.id: policy},
    )
    for ending in ("csv", "dsjson", "parquet"):
        write(tmp_path / f"log.{ending}", log)
        again = read_all(read(tmp_path / f"log.{ending}"))
        assert again.behavior_probs.tolist() == policy.probabilities(contexts).tolist()
    assert from_obp(to_obp(log)).behavior_probs is not None


def test_estimates_add_up_and_are_right_where_arms_are_drawn_by_themselves() -> None:
    rng = np.random.default_rng(2)
    count, rates = 20_000, np.array([0.5, 0.3, 0.15, 0.05])
    arm_indices = rng.choice(4, size=count, p=rates)
    log = DecisionLog(arm_indices=arm_indices, propensities=np.ones(count), rewards=np.zeros(count))
    found = estimate_propensities(log)
    np.testing.assert_allclose(found.behavior_probs.sum(axis=1), 1.0, rtol=1e-12)
    # Hoeffding for four arms, false alarm at most 1e-6; smoothing moves a rate by at most 4/n
    bound = np.sqrt(np.log(2 * 4 / 1e-6) / (2 * count)) + 4 / count
    assert np.abs(found.behavior_probs[0] - rates).max() <= bound


def test_estimates_of_arms_that_are_not_always_offered() -> None:
    available = np.array([[True, True, False], [True, False, True], [True, True, True]] * 10)
    log = DecisionLog(
        arm_indices=np.zeros(30, dtype=np.int64), propensities=np.ones(30), rewards=np.zeros(30), available=available
    )
    found = estimate_propensities(log)
    assert not found.behavior_probs[~available].any()
    np.testing.assert_allclose(found.behavior_probs.sum(axis=1), 1.0, rtol=1e-12)
    raises(ShapeError, "within must be 30 values", estimate_propensities, log, within=[1, 2])
    raises(ParameterError, "smoothing", estimate_propensities, log, smoothing=0.0)


def test_the_command_converts_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "clicks.csv"
    source.write_text("item,click,slot\na,1,1\nb,0,1\na,,2\n")
    options = ["--columns", "arm=item", "reward=click", "--propensities", "estimate", "--within", "slot"]
    said = printed(capsys, "convert", str(source), str(tmp_path / "log.parquet"), *options, "--where", "slot=1")
    assert "2 decisions, 2 rewarded, 2 arms, no vectors" in said
    assert "estimated propensities: arm frequencies within each policy and slot" in said
    assert main(["convert", str(tmp_path / "log.parquet"), str(tmp_path / "log.dsjson")]) == 0
    again = read_dsjson(tmp_path / "log.dsjson")
    columns = {"arm": "item", "reward": "click"}
    expected = read_csv(source, columns=columns, propensities="estimate", within=["slot"], where={"slot": 1})
    assert told(again) == told(expected)
    assert rareswitch.evaluate(tmp_path / "log.dsjson", estimator="snips").estimated == expected.estimated


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_commands_take_the_names_of_columns(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"item": rng.permutation(["a", "b"] * 500), "click": rng.integers(2, size=1000), "p": 0.5})
    source = str(tmp_path / f"clicks.{ending}")
    frame.to_csv(source, index=False) if ending == "csv" else frame.to_parquet(source)
    columns = ["--columns", "arm=item", "reward=click", "propensity=p"]
    assert main(["evaluate", source, *columns, "--always", "a", "--estimator", "ips", "--json"]) == 0
    mean = frame.click[frame.item == "a"].mean()
    assert json.loads(capsys.readouterr().out)["values"][0]["interval"]["value"] == pytest.approx(mean)
    assert main(["effects", source, *columns, "--arm", "a", "--against", "b", "--json"]) == 0
    difference = mean - frame.click[frame.item == "b"].mean()
    assert json.loads(capsys.readouterr().out)["effects"][0]["interval"]["value"] == pytest.approx(difference, abs=0.01)
    assert main(["evaluate", source, "--columns", "item"]) == 2
    assert "--columns must be NAME=VALUE; got 'item'" in capsys.readouterr().err
    assert main(["evaluate", "spring.db", "spring", *columns]) == 2
    assert "--columns are for files" in capsys.readouterr().err


def test_nothing_heavy_is_imported_with_the_room() -> None:
    code = "import sys, rareswitch.log; print([m for m in ('pyarrow', 'pandas', 'matplotlib') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
