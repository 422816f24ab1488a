"""What is proposed from a sample, and what is said about it."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rareswitch.errors import ParameterError, RecordError
from rareswitch.features import Arms, Category, Features, Flag, Hashed, Number, Vector
from reference.refusals import raises

CAMPAIGNS = [f"campaign {k}" for k in range(8)]


def sample(count: int = 200, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "row": k,
            "session": f"{rng.integers(1 << 60):x}",
            "at": dt.datetime(2026, 1, 1) + dt.timedelta(hours=k),
            "age": round(float(rng.normal(40, 12)), 1),
            "device": str(rng.choice(["ios", "web", "tv"], p=[0.6, 0.3, 0.1])),
            "city": f"city {rng.integers(60)}",
            "member": bool(rng.integers(2)),
            "visits": None if rng.random() < 0.1 else int(rng.integers(9)),
            "country": "de",
            "taste": rng.normal(size=3).tolist(),
        }
        for k in range(count)
    ]


def items(count: int = 12, seed: int = 1) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    kinds = ["shirt", "shoe", "hat"]
    return [
        {"id": f"item {k}", "price": round(float(rng.normal(20, 5)), 2), "kind": kinds[k % 3], "title": f"title {k}"}
        for k in range(count)
    ]


def test_each_column_becomes_the_field_it_looks_like() -> None:
    features = Features.fit(sample(), arms=items())
    fields = {field.name: field for field in features.fields}
    ages = np.array([record["age"] for record in sample()])
    assert {name: type(field) for name, field in fields.items()} == {
        "age": Number,
        "device": Category,
        "city": Hashed,
        "member": Flag,
        "visits": Number,
        "taste": Vector,
        "price": Number,
        "kind": Category,
    }
    age = fields["age"]
    assert isinstance(age, Number)
    np.testing.assert_allclose([age.mean, age.scale], [ages.mean(), ages.std()], rtol=1e-5)
    assert isinstance(device := fields["device"], Category)
    assert device.levels == ("ios", "web", "tv")  # the most frequent first
    assert (age.missing, device.missing, fields["visits"].missing) == ("own", "unknown", "own")
    assert (fields["age"].of, fields["price"].of) == ("context", "arm")
    assert features.dim <= 100
    assert features.constant
    assert {one for one, _ in features.crossings} == {"age", "device", "city", "member", "visits", "taste"}


def test_everything_that_is_left_out_is_said() -> None:
    text = str(Features.fit(sample(), arms=items(), drop=["visits"]))
    for line in (
        "left out: row: the number of the row",
        "left out: session: different in nearly every row",
        "left out: at: a date: ask for its parts",
        "left out: country: de in every row",
        "left out: visits: as was asked",
        "left out: title: different for each arm",
    ):
        assert line in text
    assert "left out: crossings beyond most columns: " in text
    for field in ("age", "device", "city", "member", "price", "kind", "taste"):
        assert any(line.startswith(f"{field} ") for line in text.splitlines())


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist])
def test_tables_and_records_give_the_same_features(table: Any) -> None:
    by_id = {record["id"]: {k: v for k, v in record.items() if k != "id"} for record in items()}
    wanted = Features.fit(sample(), arms=by_id)
    assert Features.fit(table(sample()), arms=table(items())) == wanted
    assert Features.fit(sample(), arms=items()) == wanted
    assert Features.fit(sample(), arms=[by_id] * 200) == wanted


def test_few_arms_without_features_have_parameters_of_their_own_and_room_for_more() -> None:
    contexts = [{"age": float(20 + k % 40), "device": ["ios", "web"][k % 2], "new": k % 3 == 0} for k in range(100)]
    features = Features.fit(contexts, arms=CAMPAIGNS)
    assert features.arms == Arms(ids=tuple(CAMPAIGNS), spare_arms=2, own=("age", "device", "new"))
    assert features.dim == 10 * (1 + 2 + 3 + 2)
    assert not features.constant
    assert not any(field.alone for field in features.fields)
    assert Features.fit(contexts, arms=CAMPAIGNS, spare_arms=5).arms.spare_arms == 5
    assert Features.fit(contexts, arms=CAMPAIGNS, own=["age"]).dim == 10 * 3
    small = Features.fit(contexts, arms=CAMPAIGNS, most=51)
    assert small.dim == 50
    assert "left out: arm × device: 30 more columns, beyond most=51" in str(small)
    assert "left out: device: alone it cannot change a choice" in str(small)


def test_shared_and_own_parameters_can_be_had_together() -> None:
    features = Features.fit(sample(), arms=items(), own=["member"], crossings=[("age", "price")], drop=["city"])
    assert features.crossings == (("age", "price"),)
    assert features.arms.own == ("member",)
    alone = {field.name for field in features.fields if field.alone}
    assert alone == {"age", "price", "kind"}
    assert {field.name for field in features.fields} == {"age", "price", "kind", "member"}


def test_a_column_for_each_arm_becomes_one_field_of_both() -> None:
    rng = np.random.default_rng(3)
    contexts = [{"age": float(k), **{f"likes_{a}": float(rng.poisson(1)) for a in range(12)}} for k in range(60)]
    arms = {k: {"price": float(k)} for k in range(12)}
    features = Features.fit(contexts, arms=arms)
    likes = next(field for field in features.fields if field.name == "likes")
    assert (likes.of, likes.key, likes.alone) == ("both", "likes_{arm}", True)
    assert not features.encode(contexts[0], arms).counts["extra"]


def test_fields_of_arms_that_vary_are_of_both() -> None:
    offers = [{"a": {"price": 1.0, "match": k / 9}, "b": {"price": 2.0, "match": -k / 9}} for k in range(10)]
    features = Features.fit([{"age": float(k)} for k in range(10)], arms=offers)
    assert {field.name: field.of for field in features.fields} == {"age": "context", "price": "arm", "match": "both"}


def test_a_log_names_the_arm_that_was_shown_which_is_no_feature() -> None:
    log = [{"item": k % 3, "age": float(k)} for k in range(30)]
    features = Features.fit(log, arms=[{"item": k, "price": float(k)} for k in range(3)], key="item")
    assert {field.name for field in features.fields} == {"age", "price"}
    assert "left out: item: it names the arm" in str(features)


def test_the_same_name_on_both_sides_is_told_apart() -> None:
    features = Features.fit(
        [{"language": ["de", "en"][k % 2]} for k in range(30)],
        arms={k: {"language": ["de", "en"][k % 2]} for k in range(6)},
    )
    assert [(f.name, f.key, f.of) for f in features.fields] == [
        ("language", "language", "context"),
        ("arm.language", "language", "arm"),
    ]
    assert features.crossings == (("language", "arm.language"),)


def test_kinds_can_be_said() -> None:
    kinds = {"visits": "category", "session": "hashed", "age": Number("age", mean=50, scale=20)}
    features = Features.fit(sample(), arms=items(), kinds=kinds, most=300)
    fields = {field.name: field for field in features.fields}
    assert isinstance(fields["visits"], Category)
    assert isinstance(fields["session"], Hashed)
    assert isinstance(age := fields["age"], Number)
    assert (age.mean, age.scale) == (50.0, 20.0)
    assert {f.missing for f in Features.fit(sample(), arms=items(), missing="own").fields} == {"own"}


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"drop": ["nothing"]}, "it has no 'nothing'"),
        ({"kinds": {"age": "numbre"}}, "kinds must be fields or number"),
        ({"spare_arms": 3}, "own=True too"),
        ({"missing": "zero"}, "missing must be"),
        ({"levels": 0}, "levels must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], error: str) -> None:
    raises(ParameterError, error, Features.fit, sample(30), arms=items(), **settings)


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ([0, 1], "texts as names; got int 0"),
        (["a", "a"], "'a' is there twice"),
        ([("a", "b"), ("a", "c")], "got tuple"),
    ],
)
def test_columns_of_tables_have_names_of_their_own(columns: list[Any], error: str) -> None:
    table = pd.DataFrame([[1.0, 2.0], [2.0, 3.0]])
    table.columns = pd.MultiIndex.from_tuples(columns) if isinstance(columns[0], tuple) else columns
    raises(RecordError, error, Features.fit, table, CAMPAIGNS)


def test_a_sample_is_needed() -> None:
    raises(RecordError, "at least one context", Features.fit, [], arms=["a"])
    raises(RecordError, "arms must be", Features.fit, sample(30))


def test_a_file_of_records_is_a_sample(tmp_path: Path) -> None:
    records = [{"age": 20.0 + k % 40, "device": ("ios", "web")[k % 2]} for k in range(100)]
    lines = ["age,device", *(f"{record['age']},{record['device']}" for record in records)]
    (tmp_path / "visitors.csv").write_text("\n".join(lines))
    fitted = Features.fit(tmp_path / "visitors.csv", ["a", "b"])
    assert fitted.id == Features.fit(records, ["a", "b"]).id
    assert len(fitted.encode_many(str(tmp_path / "visitors.csv"), ["a", "b"]).vectors) == 100
