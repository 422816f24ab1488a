"""Collaborative and concurrent learning."""

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.engine import Dask, Engine, Processes, Serial
from rareswitch.env import make_world
from rareswitch.errors import BatchError, ParameterError, UnsuitableError
from rareswitch.learner import (
    OFUL,
    BatchLinUCBKW,
    Feedback,
    Foresight,
    Learner,
    LinUCB,
    PureExploitation,
    RarelySwitchSupLinUCB,
    StaticGrid,
    make_learner,
)
from rareswitch.sim import Collaboration, collaborate, simulate
from rareswitch.sim.collaborate import Played, Task, play_share

WORLD = make_world("varying", dim=3, arms=5, noise=0.5)


def together(agents: int, engine: Engine | None = None, name: str = "foresight", horizon: int = 3000) -> Collaboration:
    learner = make_learner(name, dim=3, arms=5, horizon=horizon)
    return collaborate(learner, WORLD, agents=agents, seed=4, engine=engine)


def same(one: Collaboration, other: Collaboration) -> bool:
    return (
        one.decisions == other.decisions
        and [m.policy_id for m in one.meetings] == [m.policy_id for m in other.meetings]
        and one.run.regret == other.run.regret
    )


@pytest.mark.parametrize("name", ["foresight", "batch-linucb-kw", "batch-linucb-dg-certified", "pure-exploitation"])
def test_agents_change_nothing_but_the_time(name: str) -> None:
    one = together(1, name=name)
    for agents in (2, 5, 64):
        many = together(agents, name=name)
        assert same(one, many)
        batches = np.diff([0, *one.run.batch_ends])
        assert [meeting.longest for meeting in many.meetings] == [-(-n // agents) for n in batches]
        assert len(many.meetings) == one.run.updates


def test_the_longest_share_is_counted_in_cells() -> None:
    """A batch of 20,000 decisions has 5,000 cells of 4: of three agents one plays 1667 of them."""
    learner = PureExploitation(dim=3, arms=5, horizon=20_001, grid=StaticGrid(ends=(20_000, 20_001)))
    found = collaborate(learner, WORLD, agents=3, seed=1)
    assert [meeting.longest for meeting in found.meetings] == [4 * 1667, 1]


def test_one_agent_is_a_simulated_run() -> None:
    """Sums are taken in another order, so policies may differ in their last digits, and decisions do not."""
    learner = make_learner("foresight", dim=3, arms=5, horizon=3000)
    alone = simulate(learner, WORLD, seed=4)
    shared = together(1)
    assert shared.run.regret == pytest.approx(alone.regret, rel=1e-9)
    assert shared.run.batch_ends.tolist() == alone.batch_ends.tolist()
    np.testing.assert_allclose(shared.run.survivors, alone.survivors)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_processes_and_clusters_decide_and_learn_the_same(workers: int) -> None:
    here = together(6, horizon=800)
    with Processes(workers) as processes:
        assert same(here, together(6, processes, horizon=800))
    with Dask(workers=workers) as cluster:
        assert same(here, together(6, cluster, horizon=800))
    with Serial(threads=workers) as threads:
        assert same(here, together(6, threads, horizon=800))


def fragile_share(folder: str, task: Task) -> Played:
    """Plays, but on its first start in the second batch the worker of agent 2 dies in the middle of its work."""
    with (Path(folder) / f"{task.learner.start}-{task.agent}").open("a") as file:
        file.write("x")
    played = play_share(task)
    if task.agent == 2 and task.learner.updates == 2 and not (Path(folder) / "died").exists():
        (Path(folder) / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return played


@pytest.mark.parametrize("engine", [partial(Processes, 2), partial(Dask, workers=2)], ids=["processes", "dask"])
def test_a_worker_lost_in_a_round_costs_a_repetition(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = together(6, horizon=800)
    monkeypatch.setattr(sys.modules[Task.__module__], "play_share", partial(fragile_share, str(tmp_path)))
    with engine() as cluster:
        assert same(here, together(6, cluster, horizon=800))
    assert (tmp_path / "died").exists()
    starts = [len(path.read_text()) for path in tmp_path.iterdir() if path.name != "died"]
    assert 1 <= sum(starts) - len(starts) <= 2


def test_what_crosses_the_wire_is_not_the_log() -> None:
    """Statistics and sampled sets: at most so many, however long the batch."""
    found = together(4, horizon=60_000)
    sets = 200 * (5 * 3 + 5) * 8
    sums = 4 * 2 * 17 * (3 * 3 + 3 + 1 + 40) * 8  # subtrees of four shares, a few hundred bytes each
    assert all(meeting.received <= sets + sums for meeting in found.meetings)
    assert all(meeting.sent > 0 for meeting in found.meetings)


@pytest.mark.parametrize("agents", [0, -1, 2001])
def test_bad_numbers_of_agents(agents: int) -> None:
    with pytest.raises(ParameterError, match="agents"):
        collaborate(Foresight(dim=3, horizon=2000), WORLD, agents=agents, seed=1)
    with pytest.raises(ParameterError, match="agents"):
        simulate(OFUL(dim=3, arms=5, horizon=2000), WORLD, seed=1, agents=agents)


def test_each_form_names_the_other() -> None:
    with pytest.raises(UnsuitableError, match="agents=A"):
        collaborate(OFUL(dim=3, arms=5, horizon=2000), WORLD, agents=2, seed=1)
    with pytest.raises(UnsuitableError, match="collaborate"):
        simulate(BatchLinUCBKW(dim=3, arms=5, horizon=2000), WORLD, seed=1, agents=2)
    learner = Foresight(dim=3, horizon=2000)
    simulate(learner, WORLD, seed=1)
    with pytest.raises(BatchError, match="before a run begins"):
        learner.act_together(2)


class Slow:
    """The concurrent form decision by decision: a policy stays until a step of A decisions is over."""

    def __init__(self, learner: Learner, agents: int) -> None:
        self.learner, self.agents = learner, agents

    def ends(self) -> list[int]:
        learner, horizon = self.learner, self.learner.horizon
        learner.act_together(self.agents)
        summary, due, ends = None, False, []
        for t in range(horizon):
            rounds = WORLD.draw(1, seed=2, first=t)
            decision = learner.policy.decide(rounds.contexts, rounds.alive, seed=2, first=t)
            due = due or learner.due(rounds.contexts, decision, summary, alive=rounds.alive) is not None
            reward = WORLD.rewards(rounds.means[[0], decision.arms], seed=2, first=t)
            part = learner.summarize(Feedback.of(rounds.contexts, decision, reward, rounds.alive))
            summary = part if summary is None else summary + part
            step_is_over = (t + 1) % self.agents == 0
            if t + 1 == horizon or (step_is_over and (due or t + 1 == learner.stop)):
                learner.next(summary)
                summary, due = None, False
                ends.append(t + 1)
        return ends


@pytest.mark.parametrize("agents", [1, 3, 16])
@pytest.mark.parametrize("kind", [OFUL, RarelySwitchSupLinUCB, LinUCB])
def test_concurrent_agents_keep_a_policy_until_the_step_is_over(agents: int, kind: Any) -> None:
    settings = {"dim": 3, "arms": 5, "horizon": 400, "noise": 0.5}
    run = simulate(kind(**settings), WORLD, seed=2, agents=agents)
    slow = Slow(kind(**settings), agents).ends()
    if len(run.batch_ends):
        assert run.batch_ends.tolist() == slow
    assert run.updates == len(slow)
    assert all(end % agents == 0 for end in slow[:-1])


def test_concurrency_costs_at_most_a_step_a_change() -> None:
    """The reduction's bound: each of the M changes comes at most A decisions late, each of which costs at most 2."""
    world = make_world("gaussian", dim=3, arms=5, noise=0.5)
    for kind in (OFUL, RarelySwitchSupLinUCB):
        alone = simulate(kind(dim=3, arms=5, horizon=4000, noise=0.5), world, seed=2)
        for agents in (4, 32):
            many = simulate(kind(dim=3, arms=5, horizon=4000, noise=0.5), world, seed=2, agents=agents)
            assert many.regret <= alone.regret + many.updates * agents
            assert many.updates <= alone.updates
