import importlib
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch import simulate, sweep
from rareswitch.core import FloatArray
from rareswitch.errors import FileFormatError, InputError, MissingExtraError, NonFiniteError, ParameterError
from rareswitch.lab import load_runs
from rareswitch.lab.simulate import chunk_size
from rareswitch.lab.worlds import Rounds, SequenceWorld, World, make_world
from rareswitch.learner import BatchLinUCB, Foresight, make_learner
from rareswitch.report import ProgressBar
from reference.refusals import raises

simulation = importlib.import_module("rareswitch.lab.simulate")
WORLD = make_world("gaussian", dim=3, arms=5, noise=0.3)


def learner(horizon: int = 3000, **settings: Any) -> BatchLinUCB:
    return BatchLinUCB(dim=3, arms=5, horizon=horizon, noise=0.3, **settings)


def make(world: World, horizon: int, seed: int) -> BatchLinUCB:
    return BatchLinUCB(dim=world.dim, arms=world.arms, horizon=horizon, noise=0.3)


def test_chunks_are_bounded_by_memory_and_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chunk_size(1000, 1000) == 16
    assert chunk_size(20, 10) * 200 <= 1 << 18
    whole = simulate(learner(), WORLD, seed=3)
    monkeypatch.setattr(simulation, "chunk_size", lambda arms, dim: 37)
    parts = simulate(learner(), WORLD, seed=3)
    assert parts.regret == pytest.approx(whole.regret)


def test_learners_must_fit_the_world() -> None:
    with pytest.raises(InputError, match="the learner is for at most 5 arms in 2 dimensions, the world has 5 in 3"):
        simulate(BatchLinUCB(dim=2, arms=5, horizon=100), WORLD, seed=1)
    with pytest.raises(InputError, match="the learner is for at most 4 arms in 3 dimensions, the world has 5 in 3"):
        simulate(BatchLinUCB(dim=3, arms=4, horizon=100), WORLD, seed=1)
    with pytest.raises(InputError, match="the learner is for any number of arms in 2 dimensions"):
        simulate(Foresight(dim=2, horizon=100), WORLD, seed=1)


def test_a_horizon_is_given_where_it_is_not_known() -> None:
    growing = simulate(Foresight(dim=3), WORLD, seed=1, horizon=300)
    assert growing.batch_ends.tolist() == [30, 75, 187, 300]
    assert simulate(Foresight(dim=3, policies=2), WORLD, seed=1, horizon=300).policies == 2
    assert simulate(Foresight(dim=3, grid=[20, 300]), WORLD, seed=1).horizon == 300
    with pytest.raises(ParameterError, match="does not know its horizon: give the number of decisions, horizon="):
        simulate(Foresight(dim=3), WORLD, seed=1)
    with pytest.raises(ParameterError, match="the learner is for 100 decisions, and 200 were asked for"):
        simulate(learner(100), WORLD, seed=1, horizon=200)
    assert simulate(learner(100), WORLD, seed=1, horizon=100).horizon == 100
    raises(ParameterError, "horizon must be at least 2", simulate, Foresight(dim=3), WORLD, seed=1, horizon=1)


class Odd:
    """The usual world, but for what it draws and pays."""

    dim, arms = 3, 5

    def __init__(self, *, drawn: Any = None, shift: float = 0.0, forgets: bool = False) -> None:
        self.drawn, self.shift, self.forgets = drawn, shift, forgets

    def draw(self, count: int, *, seed: int, first: int = 0) -> Any:
        rounds = WORLD.draw(count, seed=seed, first=first)
        return self.drawn or Rounds(contexts=rounds.contexts, means=rounds.means + self.shift)

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return np.where(self.forgets & (np.arange(first, first + len(means)) % 9 == 8), np.nan, means)


def test_a_world_that_does_not_always_pay_is_refused_by_name() -> None:
    """A world knows what it pays; an unknown reward would be left out without a word."""
    for made in (learner(), make_learner("linucb", dim=3, arms=5, horizon=50)):
        raises(NonFiniteError, "the rewards of Odd must be finite", simulate, made, Odd(forgets=True), seed=1)


def test_a_sweep_resumes_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    first = sweep({"a": make}, {"w": WORLD}, horizons=[200], seeds=range(2), path=path)
    assert (first.resumed, len(first.runs)) == (0, 2)
    second = sweep({"a": make}, {"w": WORLD}, horizons=[200, 300], seeds=range(3), path=path)
    assert (second.resumed, len(second.runs)) == (2, 6)
    assert [(r.horizon, r.seed) for r in second.runs] == [(200, 0), (200, 1), (200, 2), (300, 0), (300, 1), (300, 2)]
    assert second.runs[0].regret == first.runs[0].regret
    np.testing.assert_array_equal(second.runs[0].regrets, first.runs[0].regrets)
    assert len(load_runs(path)) == 6
    twice = sweep({"a": make}, {"w": WORLD}, horizons=[200, 200], seeds=[0, 0])
    assert (len(twice.runs), twice.resumed) == (1, 0)


def test_another_world_setting_or_cap_makes_another_run(tmp_path: Path) -> None:
    path, contexts = tmp_path / "runs.parquet", WORLD.draw(300, seed=1).contexts
    edited = contexts.copy()
    edited[70] *= 0.5
    worlds = [WORLD, make_world("gaussian", dim=3, arms=5, noise=0.4), Odd(), Odd(shift=0.1)]
    worlds += [SequenceWorld.from_array(array) for array in (contexts, edited)]
    cases: list[Any] = [(make, world, None) for world in worlds]
    cases += [(lambda *_: learner(300, delta=0.5), WORLD, None), (make, WORLD, 2), (make, WORLD, 3)]
    for resumed in (0, 1):
        for maker, world, cap in cases:
            found = sweep({"a": maker}, {"w": world}, horizons=[300], seeds=[0], cap=cap, path=path)
            assert found.resumed == resumed
            assert found.runs[0].policies <= (cap or 4)


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        ((1, 2), "must draw Rounds; it drew a tuple"),
        (Rounds(contexts=np.zeros((1, 5, 3)), means=np.zeros((1, 5))), r"must draw contexts \(2, 5, 3\); it drew \(1"),
        (Rounds(contexts=np.zeros((2, 5, 3)), means=np.zeros(2)), r"must draw means \(2, 5\); it drew \(2,\)"),
        (Rounds(contexts=np.zeros((2, 5, 3)), means=np.full((2, 5), np.nan)), "the means of Odd must be finite"),
    ],
)
def test_odd_rounds_are_refused_in_the_name_of_the_world(drawn: Any, words: str) -> None:
    raises(InputError, words, simulate, learner(2), Odd(drawn=drawn), seed=1)
    raises(InputError, "Odd must", sweep, {"a": make}, {"odd": Odd(drawn=drawn)}, horizons=[2], seeds=[1])


def test_results_files_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 truncated")
    with pytest.raises(FileFormatError, match="not a readable Parquet file"):
        sweep({"a": make}, {"w": WORLD}, horizons=[50], seeds=[0], path=path)
    with pytest.raises(FileFormatError, match="cannot be written"):
        sweep({"a": make}, {"w": WORLD}, horizons=[50], seeds=[0], path=tmp_path / "none" / "x.parquet")
    raises(InputError, "at least one", sweep, {}, {"w": WORLD}, horizons=[50], seeds=[0])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"rareswitch\[parquet\]"):
        sweep({"a": make}, {"w": WORLD}, horizons=[50], seeds=[0], path=tmp_path / "new.parquet")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_terminals_alone() -> None:
    shown, hidden = Terminal(), io.StringIO()
    for stream in (shown, hidden):
        with ProgressBar("working", stream=stream) as bar:
            bar(10, 10, "last")
    assert "working" in shown.getvalue()
    assert "100%" in shown.getvalue()
    assert hidden.getvalue() == ""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_horizon() -> None:
    """Peak memory of a process after 4 000 and after 300 000 decisions."""
    script = (
        "import re; from rareswitch import simulate; from rareswitch.lab.worlds import make_world; "
        "from rareswitch.learner import make_learner; w = make_world('gaussian', dim=5, arms=10, noise=0.5); "
        "run = lambda t: simulate(make_learner('batch-linucb-dg-certified', dim=5, arms=10, horizon=t), w, seed=1); "
        "peak = lambda: int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]); "
        "run(4000); a = peak(); run(300000); print(peak() - a)"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    # 300 000 sets of 10 × 5 numbers would be 120 MB; a sample of 10 000 is 4 MB
    assert int(out) < 60_000


def test_a_horizon_longer_than_the_world_is_refused() -> None:
    world = SequenceWorld.from_array(WORLD.draw(40, seed=1).contexts)
    with pytest.raises(InputError, match=r"has 40 rounds and the horizon is 41\. Make the horizon shorter"):
        simulate(learner(41), world, seed=1)
    assert simulate(learner(40), world, seed=1).horizon == 40
