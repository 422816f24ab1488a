"""What people who were new stumbled over, each as they met it: it is not to come back."""

import json
import math
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import rareswitch
from rareswitch.cli import main
from rareswitch.core import uniforms
from rareswitch.errors import ParameterError
from rareswitch.experiment import Experiment
from rareswitch.features import Features
from reference.commands import printed
from reference.refusals import raises

ARMS = ["red", "blue"]
PEOPLE: list[dict[str, Any]] = [{"age": 20 + k % 50, "device": ("ios", "web")[k // 2 % 2]} for k in range(400)]


def shop(*, worth: float = 1.0, **settings: Any) -> Experiment:
    """400 visitors, of whom those below 45 like red; all rewards are known."""
    features = Features.fit(PEOPLE, ARMS)
    trial = rareswitch.create("memory:", "shop", features=features, seed=1, now=0.0, **settings)
    choices = trial.decide_many(PEOPLE, ARMS, ids=range(400), now=0.0)
    liked = [(choice.arm == "red") == (who["age"] < 45) for choice, who in zip(choices, PEOPLE, strict=True)]
    noise = uniforms(1, "baskets", 0, 400)[:, 0]
    trial.reward_many(range(400), [worth * (like + u) for like, u in zip(liked, noise, strict=True)], now=0.0)
    return trial


@pytest.mark.parametrize(
    "make",
    [
        lambda: rareswitch.Rewards(window=2),
        lambda: rareswitch.Rewards(window="2"),
        lambda: rareswitch.create("memory:", "x", dim=2, schedule="best:rate=5,end=2030-01-01,delay=2"),
        lambda: rareswitch.plan(rate=5, end="2030-01-01", dim=2, arms=2, delay=2),
    ],
)
def test_two_is_not_two_seconds(make: Callable[[], object]) -> None:
    raises(ParameterError, "must be a duration with a unit, such as '2d', '2h'", make)
    assert rareswitch.Rewards(window="2d").window == rareswitch.Rewards(window=timedelta(days=2)).window == 172_800.0


def test_a_window_without_a_unit_is_no_two_seconds_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["experiment", "create", f"{tmp_path}/x.db", "x", "--dim", "2", "--window", "2"])
    assert ended.value.code == 2
    assert "--window: must be a duration with a unit, such as '2d'" in capsys.readouterr().err


def young_see_red(record: dict[str, Any], arms: Any) -> str:
    return "red" if record["age"] < 45 else "blue"


def test_a_rule_of_records_says_what_it_needs_and_sees_records_and_arms() -> None:
    plain = shop(policies=3, horizon=1000)
    for rule in (young_see_red, lambda record, arms: "red"):
        raises(
            ParameterError, r"rule of a record and arms needs the records: records=…", rareswitch.evaluate, plain, rule
        )
    given = rareswitch.evaluate(plain, young_see_red, records=dict(enumerate(PEOPLE))).values[0]
    kept = rareswitch.evaluate(shop(policies=3, horizon=1000, keep_records=True), young_see_red).values[0]
    assert given.interval == kept.interval
    assert kept.interval.low < 1.5 < kept.interval.high


def test_an_update_can_be_read_out() -> None:
    """Its numbers are of the size of what was earned, without exponents; what was lost is beside what was expected."""
    trial = shop(worth=40.0, policies=4, horizon=2000)
    texts = [str(trial.advance(force=True, now=1.0))]
    trial.decide_many(PEOPLE, ARMS, ids=range(400, 800), now=2.0)
    trial.reward_many(range(400, 800), [20.0] * 400, now=2.0)
    texts.append(str(trial.advance(force=True, now=3.0)))
    for text in texts:
        assert [line.partition(":")[0] for line in text.splitlines()] == ["Seen", "Changes", "Expected", "Watch"]
        assert not re.search(r"\b[\d.]+e[+-]\d|costs at most|\b1 (decision|reward|arm)s", text)
        for number in re.findall(r"(?:Regret of this batch: about|remaining regret|expected:) ([\d,.]+\d)", text):
            assert 0.0 <= float(number.replace(",", "")) <= 40.0 * 2000
    assert re.search(r"Regret of this batch: about [\d.,]+ \(expected: [\d.,]+\)", texts[1])


def test_values_of_other_libraries_are_taken() -> None:
    trial = shop(policies=3, horizon=1000)
    series = trial.decide(pd.Series(PEOPLE[0]), ARMS, id="series", now=4.0)
    assert series.arm == trial.decide({"age": Decimal(20), "device": "ios"}, ARMS, id="series", now=4.0).arm
    assert str(trial.reward("series", Decimal("1.5"), now=4.0)) == "1 reward stored."


def test_how_long_until_a_lift_of_five_percent_is_seen_is_answered() -> None:
    (detection,) = rareswitch.plan(50_000, dim=3, arms=4, mean=10.0, spread=5.0, lift=0.05).detections
    assert detection.decisions is not None
    # of two samples, the smaller one 5 %; the holdout keeps any of four arms, whose decisions elsewhere count, too
    most = 2.8**2 / (0.05 * 0.95) / 0.1**2
    assert most / 4.0 < detection.decisions < most


def test_own_tables_have_names_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the arms' ids in their file, and of all columns of a log."""
    (tmp_path / "arms.csv").write_text("sku,price\nred,1\nblue,3\n")
    (tmp_path / "people.json").write_text(json.dumps(PEOPLE))
    rows = "".join(f"{k},{ARMS[k % 2]},0.5,{k // 2 % 2},red|blue\n" for k in range(400))
    (tmp_path / "log.csv").write_text("request,item,p,bought,on sale\n" + rows)
    store = f"{tmp_path}/x.db"
    fit = ["--fit", f"{tmp_path}/people.json", "--arms", f"{tmp_path}/arms.csv", "--arm-key", "sku"]
    printed(capsys, "experiment", "create", store, "x", *fit)
    decided = printed(capsys, "experiment", "decide", store, "x", "--context", json.dumps(PEOPLE[0]), "--id", "1")
    assert decided.split()[0] in ARMS
    columns = ["id=request", "arm=item", "propensity=p", "reward=bought", "offered=on sale"]
    text = printed(capsys, "evaluate", f"{tmp_path}/log.csv", "--columns", *columns, "--always", "blue")
    assert re.search(r"always blue +0\.5", text)


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["simulat"], "simulate"), (["experiment", "statsu"], "status"), (["plan", "--decisins", "9"], "--decisions")],
)
def test_a_misspelt_command_is_told_what_it_may_have_meant(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert f"Did you mean '{meant}'?" in capsys.readouterr().err


def test_experiments_are_listed_ended_and_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = f"{tmp_path}/x.db"
    for name in ("spring", "autumn"):
        printed(capsys, "experiment", "create", store, name, "--dim", "2")
    assert "spring: foresight, 1 policy, 0 decisions" in printed(capsys, "experiment", "list", store)
    printed(capsys, "experiment", "end", store, "spring")
    printed(capsys, "experiment", "delete", store, "spring", "--force")
    assert [entry.name for entry in rareswitch.list_experiments(f"sqlite:///{store}")] == ["autumn"]


def test_policies_are_counted_as_they_were_asked_for() -> None:
    """Eight policies are eight, of which the first is there at the beginning."""
    learner = rareswitch.make_learner("foresight", dim=3, policies=8, horizon=1000)
    assert len(learner.clock.begin()) == 8
    assert math.isclose(sum(learner.clock.begin()), 1000)
