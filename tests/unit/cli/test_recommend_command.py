import json

import pytest

from rareswitch.cli import learners, main
from rareswitch.planning import CONTEXTS

SIZES = ["--dim", "10", "--arms", "20"]


def test_kinds_of_contexts_are_those_of_the_library() -> None:
    assert learners.CONTEXTS == CONTEXTS  # written again there, as the library loads NumPy


@pytest.mark.parametrize(
    "options",
    [
        [*SIZES, "--policies", "6"],
        SIZES,
        [*SIZES, "--contexts", "adversarial", "--policies", "6"],
        ["--dim", "1000", "--arms", "50", "--contexts", "adversarial", "--horizon", "1e12"],
        ["--dim", "40", "--arms", "50", "--horizon", "1e9", "--contexts", "fixed"],
        ["--dim", "1", "--arms", "1", "--horizon", "2"],
    ],
)
def test_a_recommendation_fits_80_columns(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", *options]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "Take " in out
    assert "Table 1" in out


def test_with_updates_it_compares_bounds_and_without_it_says_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", *SIZES, "--policies", "3"]) == 0
    out = capsys.readouterr().out
    assert "Take foresight with 3 policies" in out
    assert "d·√(ln K)·T^0.571 (Theorem 2)" in out
    assert "times the best" not in out
    assert main(["recommend", *SIZES]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["d·√(ln", "K)·T^0.571", "3", "2.28"] in rows
    assert ["d·√(ln", "K)·√T", "5", "1.00"] in rows


def test_the_advice_has_the_rate_of_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", *SIZES, "--contexts", "adversarial"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Proved for it: √C·d·√T, C = 2, adversarial." in out
    assert "oful √C·d·√T, C = 2 (Abbasi-Yadkori 2011) 133 4,472" in out
    assert "any learner no less than √(dT·ln K) any 1,731" in out


def test_a_recommendation_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", *SIZES, "--contexts", "adversarial", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["learner"], found["proven"]) == ("oful", "oful")
    assert [need["policies"] for need in found["needs"]] == [17, 34, 67, 133]
    assert found["options"][0]["settings"] == {"growth": 2.0}
    assert {bound["text"] for bound in found["adaptivity"]} >= {"Ω(√T)", "O(d log T)"}


def test_the_price_of_a_floor(capsys: pytest.CaptureFixture[str]) -> None:
    told = ["recommend", "--dim", "10", "--arms", "5", "--horizon", "1e4", "--min-propensity"]
    assert main([*told, "0.02"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "Expected cost: 1,000 exploring decisions of the next 10,000, beside 208 for learning." in " ".join(
        out.split()
    )
    assert main([*told, "0.02", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["min_propensity"]["cost"] == 1000.0
    assert main([*told, "0.3"]) == 2
    assert "a minimum propensity of 0.3 is for at most 3 arms of a set" in capsys.readouterr().err
    assert main([*told, "2"]) == 2
    assert "--min-propensity must be a finite number above 0 and at most 1; got 2" in capsys.readouterr().err
