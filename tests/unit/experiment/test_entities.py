"""Requests that name no arms, and rewards of which is known who earned them and when."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rareswitch
from rareswitch.cli import main
from rareswitch.errors import ConflictError, ParameterError, ShapeError
from rareswitch.experiment import Experiment, Rewards
from rareswitch.features import Features
from reference.commands import printed
from reference.refusals import raises

RECORDS = [{"age": 20 + 7 * k % 50, "device": ("ios", "web")[k % 2]} for k in range(60)]
OFFERS = {"b": {"price": 3.0, "title": "Bee"}, "a": {"price": 5.0, "title": "Ay"}}
MONDAY, HOUR = 1772442000.0, 3600.0


def begun(url: str = "memory:", **settings: Any) -> Experiment:
    features = Features.fit(RECORDS, ["b", "a"])
    usual: dict[str, Any] = {"features": features, "policies": 3, "horizon": 500, "seed": 1, "now": MONDAY}
    return rareswitch.create(url, "spring", **usual | settings)


def shown(trial: Experiment, entity: str, at: float, **more: Any) -> str:
    name = trial.entity_id(entity)
    trial.decide({"age": 30, "device": "web"}, id=name, now=at, **more)
    return name


def test_requests_that_name_no_arms_are_offered_those_of_the_creation(tmp_path: Path) -> None:
    features = Features.fit(RECORDS, OFFERS, drop=["title"])
    url = f"sqlite:///{tmp_path}/spring.db"
    with begun(url, features=features, offer=OFFERS) as trial:
        first = trial.decide({"age": 30}, id="r1")
    with rareswitch.open(url, "spring") as trial:
        assert list(trial.description.named_arms.items()) == list(OFFERS.items())
        again = trial.decide({"age": 30}, OFFERS, id="r1")
        assert (again.arm, again.propensity, again.repeated) == (first.arm, first.propensity, True)
        many = trial.decide_many([{"age": 30}, {"age": 31}], ids=["r1", "r2"])
        assert [choice.repeated for choice in many] == [True, False]
        assert trial.probabilities({"age": 30}) == trial.probabilities({"age": 30}, OFFERS)
        assert trial.audit("r1", {"age": 30}).matches
    assert begun(offer=["a"]).decide({"age": 30}, id="r1").arm == "a"
    assert begun().description.named_arms == {"b": {}, "a": {}}
    with pytest.raises(ParameterError, match="offer names the arms of requests that name none, and requests"):
        rareswitch.create("memory:", "vectors", dim=2, offer=["a"])


def test_a_reward_is_of_the_last_decision_before_it() -> None:
    trial = begun(rewards=Rewards(window="2h"))
    first = shown(trial, "u", MONDAY)
    trial.decide_many(RECORDS, ids=range(60), now=MONDAY)
    trial.reward_many(range(60), np.tile([0.0, 1.0], 30).tolist(), now=MONDAY + 1)
    assert trial.advance(force=True, now=MONDAY + 3 * HOUR).made
    second = shown(trial, "u", MONDAY + 4 * HOUR)
    assert (first, second) == ("u@1", "u@2")
    moments = [MONDAY - 1, MONDAY + HOUR, MONDAY + 5 * HOUR, MONDAY + HOUR]
    rewarded = trial.reward_by_entity(["u", "u", "u", "v"], [9.0, 1.0, 0.0, 1.0], moments)
    assert (rewarded.rewards, rewarded.skipped, rewarded.unmatched) == (2, 2, 0)
    assert (trial.audit(first).rewards, trial.audit(second).rewards) == ({"": 1.0}, {"": 0.0})
    assert trial.reward_by_entity(["u"], [1.0], [MONDAY + HOUR]).repeated == 1
    raises(ConflictError, "u@1", trial.reward_by_entity, ["u"], [0.0], [MONDAY + 2])
    raises(ShapeError, "times must be one for each of the 1 entities; got 0", trial.reward_by_entity, ["u"], [1.0], [])
    assert trial.reward_by_entity([], [], []).rewards == 0


def test_a_deferred_decision_earns_nothing_before_it_is_activated() -> None:
    trial = begun()
    name = shown(trial, "u", MONDAY, deferred=True)
    assert trial.reward_by_entity(["u"], [1.0], [MONDAY + 1]).skipped == 1
    trial.activate(name)
    assert trial.reward_by_entity(["u"], [1.0], [MONDAY + 1]).skipped == 0


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_table_of_rewards_is_stored_by_the_command(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, path = f"sqlite:///{tmp_path}/spring.db", tmp_path / f"rewards{ending}"
    with begun(url, rewards=Rewards(several="sum")) as trial:
        shown(trial, "7", MONDAY)
    times = [np.datetime64(int(MONDAY + k * HOUR), "s").item() for k in (1, 2, 1)]
    table = pl.DataFrame({"entity": [7, 7, 8], "time": times, "value": [1.0, 2.5, 1.0], "event": ["x", "y", "x"]})
    table.write_csv(path) if ending == ".csv" else table.write_parquet(path)
    command = ["experiment", "reward", url, "spring", "--by-entity", str(path)]
    assert "2 rewards stored; 1 skipped, whose entity had no decision before." in printed(capsys, *command)
    with rareswitch.open(url, "spring") as trial:
        assert trial.audit("7@1").rewards == {"x": 1.0, "y": 2.5}
    assert main([*command, "--value", "1"]) == 2
    table.rename({"entity": "user"}).write_csv(tmp_path / "other.csv")
    assert main([*command[:-1], str(tmp_path / "other.csv")]) == 2
    assert "need the columns entity, time and value; there are user" in capsys.readouterr().err
