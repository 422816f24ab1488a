from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rareswitch
from rareswitch.exchange import from_obp, read, to_obp, whole, write
from rareswitch.log import DecisionLog
from reference.logged import differing, kinds, log_of

FILES = ("csv", "csv.gz", "dsjson", "jsonl.gz", "parquet")


def through(log: DecisionLog, ending: str, folder: Path) -> DecisionLog:
    path = folder / f"log.{ending}"
    write(path, log)
    return whole(read(path))


@pytest.mark.parametrize("ending", FILES)
@pytest.mark.parametrize("kind", [*kinds()])
def test_files_give_back_every_bit(kind: str, ending: str, tmp_path: Path) -> None:
    log = kinds()[kind]
    assert differing(log, through(log, ending, tmp_path)) == []


@pytest.mark.parametrize("kind", [*kinds()])
def test_obp_gives_back_every_bit(kind: str) -> None:
    log = kinds()[kind]
    log = log.select(~np.isnan(log.rewards))
    assert differing(log, from_obp(to_obp(log))) == []


def evaluations(log: DecisionLog) -> Any:
    """All numbers of an evaluation; NaN compares equal in texts."""
    candidates = {
        "uniform": "uniform",
        "first": log.available & (np.cumsum(log.available, axis=1) == 1),
        "logged": "logged",
    }
    found = {}
    for estimator in ("ips", "snips", "dr"):
        found[estimator] = rareswitch.evaluate(log, candidates, estimator=estimator).as_dict()
    return repr(found)


@pytest.mark.parametrize("format", [*FILES, "obp"])
def test_estimates_are_identical_after_every_format(format: str, tmp_path: Path) -> None:  # noqa: A002
    log = log_of(1010, count=3000)
    log = log.select(~np.isnan(log.rewards)) if format == "obp" else log
    again = from_obp(to_obp(log)) if format == "obp" else through(log, format, tmp_path)
    assert evaluations(again) == evaluations(log)


def test_all_formats_in_a_row_give_identical_estimates(tmp_path: Path) -> None:
    log = log_of(1011, count=2000, rewards=np.random.default_rng(5).normal(size=2000))
    again = log
    for k, ending in enumerate(FILES):
        (tmp_path / str(k)).mkdir()
        again = from_obp(to_obp(through(again, ending, tmp_path / str(k))))
    assert differing(log, again) == []
    assert evaluations(again) == evaluations(log)


@pytest.mark.parametrize("ending", FILES)
def test_the_mark_of_estimated_propensities_reaches_results_through_every_file(ending: str, tmp_path: Path) -> None:
    log = log_of(1012, count=2000, estimated="arm frequencies within each policy, smoothing 1")
    found = rareswitch.evaluate(through(log, ending, tmp_path))
    assert found.estimated == log.estimated
    assert any("estimated" in caution for caution in found["uniform"].cautions)


def test_a_folder_of_parts_is_a_log(tmp_path: Path) -> None:
    log = log_of(1013, count=900)
    half = np.arange(900) < 450
    write(tmp_path / "a.parquet", log.select(half))
    write(tmp_path / "b.parquet", log.select(~half))
    assert len(whole(read(tmp_path))) == 900
