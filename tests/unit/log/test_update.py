import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from rareswitch.engine import make_engine
from rareswitch.errors import BatchError, FileFormatError, MissingExtraError
from rareswitch.learner import summary_to_bytes
from rareswitch.log import Deployment, find_parts, log_schema, update
from reference.logs import Row, messy, played, recount, write_rows

OTHERS = ["f" * 64, "e" * 64]
LEARNERS: dict[str, dict[str, Any]] = {
    "foresight": {"dim": 3, "horizon": 2000, "grid": [60, 400, 1000, 2000]},
    "foresight-intercept": {"dim": 2, "horizon": 2000, "grid": [60, 400, 1000, 2000], "intercept": True},
    "batch-linucb-kw": {"dim": 3, "arms": 5, "horizon": 2000, "noise": 0.5},
    "batch-linucb-dg-certified": {"dim": 3, "arms": 5, "horizon": 2000, "noise": 0.1, "confidence": 0.3},
}


def begun(name: str) -> Deployment:
    return Deployment.begin(name.removesuffix("-intercept"), **LEARNERS[name])


def second(name: str) -> Deployment:
    """A deployment in its second batch, so that it has an earlier policy."""
    first = begun(name)
    summary = recount([played(first)], first).summary
    assert summary is not None
    return first.advance(summary)


def write_log(folder: Path, parts: Sequence[Sequence[Row]], dim: int, schema: Any = None) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    for k, rows in enumerate(parts):
        write_rows(folder / f"part-{k:03d}.parquet", rows, dim, schema)
    return [str(folder / "part-*.parquet")]


def counts(report: Any) -> dict[str, Any]:
    return {name: value for name, value in report.as_dict().items() if name not in ("seconds", "size")}


def in_thirds(rows: list[Row]) -> list[list[Row]]:
    cut = len(rows) // 3
    return [rows[:cut], rows[cut : 2 * cut], rows[2 * cut :]]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_clean_log_gives_the_policy_that_is_learned_in_process(name: str, tmp_path: Path) -> None:
    here = begun(name)
    for batch in range(3):
        parts = in_thirds(played(here))
        done = update(here, write_log(tmp_path / str(batch), parts, here.learner.dim))
        expected = recount(parts, here)
        assert expected.summary is not None
        assert done.deployment.policy.id == here.advance(expected.summary).policy.id
        assert summary_to_bytes(done.deployment.summaries[-1]) == summary_to_bytes(expected.summary)
        assert counts(done.report) == expected.counts
        assert done.report.used == done.report.rows == here.learner.stop - here.learner.start
        assert done.report.absent_sets == done.report.absent == 0
        here = done.deployment
    assert here.learner.updates == 4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", LEARNERS)
def test_everything_that_befalls_a_log_is_counted_and_handled(name: str, seed: int, tmp_path: Path) -> None:
    here = second(name)
    parts = messy(played(here, everywhere=seed == 2), [here.policies[0].id, *OTHERS], seed=seed)
    done = update(here, write_log(tmp_path, parts, here.learner.dim), incomplete=True)
    expected = recount(parts, here)
    assert counts(done.report) == expected.counts
    assert all(
        done.report.as_dict()[what]
        for what in ("unrewarded", "surplus", "conflicting", "outside", "earlier", "foreign", "absent", "empty_parts")
    )
    assert done.report.absent_sets > 0 or "kw" in name
    assert expected.summary is not None
    assert summary_to_bytes(done.deployment.summaries[-1]) == summary_to_bytes(expected.summary)


def test_it_does_not_matter_in_how_many_reads_a_part_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches of rows, small pieces of sets, small windows of repeated decisions."""
    here = second("foresight")
    parts = messy(played(here, everywhere=True), [here.policies[0].id, *OTHERS], seed=7)
    log = write_log(tmp_path, parts, 3)
    whole = update(here, log, incomplete=True)
    monkeypatch.setattr("rareswitch.log.parts.ROWS", 7)
    monkeypatch.setattr("rareswitch.log.offers._BYTES", 1)
    monkeypatch.setattr("rareswitch.log.marks.PAGE", 2)
    monkeypatch.setattr("rareswitch.log.reduction.PAGE", 2)
    monkeypatch.setattr("rareswitch.log.reduction._GATHERED", 1)
    expected = recount(parts, here, batch=7)
    steps: list[tuple[int, int]] = []
    done = update(here, log, incomplete=True, progress=lambda *step: steps.append(step))
    assert counts(done.report) == expected.counts == counts(whole.report)
    assert len(steps) > 3 * len(parts)
    assert steps[-1][0] == steps[-1][1]
    (one,), (other,) = (found.deployment.summaries[-1].stats for found in (whole, done))
    np.testing.assert_allclose(one.gram, other.gram, rtol=1e-12)
    np.testing.assert_allclose(one.moment, other.moment, rtol=1e-12)
    assert one.count == other.count


def test_rows_are_summed_in_batches_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = second("foresight")
    parts = in_thirds(played(here))
    monkeypatch.setattr("rareswitch.log.parts.ROWS", 7)
    done = update(here, write_log(tmp_path, parts, 3))
    expected = recount(parts, here, batch=7).summary
    assert expected is not None
    assert summary_to_bytes(done.deployment.summaries[-1]) == summary_to_bytes(expected)


@pytest.mark.parametrize("engine", ["serial:2", "processes:2", "dask:2"])
def test_every_engine_learns_the_same_policy(engine: str, tmp_path: Path) -> None:
    here = second("foresight")
    parts = messy(played(here), [here.policies[0].id, *OTHERS], seed=5, parts=9)
    log = write_log(tmp_path, parts, 3)
    serial = update(here, log, incomplete=True)
    with make_engine(engine) as there:
        done = update(here, log, engine=there, incomplete=True)
        with pytest.raises(BatchError, match="the batch is not complete"):
            update(here, log, engine=there)
        write_rows(tmp_path / "part-000.parquet", [replace(parts[0][0], propensity=2.0, policy=here.policy.id)], 3)
        with pytest.raises(FileFormatError, match=r"part-000.parquet: row 0 .* has the propensity 2.0"):
            update(here, log, engine=there)
    assert done.deployment.policy.id == serial.deployment.policy.id
    assert counts(done.report) == counts(serial.report)


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
    with pytest.raises(FileFormatError, match=r"none-\*.parquet: no file matches this pattern"):
        find_parts(["none-*.parquet"])
    with pytest.raises(FileFormatError, match=r"c: a folder; name the files in it, as c/\*.parquet"):
        find_parts(["c"])


def test_a_part_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    here = begun("foresight")
    parts = in_thirds(played(here))
    log = write_log(tmp_path, parts, 3)
    clean = update(here, log)
    shutil.copy(tmp_path / "part-001.parquet", tmp_path / "part-001-again.parquet")
    done = update(here, log)
    assert (done.report.surplus, done.report.used) == (len(parts[1]), clean.report.used)
    assert (done.report.conflicting, done.report.sets) == (0, clean.report.sets)
    np.testing.assert_allclose(
        done.deployment.summaries[-1].stats[0].gram, clean.deployment.summaries[-1].stats[0].gram, rtol=1e-12
    )


def test_parts_without_repeated_decisions_are_read_once(tmp_path: Path) -> None:
    here = begun("foresight")
    parts = in_thirds(played(here))
    parts[2].append(parts[0][0])
    with make_engine("serial") as engine:
        done = update(here, write_log(tmp_path, parts, 3), engine=engine)
    assert done.report.surplus == 1
    assert engine.executions == 3 + 2


def test_parts_of_other_writers_are_read(tmp_path: Path) -> None:
    """Lists of any kind, plain strings, more columns, other orders and row groups."""
    here = begun("foresight")
    rows = played(here)
    expected = update(here, write_log(tmp_path / "own", [rows], 3)).deployment.policy.id
    fields = {
        "note": pa.string(),
        "contexts": pa.large_list(pa.float64()),
        "reward": pa.float64(),
        "features": pa.list_(pa.float64()),
        "policy": pa.string(),
        "decision": pa.int64(),
        "propensity": pa.float64(),
    }
    columns = {name: [getattr(row, name, "?") for row in rows] for name in fields}
    for k, kinds in enumerate(
        (fields, fields | {"features": pa.large_list(pa.float64()), "policy": pa.large_string()})
    ):
        path = tmp_path / f"{k}.parquet"
        parquet.write_table(pa.table(columns, schema=pa.schema(kinds)), path, compression="zstd", row_group_size=17)
        stored = update(here, [path])
        assert counts(stored.report)["used"] == len(rows)
        np.testing.assert_allclose(
            stored.deployment.summaries[0].stats[0].gram,
            update(here, [tmp_path / "own" / "part-000.parquet"]).deployment.summaries[0].stats[0].gram,
        )
    parquet.write_table(pa.table(columns, schema=pa.schema(fields)), tmp_path / "plain.parquet", store_schema=False)
    assert update(here, [tmp_path / "plain.parquet"]).deployment.policy.id == expected


def test_contexts_that_are_not_sampled_are_ignored(tmp_path: Path) -> None:
    here = second("foresight")
    rows = played(here)
    sampled = here.learner.sampled(np.array([row.decision for row in rows]))
    odd = [row if s else replace(row, contexts=(1.0, 2.0)) for row, s in zip(rows, sampled, strict=True)]
    assert 0 < sampled.sum() < len(rows)
    learned = [
        update(here, write_log(tmp_path / name, [part], 3)).deployment.policy.id
        for name, part in (("rows", rows), ("odd", odd))
    ]
    assert learned[0] == learned[1]


def test_a_learner_without_a_sample_needs_no_contexts(tmp_path: Path) -> None:
    here = begun("batch-linucb-kw")
    schema = pa.schema([field for field in log_schema(3) if field.name != "contexts"])
    done = update(here, write_log(tmp_path, [played(here)], 3, schema))
    assert (done.report.sets, done.report.absent_sets) == (0, 0)


def test_the_last_batch_ends_the_run(tmp_path: Path) -> None:
    here = Deployment.begin("foresight", dim=2, horizon=60, grid=[20, 60])
    for batch in range(2):
        assert not here.learner.done
        here = update(here, write_log(tmp_path / str(batch), [played(here)], 2)).deployment
    assert here.learner.done
    assert here.policy.id == here.policies[-1].id
    with pytest.raises(BatchError, match="this run is over"):
        update(here, [str(tmp_path / "1" / "part-*.parquet")])


def test_many_other_policies_are_counted_together(tmp_path: Path) -> None:
    here = begun("foresight")
    rows = played(here)
    strangers = [replace(rows[0], policy=f"{k:064d}") for k in range(150)]
    done = update(here, write_log(tmp_path, [rows, strangers], 3))
    assert len(done.report.foreign) == 101
    assert sum(done.report.foreign.values()) == 150
    assert done.report.foreign[""] == 50


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"policy": "f" * 64}, r"none of the 60 rows is of the current policy .*; they are of ffffffffffff…\. Name"),
        ({"reward": None}, "none of the decisions 0 to 59 that count for foresight has a reward"),
        ({"contexts": None}, "foresight plans with the context sets of 60 of these decisions, and the log has none"),
        ({"contexts": ()}, "foresight plans with the context sets of 60 of these decisions, and the log has none"),
    ],
)
def test_a_log_that_cannot_be_learned_from_is_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    here = begun("foresight")
    rows = [replace(row, **change) for row in played(here)]
    with pytest.raises(BatchError, match=words):
        update(here, write_log(tmp_path, in_thirds(rows), 3))


def test_rows_of_earlier_policies_alone_are_named_as_such(tmp_path: Path) -> None:
    here = second("foresight")
    log = write_log(tmp_path, [played(begun("foresight"))], 3)
    with pytest.raises(BatchError, match=rf"of {here.policies[0].id[:12]}… \(policy 1 of this deployment\)\. Name"):
        update(here, log)
    write_rows(tmp_path / "part-000.parquet", [], 3)
    with pytest.raises(BatchError, match="the log has no rows, in 1 parts"):
        update(here, log)


def test_a_batch_that_is_not_complete_is_refused(tmp_path: Path) -> None:
    here = second("foresight")
    rows = played(here)
    start, stop = here.learner.start, here.learner.stop
    kept = [row for row in rows if row.decision % 10 and row.decision > start + 30]
    outside = replace(rows[0], decision=stop)
    log = write_log(tmp_path, [[outside, *kept]], 3)
    missing = stop - start - len(kept)
    words = (
        f"the batch is not complete: of its {stop - start} decisions, {start} to {stop - 1}, {missing} not in the log "
        f"({start}, {start + 1}, {start + 2}, {start + 3}, {start + 4} and {missing - 5} more). The log also has 1 "
        "rows of this policy with other decision numbers. Mend the log, or learn without these decisions: --incomplete"
    )
    with pytest.raises(BatchError) as caught:
        update(here, log)
    assert words in str(caught.value)
    assert update(here, log, incomplete=True).report.absent == missing


def test_rows_that_contradict_each_other_are_not_passed_over(tmp_path: Path) -> None:
    here = second("foresight")
    rows = played(here)
    foreign = replace(rows[0], policy=OTHERS[0])
    log = write_log(tmp_path, [rows, [replace(rows[7], reward=9.0), foreign]], 3)
    with pytest.raises(BatchError, match="1 with rows that contradict each other"):
        update(here, log)
    assert update(here, log, incomplete=True).report.conflicting == 1


ROW = Row(decision=3, policy="", features=(0.1, 0.2, 0.3), propensity=0.5, reward=1.0, contexts=(0.1, 0.2, 0.3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": (0.1, float("nan"), 0.3)}, "row 1 .* has features that are not finite"),
        ({"features": (0.1, float("inf"), 0.3), "reward": None}, "row 1 .* has features that are not finite"),
        ({"reward": float("nan")}, "row 1 .* has the reward nan. Write null where"),
        ({"reward": float("-inf")}, "row 1 .* has the reward -inf"),
        ({"propensity": 0.0}, "row 1 .* has the propensity 0.0. It must be above 0 and at most 1"),
        ({"propensity": 1.1}, "row 1 .* has the propensity 1.1"),
        ({"propensity": float("nan")}, "row 1 .* has the propensity nan"),
        ({"contexts": (0.1, 0.2)}, "row 1 .* has contexts of 2 numbers, which is no multiple of the 3 features"),
        ({"contexts": (0.1, 0.2, float("nan"))}, "row 1 .* has contexts that are not finite"),
    ],
)
@pytest.mark.parametrize("copies", [0, 1])
def test_a_bad_value_is_named_with_file_and_row(
    change: dict[str, Any], words: str, copies: int, tmp_path: Path
) -> None:
    here = begun("foresight")
    good = replace(ROW, policy=here.policy.id)
    rows = [replace(good, policy="x", propensity=7.0), replace(good, **change), *[good] * copies]
    write_log(tmp_path, [[good], rows], 3)
    with pytest.raises(FileFormatError, match=rf"part-001.parquet: {words}"):
        update(here, [tmp_path / "*.parquet"], incomplete=True)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("batch-linucb-kw", {"features": (1.0, 1.0, 0.0)}, "has a vector of length 1.41421. batch-linucb-kw is for"),
        ("batch-linucb-dg-certified", {"contexts": (1.0, 1.0, 0.0)}, "has a vector of length 1.41421"),
        ("batch-linucb-dg-certified", {"contexts": (0.1,) * 18}, "offers 6 arms. The learner is for at most 5"),
    ],
)
def test_what_a_learner_is_not_made_for_is_named(name: str, change: dict[str, Any], words: str, tmp_path: Path) -> None:
    here = begun(name)
    row = replace(ROW, policy=here.policy.id, **change)
    with pytest.raises(FileFormatError, match=rf"part-000.parquet: row 0 \(the first is 0\) {words}"):
        update(here, write_log(tmp_path, [[row]], 3), incomplete=True)


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("decision", pa.int32(), "column 'decision' must be int64; it is int32. Cast it"),
        ("policy", pa.binary(), "column 'policy' must be string, or a dictionary of strings; it is .*binary"),
        (
            "features",
            pa.list_(pa.float32()),
            r"column 'features' must be fixed_size_list<double>\[3\], or list<double>",
        ),
        ("features", pa.float64(), "column 'features' must be"),
        ("features", pa.list_(pa.float64(), 2), "the learner is for 3 features, and column 'features' has 2"),
        ("propensity", pa.float32(), "column 'propensity' must be double; it is float"),
        ("reward", pa.int64(), "column 'reward' must be double; it is int64"),
        ("contexts", pa.string(), "column 'contexts' must be list<double>; it is string"),
        (
            "decision",
            None,
            "a log needs .*; here decision is missing. It has policy, features, propensity, reward, contexts",
        ),
        ("policy", pa.int64(), "column 'policy' must be string, or a dictionary of strings; it is int64"),
        ("policy", pa.list_(pa.string()), "column 'policy' must be string, or a dictionary of strings; it is list"),
        ("policy", None, "a log needs the columns .*; here policy is missing"),
        ("features", None, "a log needs the columns .*; here features is missing"),
        ("reward", None, "a log needs the columns .*; here reward is missing"),
    ],
)
def test_other_columns_are_refused(name: str, kind: Any, words: str, tmp_path: Path) -> None:
    here = begun("foresight")
    fields = [pa.field(f.name, kind if f.name == name else f.type) for f in log_schema(3) if f.name != name or kind]
    parquet.write_table(pa.schema(fields).empty_table(), tmp_path / "p.parquet")
    with pytest.raises(FileFormatError, match=rf"p.parquet: {words}"):
        update(here, [tmp_path / "p.parquet"])


def test_nulls_and_lists_of_other_lengths_are_named(tmp_path: Path) -> None:
    here = begun("foresight")
    rows = [replace(ROW, policy=here.policy.id, decision=k) for k in range(5)]
    loose = pa.schema(
        [pa.field(f.name, pa.list_(pa.float64()) if f.name == "features" else f.type) for f in log_schema(3)]
    )
    for change, words in (
        ({"decision": None}, "has no decision. Only rewards may be missing"),
        ({"policy": None}, "has no policy"),
        ({"features": None}, "has no features"),
        ({"propensity": None}, "has no propensity"),
        ({"features": (1.0, 2.0)}, "has 2 features. The learner is for 3"),
        ({"features": (1.0, None, 2.0)}, "has a null among its features"),
    ):
        bad: Any = change
        write_log(tmp_path, [[*rows[:3], replace(rows[3], **bad), rows[4]]], 3, loose)
        with pytest.raises(FileFormatError, match=rf"part-000.parquet: row 3 \(the first is 0\) {words}"):
            update(here, [tmp_path / "*.parquet"], incomplete=True)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    here = begun("foresight")
    rows = [replace(row, decision=k) for k, row in enumerate(played(here) * 40)]
    write_log(tmp_path, [rows], 3)
    path = tmp_path / "part-000.parquet"
    data = path.read_bytes()
    for harm in (b"", data[:100], data[: len(data) // 2], data[:-1], b"PAR1" + bytes(100), b"decision,policy\n1,2\n"):
        path.write_bytes(harm)
        words = r"the file is empty \(0 bytes\)" if not harm else "not a readable Parquet file .* write the part anew"
        with pytest.raises(FileFormatError, match=rf"part-000.parquet: {words}"):
            update(here, [path])


def test_a_bit_that_flipped_is_noticed(tmp_path: Path) -> None:
    """Pages of our writer have checksums; a flipped bit of a feature would pass for another number."""
    from rareswitch.log import write_part

    here = begun("foresight")
    path = tmp_path / "p.parquet"
    features = np.random.default_rng(1).standard_normal((60, 3))
    write_part(
        path,
        policy_id=here.policy.id,
        decisions=np.arange(60),
        features=features,
        propensities=np.ones(60),
        rewards=np.zeros(60) + 0.5,
        contexts={0: features},
    )
    data = bytearray(path.read_bytes())
    at = data.find(features[20, 1].tobytes())
    assert at > 0
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"p.parquet: not a readable Parquet file .*(CRC|crc|checksum)"):
        update(here, [path])


def test_a_part_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    here = begun("foresight")
    rows = played(here)
    log = write_log(tmp_path, [rows, rows[:5]], 3)

    def meddle(done: int, total: int) -> None:
        if done == 2:
            write_rows(tmp_path / "part-001.parquet", rows[:6], 3)

    with pytest.raises(FileFormatError, match=r"part-001.parquet: it changed while it was read"):
        update(here, log, progress=meddle)


def test_without_pyarrow_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "p.parquet").touch()
    with pytest.raises(MissingExtraError, match=r"pip install 'rareswitch\[parquet\]'"):
        update(begun("foresight"), [tmp_path / "p.parquet"])
