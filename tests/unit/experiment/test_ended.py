"""Experiments are listed, ended and deleted."""

from pathlib import Path

import numpy as np
import pytest

import rareswitch
from rareswitch.cli import main
from rareswitch.errors import ParameterError, StoreError, UnsuitableError
from rareswitch.evaluation import evaluate
from rareswitch.experiment import copy_experiment
from reference.commands import printed
from reference.refusals import raises


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'trials.db'}"


def begun(url: str, name: str) -> rareswitch.Experiment:
    trial = rareswitch.create(url, name, dim=2, schedule="by hand", horizon=100, seed=1, now=0.0)
    trial.decide_many([np.eye(2)] * 120, ids=range(120), now=0.0)
    trial.reward_many(range(30), [float(k % 3) for k in range(30)], now=0.0)
    return trial


def test_an_ended_experiment_takes_rewards_and_is_evaluated_and_decides_no_more(url: str) -> None:
    trial = begun(url, "spring")
    other = rareswitch.open(url, "spring")
    first = trial.decide(np.eye(2), id=3)
    for when in (86400.0, 2 * 86400.0):
        trial.end(now=when)
    with pytest.raises(
        UnsuitableError, match=r"'spring' was ended on 1970-01-02 00:00 UTC .* such as 999; .*warm_start"
    ):
        trial.decide(np.eye(2), id=999)
    raises(UnsuitableError, "was ended", trial.decide_many, [np.eye(2)] * 2, ids=[3, 999])
    assert trial.decide(np.eye(2), id=3).arm == first.arm  # what was decided is answered as before
    trial.reward_many(range(30, 120), [float(k % 3) for k in range(90)], now=90000.0)
    assert evaluate(trial)["uniform"].interval is not None
    assert trial.advance(now=90000.0).made
    assert "Ended on 1970-01-02 00:00: no more decisions." in str(trial.status(now=90000.0))
    other._versions.checked = 0.0  # a second passes
    raises(UnsuitableError, "was ended", other.decide, np.eye(2), id=999)
    assert copy_experiment(trial, "memory:").status().ended == 86400.0


def test_a_deleted_name_is_free_and_others_stay(url: str) -> None:
    stays, goes = begun(url, "stays"), begun(url, "goes")
    marks = stays.store.start_update(1, "{}")
    assert marks is not None
    other = rareswitch.open(url, "goes")
    raises(ParameterError, r"name must be 'goes'.*Nothing was deleted", goes.delete, "stays")
    assert [entry.name for entry in rareswitch.list_experiments(url)] == ["stays", "goes"]
    goes.delete("goes")
    assert [(entry.name, entry.decisions) for entry in rareswitch.list_experiments(url)] == [("stays", 120)]
    other._versions.checked = 0.0
    raises(StoreError, "was deleted", other.decide, np.eye(2), id=999)
    raises(StoreError, "no experiment 'goes'", rareswitch.open, url, "goes")
    again = rareswitch.create(url, "goes", dim=2, now=0.0)
    assert again.status().decisions == 0
    stays.decide_many([np.eye(2)] * 5, ids=range(200, 205), now=0.0)  # none of which lies below the marks
    assert sum(count.decisions for count in stays.store.counts(marks[1])) == 120
    stays.store.abandon_update(1)
    assert stays.advance(now=0.0).decided == 125


def test_the_command_line_lists_ends_and_deletes(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(url, "spring").close()
    assert main(["experiment", "end", url, "spring", "--now", "2026-03-09"]) == 0
    capsys.readouterr()
    assert main(["experiment", "list", url]) == 0
    line = "spring: foresight, 1 policy, 120 decisions, since 1970-01-01 00:00, ended on 2026-03-09 00:00\n"
    assert capsys.readouterr().out == line
    assert main(["experiment", "delete", url, "spring"]) == 2
    assert "--force must be given" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    for answer, status in (("sprin", 2), ("spring", 0)):
        monkeypatch.setattr("builtins.input", lambda _, answer=answer: answer)
        assert main(["experiment", "delete", url, "spring"]) == status
    capsys.readouterr()
    assert "holds no experiments" in printed(capsys, "experiment", "list", url)
