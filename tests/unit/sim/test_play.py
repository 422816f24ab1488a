from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest

from rareswitch.env import make_world
from rareswitch.errors import BatchError, FileFormatError, InputError, RareswitchError
from rareswitch.ids import id_keys
from rareswitch.learner import Rows, make_learner, sampled
from rareswitch.log import update
from rareswitch.sim.play import play
from rareswitch.store import Deployment

SETTINGS: dict[str, dict[str, Any]] = {
    "foresight": {"dim": 3, "horizon": 400, "updates": 4},
    "batch-linucb-kw": {"dim": 3, "arms": 4, "horizon": 400, "noise": 0.5},
    "batch-linucb-dg-certified": {"dim": 3, "arms": 4, "horizon": 400, "noise": 0.5},
}


@pytest.mark.parametrize("env", ["gaussian", "varying"])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_log_teaches_what_the_loop_in_memory_teaches(name: str, env: str, tmp_path: Path) -> None:
    here = Deployment.begin(name, **SETTINGS[name])
    learner = make_learner(name, **SETTINGS[name])
    state = learner.begin()
    world = make_world(env, dim=3, arms=4, noise=0.5)
    for factor in (1.0, 1.5, 0.7, 1.0, 1.0, 1.0):
        if state.done:
            break
        first, count = state.start, round(factor * state.ahead[0])
        rounds = world.draw(count, seed=2, first=first)
        decided = state.policy.decide(rounds.contexts, rounds.alive, ids=range(first, first + count), seed=2)
        rewards = world.rewards(rounds.means[range(count), decided.arms], seed=2, first=first)
        rows = Rows.of(rounds.contexts, decided, rewards, rounds.alive)
        state = learner.next(state, learner.summarize(state, rows))
        here = update(here, play(here, world, seed=2, folder=tmp_path / str(first), parts=3, count=count)).deployment
        assert here.policy.id == state.policy.id
    assert here.state.done == state.done


def test_parts_are_stretches_of_the_batch(tmp_path: Path) -> None:
    here = Deployment.begin("foresight", dim=3, horizon=30_000, grid=[20_000, 25_000, 30_000])
    world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    steps: list[int] = []
    paths = play(here, world, seed=1, folder=tmp_path / "logs", parts=3, progress=steps.append)
    assert [path.name for path in paths] == [f"part-0001-000{k}.parquet" for k in (1, 2, 3)]
    tables = [parquet.read_table(path) for path in paths]
    assert [len(table) for table in tables] == [6666, 6667, 6667]
    decisions = np.concatenate([table["id"].to_numpy() for table in tables])
    np.testing.assert_array_equal(decisions, np.arange(20_000))
    assert steps[-1] == 20_000
    offered = np.concatenate([np.asarray(table["contexts"].is_valid()) for table in tables])
    share = 2 * here.learner.sample_size(here.state) / 20_000
    np.testing.assert_array_equal(offered, sampled(id_keys(decisions), share))
    assert offered.sum() >= here.learner.sample_size(here.state)
    features = tables[1]["features"].combine_chunks().flatten().to_numpy().reshape(-1, 3)
    again = play(here, world, seed=1, folder=tmp_path / "again", parts=1)
    whole = parquet.read_table(again[0])["features"].combine_chunks().flatten().to_numpy().reshape(-1, 3)
    np.testing.assert_array_equal(whole[6666:13_333], features)


def test_there_are_no_more_parts_than_decisions(tmp_path: Path) -> None:
    here = Deployment.begin("foresight", dim=3, horizon=30, grid=[2, 30])
    world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    assert len(play(here, world, seed=1, folder=tmp_path / "logs", parts=9)) == 2


def test_nothing_stays_of_a_play_that_is_stopped(tmp_path: Path) -> None:
    here = Deployment.begin("foresight", dim=3, horizon=400, grid=[100, 400])
    world = make_world("gaussian", dim=3, arms=4, noise=0.5)

    def stop(made: int) -> None:
        if made > 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(here, world, seed=1, folder=tmp_path / "logs", parts=4, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_not_overwritten(tmp_path: Path) -> None:
    here = Deployment.begin("foresight", dim=3, horizon=400, grid=[100, 400])
    world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    paths = play(here, world, seed=1, folder=tmp_path / "logs", parts=2)
    before = [path.read_bytes() for path in paths]
    words = r"logs: exists already, and a log is never overwritten. Name another folder, or remove it."
    with pytest.raises(FileFormatError, match=words):
        play(here, world, seed=2, folder=tmp_path / "logs", parts=2)
    assert sorted((tmp_path / "logs").iterdir()) == paths
    assert [path.read_bytes() for path in paths] == before


def test_a_log_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    """So one that was killed, at any time, leaves nothing under its name, and can be run again as it was."""
    here = Deployment.begin("foresight", dim=3, horizon=400, grid=[100, 400])
    world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    there: list[bool] = []
    paths = play(
        here,
        world,
        seed=1,
        folder=tmp_path / "logs",
        parts=4,
        progress=lambda _: there.append((tmp_path / "logs").exists()),
    )
    assert len(there) == 4
    assert not any(there)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "logs"]
    assert update(here, paths).report.used == 100


def test_some_rewards_are_missing(tmp_path: Path) -> None:
    here = Deployment.begin("foresight", dim=3)
    world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    done = update(here, play(here, world, seed=1, folder=tmp_path / "logs", count=2000, missing=0.25))
    # Hoeffding, false alarm at most 1e-6
    assert abs(done.report.unrewarded / 2000 - 0.25) <= np.sqrt(np.log(2e6) / 4000)
    assert (done.report.planned, done.report.decided) == (30, 2000)


def test_worlds_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    here = Deployment.begin("batch-linucb-kw", dim=3, arms=4, horizon=400)
    for dim, arms in ((2, 4), (3, 5)):
        world = make_world("gaussian", dim=dim, arms=arms, noise=0.5)
        with pytest.raises(InputError, match=f"for at most 4 arms in 3 dimensions, the world has {arms} in {dim}"):
            play(here, world, seed=1, folder=tmp_path)
    world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    for seed, parts in ((-1, 1), (1, 0)):
        with pytest.raises(InputError, match="must be at least"):
            play(here, world, seed=seed, folder=tmp_path, parts=parts)
    over = Deployment.begin("foresight", dim=3, horizon=20, grid=[20])
    over = update(over, play(over, world, seed=1, folder=tmp_path / "logs")).deployment
    with pytest.raises(BatchError, match="this run is over"):
        play(over, world, seed=1, folder=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(RareswitchError, match="cannot be written"):
        play(here, world, seed=1, folder=tmp_path / "file" / "logs")
