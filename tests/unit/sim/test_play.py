from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest

from rareswitch.env import make_world
from rareswitch.errors import BatchError, FileFormatError, InputError, RareswitchError
from rareswitch.learner import Feedback, make_learner
from rareswitch.log import Deployment, update
from rareswitch.sim.play import play

SETTINGS: dict[str, dict[str, Any]] = {
    "foresight": {"dim": 3, "horizon": 400, "updates": 4},
    "batch-linucb-kw": {"dim": 3, "arms": 4, "horizon": 400, "noise": 0.5},
    "batch-linucb-dg-certified": {"dim": 3, "arms": 4, "horizon": 400, "noise": 0.5},
}


@pytest.mark.parametrize("env", ["gaussian", "varying"])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_log_teaches_what_the_loop_in_memory_teaches(name: str, env: str, tmp_path: Path) -> None:
    """With one part, and as few decisions, the sums are those of one call to summarize."""
    here = Deployment.begin(name, **SETTINGS[name])
    learner = make_learner(name, **SETTINGS[name])
    world = make_world(env, dim=3, arms=4, noise=0.5)
    while not learner.done:
        first, count = learner.start, learner.stop - learner.start
        rounds = world.draw(count, seed=2, first=first)
        decided = learner.policy.decide(rounds.contexts, rounds.alive, seed=2, first=first)
        rewards = world.rewards(rounds.means[range(count), decided.arms], seed=2, first=first)
        learner.next(learner.summarize(Feedback.of(rounds.contexts, decided, rewards, rounds.alive)))
        paths = play(here, world, seed=2, folder=tmp_path / str(first), parts=1)
        here = update(here, paths).deployment
        assert here.policy.id == learner.policy.id
    assert here.learner.done


def test_parts_are_stretches_of_the_batch(tmp_path: Path) -> None:
    here = Deployment.begin("foresight", dim=3, horizon=30_000, grid=[20_000, 30_000])
    world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    steps: list[int] = []
    paths = play(here, world, seed=1, folder=tmp_path / "logs", parts=3, progress=steps.append)
    assert [path.name for path in paths] == [f"part-0001-000{k}.parquet" for k in (1, 2, 3)]
    tables = [parquet.read_table(path) for path in paths]
    assert [len(table) for table in tables] == [6666, 6667, 6667]
    decisions = np.concatenate([table["decision"].to_numpy() for table in tables])
    np.testing.assert_array_equal(decisions, np.arange(20_000))
    assert steps[-1] == 20_000
    offered = np.concatenate([np.asarray(table["contexts"].is_valid()) for table in tables])
    np.testing.assert_array_equal(offered, here.learner.sampled(decisions))
    features = tables[1]["features"].combine_chunks().flatten().to_numpy().reshape(-1, 3)
    again = play(here, world, seed=1, folder=tmp_path / "again", parts=1)
    whole = parquet.read_table(again[0])["features"].combine_chunks().flatten().to_numpy().reshape(-1, 3)
    np.testing.assert_array_equal(whole[6666:13_333], features)


def test_there_are_no_more_parts_than_decisions(tmp_path: Path) -> None:
    here = Deployment.begin("foresight", dim=3, horizon=30, grid=[2, 30])
    world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    assert len(play(here, world, seed=1, folder=tmp_path, parts=9)) == 2


def test_nothing_stays_of_a_play_that_is_stopped(tmp_path: Path) -> None:
    here = Deployment.begin("foresight", dim=3, horizon=400, grid=[100, 400])
    world = make_world("gaussian", dim=3, arms=4, noise=0.5)

    def stop(made: int) -> None:
        if made > 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(here, world, seed=1, folder=tmp_path, parts=4, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_not_overwritten(tmp_path: Path) -> None:
    here = Deployment.begin("foresight", dim=3, horizon=400, grid=[100, 400])
    world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    path = play(here, world, seed=1, folder=tmp_path, parts=2)[1]
    before = path.read_bytes()
    (tmp_path / "part-0001-0001.parquet").unlink()
    with pytest.raises(FileFormatError, match=r"part-0001-0002.parquet: exists already"):
        play(here, world, seed=2, folder=tmp_path, parts=2)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before


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
    over = update(over, play(over, world, seed=1, folder=tmp_path)).deployment
    with pytest.raises(BatchError, match="this run is over"):
        play(over, world, seed=1, folder=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(RareswitchError, match="no folder can be made there"):
        play(here, world, seed=1, folder=tmp_path / "file" / "logs")
