"""Files of runs: every change of them is noticed, and writers of one file all keep their runs."""

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from rareswitch.errors import FileFormatError
from rareswitch.lab import Run, load_runs, sweep
from rareswitch.lab.results import ROOM, add_runs, seal
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import BatchLinUCB

WORLD = make_world("gaussian", dim=2, arms=3, noise=0.5)


def run(seed: int, size: int = 5) -> Run:
    rng = np.random.default_rng(seed)
    return Run(
        learner="a",
        world="w",
        horizon=size,
        seed=seed,
        regret=float(rng.random()),
        policies=2,
        seconds=0.25,
        times=np.arange(1, size + 1),
        regrets=rng.random(size),
        batch_ends=np.array([2, size][: seed % 3]),
        survivors=np.array([1.5, 1.0][: seed % 3]),
        linear_regret=float(rng.random()) - 0.5,
    )


def same(one: dict[str, Run], other: dict[str, Run]) -> bool:
    """NaN is the same as NaN."""
    return list(one) == list(other) and all(
        np.array_equal(value, found := getattr(other[key], name)) or (value != value and found != found)
        for key in one
        for name, value in vars(one[key]).items()
    )


def test_what_is_added_is_there(tmp_path: Path) -> None:
    path, runs = tmp_path / "runs.parquet", {f"k{seed}": run(seed) for seed in range(4)}
    assert add_runs({}, path) == {}
    assert load_runs(path) == {}
    for key, one in runs.items():
        add_runs({key: one}, path)
    assert same(load_runs(path), runs)
    assert [entry.name for entry in tmp_path.iterdir()] == ["runs.parquet"]


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    add_runs({f"k{seed}": run(seed) for seed in range(3)}, path)
    data = path.read_bytes()
    for at in random.Random(1).sample(range(8 * len(data)), 400):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        path.write_bytes(changed)
        with pytest.raises(FileFormatError, match=r"results file|not one of runs"):
            load_runs(path)


@pytest.mark.parametrize("sealed", [False, True])
def test_files_of_earlier_formats_are_read_and_written_anew(tmp_path: Path, sealed: bool) -> None:
    """Two linucb runs of 4 decisions, as earlier versions wrote them: in the first, lists without an entry have no
    type and nothing is sealed; in neither is a linear regret known.
    """
    path, given = tmp_path / "runs.parquet", {f"k{seed}": run(3 * seed) for seed in range(2)}
    runs = {key: replace(one, linear_regret=np.nan) for key, one in given.items()}
    columns: dict[str, Any] = {"key": list(runs)}
    names = [name for name in vars(runs["k0"]) if name != "linear_regret"]
    columns |= {name: [getattr(one, name) for one in runs.values()] for name in names}
    columns = {name: [v.tolist() if hasattr(v, "tolist") else v for v in column] for name, column in columns.items()}
    first = {b"format": b"rareswitch-runs-2", b"seal": ROOM} if sealed else {b"format": b"rareswitch-runs-1"}
    parquet.write_table(pa.table(columns).replace_schema_metadata(first), path, compression="none")
    if sealed:
        path.write_bytes(seal(path.read_bytes()))
    assert same(load_runs(path), runs)
    assert same(add_runs({"k9": run(9)}, path), runs | {"k9": run(9)})
    assert parquet.read_schema(path).metadata[b"format"] == b"rareswitch-runs-3"
    assert same(load_runs(path), runs | {"k9": run(9)})
    if not sealed:
        parquet.write_table(pa.table({name: [] for name in columns}).replace_schema_metadata(first), path)
        assert load_runs(path) == {}


def test_linear_regrets_are_numbers_or_not_known(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    add_runs({"k": replace(run(1), linear_regret=np.nan)}, path)
    assert np.isnan(load_runs(path)["k"].linear_regret)
    add_runs({"k": replace(run(1), linear_regret=np.inf)}, path)
    with pytest.raises(FileFormatError, match="a finite regret at each of its times"):
        load_runs(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.drop_columns(["regret"]), "has a column 'regret', and this one has none"),
        (lambda table: table.set_column(5, "regret", pa.array(["many"])), "not a readable results file"),
        (lambda table: table.set_column(5, "regret", pa.array([None], pa.float64())), "'regret' .* one is missing"),
        (lambda table: table.set_column(9, "times", pa.array([[1, 2]])), "a finite regret at each of its times"),
        (lambda table: table.replace_schema_metadata({b"format": b"rareswitch-runs-4"}), "not one of runs"),
        (lambda table: table.set_column(9, "times", pa.array([np.zeros(5_000_000)])), "cannot hold"),
    ],
)
@pytest.mark.parametrize("with_seal", [True, False])
def test_other_tables_are_refused(tmp_path: Path, change: Any, words: str, with_seal: bool) -> None:
    path = tmp_path / "runs.parquet"
    add_runs({"k": run(1)}, path)
    table = parquet.read_table(path)
    form = {b"format": b"rareswitch-runs-3", b"seal": ROOM} if with_seal else {b"format": b"rareswitch-runs-1"}
    table = change(table.replace_schema_metadata(form))
    parquet.write_table(table, path)
    path.write_bytes(seal(path.read_bytes()) if with_seal and ROOM in path.read_bytes() else path.read_bytes())
    with pytest.raises(FileFormatError, match=words):
        load_runs(path)


def test_crafted_files_are_read_or_refused(tmp_path: Path) -> None:
    """Bits of the footer are flipped and the seal is made anew: Arrow must answer for them, and not die of them."""
    path, draw = tmp_path / "runs.parquet", random.Random(4)
    add_runs({f"k{seed}": run(seed) for seed in range(3)}, path)
    data, mark, told = path.read_bytes(), ROOM[:-64], 0
    footer = 8 * (len(data) - 8 - int.from_bytes(data[-8:-4], "little"))
    start = data.rindex(mark) + len(mark)
    data = data[:start] + ROOM[-64:] + data[start + 64 :]
    for at in draw.sample(range(footer, 8 * len(data)), 300):
        changed = data[: at // 8] + bytes([data[at // 8] ^ 1 << at % 8]) + data[at // 8 + 1 :]
        path.write_bytes(seal(changed) if ROOM in changed else changed)
        try:
            load_runs(path)
        except FileFormatError:
            told += 1
    assert told > 100


def test_writers_of_one_file_all_keep_their_runs(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"

    def add(writer: int) -> None:
        for k in range(10):
            add_runs({f"{writer} {k}": run(k)}, path)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert sorted(load_runs(path)) == sorted(f"{writer} {k}" for writer in range(4) for k in range(10))
    assert [entry.name for entry in tmp_path.iterdir()] == ["runs.parquet"]


def test_sweeps_into_one_file_all_keep_their_runs(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"

    def make(seen: int, world: World, horizon: int, seed: int) -> BatchLinUCB:
        if seed == seen:  # in the middle of the one, the other does all of its own
            sweep({"b": partial(make, -1)}, {"w": WORLD}, horizons=[20], seeds=range(3), path=path)
        return BatchLinUCB(dim=world.dim, arms=world.arms, horizon=horizon)

    sweep({"a": partial(make, 1)}, {"w": WORLD}, horizons=[20], seeds=range(3), path=path)
    assert len(load_runs(path)) == 6


def test_a_file_that_another_sweep_fills_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"

    def make(world: World, horizon: int, seed: int) -> BatchLinUCB:
        return BatchLinUCB(dim=world.dim, arms=world.arms, horizon=horizon)

    def other(world: World, horizon: int, seed: int) -> BatchLinUCB:
        if seed == 0 and len(load_runs(path)) == 0:
            sweep({"b": make}, {"w": WORLD}, horizons=[20], seeds=[1, 2], path=path)
        return make(world, horizon, seed)

    found = sweep({"b": other}, {"w": WORLD}, horizons=[20], seeds=range(3), path=path)
    assert (len(found.runs), found.resumed) == (3, 2)


def test_a_file_that_has_all_runs_need_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a folder that can only be read."""

    def uniform(world: World, horizon: int, seed: int) -> BatchLinUCB:
        return BatchLinUCB(dim=world.dim, arms=world.arms, horizon=horizon)

    given: Any = {"learners": {"a": uniform}, "worlds": {"w": WORLD}, "horizons": [50], "quiet": True}
    path = tmp_path / "runs"
    first = sweep(**given, seeds=[1], path=path)

    def refuse(*_: object) -> None:
        raise FileFormatError("cannot be written (Permission denied).")

    monkeypatch.setattr(sys.modules["rareswitch.lab.sweep"], "add_runs", refuse)
    again = sweep(**given, seeds=[1], path=path)
    assert (again.resumed, again.runs[0].regret) == (1, first.runs[0].regret)
    with pytest.raises(FileFormatError, match="Permission denied"):
        sweep(**given, seeds=[1, 2], path=path)
