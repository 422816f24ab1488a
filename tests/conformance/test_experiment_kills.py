"""A few of the kills of benchmarks/faults.py, and processes that meet."""

import os
from pathlib import Path

import pytest

from rareswitch.store import sqlite
from reference.experiment_crowd import Crowd
from reference.experiment_kills import NOTED, Killed, Moment, occurrences
from reference.experiment_play import Plan
from reference.rows import SHARED

#: One batch and an update, then some decisions: short.
SHORT = Plan(batches=1, more=6)
KILLS = (
    *(Moment("decide", "written"), Moment("reward", "begun"), Moment("reward", "committed"), NOTED),
    *(Moment("freeze", "written"), Moment("freeze", "answered")),
    *(Moment("learn", "summarized"), Moment("publish", "written"), Moment("publish", "committed")),
)


@pytest.fixture(params=SHARED)
def url(request: pytest.FixtureRequest) -> str | None:
    """Where experiments are kept; None: in SQLite files of their own."""
    return str(request.getfixturevalue("postgres")) if request.param == "postgres" else None


def test_a_killed_process_loses_nothing_that_it_acknowledged(url: str | None, tmp_path: Path) -> None:
    killed = Killed(tmp_path, url, SHORT)
    found = {str(moment): killed.at_moment(moment, occurrences(moment, seed=0, most=4, policies=1)) for moment in KILLS}
    assert {moment: str(one) for moment, one in found.items() if not one.clean} == {}
    updating = {moment for moment, one in found.items() if one.updating}
    assert updating == {"freeze answered", "learn summarized", "publish written"}
    assert sum(one.acknowledged for one in found.values()) > 4 * 2 * SHORT.length


def test_a_process_that_opens_and_closes_the_file_meanwhile_costs_nothing(tmp_path: Path) -> None:
    killed = Killed(tmp_path, None, SHORT, bystander="always")
    moments = Moment("decide", "written"), Moment("reward", "committed"), Moment("learn", "summarized"), NOTED
    found = {
        str(moment): killed.at_moment(moment, occurrences(moment, seed=1, most=4, policies=1)) for moment in moments
    }
    assert {moment: str(one) for moment, one in found.items() if not one.clean} == {}
    assert sum(one.acknowledged for one in found.values()) > 2 * SHORT.length
    assert killed.looks > 0


def test_the_kills_notice_locks_that_were_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that opens and closes its file by itself, and does not look whether its log is gone."""
    create, checked = sqlite._create, []

    def drops_locks(path: Path) -> None:
        create(path)
        os.close(os.open(path, os.O_RDWR))

    monkeypatch.setattr(sqlite, "_create", drops_locks)
    monkeypatch.setattr("rareswitch.store.sqlite.check_there", lambda *given: checked.append(given))
    killed = Killed(tmp_path, None, Plan(batches=0, more=300), bystander="once")
    lost = [killed.at_moment(NOTED, answers).lost for answers in (30, 60)]
    assert min(lost) >= 5


def test_the_kills_notice_a_store_that_answers_before_it_commits(url: str | None, tmp_path: Path) -> None:
    killed = Killed(tmp_path, url, Plan(batches=0, more=300), early=True)
    lost = [killed.at_moment(NOTED, answers).lost for answers in (30, 60, 90)]
    assert min(lost) >= 5


@pytest.mark.parametrize("together", [True, False], ids=["at once", "while others decide"])
def test_processes_that_advance_make_one_policy_for_each_batch(together: bool, url: str | None, tmp_path: Path) -> None:
    found = Crowd(tmp_path, url or f"sqlite:///{tmp_path}/crowd.db", rounds=3, together=together).run()
    assert found.clean, str(found)
