import json
from pathlib import Path

import pytest

from rareswitch.cli import main
from reference.commands import printed
from reference.tables import CHOICES, labelled


@pytest.fixture
def names(tmp_path: Path) -> tuple[str, str]:
    """A world of rows, d = 18 with 3 arms, and one of sets."""
    rows, sets = tmp_path / "rows.csv", tmp_path / "sets.csv"
    rows.write_text(labelled())
    sets.write_text(CHOICES)
    return f"table:{rows},label=kind", f"choices:{sets}"


def test_learners_run_in_worlds_of_tables(names: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for name in names:
        small = ["--horizon", "200", "--seeds", "2", "--quiet"]
        runs = json.loads(printed(capsys, "simulate", "--world", name, "--learner", "foresight", *small, "--json"))
        assert [(run["world"], run["seed"]) for run in runs] == [(name, 0), (name, 1)]
        assert all(0.0 < run["regret"] < 200.0 for run in runs)


def test_both_regrets_are_shown_where_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--learner", "pure-exploitation", "--horizon", "60", "--seeds", "2", "--quiet"]
    assert "beyond linear" in printed(capsys, "simulate", "--world", "digits", *small)
    assert main(["simulate", "--world", "gaussian", "--dim", "3", "--arms", "3", *small]) == 0
    assert "beyond linear" not in capsys.readouterr().out


def test_how_often_a_learner_was_right_is_said_beside_policies_that_learn_nothing(
    names: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "kinds.csv"
    table.write_text("x,label\n" + "".join(f"{k % 7}.5,{'abc'[min(k % 4, 2)]}\n" for k in range(28)))
    small = ["--horizon", "200", "--seeds", "2", "--quiet"]
    assert main(["simulate", "--world", f"table:{table}", *small, "--json"]) == 0
    regret = sum(run["regret"] for run in json.loads(capsys.readouterr().out)) / 2
    right, others = printed(capsys, "simulate", "--world", f"table:{table}", *small).splitlines()[-2:]
    assert f"foresight, T = 200: right in {round(100 - regret / 2, 1):g} %" in right
    assert "Best linear policy" in others
    assert "; largest class 50 %; uniform choice 33.3 %." in others
    assert "best single arm" in printed(capsys, "simulate", "--world", names[1], *small)
    assert main(["simulate", "--world", "gaussian", "--dim", "3", "--arms", "3", *small]) == 0
    assert "uniform choice" not in capsys.readouterr().out


def test_visitors_of_an_experiment_come_from_a_table(
    names: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = [str(tmp_path / "e.db"), "leaves"]
    create = ["--dim", "18", "--arms", "3", "--horizon", "500", "--now", "2026-01-01"]
    assert main(["experiment", "create", *here, *create]) == 0
    capsys.readouterr()
    assert (
        main(["experiment", "simulate", *here, "--world", names[0], "--days", "2", "--rate", "60", "--quiet", "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["decisions"] == 120
