"""Logarithms, quantiles and parts of dates: what they make of values, of hostile ones too."""

import datetime as dt
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rareswitch.errors import ParameterError, RecordError
from rareswitch.features import Features, Hour, Log, Month, Number, Quantile, Weekday
from rareswitch.learner import Foresight
from rareswitch.policy import load_policy, save_policy
from reference.refusals import raises

NOON = dt.datetime(2026, 3, 2, 12)
MONDAY, SUNDAY = [1.0] + [0.0] * 7, [0.0] * 6 + [1.0, 0.0]
AT_NOON, MISSING = [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("field", "value", "columns", "clipped"),
    [
        (Log("f", mean=2, scale=0.5), math.e**3, [0.5, 0.0], 0),
        (Log("f", mean=2, scale=0.5), 1e300, [1.0, 0.0], 1),
        (Log("f", mean=2, scale=0.5), 0, [-1.0, 0.0], 1),
        (Log("f", mean=2, scale=0.5), -3.5, [-1.0, 0.0], 1),
        (Log("f", mean=0, scale=1, shift=1), 0, [0.0, 0.0], 0),
        (Log("f", mean=0, scale=1, shift=1), -1, [-1.0, 0.0], 1),
        (Log("f", mean=2, scale=0.5), None, [0.0, 1.0], 0),
        (Quantile("f", quantiles=[0, 0, 0, 10, 20]), 0, [-0.5, 0.0], 0),
        (Quantile("f", quantiles=[0, 0, 0, 10, 20]), 2.5, [0.125, 0.0], 0),
        (Quantile("f", quantiles=[0, 0, 0, 10, 20]), 20, [1.0, 0.0], 0),
        (Quantile("f", quantiles=[0, 0, 0, 10, 20]), -1e-9, [-1.0, 0.0], 1),
        (Quantile("f", quantiles=[0, 0, 0, 10, 20]), 21, [1.0, 0.0], 1),
        (Quantile("f", quantiles=[0, 1]), math.nan, [0.0, 1.0], 0),
        (Hour("f"), NOON, AT_NOON, 0),
        (Hour("f"), "2026-03-02T12:00", AT_NOON, 0),
        (Hour("f"), "2026-03-02 14:00:00+02:00", AT_NOON, 0),
        (Hour("f"), pd.Timestamp("2026-03-02 12:00", tz="UTC"), AT_NOON, 0),
        (Hour("f"), np.datetime64("2026-03-02T12:00:00.000000000"), AT_NOON, 0),
        (Hour("f", zone="Europe/Berlin"), "2026-07-01T10:00Z", AT_NOON, 0),
        (Hour("f", zone="Europe/Berlin"), NOON, AT_NOON, 0),
        (Hour("f"), pd.NaT, MISSING, 0),
        (Hour("f"), np.datetime64("NaT", "ns"), MISSING, 0),
        (Month("f"), dt.date(2026, 7, 31), AT_NOON, 0),
        (Month("f"), "2026-04-02", [1.0, 0.0, 0.0], 0),
        (Weekday("f"), NOON, MONDAY, 0),
        (Weekday("f"), "2026-03-01", SUNDAY, 0),
        (Weekday("f"), "2026-03-02T00:30+02:00", SUNDAY, 0),
        (Weekday("f", zone="Europe/Berlin"), dt.datetime(2026, 3, 1, 23, 30, tzinfo=dt.UTC), MONDAY, 0),
        (Weekday("f"), dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))), MONDAY, 0),
        (Weekday("f"), None, [0.0] * 7 + [1.0], 0),
    ],
    ids=str,
)
def test_values_have_their_place(field: Any, value: Any, columns: list[float], clipped: int) -> None:
    features = Features(fields=[replace(field, of="arm")])
    encoded = features.encode({}, {"a": {"f": value}})
    np.testing.assert_allclose(encoded.vectors[0], columns, rtol=0, atol=1e-9)
    assert np.linalg.norm(encoded.vectors[0]) <= 1.0
    assert encoded.details["clipped", "f"] == clipped
    assert encoded.details["missing", "f"] == columns[-1]
    many = features.encode_many([{}] * 2, {"a": {"f": value}, "b": {"f": None}})
    np.testing.assert_array_equal(many.vectors[1, 0], encoded.vectors[0])


@pytest.mark.parametrize(
    ("kind", "value", "rule"),
    [
        ("log", "3", "must be a number"),
        ("log", [1.0], "must be a number"),
        ("log", 10**400, "must be a number"),
        *[("log", value, "must be finite") for value in (math.inf, -math.inf)],
        ("quantile", "3", "must be a number"),
        ("quantile", math.inf, "must be finite"),
        ("hour", "2026-03-02", "must be a date with a time"),
        ("hour", dt.date(2026, 3, 2), "must be a date with a time"),
        ("weekday", "yesterday", "must be a date,"),
        ("weekday", "", "must be a date,"),
        ("weekday", 1772445600, "must be a date,"),
        ("weekday", dt.time(3), "must be a date,"),
        ("weekday", [NOON], "must be a date,"),
    ],
)
def test_what_is_no_value_of_a_transform_is_refused_by_name(kind: str, value: Any, rule: str) -> None:
    sample = [{"f": NOON if kind in ("hour", "weekday") else k} for k in range(1, 9)]
    features = Features.fit(sample, ["a"], kinds={"f": kind})
    raises(RecordError, f"the field 'f' {rule}", features.encode, {"f": value})
    if rule != "must be finite":  # such a column is left out, and told
        with pytest.raises(RecordError, match=f"the field 'f' {rule}"):
            Features.fit([*sample, {"f": value}], ["a"], kinds={"f": kind}).encode({"f": value})


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Log("a", shift=-1), "shift of the field 'a'"),
        (lambda: Quantile("a", quantiles=[1]), "must be a list of 2 to"),
        (lambda: Quantile("a", quantiles=[2, 1]), "must rise"),
        (lambda: Quantile("a", quantiles=[1, 1]), "two different numbers"),
        (lambda: Quantile("a", quantiles=[1, math.nan]), "quantiles of the field 'a'"),
        (lambda: Hour("a", zone="Berlin"), "zone of the field 'a' must be UTC or a name"),
        (lambda: Weekday("a", zone="../passwd"), "zone of the field 'a' must be UTC or a name"),
    ],
)
def test_transforms_that_make_no_sense_are_refused(make: Any, error: str) -> None:
    raises(ParameterError, error, make)


def sales(count: int = 200) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        {
            "price": float(np.exp(rng.normal(2, 1.5))),
            "visits": int(rng.geometric(0.2)) - 1,
            "age": int(rng.integers(18, 80)),
            "at": NOON + dt.timedelta(hours=7 * k),
        }
        for k in range(count)
    ]


KINDS = {"price": "log", "visits": "log", "age": "quantile", "at": "hour + weekday"}


def test_transforms_are_fitted_where_one_asks_for_them() -> None:
    features = Features.fit(sales(), ["a", "b"], kinds=KINDS)
    fields: dict[str, Any] = {field.name: field for field in features.fields}
    assert [field.kind for field in features.fields] == ["log", "log", "quantile", "hour", "weekday"]
    logarithms = np.log([record["price"] for record in sales()])
    np.testing.assert_allclose(
        [fields["price"].mean, fields["price"].scale], [logarithms.mean(), logarithms.std()], rtol=1e-4
    )
    assert (fields["price"].shift, fields["visits"].shift) == (0.0, 1.0)  # which has zeros
    ages = sorted(record["age"] for record in sales())
    assert fields["age"].quantiles[::10] == (ages[0], ages[99], ages[-1])
    assert [(fields[name].key, fields[name].name) for name in ("at hour", "at weekday")] == [
        ("at", "at hour"),
        ("at", "at weekday"),
    ]
    assert not features.encode_many(sales()).counts
    text = str(features)
    for part in ("(log x − ", "(log(x + 1) − ", "its rank among 21 quantiles", "time of day on a circle, UTC"):
        assert part in text
    with pytest.raises(ParameterError, match="kinds must be fields or number, log"):
        Features.fit(sales(), ["a"], kinds={"at": "hour+weekdays"})


def test_nothing_is_transformed_unasked_but_recommended() -> None:
    features = Features.fit(sales(), ["a", "b"])
    assert [type(field) for field in features.fields] == [Number] * 3
    assert "skewed: try log or quantile" in features.seen["price"]
    assert "skewed" not in features.seen["age"]
    assert "left out: at: a date: ask for its parts" in str(features)
    texts = Features.fit([{"at": f"{record['at']:%Y-%m-%dT%H:%M}", "age": record["age"]} for record in sales()], ["a"])
    assert "left out: at: a date: ask for its parts" in str(texts)


def test_a_null_in_production_has_a_place_where_the_sample_had_none() -> None:
    features = Features.fit([{"age": k % 7, "new": k % 2 == 0, "device": "ab"[k % 2]} for k in range(40)], ["a", "b"])
    encoded = features.encode({"age": None, "new": None})
    assert encoded.details == {("absent", "device"): 1} | {("missing", name): 1 for name in ("age", "new", "device")}
    strict = Features.fit([{"age": k % 7, "new": None if k else True} for k in range(40)], ["a", "b"], missing="error")
    assert {field.name: field.missing for field in strict.fields} == {"age": "error", "new": "own"}


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_tables_and_texts_give_the_vectors_of_records(table: Any) -> None:
    wanted = Features.fit(sales(), ["a", "b"], kinds=KINDS)
    assert Features.fit(table(sales()), ["a", "b"], kinds=KINDS) == wanted
    texts = [{**record, "at": record["at"].isoformat()} for record in sales()]
    vectors = wanted.encode_many(sales(), ["a", "b"]).vectors
    np.testing.assert_array_equal(wanted.encode_many(texts, ["a", "b"]).vectors, vectors)
    np.testing.assert_array_equal(wanted.encode_many(table(sales()), ["a", "b"]).vectors, vectors)


def test_a_far_machine_decides_as_the_near_one(tmp_path: Path) -> None:
    features = Features.fit(sales(), ["a", "b"], kinds=KINDS)
    policy = Foresight(dim=features.dim, policies=3, horizon=100).begin(features=features).policy
    save_policy(policy, tmp_path / "p.policy")
    far = load_policy(tmp_path / "p.policy")
    assert far.id == policy.id
    hostile: list[dict[str, Any]] = [
        {"price": -1.0, "at": "2026-12-31T23:59:59+05:30"},
        {"price": None, "visits": 10**9, "at": None},
    ]
    records: list[dict[str, Any]] = [*sales(50), *hostile]
    for number, record in enumerate(records):
        near, there = (p.decide_records(record, ["a", "b"], id=number, seed=1) for p in (policy, far))
        assert (near.arm, near.propensity) == (there.arm, there.propensity)
