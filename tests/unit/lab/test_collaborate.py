"""Collaborative and concurrent learning."""

import os
import signal
import sys
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rareswitch.core import make_executor
from rareswitch.errors import ParameterError, UnsuitableError
from rareswitch.lab import collaborate, simulate
from rareswitch.lab.collaborate import Collaboration, Share, ShareResult, play_share
from rareswitch.lab.worlds import make_world
from rareswitch.learner import OFUL, BatchLinUCBKW, Foresight, Learner, LinUCB, RarelySwitchSupLinUCB, make_learner
from reference.loop import rows_of
from reference.refusals import raises

WORLD = make_world("varying", dim=3, arms=5, noise=0.5)


def together(
    agents: int, executor: Executor | None = None, name: str = "foresight", horizon: int = 1500
) -> Collaboration:
    learner = make_learner(name, dim=3, arms=5, horizon=horizon)
    return collaborate(learner, WORLD, agents=agents, seed=4, executor=executor)


def same(one: Collaboration, other: Collaboration) -> bool:
    return (
        one.decisions == other.decisions
        and [m.stop for m in one.meetings] == [m.stop for m in other.meetings]
        and one.run.regret == pytest.approx(other.run.regret, rel=1e-9)
    )


@pytest.mark.parametrize("name", ["foresight", "batch-linucb-kw", "batch-linucb-dg-certified", "pure-exploitation"])
def test_agents_change_nothing_but_the_time(name: str) -> None:
    one = together(1, name=name)
    for agents in (5, 64):
        many = together(agents, name=name)
        assert same(one, many)
        batches = np.diff([0, *one.run.batch_ends])
        assert [meeting.longest for meeting in many.meetings] == [-(-n // agents) for n in batches]
        assert len(many.meetings) == one.run.policies
        assert many.parallel_time <= 1500 / agents + len(many.meetings)


def test_one_agent_is_a_simulated_run() -> None:
    """Sums are taken in another order, so policies may differ in their last digits, and decisions do not."""
    learner = make_learner("foresight", dim=3, arms=5, horizon=1500)
    alone = simulate(learner, WORLD, seed=4)
    shared = together(1)
    assert shared.run.regret == pytest.approx(alone.regret, rel=1e-9)
    assert shared.run.batch_ends.tolist() == alone.batch_ends.tolist()
    np.testing.assert_allclose(shared.run.survivors, alone.survivors)


def fragile_share(folder: str, share: Share) -> ShareResult:
    """Plays, but the worker of one share of the second batch dies in the middle of its first try."""
    result = play_share(share)
    if share.state.policies == 2 and share.start > share.state.start and not (Path(folder) / "died").exists():
        (Path(folder) / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return result


def test_processes_learn_the_same_although_a_worker_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = together(6, horizon=300)
    monkeypatch.setattr(sys.modules[Share.__module__], "play_share", partial(fragile_share, str(tmp_path)))
    with make_executor("processes:2") as executor:
        there = together(6, executor, horizon=300)
    assert (tmp_path / "died").exists()
    assert alone.decisions == there.decisions
    assert [meeting.policy_id for meeting in alone.meetings] == [meeting.policy_id for meeting in there.meetings]


def test_what_crosses_the_wire_is_not_the_log() -> None:
    """Sums, and the sampled sets of each agent: at most so many, however long the batch."""
    found = together(4, horizon=20_000)
    sets = 4 * 200 * (5 * 3 + 5 + 4) * 8  # contexts, mask and id
    sums = 4 * 2000
    assert all(meeting.received <= sets + sums for meeting in found.meetings)
    assert all(meeting.sent > 0 for meeting in found.meetings)


@pytest.mark.parametrize("agents", [0, -1, 2001])
def test_bad_numbers_of_agents(agents: int) -> None:
    raises(ParameterError, "agents", collaborate, Foresight(dim=3, horizon=2000), WORLD, agents=agents, seed=1)
    raises(ParameterError, "agents", simulate, OFUL(dim=3, arms=5, horizon=2000), WORLD, seed=1, agents=agents)


def test_each_form_names_the_other() -> None:
    raises(UnsuitableError, "agents=A", collaborate, OFUL(dim=3, arms=5, horizon=2000), WORLD, agents=2, seed=1)
    with pytest.raises(UnsuitableError, match="collaborate"):
        simulate(BatchLinUCBKW(dim=3, arms=5, horizon=2000), WORLD, seed=1, agents=2)


def slow_ends(learner: Learner, agents: int, horizon: int) -> list[int]:
    """The concurrent form decision by decision: a policy stays until a step of A decisions is over."""
    state, summary, due, ends = learner.begin(), None, False, []
    for t in range(horizon):
        rounds = WORLD.draw(1, seed=2, first=t)
        decision = state.policy.decide(rounds.contexts, rounds.available, ids=[t], seed=2)
        due = due or learner.due(state, rounds.contexts, decision, summary, available=rounds.available) is not None
        part = learner.summarize(state, rows_of(state, WORLD, 2, first=t, count=1))
        summary = part if summary is None else summary + part
        step_is_over = (t + 1) % agents == 0
        if t + 1 == horizon or (step_is_over and (due or t + 1 >= state.stop)):
            state, summary, due = learner.next(state, summary), None, False
            ends.append(t + 1)
    return ends


@pytest.mark.parametrize("agents", [1, 3, 16])
@pytest.mark.parametrize("kind", [OFUL, RarelySwitchSupLinUCB, LinUCB])
def test_concurrent_agents_keep_a_policy_until_the_step_is_over(agents: int, kind: Any) -> None:
    settings = {"dim": 3, "arms": 5, "horizon": 400, "noise": 0.5}
    run = simulate(kind(**settings), WORLD, seed=2, agents=agents)
    slow = slow_ends(kind(**settings), agents, 400)
    if len(run.batch_ends):
        assert run.batch_ends.tolist() == slow
    assert run.policies == len(slow)
    assert all(end % agents == 0 for end in slow[:-1])


def test_concurrency_costs_at_most_a_step_a_change() -> None:
    """The reduction's bound: each of the M changes comes at most A decisions late, each of which costs at most 2."""
    world = make_world("gaussian", dim=3, arms=5, noise=0.5)
    for kind in (OFUL, RarelySwitchSupLinUCB):
        alone = simulate(kind(dim=3, arms=5, horizon=4000, noise=0.5), world, seed=2)
        for agents in (4, 32):
            many = simulate(kind(dim=3, arms=5, horizon=4000, noise=0.5), world, seed=2, agents=agents)
            assert many.regret <= alone.regret + many.policies * agents
            assert many.policies <= alone.policies
