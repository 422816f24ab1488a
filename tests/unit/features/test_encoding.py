"""Records to vectors: what the documentation says of each kind, for one request and for many."""

import json
import math
import os
import pickle
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rareswitch.core import unit_ball
from rareswitch.errors import EmptySetError, ParameterError, RecordError
from rareswitch.features import Arms, Category, Features, Flag, Hashed, Number, Vector
from reference.records import AFFINITIES, MIXED, SHARED, drawn, slow
from reference.refusals import raises


@pytest.mark.parametrize("seed", range(60))
def test_vectors_are_what_the_documentation_says(seed: int) -> None:
    context, arms = drawn(np.random.default_rng(seed))
    encoded = MIXED.encode(context, arms)
    assert encoded.names == tuple(arms)
    np.testing.assert_allclose(encoded.vectors, slow(MIXED, context, arms), rtol=0, atol=1e-15)


def test_many_requests_are_as_each_of_them() -> None:
    rng = np.random.default_rng(1)
    requests = [drawn(rng) for _ in range(40)]
    many = MIXED.encode_many([context for context, _ in requests], [arms for _, arms in requests])
    counts: Counter[str] = Counter()
    for s, (context, arms) in enumerate(requests):
        one = MIXED.encode(context, arms)
        counts += one.counts
        assert many.names[s] == one.names
        assert many.sets.available[s].sum() == len(arms)
        np.testing.assert_array_equal(many.vectors[s, : len(arms)], one.vectors)
        assert many.cautions[s] == one.cautions[0]
        assert {*one.cautions[0]} == {(name or "arms", what) for what, name in one.details if what != "absent"}
    assert many.counts == counts
    assert {"clipped", "missing", "unknown", "absent", "extra", "spare", "shared"} == {*counts}


def test_arms_that_are_the_same_for_all_are_given_once() -> None:
    rng = np.random.default_rng(2)
    arms = {**drawn(rng)[1], "x": {"brand": "a", "hue": 3}, "new": {"price": 99.0}}
    contexts = [drawn(rng)[0] for _ in range(7)]
    once, each = MIXED.encode_many(contexts, arms), MIXED.encode_many(contexts, [arms] * 7)
    np.testing.assert_array_equal(once.vectors, each.vectors)
    assert once.counts == each.counts
    assert once.cautions == each.cautions == tuple(MIXED.encode(context, arms).cautions[0] for context in contexts)
    assert ("hue", "extra") in once.cautions[3]
    assert once.details["absent", "taste"] == once.details["extra", "hue"] * 2 == 14
    assert once.names == each.names == [tuple(arms)] * 7


def test_a_misspelt_field_is_told_of_the_request_that_has_it() -> None:
    records = [{"age": 30.0}, {"aeg": 30.0}, {"age": 1e6}]
    features = Features(
        fields=[Number("age", mean=40, scale=10, missing="own")], arms=Arms(ids=["a", "b"], own=["age"])
    )
    told = ((), (("aeg", "extra"), ("age", "missing")), (("age", "clipped"),))
    assert features.encode_many(records, ["a", "b"]).cautions == told
    assert features.encode_many(pd.DataFrame(records[:1] * 3), ["a", "b"]).cautions == ((),) * 3
    table = pd.DataFrame([{"aeg": 1.0}] * 2)
    assert features.encode_many(table, ["a", "b"]).cautions == (told[1],) * 2
    assert features.encode_many(records[:2], [["a"], ["b"]]).cautions == told[:2]


def test_extra_fields_are_named_up_to_a_number_and_in_texts_that_can_be_kept() -> None:
    features = Features(arms=Arms(ids=["a", "b"]))
    (found,) = features.encode({f"field {k}": k for k in range(100)}, ["a", "b"]).cautions
    assert len(found) == 20
    (found,) = features.encode({"\udc80" * 300: 1}, ["a", "b"]).cautions
    assert found == (("?" * 100, "extra"),)


def test_rows_of_pandas_are_records() -> None:
    table = pd.DataFrame({"age": [30, 50], "new": [True, False]})
    features = Features(fields=[Number("age", mean=40, scale=10), Flag("new", of="arm")], crossings=[("age", "new")])
    arms = {"a": table.iloc[0][["new"]], "b": {"new": False}}
    rows = [row[["age"]] for _, row in table.iterrows()]
    wanted = features.encode_many(table[["age"]], {"a": {"new": True}, "b": {"new": False}})
    np.testing.assert_array_equal(features.encode_many(rows, arms).vectors, wanted.vectors)
    np.testing.assert_array_equal(features.encode(rows[0], arms).vectors, wanted.vectors[0])
    raises(RecordError, r"got one record. Pass \[record\]", features.encode_many, rows[0], arms)


def test_arms_come_as_records_by_id_or_with_ids_or_as_a_table() -> None:
    by_id = {"a": {"price": 1.0, "new": True}, "b": {"price": 2.5, "new": False}}
    features = Features(fields=[Number("price", of="arm"), Flag("new", of="arm")], key="item")
    records = [{"item": id, **record} for id, record in by_id.items()]  # noqa: A001
    wanted = features.encode({}, by_id)
    for arms in (records, pd.DataFrame(records), pl.DataFrame(records), pa.Table.from_pylist(records)):
        found = features.encode(None, arms)
        assert found.names == ("a", "b")
        np.testing.assert_array_equal(found.vectors, wanted.vectors)
        assert not found.counts
    own = Features(arms=Arms(ids=["a", 3]))
    assert own.encode({}, [3, "a"]).vectors.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert own.encode({}).names == ("a", "3")


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist])
def test_tables_are_encoded_as_their_rows(table: Any) -> None:
    rows: list[dict[str, Any]] = [
        {"age": 31.5, "device": "ios", "city": "Rom", "member": True, "other": 1},
        {"age": None, "device": None, "city": "Ulm", "member": False, "other": 2},
        {"age": 99.0, "device": "tv", "city": None, "member": True, "other": 3},
    ]
    _, arms = drawn(np.random.default_rng(5))
    from_rows, from_table = MIXED.encode_many(rows, arms), MIXED.encode_many(table(rows), arms)
    np.testing.assert_array_equal(from_table.vectors, from_rows.vectors)
    assert from_table.details == from_rows.details
    assert from_table.details["extra", "other"] == 3


def test_whole_numbers_of_a_table_are_the_same_levels_as_in_records() -> None:
    features = Features(
        fields=[Category("hour", levels=[1, 2], missing="own", alone=False)], arms=Arms(ids=["a", "b"], own=["hour"])
    )
    rows: list[dict[str, Any]] = [{"hour": 1}, {"hour": None}, {"hour": 2}]
    wanted = features.encode_many(rows).vectors
    np.testing.assert_array_equal(features.encode_many(pd.DataFrame(rows)).vectors, wanted)  # which has 1.0 and NaN
    np.testing.assert_array_equal(features.encode_many(pl.DataFrame(rows)).vectors, wanted)
    assert (wanted[0] != wanted[1]).any()
    assert (wanted[1] != wanted[2]).any()


def test_affinities_in_the_context_are_found_by_the_arms_id() -> None:
    contexts = [
        {"age": 50, "likes_a_now": 2.0, "likes_7_now": 0.5, "likes_z_now": 9.0},
        {"age": 20, "likes_a_now": 1.0},
    ]
    arms = {"a": {"price": 1.0}, 7: {"price": 3.0}}
    one = AFFINITIES.encode(contexts[0], arms)
    likes = AFFINITIES.columns.index("likes")
    np.testing.assert_allclose(one.vectors[:, likes] * math.sqrt(len(AFFINITIES.terms)), [1 / 4, -0.5 / 4])
    assert not one.counts  # that of z, which is not offered, is no extra field
    for table in (contexts, pd.DataFrame(contexts).drop(columns="likes_7_now")):
        many = AFFINITIES.encode_many(table, arms)
        for s, context in enumerate(contexts):
            if not isinstance(table, list):
                context = {name: value for name, value in context.items() if name != "likes_7_now"}
            np.testing.assert_array_equal(many.vectors[s], AFFINITIES.encode(context, arms).vectors)
    assert AFFINITIES.encode(contexts[1], arms).counts == {"absent": 1, "missing": 1}


@pytest.mark.parametrize(
    ("field", "values"),
    [
        (Number("f", of="arm"), (0, 0.0, 1, -1)),
        (Flag("f", of="arm"), (True, False, 0, 1)),
        (Category("f", of="arm", levels=["0", "a"]), (0, "0", "a", "new")),
        (Hashed("f", of="arm", columns=2), (0, "a", "b", "")),
        (Vector("f", of="arm", length=2), ([0, 0], [0.0, 1.0])),
    ],
    ids=lambda value: value.kind if hasattr(value, "kind") else "",
)
def test_a_missing_value_is_never_taken_for_another(field: Any, values: tuple[Any, ...]) -> None:
    features = Features(fields=[field])
    gone = features.encode({}, {"a": {"f": None}})
    assert gone.counts == {"missing": 1}
    assert gone.vectors[0, -1] == 1.0
    assert gone.vectors.sum() == 1.0
    for value in values:
        held = features.encode({}, {"a": {"f": value}})
        assert held.vectors[0, -1] == 0.0
        assert not held.counts["missing"]
    for other in (math.nan, np.nan, pd.NA, np.float32("nan")):
        np.testing.assert_array_equal(features.encode({}, {"a": {"f": other}}).vectors, gone.vectors)


def test_missing_unknown_absent_and_extra_are_errors_where_one_says_so() -> None:
    strict = Features(
        fields=[
            Number("age", missing="error"),
            Category("device", levels=["ios"], unknown="error", missing="error"),
            Flag("new", of="arm", missing="error"),
        ],
        absent="error",
        extra="error",
    )
    context, arms = {"age": 1, "device": "ios"}, {"a": {"new": True}}
    assert not strict.encode(context, arms).counts
    for wrong, word in (
        ({"age": None}, "'age' must not be missing"),
        ({"device": "web"}, "must be one of its 1 levels"),
        ({"device": None}, "'device' must not be missing"),
        ({"other": 1}, "'other', which these features do not know"),
    ):
        raises(RecordError, word, strict.encode, context | wrong, arms)
        raises(RecordError, word, strict.encode_many, [context, context | wrong], arms)
    for less in ({"age": 1}, {"device": "ios"}):
        raises(RecordError, "lacks the field", strict.encode, less, arms)
    raises(RecordError, "lacks the field 'new' of the arm", strict.encode, context, ["a"])
    raises(RecordError, "'hue', which these features", strict.encode, context, {"a": {"new": True, "hue": 3}})


WRONG: dict[Any, list[Any]] = {
    Number("f", of="arm"): ["3", [1.0], math.inf, -math.inf, 10**400, 1e101, {}, b"1"],
    Flag("f", of="arm"): ["true", 2, 0.5, [], -1],
    Category("f", of="arm", levels=["a"]): [[1], {}, b"a", 1j, ("a",)],
    Hashed("f", of="arm", columns=3): [[1], {}, b"a"],
    Vector("f", of="arm", length=2): [[1.0], "ab", [1.0, math.inf], [[1.0, 2.0]], 3, ["a", "b"]],
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, held in WRONG.items() for value in held], ids=str
)
def test_what_is_no_value_of_a_kind_is_refused_by_name(field: Any, value: Any) -> None:
    features = Features(fields=[field])
    raises(RecordError, "the field 'f'", features.encode, {}, {"a": {"f": value}})
    raises(RecordError, "the field 'f'", features.encode_many, [{}] * 2, {"a": {"f": value}, "b": {"f": None}})


def test_what_is_clipped_is_counted() -> None:
    features = Features(fields=[Number("x", of="arm", mean=10, scale=2, clip=3, missing="error")])
    encoded = features.encode({}, {k: {"x": x} for k, x in enumerate([4.0, 16.0, 3.999, 16.001, -1e99, 1e99])})
    assert encoded.vectors[:, 0].tolist() == [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0]
    assert encoded.details == {("clipped", "x"): 4}
    taste = Features(fields=[Vector("t", of="arm", length=2, longest=5)])
    encoded = taste.encode({}, {"a": {"t": [3, 4]}, "b": {"t": [30, 40]}, "c": {"t": [1e99, 0]}})
    np.testing.assert_allclose(encoded.vectors[:, :2], [[0.6, 0.8], [0.6, 0.8], [1.0, 0.0]])
    assert encoded.counts == {"clipped": 2}


numbers = st.none() | st.floats(-1e100, 1e100) | st.integers(-(10**9), 10**9) | st.floats(-5, 5)


@given(st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=1, max_size=4), numbers, st.text(max_size=3))
@settings(max_examples=50)
def test_no_vector_is_longer_than_1(records: list[Any], age: Any, level: str) -> None:
    arms = {
        f"arm{k}": {"price": a, "brand": level, "taste": None if b is None or c is None else [b, c], "affinity": d}
        for k, (a, b, c, d) in enumerate(records)
    }
    encoded = MIXED.encode({"age": age, "device": level, "city": level, "member": age is None}, arms)
    assert np.linalg.norm(encoded.vectors, axis=1).max() <= 1.0 + 1e-12
    unit_ball(encoded.checked)


def test_an_arm_that_is_not_named_takes_a_spare_block_and_says_so() -> None:
    features = Features(arms=Arms(ids=["a", "b"], spare_arms=2))
    encoded = features.encode({}, ["a", "later", "even later", "last"])
    assert encoded.vectors.tolist() == [[1.0, 0, 0, 0], [0, 0, 1.0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]]
    assert encoded.counts == {"spare": 3, "shared": 2}
    assert features.encode({}, ["last", "b"]).vectors[0].tolist() == [0, 0, 0, 1.0]  # always the same one
    with pytest.raises(RecordError, match=r"the arm 'c' has no parameters.*spare_arms="):
        Features(arms=Arms(ids=["a", "b"])).encode({}, ["c"])


@pytest.mark.parametrize(
    ("context", "arms", "error"),
    [
        ([{}], ["a"], "a context must be a record"),
        ({}, ["a", "a"], "'a' is there twice"),
        ({}, "a", "arms must be a list of ids"),
        ({}, [True], "must be a text or a whole number"),
        ({}, [1.5], "must be a text or a whole number"),
        ({}, [2**63, "a"], "must have at most 64 bits"),
        ({}, [-(2**63) - 1], "must have at most 64 bits"),
        ({}, {"a": 3}, "must have a record"),
        ({}, [{"name": "a"}], "each arm needs an id"),
    ],
)
def test_requests_that_make_no_sense_are_refused(context: Any, arms: Any, error: str) -> None:
    raises(RecordError, error, Features(arms=Arms(ids=["a"], spare_arms=1)).encode, context, arms)
    raises(EmptySetError, None, MIXED.encode, {}, [])


@pytest.mark.parametrize(
    ("contexts", "arms", "error", "text"),
    [
        ([{}] * 3, [["x"], ["y"]], RecordError, "one list for all, or one for each of 3 contexts; got 2"),
        ({"age": 3}, ["x"], RecordError, r"Pass \[record\]"),
        ([{}, 3], ["x"], RecordError, "number 1 is a int"),
        (3, ["x"], RecordError, "table of pandas, polars or Arrow; got int"),
        ([], ["x"], EmptySetError, "at least one context"),
    ],
)
def test_many_requests_that_make_no_sense_are_refused(
    contexts: Any, arms: Any, error: type[Exception], text: str
) -> None:
    raises(error, text, MIXED.encode_many, contexts, arms)


def test_vectors_and_ids_do_not_hang_on_the_process() -> None:
    """Neither on the seed of Python's hashes, nor on the order of fields in a record."""
    script = (
        "import json, sys; import numpy as np; from reference.records import MIXED, SHARED, AFFINITIES, drawn\n"
        "rng = np.random.default_rng(3); requests = [drawn(rng) for _ in range(20)]\n"
        "rows = [MIXED.encode(c, a).vectors.tobytes().hex() for c, a in requests]\n"
        "print(json.dumps([MIXED.id, SHARED.id, AFFINITIES.id, rows]))"
    )
    env = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    there = json.loads(subprocess.run([sys.executable, "-c", script], env=env, check=True, capture_output=True).stdout)
    rng = np.random.default_rng(3)
    rows = [MIXED.encode(*drawn(rng)).vectors.tobytes().hex() for _ in range(20)]
    assert there == [MIXED.id, SHARED.id, AFFINITIES.id, rows]
    context, arms = drawn(np.random.default_rng(4))
    turned = {id: dict(reversed(record.items())) for id, record in arms.items()}  # noqa: A001
    same = MIXED.encode(dict(reversed(context.items())), turned).vectors
    np.testing.assert_array_equal(MIXED.encode(context, arms).vectors, same)


def test_the_ids_of_features_never_change() -> None:
    """Policies that were shipped carry them."""
    features = Features(fields=[Number("age", mean=40, scale=10)], arms=Arms(ids=["a"], spare_arms=1))
    assert features.id == "f8740fbcb0b7bed9be270d75cec9c253072101f6007c4b5d954063531f672ea7"


def test_features_are_values() -> None:
    again = Features(**{name: getattr(MIXED, name) for name in MIXED.__dataclass_fields__})
    assert again == MIXED
    assert hash(again) == hash(MIXED)
    assert pickle.loads(pickle.dumps(MIXED)) == MIXED
    assert SHARED != MIXED
    assert len(MIXED.columns) == MIXED.dim == len(set(MIXED.columns))
    assert repr(MIXED).startswith(f"<features {MIXED.id[:12]}: 8 fields, {MIXED.dim} columns")


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({"fields": [Number("a")]}, "must tell arms apart"),
        ({"fields": [Number("a", of="arm"), Flag("a", of="arm")]}, "'a' is there twice"),
        ({"fields": [Number("a", of="arm", alone=False)]}, "fields must be used: 'a'"),
        ({"fields": [Number("a", of="arm")], "crossings": [("a", "b")]}, "fields must have 'b'"),
        ({"fields": [Number("a", of="arm")], "crossings": [("a", "a")]}, "pairs of names of two fields"),
        ({"fields": [Number("a", of="arm")], "crossings": ["ab"]}, "pairs of names of two fields"),
        ({"fields": [Number("a", of="arm"), Flag("b")], "crossings": [("a", "b"), ("b", "a")]}, "one is there twice"),
        ({"fields": ["a"]}, "fields must be of type Field"),
        ({"fields": "a"}, "fields must be a list"),
        ({"arms": ["a"]}, "of type Arms"),
        ({"arms": Arms(ids=["a"]), "absent": "ignore"}, "absent must be 'missing' or 'error'"),
        ({"arms": Arms(ids=["a"]), "extra": True}, "extra must be 'ignore' or 'error'"),
        ({"arms": Arms(ids=["a"], own=["b"])}, "fields must have 'b'"),
        (
            {"fields": [Hashed("a", columns=100), Hashed("b", of="arm", columns=100)], "crossings": [("a", "b")]},
            "dim must be",
        ),
    ],
)
def test_descriptions_that_make_no_sense_are_refused(parts: dict[str, Any], error: str) -> None:
    raises(ParameterError, error, Features, **parts)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Number("a", scale=0), "scale of the field 'a'"),
        (lambda: Number("a", mean=math.nan), "mean of the field 'a'"),
        (lambda: Number("a", clip=0), "clip of the field 'a'"),
        (lambda: Number("", clip=1), "name must be a text"),
        (lambda: Number("a", of="user"), "of of the field 'a' must be 'context' or 'arm' or 'both'"),
        (lambda: Number("a", missing="zero"), "missing of the field 'a' must be 'own' or 'error'"),
        (lambda: Number("a", of="arm", key="b_{arm}"), "Set of = 'both'"),
        (lambda: Category("a", levels=[]), "levels of the field 'a'"),
        (lambda: Category("a", levels=["3", 3]), "'3' is there twice"),
        (lambda: Category("a", levels=["3"], unknown="error", missing="unknown"), "there is no such column"),
        (lambda: Category("a", levels=["x" * 129]), "at most 128 characters"),
        (lambda: Hashed("a", columns=0), "columns of the field 'a'"),
        (lambda: Vector("a", length=10**9), "length of the field 'a'"),
        (lambda: Vector("a", length=2, longest=0), "longest of the field 'a'"),
        (
            lambda: Flag("a", alone=1),  # type: ignore[arg-type]
            "alone of the field 'a'",
        ),
        (lambda: Arms(ids=["a"], level=False), "own of the arms"),
        (lambda: Arms(ids=["a"], spare_arms=-1), "spare_arms of the arms"),
        (lambda: Arms(ids="ab"), "ids of the arms must be a list"),
    ],
)
def test_fields_and_arms_that_make_no_sense_are_refused(make: Any, error: str) -> None:
    raises(ParameterError, error, make)
