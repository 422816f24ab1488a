import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from rareswitch.core import id_keys, make_executor
from rareswitch.errors import BatchError, FileFormatError
from rareswitch.learner import Summary, summaries_to_bytes
from rareswitch.log import ParquetLog, find_parts, log_schema, summarize
from rareswitch.log.parts import Block
from reference.logs import (
    Row,
    Run,
    assert_close,
    dealt,
    in_memory,
    messy,
    played,
    recount,
    update,
    write_log,
    write_rows,
)
from reference.refusals import raises

OTHERS = ["f" * 64, "e" * 64]
LEARNERS: dict[str, dict[str, Any]] = {
    "foresight": {"dim": 3, "horizon": 2000, "grid": [60, 400, 1000, 2000]},
    "foresight-intercept": {"dim": 2, "horizon": 2000, "grid": [60, 400, 1000, 2000], "intercept": True},
    "foresight-open": {"dim": 3},
    "linucb-grid": {"dim": 3, "arms": 5, "horizon": 2000, "policies": 5},
    "batch-linucb-kw": {"dim": 3, "arms": 5, "horizon": 2000, "noise": 0.5},
    "batch-linucb-dg-certified": {"dim": 3, "arms": 5, "horizon": 2000, "noise": 0.1, "confidence": 0.3},
}


def begun(name: str) -> Run:
    return Run.begin(name.removesuffix("-intercept").removesuffix("-open"), **LEARNERS[name])


def second(name: str, rows: list[Row] | None = None) -> Run:
    """A run in its second batch, so that it has an earlier policy."""
    first = begun(name)
    return first.advance(recount([played(first) if rows is None else rows], first).summary)


def summed(run: Run) -> bytes:
    return summaries_to_bytes(list(run.learned[-1]))


def in_thirds(rows: list[Row]) -> list[list[Row]]:
    cut = len(rows) // 3
    return [rows[:cut], rows[cut : 2 * cut], rows[2 * cut :]]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", LEARNERS)
def test_everything_that_befalls_a_log_is_counted_and_handled(name: str, seed: int, tmp_path: Path) -> None:
    first = begun(name)
    before = [replace(row, reward=None) if k % 5 == 0 else row for k, row in enumerate(played(first))]
    here = second(name, before)
    rows = messy(played(here, count=300, names="r" if seed == 1 else None), OTHERS, seed=seed)
    if seed < 2:  # the earlier batch comes again, with the rewards that were missing
        rows = [*rows, *dealt(played(first) + before, seed=seed, parts=2)]
    done = update(here, write_log(tmp_path, rows, here.learner.dim), conflicts=True)
    expected = recount(rows, here)
    assert done.counts == expected.counts
    assert all(done.counts[what] for what in ("copies", "conflicting", "foreign"))
    assert (done.counts["late"] == 2 * len(before)) == (seed < 2)
    assert any(part.rows == 0 for part in done.log.parts)
    assert summed(done.run) == summaries_to_bytes([expected.summary, *expected.late])
    assert done.run.policy.id == here.advance(expected.summary, late=expected.late).policy.id


@pytest.mark.parametrize("name", ["foresight", "batch-linucb-dg-certified"])
def test_many_rows_are_summed_where_they_are_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, several sweeps, small windows of repeated ids: the same counts, and sums but for rounding."""
    first = begun(name)
    here = second(name, [replace(row, reward=None) if k % 5 == 0 else row for k, row in enumerate(played(first))])
    parts = [*messy(played(here), OTHERS, seed=7), played(first)]
    log = write_log(tmp_path, parts, 3)
    expected = recount(parts, here)
    whole = update(here, log, conflicts=True)
    monkeypatch.setattr("rareswitch.log.parts.ROWS", 64)
    monkeypatch.setattr("rareswitch.log.batch_sums.GATHERED", 7)
    monkeypatch.setattr("rareswitch.log.parquet.SWEEP", 50)
    done = update(here, log, conflicts=True)
    assert done.counts == expected.counts == whole.counts
    for one, other in zip(done.run.learned[-1], [expected.summary, *expected.late], strict=True):
        assert_close(one, other)


def test_rows_are_summed_in_blocks_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = second("foresight")
    parts = in_thirds(played(here))
    monkeypatch.setattr("rareswitch.log.parts.ROWS", 64)
    monkeypatch.setattr("rareswitch.log.batch_sums.GATHERED", 7)
    done = update(here, write_log(tmp_path, parts, 3))
    blocks = [part[first : first + 64] for part in parts for first in range(0, len(part), 64)]
    by_part: dict[int, Summary] = {}
    for block in blocks:
        more = in_memory(here.learner, here.state, block)
        part = next(k for k, rows in enumerate(parts) if block[0] in rows)
        by_part[part] = by_part[part] + more if part in by_part else more
    total = by_part[0] + by_part[1] + by_part[2]
    assert summed(done.run) == summaries_to_bytes([total])


def numbered(rows: list[Row], ids: list[Any]) -> list[Row]:
    """Rows with other ids."""
    return [replace(row, id=one) for row, one in zip(rows, ids, strict=True)]


APART = (list(range(30)), list(range(40, 70)), list(range(100, 130)))


@pytest.mark.parametrize(
    ("ids", "copies"),
    [
        (APART, 0),
        ((APART[2], APART[0], APART[1]), 0),
        ((APART[0], list(range(29, 59)), APART[2]), 1),  # one id, at the ends of two ranges
        ((APART[0], list(range(28, 58)), APART[2]), 2),
        ((list(range(0, 300, 10)), APART[1], APART[2]), 6),  # one range holds the others
        ((list(range(0, 90, 3)), list(range(1, 91, 3)), APART[2]), 0),  # interleaved
        ((APART[0], [*range(40, 68), 69, 68], APART[2]), 0),
        ((APART[0], [*range(40, 69), 68], APART[2]), 1),  # one id twice in a row
        ((APART[0], [*range(41, 70), 41], APART[2]), 1),
        ((APART[0], [*range(30, 59), 29], APART[2]), 1),  # below its first id
        ((APART[0], APART[0], APART[2]), 30),
        ((APART[0], [f"{k}" for k in APART[0]], APART[2]), 0),  # no number is a string
        ((APART[0], [f"{k}" for k in APART[0]], [f"{k}" for k in range(29, 59)]), 1),
        (([f"a{k}" for k in range(30)], [f"b{k}" for k in range(30)], [f"c{k}" for k in range(30)]), 0),
    ],
)
def test_ids_that_occur_twice_are_found(
    ids: tuple[list[Any], ...], copies: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rareswitch.log.batch_sums.GATHERED", 7)
    monkeypatch.setattr("rareswitch.log.parts.ROWS", 64)
    here = begun("foresight")
    row = played(here, count=1)[0]
    parts = [numbered([row] * 30, part) for part in ids]
    done = update(here, write_log(tmp_path, parts, 3))
    assert (done.counts["copies"], done.counts["decided"]) == (copies, 90 - copies)
    assert done.counts == recount(parts, here).counts


@pytest.mark.parametrize("engine", ["serial", "processes:2"])
def test_every_engine_learns_the_same_policy(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = second("foresight")
    parts = [*messy(played(here), OTHERS, seed=5, parts=9), played(begun("foresight"))]
    log = write_log(tmp_path, parts, 3)
    with make_executor(engine) as there:
        for gathered in (1 << 16, 7):
            monkeypatch.setattr("rareswitch.log.batch_sums.GATHERED", gathered)
            serial, done = (update(here, log, executor=executor, conflicts=True) for executor in (None, there))
            assert done.run.policy.id == serial.run.policy.id
            assert done.counts == serial.counts
        raises(FileFormatError, "rows that contradict each other", update, here, log, executor=there)
        write_rows(tmp_path / "part-000.parquet", [replace(parts[0][0], propensity=2.0, policy=here.policy.id)], 3)
        raises(FileFormatError, r"part-000.parquet: row 0 .* has the propensity 2.0", update, here, log, executor=there)


def test_the_order_of_parts_is_that_of_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "a", "c/d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.parquet").touch()
    (tmp_path / ".a.parquet.17.tmp").touch()
    everything = [str(tmp_path / name) for name in ("a.parquet", "b.parquet", "c/d.parquet")]
    assert find_parts([tmp_path / "c/*.parquet", tmp_path / "b.parquet", tmp_path / "*.parquet"]) == everything
    assert find_parts([f"{tmp_path}/**/*.parquet"]) == everything
    monkeypatch.chdir(tmp_path)
    assert find_parts(["b.parquet", "./*.parquet", "c/../b.parquet"]) == everything[:2]
    raises(FileFormatError, r"none-\*.parquet: no file matches this pattern", find_parts, ["none-*.parquet"])
    raises(FileFormatError, r"c: a folder; name the files in it, as c/\*.parquet", find_parts, ["c"])


def test_late_rows_must_be_the_whole_batch(tmp_path: Path) -> None:
    here, old = second("foresight"), played(begun("foresight"))
    log = write_log(tmp_path, [played(here), old[:7]], 3)
    words = (
        r"batch 1 was learned from with 60 decisions, 60 of them rewarded; these rows have 7 and 7\. .*give all of them"
    )
    raises(BatchError, words, update, here, log)
    assert update(here, log, late=False).counts["late"] == 7
    more = [*old, replace(old[0], id=10**6, features=(0.1, 0.2, 0.3), contexts=None)]  # a row that had been lost
    done = update(here, write_log(tmp_path, [played(here), more], 3))
    assert done.run.state.past[0].decided == 61


@pytest.mark.parametrize("few", [True, False])
def test_a_window_lets_all_decisions_wait_equally_long(
    few: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not few:
        monkeypatch.setattr("rareswitch.log.batch_sums.GATHERED", 7)
    here, day = second("foresight"), 86_400.0
    draw = random.Random(1)
    rows = []
    for k, row in enumerate(played(here)):
        made = 1.7e9 + 100.0 * k
        waited = draw.choice([0.01, 0.1, 0.2]) * day
        rows.append(replace(row, time=made, reward_time=made + waited))
    rows = [replace(row, reward=None, reward_time=None) if k % 9 == 0 else row for k, row in enumerate(rows)]
    rows += [replace(row, reward=None, reward_time=None) for row in rows[::4]]
    parts = dealt(rows, seed=3, parts=3)
    expected = recount(parts, here, window=0.15 * day, now=max(row.time for row in rows if row.time is not None))
    log = write_log(tmp_path, parts, 3)
    done = update(here, log, window=0.15 * day)
    assert done.counts == expected.counts
    assert done.counts["waiting"]
    assert done.counts["expired"]
    if few:
        assert done.run.policy.id == here.advance(expected.summary).policy.id
    later = update(here, log, window=0.15 * day, now=1.9e9)
    assert (later.counts["waiting"], later.counts["expired"] > done.counts["expired"]) == (0, True)
    assert update(here, log).counts["used"] == later.counts["used"] + later.counts["expired"]


def test_a_window_needs_times(tmp_path: Path) -> None:
    here = begun("foresight")
    log = write_log(tmp_path / "none", [played(here)], 3)
    with pytest.raises(
        FileFormatError, match=r"part-000.parquet: row 0 .* has no time. An attribution window needs the column 'time'"
    ):
        update(here, log, window=60.0)
    rows = [replace(row, time=None if k == 7 else 5.0) for k, row in enumerate(played(here))]
    log = write_log(tmp_path / "some", [rows], 3)
    raises(FileFormatError, r"part-000.parquet: row 7 .* has no time", update, here, log, window=60.0)
    assert update(here, log).counts["used"] == 60


def test_parts_of_other_writers_are_read(tmp_path: Path) -> None:
    """Lists of any kind, plain strings, truth values, more columns, other orders and row groups."""
    here = begun("foresight")
    rows = [replace(row, id=f"{row.id}", reward=float((row.reward or 0.0) > 0.1)) for row in played(here)]
    expected = update(here, write_log(tmp_path / "own", [rows], 3)).run.policy.id
    fields = {
        "note": pa.string(),
        "contexts": pa.large_list(pa.float64()),
        "reward": pa.bool_(),
        "features": pa.list_(pa.float64()),
        "policy": pa.string(),
        "id": pa.string(),
        "propensity": pa.float64(),
    }
    columns = {name: [getattr(row, name, "?") for row in rows] for name in fields}
    columns["reward"] = [bool(row.reward) for row in rows]
    others = {"features": pa.large_list(pa.float64()), "policy": pa.large_string(), "id": pa.large_string()}
    coded = {"id": pa.dictionary(pa.int32(), pa.string()), "contexts": pa.list_(pa.float64(), 15)}
    for k, kinds in enumerate((fields, fields | others, fields | coded)):
        path = tmp_path / f"{k}.parquet"
        parquet.write_table(pa.table(columns, schema=pa.schema(kinds)), path, compression="zstd", row_group_size=17)
        assert update(here, [path]).run.policy.id == expected
    parquet.write_table(pa.table(columns, schema=pa.schema(fields)), tmp_path / "plain.parquet", store_schema=False)
    assert update(here, [tmp_path / "plain.parquet"]).run.policy.id == expected


@pytest.mark.filterwarnings("ignore::rareswitch.errors.LevelWarning")  # counts have one
@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.float32()])
def test_rewards_of_other_kinds_lose_nothing(kind: Any, tmp_path: Path) -> None:
    here = begun("foresight")
    rows = [replace(row, reward=None if k % 7 == 0 else float(k % 2)) for k, row in enumerate(played(here))]
    expected = update(here, write_log(tmp_path / "own", [rows], 3)).run.policy.id
    schema = pa.schema([pa.field(f.name, kind if f.name == "reward" else f.type) for f in log_schema(3)])
    given: Any = [replace(row, reward=None if row.reward is None else int(row.reward)) for row in rows]
    assert update(here, write_log(tmp_path / "other", [given], 3, schema)).run.policy.id == expected


@pytest.mark.parametrize(("reward", "kind"), [(2**53 + 1, pa.int64()), (-(2**62), pa.int64()), (2**63, pa.uint64())])
def test_whole_numbers_that_would_lose_digits_are_named(reward: int, kind: Any, tmp_path: Path) -> None:
    here = begun("foresight")
    schema = pa.schema([pa.field(f.name, kind if f.name == "reward" else f.type) for f in log_schema(3)])
    rows = [replace(ROW, policy=here.policy.id, id=k, reward=value) for k, value in enumerate([2**53, None, reward])]
    with pytest.raises(FileFormatError, match=f"row 2 .* has the reward {reward}. Beyond 2\\^53 whole numbers lose"):
        update(here, write_log(tmp_path, [rows], 3, schema))


def test_a_learner_without_a_sample_needs_no_contexts(tmp_path: Path) -> None:
    here = begun("batch-linucb-kw")
    schema = pa.schema([field for field in log_schema(3) if field.name != "contexts"])
    assert update(here, write_log(tmp_path, [played(here)], 3, schema)).counts["sets"] == 0


ROW = Row(id=3, policy="", features=(0.1, 0.2, 0.3), propensity=0.5, reward=1.0, contexts=(0.1, 0.2, 0.3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": -1}, "row 1 .* has a negative id"),
        ({"features": (0.1, float("nan"), 0.3)}, "row 1 .* has features that are not finite"),
        ({"features": (0.1, float("inf"), 0.3), "reward": None}, "row 1 .* has features that are not finite"),
        ({"features": (0.1, 1e200, 0.3)}, "row 1 .* has a number above 1e\\+100"),
        ({"reward": float("nan")}, "row 1 .* has the reward nan. Write null where"),
        ({"reward": float("-inf")}, "row 1 .* has the reward -inf"),
        ({"reward": 1e300}, "row 1 .* has a number above 1e\\+100. Its square cannot be summed"),
        ({"propensity": 0.0}, "row 1 .* has the propensity 0.0. It must be above 0 and at most 1"),
        ({"propensity": 1.1}, "row 1 .* has the propensity 1.1"),
        ({"propensity": float("nan")}, "row 1 .* has the propensity nan"),
        ({"contexts": (0.1, 0.2)}, "row 1 .* has contexts of 2 numbers, for arms of 3 features"),
        ({"contexts": ()}, "row 1 .* has contexts of 0 numbers, .* and null where they were not kept"),
        ({"contexts": (0.1, 0.2, float("nan"))}, "row 1 .* has contexts that are not finite"),
        ({"contexts": (0.1, None, 0.2)}, "row 1 .* has contexts that are not finite"),
    ],
)
@pytest.mark.parametrize("copies", [0, 1])
@pytest.mark.parametrize("few", [True, False])
def test_a_bad_value_is_named_with_file_and_row(
    change: dict[str, Any], words: str, copies: int, few: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not few:
        monkeypatch.setattr("rareswitch.log.batch_sums.GATHERED", 0)
    here = begun("foresight")
    good = replace(ROW, policy=here.policy.id)
    rows = [replace(good, policy="x", propensity=7.0), replace(good, **change), *[good] * copies]
    loose = pa.schema(
        [pa.field(f.name, pa.list_(pa.float64()) if f.name == "contexts" else f.type) for f in log_schema(3)]
    )
    write_log(tmp_path, [[replace(good, id=9)], rows], 3, loose)
    raises(FileFormatError, rf"part-001.parquet: {words}", update, here, [tmp_path / "*.parquet"], conflicts=True)


def test_strings_in_a_log_have_the_keys_that_they_have_in_memory(tmp_path: Path) -> None:
    draw = random.Random(1)
    names = [draw.choice("abä漢🙂0-") * size for size in range(1, 33)] + ["x" * 127, "x" * 128, "ä" * 64, "a\0", "a"]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        batch = pa.record_batch([pa.array(["", *names, "y"]).cast(kind)], names=["id"]).slice(1, len(names))
        np.testing.assert_array_equal(Block("p", np.arange(len(names)), batch).keys(), id_keys(names))


def test_ids_that_are_not_unicode_are_refused(tmp_path: Path) -> None:
    here = begun("foresight")
    rows = [replace(row, id=f"visit-{row.id}") for row in played(here)]
    log = write_log(tmp_path, [rows], 3)
    table = parquet.read_table(tmp_path / "part-000.parquet")
    bad = pa.array([b"\xff\xfe", *(str(row.id).encode() for row in rows[1:])]).view(pa.string())
    parquet.write_table(table.set_column(0, table.schema.field("id"), bad), tmp_path / "part-000.parquet")
    raises(FileFormatError, r"part-000.parquet: not a readable Parquet file \(.*UTF", update, here, log)


@pytest.mark.parametrize("bad", ["", "x" * 10_000_000, "ä" * 65])
def test_ids_that_cannot_be_used_are_named(bad: str, tmp_path: Path) -> None:
    here = begun("foresight")
    rows = [replace(row, id=f"{row.id}") for row in played(here)]
    rows[11] = replace(rows[11], id=bad)
    with pytest.raises(
        FileFormatError, match=r"part-000.parquet: row 11 .* has an id of \d+ bytes. A string as id has 1 to 128 bytes"
    ) as caught:
        update(here, write_log(tmp_path, [rows], 3))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("batch-linucb-kw", {"features": (1.0, 1.0, 0.0)}, "has a vector of length 1.41421. batch-linucb-kw is for"),
        ("batch-linucb-dg-certified", {"features": (1.0, 1.0, 0.0)}, "has a vector of length 1.41421"),
        ("batch-linucb-dg-certified", {"contexts": (1.0, 1.0, 0.0)}, "has a vector of length 1.41421"),
        ("batch-linucb-dg-certified", {"contexts": (0.1,) * 18}, "offers 6 arms. The learner is for at most 5"),
    ],
)
def test_what_a_learner_is_not_made_for_is_named(name: str, change: dict[str, Any], words: str, tmp_path: Path) -> None:
    here = begun(name)
    ids = range(20)  # half of them are sampled
    rows = [replace(ROW, id=k, policy=here.policy.id, **change) for k in ids]
    with pytest.raises(FileFormatError, match=rf"part-000.parquet: row \d+ \(the first is 0\) {words}"):
        update(here, write_log(tmp_path, [rows], 3))


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("id", pa.int32(), "column 'id' must be int64 or string; it is int32. Cast or rename it"),
        ("policy", pa.binary(), "column 'policy' must be string, or a dictionary of strings; it is .*binary"),
        (
            "features",
            pa.list_(pa.float32()),
            r"column 'features' must be fixed_size_list<double>\[3\], or list<double>",
        ),
        ("features", pa.list_(pa.float64(), 2), "the learner is for 3 features, and column 'features' has 2"),
        ("propensity", pa.float32(), "column 'propensity' must be double; it is float"),
        ("reward", pa.string(), "column 'reward' must be a number .* or bool; it is string"),
        ("contexts", pa.string(), "column 'contexts' must be list<double>; it is string"),
        ("time", pa.string(), "column 'time' must be a timestamp, or double in seconds; it is string"),
        ("id", None, "a log needs .*; here id is missing. It has policy, features, propensity, reward, contexts"),
    ],
)
def test_other_columns_are_refused(name: str, kind: Any, words: str, tmp_path: Path) -> None:
    here = begun("foresight")
    schema = log_schema(3, times=name == "time")
    fields = [pa.field(f.name, kind if f.name == name else f.type) for f in schema if f.name != name or kind]
    parquet.write_table(pa.schema(fields).empty_table(), tmp_path / "p.parquet")
    raises(FileFormatError, rf"p.parquet: {words}", update, here, [tmp_path / "p.parquet"])


def test_nulls_and_lists_of_other_lengths_are_named(tmp_path: Path) -> None:
    here = begun("foresight")
    rows = [replace(ROW, policy=here.policy.id, id=k) for k in range(5)]
    loose = pa.schema(
        [pa.field(f.name, pa.list_(pa.float64()) if f.name == "features" else f.type) for f in log_schema(3)]
    )
    for change, words in (
        ({"id": None}, "has no id. Only rewards and contexts may be missing"),
        ({"policy": None}, "has no policy"),
        ({"features": None}, "has no features"),
        ({"propensity": None}, "has no propensity"),
        ({"features": (1.0, 2.0)}, "has 2 features. The learner is for 3"),
        ({"features": (1.0, None, 2.0)}, "has features that are not finite"),
    ):
        bad: Any = change
        write_log(tmp_path, [[*rows[:3], replace(rows[3], **bad), rows[4]]], 3, loose)
        with pytest.raises(FileFormatError, match=rf"part-000.parquet: row 3 \(the first is 0\) {words}"):
            update(here, [tmp_path / "*.parquet"])


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    here = begun("foresight")
    rows = [replace(row, id=k) for k, row in enumerate(played(here) * 40)]
    write_log(tmp_path, [rows], 3)
    path = tmp_path / "part-000.parquet"
    data = path.read_bytes()
    for harm in (b"", data[:100], data[: len(data) // 2], data[:-1], b"PAR1" + bytes(100), b"id,policy\n1,2\n"):
        path.write_bytes(harm)
        words = r"the file is empty \(0 bytes\)" if not harm else "not a readable Parquet file .* write it anew"
        raises(FileFormatError, rf"part-000.parquet: {words}", update, here, [path])


def test_a_part_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    here = begun("foresight")
    rows = played(here)
    log = ParquetLog(write_log(tmp_path, [rows, rows[:5]], 3))
    write_rows(tmp_path / "part-001.parquet", rows[:6], 3)
    raises(FileFormatError, r"part-001.parquet: it changed while it was read", summarize, here.learner, here.state, log)
