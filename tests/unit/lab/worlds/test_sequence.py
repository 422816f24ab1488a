import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch import ContextSets
from rareswitch.core import FloatArray
from rareswitch.errors import (
    ContextNormError,
    FileFormatError,
    InputError,
    NonFiniteError,
    ParameterError,
    RareswitchError,
    ShapeError,
)
from rareswitch.lab.distributions import Gaussian
from rareswitch.lab.worlds import CoinNoise, SequenceWorld, make_world
from reference.refusals import raises

X = Gaussian(dim=3, arms=4).draw(50, seed=9).contexts


def test_an_array_is_drawn_as_it_is() -> None:
    available = np.arange(200).reshape(50, 4) % 3 > 0
    world = SequenceWorld.from_array(X, available, hidden=[0.0, 0.6, 0.0], noise=CoinNoise(0.2))
    assert (world.rounds, world.arms, world.dim, world.noise_scale) == (50, 4, 3, 0.2)
    rounds = world.draw(7, seed=1, first=43)
    np.testing.assert_array_equal(rounds.contexts, X[43:])
    np.testing.assert_array_equal(rounds.available, available[43:])
    np.testing.assert_allclose(rounds.means, 0.6 * X[43:, :, 1])
    np.testing.assert_allclose(np.abs(world.rewards(rounds.means[:, 0], seed=1) - rounds.means[:, 0]), 0.2)
    assert repr(world) == "SequenceWorld(50 rounds, 4 arms, d = 3)"


def test_a_function_is_asked_for_the_rounds_that_are_drawn() -> None:
    asked: list[int] = []

    def function(t: int) -> FloatArray:
        asked.append(t)
        return X[t, : 1 + t % 4]

    world = SequenceWorld.from_function(function, rounds=50, arms=4)
    assert asked == [0]
    rounds = world.draw(5, seed=1, first=45)
    assert asked == [0, 45, 46, 47, 48, 49]
    assert rounds.available.sum(axis=1).tolist() == [2, 3, 4, 1, 2]
    np.testing.assert_array_equal(rounds.contexts, X[45:] * rounds.available[:, :, None])


def test_a_function_of_many_rounds_at_once() -> None:
    world = SequenceWorld(rounds=50, dim=3, arms=4, sets=lambda first, count: X[first : first + count])
    np.testing.assert_array_equal(world.draw(9, seed=1, first=30).contexts, X[30:39])
    wrong = SequenceWorld(rounds=50, dim=3, arms=4, sets=lambda first, count: X[first : first + count - 1])
    with pytest.raises(ShapeError, match=r"rounds 30 to 38 must have contexts \(9, 4, 3\); got \(8, 4, 3\)"):
        wrong.draw(9, seed=1, first=30)


def write(path: Path) -> Path:
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".npz":
        np.savez(path, contexts=X)
    else:
        rows = [[f"r{t}", *map(repr, arm.tolist())] for t, arms in enumerate(X) for arm in arms]
        if path.suffix == ".csv":
            path.write_text("\n".join(map(",".join, [["set", "a", "b", "c"], *rows])))
        else:
            pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            columns = dict(zip("abc", X.reshape(-1, 3).T, strict=True))
            parquet.write_table(pa.table({"set": [row[0] for row in rows], **columns}), path)
    return path


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet"])
def test_every_kind_of_file(tmp_path: Path, suffix: str) -> None:
    world = make_world(str(write(tmp_path / f"sets{suffix}")), dim=9, arms=9, noise=0.7)
    assert isinstance(world, SequenceWorld)
    assert (world.rounds, world.arms, world.dim, world.noise_scale) == (50, 4, 3, 0.7)
    np.testing.assert_array_equal(world.draw(20, seed=1, first=30).contexts, X[30:])


def test_arrays_on_disk_stay_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("the whole file was read")

    module = sys.modules[SequenceWorld.__module__]
    monkeypatch.setattr(module, "read_context_file", refuse)
    monkeypatch.setattr(module, "_CHUNK_NUMBERS", 36)
    path = write(tmp_path / "sets.npy")
    np.testing.assert_array_equal(SequenceWorld.from_file(path).draw(50, seed=1).contexts, X)
    single = (0.9 * X).astype(np.float32)
    np.save(path, single)
    np.testing.assert_array_equal(SequenceWorld.from_file(path).draw(50, seed=1).contexts, single)
    long = X.copy()
    long[40, 2] *= 1.5
    np.save(path, long)
    with pytest.raises(
        ContextNormError, match=r"sets\.npy: .* arm 2 of set 1 has norm 1\.5.* Set 0 is that of round 39"
    ):
        SequenceWorld.from_file(path)


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "sets.npy"
    raises(FileFormatError, "No such file", make_world, str(path), dim=2, arms=2, noise=1.0)
    path.write_bytes(b"nonsense")
    raises(FileFormatError, "not a readable NumPy file", SequenceWorld.from_file, path)
    np.save(path, np.full((2, 2, 2), np.nan))
    raises(NonFiniteError, r"sets\.npy: .*finite", SequenceWorld.from_file, path)
    np.save(path, np.array([[["a"]]]))
    raises(InputError, "real numbers", SequenceWorld.from_file, path)
    np.savez(tmp_path / "sets.npz", contexts=2 * X)
    raises(ContextNormError, r"sets\.npz: .*norm", SequenceWorld.from_file, tmp_path / "sets.npz")


def function(t: int) -> Any:
    return [[[0.5]], [[0.5], [0.5]], [[1.5]], [[np.nan]], [0.5], "x", []][t]


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: SequenceWorld.from_array(X[0]), ShapeError, r"contexts must be \(sets, arms, dim\)"),
        (lambda: SequenceWorld.from_array(1.5 * X), ContextNormError, "norm at most 1; arm"),
        (lambda: SequenceWorld.from_array(X, np.ones((50, 3), dtype=bool)), ShapeError, "available must be booleans"),
        (lambda: SequenceWorld.from_array(X, hidden=[1.0, 0.0]), ShapeError, r"hidden must have shape \(3,\)"),
        (lambda: SequenceWorld.from_array(X, hidden=[1.0, 1.0, 0.0]), ParameterError, "norm at most 1; got 1.41421"),
        (lambda: SequenceWorld.from_function(function, rounds=0), ParameterError, "rounds must be at least 1"),
        (lambda: SequenceWorld.from_function(lambda t: [0.5], rounds=3), ShapeError, r"round 0 has \(1,\)"),
        (lambda: at(1), ShapeError, r"1 to 1 arms in 1 dimensions .* round 1 has shape \(2, 1\)\. If some sets"),
        (lambda: at(2), ContextNormError, "norm 1.5.*Set 0 is that of round 2"),
        (lambda: at(3), NonFiniteError, "the set of round 3 must be finite"),
        (lambda: at(4), ShapeError, r"round 4 has shape \(1,\)"),
        (lambda: at(5), ShapeError, "the set of round 5 must hold real numbers"),
        (lambda: at(6), ShapeError, r"round 6 has shape \(0,\)"),
    ],
)
def test_bad_sequences_are_refused(make: Callable[[], object], kind: type[RareswitchError], words: str) -> None:
    raises(kind, words, make)


def at(t: int) -> object:
    return SequenceWorld.from_function(function, rounds=7).draw(1, seed=1, first=t)


def test_dead_arms_may_be_long() -> None:
    sets = ContextSets.from_ragged([[[1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])
    contexts = sets.contexts.copy()
    contexts[0, 1] = 7.0
    assert SequenceWorld.from_array(contexts, sets.available).draw(2, seed=1).contexts[0, 1, 0] == 7.0
