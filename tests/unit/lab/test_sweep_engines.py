"""Sweeps and contests on processes and clusters."""

import json
import os
import signal
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rareswitch.cli import main
from rareswitch.core import make_executor
from rareswitch.errors import EngineError
from rareswitch.lab import Run, load_runs, sweep
from rareswitch.lab.sweep import LearnerFactory
from rareswitch.lab.worlds import NamedWorld, World
from rareswitch.learner import Foresight, Learner, make_learner
from reference.commands import printed

WORLD = NamedWorld(name="gaussian", dim=3, arms=4, noise=0.5)
COMMAND = ("compare", "--learners", "oful", "foresight", "fixed-set-elimination", "--horizons", "300", "--dim", "3")


def plain(world: World, horizon: int, seed: int, name: str = "foresight") -> Learner:
    return make_learner(name, dim=world.dim, arms=world.arms, horizon=horizon)


def fragile(folder: str, horizon: int) -> World:
    """The first worker that makes it dies; the parent makes worlds too, and lives."""
    if os.getpid() != int((Path(folder) / "parent").read_text()):
        try:
            (Path(folder) / "died").touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return WORLD(horizon)


def facts(runs: Iterable[Run]) -> list[Any]:
    return [(r.learner, r.world, r.horizon, r.seed, r.regret, r.policies, r.regrets.tolist()) for r in runs]


def test_the_same_runs_come_back_from_every_engine(tmp_path: Path) -> None:
    makers: dict[str, LearnerFactory] = {
        "foresight": plain,
        "oful": partial(plain, name="oful"),
        "fixed": partial(plain, name="fixed-set-elimination"),
    }
    results: list[Any] = []
    for name in ("serial", "processes:2"):
        path = tmp_path / f"{len(results)}.parquet"
        with make_executor(name) as executor:
            first = sweep(makers, {"w": WORLD}, horizons=[200], seeds=range(2), path=path, executor=executor)
            found = sweep(makers, {"w": WORLD}, horizons=[200, 300], seeds=range(3), path=path, executor=executor)
        assert (first.resumed, found.resumed) == (0, 4)
        assert list(found.skipped) == [("fixed", "w")]
        assert len(load_runs(path)) == 12
        results.append(facts(found.runs))
    assert results[0] == results[1]
    assert [case[:4] for case in results[0]] == [
        (name, "w", horizon, seed) for name in ("foresight", "oful") for horizon in (200, 300) for seed in range(3)
    ]


def test_a_sweep_survives_a_lost_worker(tmp_path: Path) -> None:
    (tmp_path / "parent").write_text(str(os.getpid()))
    with make_executor("processes:2") as executor:
        found = sweep(
            {"foresight": plain},
            {"w": partial(fragile, str(tmp_path))},
            horizons=[200],
            seeds=range(5),
            executor=executor,
        )
    assert (tmp_path / "died").exists()
    assert facts(found.runs) == facts(sweep({"foresight": plain}, {"w": WORLD}, horizons=[200], seeds=range(5)).runs)


def test_factories_that_cannot_travel_are_named() -> None:
    def make(world: World, horizon: int, seed: int) -> Learner:
        return Foresight(dim=3, horizon=horizon)

    with make_executor("processes:1") as executor, pytest.raises(EngineError, match="top level of a module"):
        sweep({"a": make}, {"w": WORLD}, horizons=[100], seeds=[0], executor=executor)


def test_commands_take_an_engine(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for engine in ("serial", "processes:2"):
        runs = json.loads(printed(capsys, *COMMAND, "--seeds", "2", "--arms", "4", "--json", "--engine", engine))
        shown.append([{key: value for key, value in run.items() if key != "seconds"} for run in runs])
    assert len(shown[0]) == 4
    assert shown[0] == shown[1]
    assert main(["contest", "--learners", "linucb 1", "--worlds", "fixed", "--horizons", "60", "--seeds", "1",
                 "--engine", "processes:1"]) == 0  # fmt: skip
