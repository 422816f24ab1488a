"""Suites of worlds, and what is developed on apart from what is reported."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rareswitch.errors import InputError
from rareswitch.lab import ENTRANTS, SUITES, choose_entrants, contest, learner_for, left_out, world_at
from rareswitch.lab.contest import DEVELOPMENT_TABLES, FROM_FILES, HALVES, REPORTING_TABLES
from rareswitch.lab.worlds import WORLDS, make_world
from reference.refusals import raises
from reference.tables import write_tables

NOWHERE: dict[str, str | Path | None] = {"data": None, "tables": None}


def test_the_field_has_two_halves_of_tables_and_nothing_of_the_changing_worlds() -> None:
    assert not set(DEVELOPMENT_TABLES) & set(REPORTING_TABLES)
    field = set(SUITES["field"].worlds)
    assert field > {*DEVELOPMENT_TABLES, *REPORTING_TABLES}
    assert not field & set(SUITES["changing"].worlds)
    for suite in SUITES.values():
        assert all(world in WORLDS or world in FROM_FILES for world in suite.worlds)


def test_halves_part_the_tables_and_leave_what_seeds_draw() -> None:
    field = SUITES["field"]
    development, reporting = (set(field.of(half)) for half in HALVES)
    assert development | reporting == set(field.worlds) == set(field.of(None))
    assert development - reporting == set(DEVELOPMENT_TABLES)
    assert reporting - development == set(REPORTING_TABLES)
    raises(InputError, "halves of a suite are development and reporting; got 'best'", field.of, "best")
    raises(InputError, "this suite has no halves", SUITES["ten"].of, "reporting")


def test_worlds_from_files_need_their_folder(tmp_path: Path) -> None:
    assert left_out(["gaussian", "banana", "movielens"], NOWHERE) == {"banana": "tables", "movielens": "data"}
    assert left_out(["banana"], NOWHERE | {"tables": tmp_path}) == {}
    with pytest.raises(InputError, match=r"'cracker' needs a folder of tables. Give it as tables \(--tables\)"):
        world_at("cracker", NOWHERE)
    write_tables(tmp_path)
    for name in FROM_FILES:
        if name != "movielens":
            world = world_at(name, NOWHERE | {"tables": tmp_path})(100)
            assert world.arms == 2


def test_a_contest_of_a_suite_runs_its_worlds_and_entrants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tables(tmp_path)
    few, short = choose_entrants(["linucb 1"]), ("movielens", "banana", "cracker", "plain-20")
    monkeypatch.setitem(SUITES, "field", replace(SUITES["field"], worlds=short))
    found = contest(few, suite="field", half="development", tables=tmp_path, horizons=[30], seeds=[1000])
    assert {run.world for run in found.runs} == {"banana", "plain-20"}  # there are no ratings
    again = contest(few, suite="changing", horizons=[30])
    assert list(dict.fromkeys(run.world for run in again.runs)) == ["late-groups", "mix-drift", "turning"]
    assert {run.seed for run in again.runs} == set(range(20))
    own = contest(few, suite="field", half="development", places=["disjoint"], horizons=[30])
    assert {run.seed for run in own.runs} == set(range(1000, 1020))
    raises(InputError, "there is no suite 'nine'; the suites are ten, field, changing", contest, few, suite="nine")


def test_learners_are_told_what_the_worlds_of_the_field_say() -> None:
    told: dict[str, Any] = {
        name: ENTRANTS["thompson 0.5"].make(world_at(name, NOWHERE)(100), 100, 0)
        for name in ("rare-clicks", "heavy-tails", "disjoint", "disjoint-noisy", "plain-20")
    }
    assert {name: (learner.noise, round(learner.norm**2)) for name, learner in told.items()} == {
        "rare-clicks": (0.2, 1),
        "heavy-tails": (0.6, 1),
        "disjoint": (0.5, 30),
        "disjoint-noisy": (1.5, 32),
        "plain-20": (0.5, 1),
    }
    assert told["disjoint"].norm == pytest.approx(math.sqrt(30.0))
    chosen: Any = learner_for(make_world("disjoint"), "thompson", horizon=100, seed=3, noise=0.5, norm=2.5)
    assert (chosen.noise, chosen.norm, chosen.seed) == (0.5, 2.5, 3)
