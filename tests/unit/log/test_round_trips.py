from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rareswitch
from rareswitch.decisions import DecisionLog
from rareswitch.evaluation import ESTIMATORS
from rareswitch.log import from_obp, read, read_all, to_obp, write
from reference.logged import kinds, log_of, told

FILES = ("csv", "csv.gz", "dsjson", "jsonl.gz", "parquet")


def through(log: DecisionLog, ending: str, folder: Path) -> DecisionLog:
    path = folder / f"log.{ending}"
    write(path, log)
    return read_all(read(path))


@pytest.mark.parametrize("ending", FILES)
@pytest.mark.parametrize("kind", [*kinds()])
def test_files_tell_the_same_of_every_decision(kind: str, ending: str, tmp_path: Path) -> None:
    log = kinds()[kind]
    again = through(log, ending, tmp_path)
    assert told(again) == told(log)
    chosen = DecisionLog.joined([*read(tmp_path / f"log.{ending}").chunks(contexts=False)])
    assert np.isin(chosen.propensities, log.propensities).all()
    assert len(chosen) == len(log)
    present = [log.batch_names[batch] for batch in log.present]
    assert [again.batch_names[batch] for batch in again.present] == present  # in the same order


def evaluations(log: DecisionLog) -> Any:
    """All values and intervals."""
    first = log.available & (np.cumsum(log.available, axis=1) == 1)
    candidates: dict[str, Any] = {"uniform": "uniform", "first": first, "logged": "logged"}
    found = {}
    for estimator in ESTIMATORS:
        for value in rareswitch.evaluate(log, candidates, estimator=estimator).values:
            assert value.interval is not None
            for name in ("value", "low", "high"):
                found[estimator, value.candidate, name] = getattr(value.interval, name)
    return found


def test_obp_gives_equal_estimates_where_all_arms_are_offered_in_one_batch() -> None:
    rng = np.random.default_rng(5)
    probabilities = rng.dirichlet(np.full(3, 20.0), 2000)
    arms = np.array([rng.choice(3, p=row) for row in probabilities])
    log = DecisionLog(
        arm_indices=arms,
        propensities=probabilities[np.arange(2000), arms],
        rewards=rng.normal(size=2000),
        behavior_probs=probabilities,
        arms=["0", "1", "2"],
    )
    assert evaluations(from_obp(to_obp(log))) == pytest.approx(evaluations(log), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("ending", ["csv", "dsjson", "parquet"])
def test_the_mark_of_estimated_propensities_reaches_results_through_every_file(ending: str, tmp_path: Path) -> None:
    log = log_of(1012, count=500, estimated="arm frequencies within each policy, smoothing 1")
    found = rareswitch.evaluate(through(log, ending, tmp_path), estimator="ips")
    assert found.estimated == log.estimated
    assert any("estimated" in caution for caution in found["uniform"].cautions)


def test_a_folder_of_parts_is_a_log(tmp_path: Path) -> None:
    log = log_of(1013, count=900)
    half = np.arange(900) < 450
    write(tmp_path / "a.parquet", log.select(half))
    write(tmp_path / "b.parquet", log.select(~half))
    for path in (tmp_path, tmp_path / "*.parquet", [tmp_path / "b.parquet", tmp_path / "a.parquet"]):
        assert len(read_all(read(path))) == 900
