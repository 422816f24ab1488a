import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from rareswitch.errors import ColumnWarning, FileFormatError, InputError, ParameterError, RareswitchError, RecordError
from rareswitch.features import Arms, Category, Features, Number
from rareswitch.log import from_frame, read, read_all, read_csv, write_csv
from reference.logged import log_of
from reference.refusals import raises

GOOD = "id,arm,reward,propensity,offered\n1,a,1,0.5,a|b\n2,b,,0.25,b|c|d\n"


def written(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text, newline="")
    return path


def test_what_is_offered_chosen_and_earned(tmp_path: Path) -> None:
    log = read_csv(written(tmp_path, GOOD))
    assert log.arms == ("a", "b", "c", "d")
    assert log.available.tolist() == [[True, True, False], [True, True, True]]
    assert log.codes.tolist() == [[0, 1, -1], [1, 2, 3]]
    assert log.arm_indices.tolist() == [0, 0]
    assert log.ids[:, 0].tolist() == [1, 2]
    assert np.isnan(log.rewards).tolist() == [False, True]


def test_columns_of_other_names_all_arms_and_times(tmp_path: Path) -> None:
    text = "when,item,click,p\n2019-11-24 00:01:03.979311+00:00,10,1,0.5\n2019-11-24T01:01:03.979311+01:00,9,0,0.25\n"
    log = read_csv(
        written(tmp_path, text), columns={"arm": "item", "reward": "click", "propensity": "p", "time": "when"}
    )
    assert log.arms == ("9", "10"), "numbers are in their order"
    assert log.arm_indices.tolist() == [1, 0]
    assert log.times.tolist() == [1574553663.979311] * 2


def test_a_column_that_is_misspelt_and_not_used_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "arm,reward,propensity,polcy,slot\na,1,1,first,2\na,0,1,second,3\n")
    words = r"the column 'polcy' is not used, and no column is policy.*\(--columns policy=polcy\)"
    with pytest.warns(ColumnWarning, match=words):
        assert len(read_csv(path).batch_names) == 1
    assert read_csv(path, columns={"policy": "polcy"}).batch_names == ("first", "second")
    assert len(read_csv(path, columns={"policy": None}).batch_names) == 1


def test_policies_are_batches_in_the_order_in_which_they_come(tmp_path: Path) -> None:
    text = "arm,reward,propensity,policy\na,1,1,second\na,1,1,first\na,1,1,second\n"
    log = read_csv(written(tmp_path, text))
    assert log.batch_names == ("second", "first")
    assert log.batches.tolist() == [0, 1, 0]


def test_rows_are_taken_by_values(tmp_path: Path) -> None:
    text = "arm,reward,propensity,position\na,1,0.5,1\nb,2,0.5,2\nc,3,0.5,3\n"
    path = written(tmp_path, text)
    assert read_csv(path, where={"position": [1, 3]}).rewards.tolist() == [1.0, 3.0]
    assert read_csv(path, where={"position": 2}).arms == ("a", "b", "c"), "all arms of the file could be chosen"
    raises(ParameterError, "none has position = 4", read_csv, path, where={"position": 4})


def test_other_columns_become_vectors(tmp_path: Path) -> None:
    features = Features(
        fields=[Number("age", mean=40, scale=10), Category("device", levels=["ios", "web"]), Number("price", of="arm")],
        arms=Arms(ids=["a", "b"], own=["age"]),
    )
    text = "arm,reward,propensity,age,device\na,1,0.5,30,ios\nb,0,0.5,,tv\n"
    records = [{"id": "a", "price": 1.0}, {"id": "b", "price": 2.0}]
    log = read_csv(written(tmp_path, text), features=features, arms=records)
    users: list[dict[str, Any]] = [{"age": 30.0, "device": "ios"}, {"age": None, "device": "tv"}]
    assert log.contexts.tolist() == features.encode_many(users, records).vectors.tolist()
    raises(ParameterError, "none of 'b'", read_csv, written(tmp_path, text), features=features, arms=records[:1])


def test_estimated_propensities_are_marked(tmp_path: Path) -> None:
    path = written(tmp_path, "arm,reward,position\na,1,1\na,0,1\nb,0,1\nb,0,2\n")
    raises(FileFormatError, "propensities='estimate'", read_csv, path)
    log = read_csv(path, propensities="estimate", within=["position"])
    assert log.propensities.tolist() == pytest.approx([3 / 5, 3 / 5, 2 / 5, 2 / 3])
    assert log.estimated == "arm frequencies within each policy and position, smoothing 1"
    write_csv(tmp_path / "again.csv", log)
    assert read_csv(tmp_path / "again.csv").estimated == log.estimated
    raises(ParameterError, "within", read_csv, path, within=["position"])


ROWS = {
    "item": ["a", "b", "a"],
    "click": [1.0, None, 0.0],
    "p": [0.5, 0.25, 0.5],
    "when": [datetime(2026, 11, 16, 5, tzinfo=UTC), None, datetime(2026, 11, 16, 5, 0, 0, 250_000, tzinfo=UTC)],
    "x": [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]],
    "arms": [["a", "b"], ["b", "c"], ["a"]],
}
NAMES = {"arm": "item", "reward": "click", "propensity": "p", "time": "when", "features": "x", "offered": "arms"}


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "records", "parquet"])
def test_frames_and_foreign_parquet_are_read_alike(kind: str, tmp_path: Path) -> None:
    if kind == "parquet":
        parquet.write_table(pa.table(ROWS), tmp_path / "log.parquet")
        log = read_all(read(tmp_path / "log.parquet", columns=NAMES))
    else:
        records = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
        makers: dict[str, Any] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
        log = from_frame(makers[kind](ROWS) if kind in makers else records, columns=NAMES)
    assert log.chosen_names == ["a", "b", "a"]
    assert log.available.sum(axis=1).tolist() == [2, 2, 1]
    assert log.rewards.tolist() == pytest.approx([1.0, np.nan, 0.0], nan_ok=True)
    assert log.times.tolist() == pytest.approx([1794805200.0, np.nan, 1794805200.25], nan_ok=True)
    assert log.features.tolist() == ROWS["x"]


def test_a_frame_is_encoded_with_the_records_of_its_arms() -> None:
    features = Features(fields=[Number("age"), Number("price", of="arm")], arms=Arms(ids=["a", "b"]))
    frame = pl.DataFrame({"arm": ["a", "b"], "reward": [1, 0], "propensity": [0.5, 0.5], "age": [1.0, 2.0]})
    arms = pd.DataFrame({"id": ["a", "b"], "price": [3.0, 4.0]})
    log = from_frame(frame, features=features, arms=arms)
    expected = features.encode_many([{"age": 1.0}, {"age": 2.0}], {"a": {"price": 3.0}, "b": {"price": 4.0}})
    assert log.contexts.tolist() == expected.vectors.tolist()
    with pytest.raises(RecordError, match=r"each arm needs an id: .*'id'"):
        from_frame(frame, features=features, arms=arms.drop(columns="id"))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"arms": "item"}, "columns must name columns by their roles, id, time, .*; got 'arms'"),
        ({"arm": None}, "columns must name one for arm; got None"),
        (
            {"arm": "thing"},
            r"frame: there is no column 'thing'; it has item, .* columns={'arm': …} \(--columns arm=…\)",
        ),
        (NAMES | {"reward": "when"}, "frame, row 1: the column 'when' must hold finite numbers; got '2026-11-16T05"),
        (NAMES | {"reward": "x"}, r"frame, row 1: the column 'x' must hold finite numbers; got \[1.0, 2.0\]"),
        (NAMES | {"features": "item"}, "frame, row 1: item must be a list, or JSON"),
    ],
)
def test_columns_that_cannot_be_are_refused(columns: dict[str, str | None], expected: str) -> None:
    raises(InputError, expected, from_frame, pa.table(ROWS), columns=columns)


HOSTILE = {
    "empty": ("", "it is empty"),
    "names alone": ("arm,reward,propensity\n", "no rows"),
    "a short row": ("arm,reward,propensity\na,1,0.5\nb,1\n", "line 3: 2 cells"),
    "a long row": ("arm,reward,propensity\na,1,0.5,7\n", "line 2: 4 cells"),
    "an open quote": ('arm,reward,propensity\n"a,1,0.5\n', "line"),
    "two columns of a name": ("arm,reward,propensity,arm\na,1,0.5,b\n", "'arm' is there twice"),
    "no arm": ("reward,propensity\n1,0.5\n", "no column 'arm'"),
    "an empty arm": ("arm,reward,propensity\n,1,0.5\n", "line 2: the column 'arm' must not be empty"),
    "a word as reward": (
        "arm,reward,propensity\na,1,0.5\na,yes,0.5\n",
        "line 3: the column 'reward' must hold finite numbers; got 'yes'",
    ),
    "NaN as reward": (
        "arm,reward,propensity\na,nan,0.5\n",
        "line 2: the column 'reward' must hold finite numbers; got 'nan'",
    ),
    "infinite reward": ("arm,reward,propensity\na,inf,0.5\n", "line 2: the column 'reward'"),
    "reward beyond floats": ("arm,reward,propensity\na,1e400,0.5\n", "reward"),
    "NaN as propensity": ("arm,reward,propensity\na,1,NaN\n", "'propensity' must hold finite numbers"),
    "an empty propensity": ("arm,reward,propensity\na,1,\n", "line 2: the column 'propensity' must not be empty"),
    "a negative propensity": ("arm,reward,propensity\na,1,-0.5\n", "above 0 and at most 1"),
    "a propensity of 0": ("arm,reward,propensity\na,1,0\n", "above 0 and at most 1"),
    "a propensity above 1": ("arm,reward,propensity\na,1,1.5\n", "above 0 and at most 1"),
    "an arm that was not offered": (
        "arm,reward,propensity,offered\na,1,0.5,b|c\n",
        "line 2: the arm 'a' is none of those",
    ),
    "a baseline that was not": (
        "arm,reward,propensity,baseline\na,1,0.5,z\n",
        "line 2: the baseline 'z' is none of those",
    ),
    "the same id": (
        "id,arm,reward,propensity\n7,a,1,0.5\n8,a,1,0.5\n7,b,1,0.5\n",
        "ids must differ within a batch; rows [0, 2]",
    ),
    "an empty id": ("id,arm,reward,propensity\n,a,1,0.5\n", "line 2: the column 'id' must not be empty"),
    "a bad time": ("time,arm,reward,propensity\nsoon,a,1,0.5\n", "line 2: time must be a time"),
    "damaged vectors": ('arm,reward,propensity,contexts\na,1,0.5,"[1,[2]]"\n', "damaged"),
    "vectors that are no JSON": ("arm,reward,propensity,contexts\na,1,0.5,{\n", "must be a list, or JSON"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_wrong_is_told_with_its_line(kind: str, tmp_path: Path) -> None:
    text, expected = HOSTILE[kind]
    path = written(tmp_path, text)
    with pytest.raises(RareswitchError) as caught:
        read_csv(path)
    assert expected in str(caught.value)


def test_files_that_are_cut_short_or_no_text(tmp_path: Path) -> None:
    path = tmp_path / "log.csv.gz"
    write_csv(path, log_of(1020))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    raises(FileFormatError, "cut short", read_csv, path)
    path.write_bytes(b"arm,reward,propensity\n")
    raises(FileFormatError, "gzip", read_csv, path)
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 255
    path.write_bytes(bytes(damaged))
    raises(FileFormatError, None, read_csv, path)
    path.write_bytes(gzip.compress(b"\xff\xfe\x00"))
    raises(FileFormatError, "UTF-8", read_csv, path)
    raises(FileFormatError, "cannot be read", read_csv, tmp_path / "missing.csv")
    raises(FileFormatError, None, read_csv, tmp_path)


def test_the_same_log_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.csv.gz", "two.csv.gz"):
        write_csv(tmp_path / name, log_of(1022))
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()
