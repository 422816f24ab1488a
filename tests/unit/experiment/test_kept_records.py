"""The records of requests, as they are kept where that was asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rareswitch.errors import ParameterError
from rareswitch.evaluation import evaluate
from rareswitch.experiment import Experiment, copy_experiment, create
from rareswitch.features import Features
from rareswitch.log import export_parts, import_parts
from reference.refusals import raises

AGES = np.random.default_rng(1).integers(18, 80, 400).tolist()
VISITORS = [{"age": age, "device": ("ios", "web")[age % 2], "born": pd.Timestamp("2000-01-01")} for age in AGES]
ARMS = {"cheap": {"price": 1.0}, "dear": {"price": 9.0}}
FEATURES = Features.fit([{"age": one["age"], "device": one["device"]} for one in VISITORS], ARMS)


def begun(**more: Any) -> Experiment:
    return create("memory:", "spring", features=FEATURES, seed=1, now=0.0, **{"keep_records": True} | more)


def decided() -> Experiment:
    """Half of the requests one by one; an older visitor buys what is dear."""
    trial = begun()
    choices = [trial.decide(visitor, ARMS, id=k, now=0.0) for k, visitor in enumerate(VISITORS[:200])]
    choices += trial.decide_many(pd.DataFrame(VISITORS[200:]), ARMS, ids=range(200, 400), now=0.0)
    suits = [(choice.arm == "dear") == (age > 40) for choice, age in zip(choices, AGES, strict=True)]
    trial.reward_many(range(400), [bool(k % 4) and suit for k, suit in enumerate(suits)], now=0.0)
    return trial


def by_age(record: dict[str, Any], arms: dict[str, dict[str, float]]) -> str:
    assert record["born"].startswith("2000-01-01")
    return (max if record["age"] > 40 else min)(arms, key=lambda name: arms[name]["price"])


def test_a_rule_of_record_and_arms_is_evaluated_on_kept_records(tmp_path: Path) -> None:
    trial = decided()
    value = evaluate(trial, by_age, level=0.999)["by_age"]
    assert value.interval.low <= 0.75 <= value.interval.high  # what it earns where three of four pay
    assert evaluate(trial, lambda record, arms: "dear")["candidate"].interval.high < value.interval.low
    given = evaluate(
        trial, lambda record, arms: arms[record["age"] > 40], records=dict(enumerate(VISITORS)), level=0.999
    )
    assert given.values[0].interval == value.interval
    export_parts(trial.store, tmp_path, policies=[trial.policy.id])
    other = begun()
    import_parts(
        other.store, [f"{tmp_path}/*"], learner=other.description.learner, policies=[other.policy.id]
    )  # the same policy, as nothing was learned
    for copied in (other, copy_experiment(trial, "memory:")):
        assert evaluate(copied, by_age, level=0.999)["by_age"].interval == value.interval


def test_records_are_not_kept_unless_they_are_asked_for() -> None:
    trial = begun(keep_records=False)
    choice = trial.decide(VISITORS[0], ARMS, id="one", now=0.0)
    assert choice.arm in ARMS
    ((row, _),) = [kept for page in trial.store.rows(0, trial.store.marks()) for kept in page]
    assert row.record is None
    raises(ParameterError, "keep_records keeps records", create, "memory:", "vectors", dim=2, keep_records=True)


def test_a_repeated_request_keeps_its_first_record() -> None:
    trial = begun()
    first = VISITORS[0] | {"note": 1}
    for record in (first, VISITORS[0] | {"note": 2}):  # not described, and so no part of the request
        trial.decide(record, ARMS, id="one", now=0.0)
    (kept,) = trial.logged(now=0.0).records(next(trial.logged(now=0.0).chunks()).ids)
    assert (kept.context["note"], kept.arms) == (1, ARMS)
