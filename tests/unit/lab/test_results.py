"""Files of runs: every change of them is noticed, and writers of one file all keep their runs."""

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from rareswitch.errors import FileFormatError
from rareswitch.lab import Run, load_runs, sweep
from rareswitch.lab.sweep import add_runs
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import BatchLinUCB
from reference.refusals import raises
from reference.runs import run_of

WORLD = make_world("gaussian", dim=2, arms=3, noise=0.5)


def run(seed: int, size: int = 5) -> Run:
    rng = np.random.default_rng(seed)
    lists = {"batch_ends": np.array([2, size][: seed % 3]), "survivors": np.array([1.5, 1.0][: seed % 3])}
    curve = {"times": np.arange(1, size + 1), "regrets": rng.random(size)}
    return run_of("a", "w", seed, float(rng.random()), size, **lists, **curve, unlearnable=float(rng.random()))


def same(one: dict[str, Run], other: dict[str, Run]) -> bool:
    return list(one) == list(other) and all(
        np.array_equal(value, getattr(other[key], name)) for key in one for name, value in vars(one[key]).items()
    )


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """Or the runs are what they were."""
    path, refused = tmp_path / "runs.parquet", 0
    runs = add_runs({f"k{seed}": run(seed) for seed in range(3)}, path)
    data = path.read_bytes()
    for at in random.Random(1).sample(range(8 * len(data)), 400):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        path.write_bytes(changed)
        try:
            assert same(load_runs(path), runs)
        except FileFormatError:
            refused += 1
    assert refused > 350


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.drop_columns(["regret"]), "not one of runs"),
        (lambda table: table.replace_schema_metadata({b"format": b"rareswitch-runs-2"}), "not one of runs"),
        (lambda table: table.replace_schema_metadata(), "not one of runs"),
        (lambda table: table.set_column(6, "regret", pa.array(["many"])), "not a readable Parquet file"),
    ],
)
def test_other_tables_are_refused(tmp_path: Path, change: Any, words: str) -> None:
    path = tmp_path / "runs.parquet"
    add_runs({"k": run(1)}, path)
    parquet.write_table(change(parquet.read_table(path)), path)
    raises(FileFormatError, words, load_runs, path)


def test_writers_of_one_file_all_keep_their_runs(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"

    def add(writer: int) -> None:
        for k in range(10):
            add_runs({f"{writer} {k}": run(k)}, path)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert sorted(load_runs(path)) == sorted(f"{writer} {k}" for writer in range(4) for k in range(10))
    assert [entry.name for entry in tmp_path.iterdir()] == ["runs.parquet"]


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
    raises(FileFormatError, "Permission denied", sweep, **given, seeds=[1, 2], path=path)
