"""Words that messages and reports share."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from rareswitch import Features, create, make_learner, make_world
from rareswitch.cli.requests import DECISIONS, read_line
from rareswitch.core import finite_array, make_executor
from rareswitch.errors import ParameterError, RareswitchError, several
from rareswitch.planning import schedule_of
from reference.refusals import raises


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        (lambda: make_learner("forsight", dim=2), "foresight"),
        (lambda: make_learner("foresight", dim=2, horizont=100), "horizon"),
        (lambda: create("memory:", "x", dim=2, policis=8), "policies"),
        (lambda: make_world("gausian", dim=2, arms=3, noise=0.5), "gaussian"),
        (lambda: make_executor("proceses"), "processes"),
        (lambda: schedule_of("mondai*8"), "monday"),
        (lambda: schedule_of("by hnd"), "by hand"),
        (lambda: schedule_of("best:polcies=8"), "policies"),
        (lambda: Features.from_plain({"fields": [{"name": "age", "kind": "nummber"}]}), "number"),
    ],
)
def test_a_misspelt_name_is_told_what_it_may_have_meant(misspelt: Callable[[], Any], meant: str) -> None:
    raises(RareswitchError, f"Did you mean '{meant}'", misspelt)


def test_nothing_is_guessed_that_is_not_alike() -> None:
    with pytest.raises(RareswitchError) as error:
        make_learner("xyzzy", dim=2)
    assert "Did you mean" not in str(error.value)


def test_lines_of_json_are_told_too() -> None:
    assert read_line(1, b'{"id": 1, "contxt": {}}', DECISIONS).error.endswith("Did you mean 'context'?")


def test_the_arm_of_a_baseline_is_guessed_among_those_that_are_offered() -> None:
    trial = create("memory:", "x", dim=2, baseline=True, horizon=100)
    with pytest.raises(ParameterError, match="Did you mean 'summer'"):
        trial.decide(np.eye(2), ["spring", "summer"], id=1, baseline="sumer")


@pytest.mark.parametrize(("count", "words"), [(0, "0 decisions"), (1, "1 decision"), (2000, "2,000 decisions")])
def test_one_is_not_several(count: int, words: str) -> None:
    assert several(count, "decision") == words


def test_a_status_and_an_update_of_one_decision_speak_of_one() -> None:
    trial = create("memory:", "x", dim=2, horizon=100, policies=3, now=0.0)
    trial.decide(np.eye(2), id=1, now=0.0)
    trial.decide(np.eye(2), id=1, now=0.0)
    assert "\n1 decision requested again" in str(trial.status(now=0.0))
    trial.reward(1, 1.0, now=0.0)
    assert "Seen: batch 1, 1 decision, 1 rewarded." in str(trial.preview(now=1.0))


def test_decimals_are_numbers() -> None:
    assert finite_array("contexts", [[Decimal("0.5"), 1], [2.0, Decimal(3)]]).tolist() == [[0.5, 1.0], [2.0, 3.0]]
    raises(RareswitchError, "must hold real numbers", finite_array, "contexts", [[Decimal("0.5"), "1"]])
    raises(RareswitchError, "must be finite", finite_array, "contexts", [Decimal("NaN")])
