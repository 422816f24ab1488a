"""Collaborative learning: agents share each batch and meet only at its end."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rareswitch.engine import Engine, Serial
from rareswitch.lab.recorder import Recorder
from rareswitch.lab.rounds import check_match, play_rounds, unlearnable_regret
from rareswitch.lab.run import Run
from rareswitch.lab.simulate import decisions_of
from rareswitch.lab.worlds import World
from rareswitch.learner import CommunicationRound, Learner, Share, State
from rareswitch.policy import policy_to_bytes
from rareswitch.validation import FloatArray, whole


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """One communication round."""

    start: int
    stop: int
    #: Of the policy that all agents played.
    policy_id: str
    #: Decisions of the agent with the largest share: how long the round takes, in decisions.
    longest: int
    #: Bytes that all agents sent: statistics and sampled context sets.
    received: int
    #: Bytes of the policy that each agent got.
    sent: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Collaboration:
    """A run of many agents."""

    #: Of all decisions together; its seconds are those of the whole simulation.
    run: Run
    agents: int
    #: One a batch.
    meetings: list[Meeting]
    #: SHA-256 of all chosen arms in the order of the decisions: equal digests, equal decisions.
    decisions: str

    @property
    def parallel_time(self) -> int:
        """How long the run takes if agents play at the same time and meetings take none, in decisions."""
        return sum(meeting.longest for meeting in self.meetings)


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What an agent is told at the beginning of a batch."""

    learner: Learner
    state: State
    world: World
    agent: int
    agents: int
    seed: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Played:
    """What comes back from an agent; only the report would in earnest, the rest is for judging the run."""

    report: bytes
    #: (n,)
    regrets: FloatArray
    arms: bytes
    survivors: int


def collaborate(
    learner: Learner,
    world: World,
    *,
    agents: int,
    seed: int,
    engine: Engine | None = None,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Collaboration:
    """Run a learner to its horizon with so many agents: decisions and policies do not depend on how many.

    Each agent plays its share of every batch with the same frozen policy; when all shares are in, the learner makes the
    next one. So there are as many rounds of communication as policies.

    Parameters
    ----------
    learner
        One whose batches end at known decisions: foresight, the batched family, or any on a grid.
    engine
        Where the agents run, each a shard of the batch; here, one after the other, by default.
    seed, name, progress
        As in :func:`~rareswitch.simulate`.

    Examples
    --------
    >>> from rareswitch.lab.worlds import make_world
    >>> from rareswitch.learner import Foresight
    >>> world = make_world("gaussian", dim=3, arms=5, noise=0.5)
    >>> one = collaborate(Foresight(dim=3, horizon=2000, policies=4), world, agents=1, seed=1)
    >>> many = collaborate(Foresight(dim=3, horizon=2000, policies=4), world, agents=16, seed=1)
    >>> many.decisions == one.decisions, len(many.meetings), many.parallel_time
    (True, 4, 128)
    """
    horizon = decisions_of(learner, None)
    check_match(learner, world, horizon)
    whole("seed", seed, low=0)
    engine = Serial() if engine is None else engine
    recorder, digest = Recorder(horizon), hashlib.sha256()
    meetings: list[Meeting] = []
    state = learner.begin()
    while not state.done:
        meeting = CommunicationRound(learner, state, agents)
        shares = [Share(learner, state, agent, agents) for agent in range(agents)]
        for share in shares:
            if share.start == share.stop:
                meeting.add(share.report())
        tasks = (
            Task(learner=learner, state=state, world=world, agent=share.agent, agents=agents, seed=seed)
            for share in shares
            if share.start < share.stop
        )
        made = state.start
        for played in engine.map(play_share, tasks, label="share of agent"):
            meeting.add(played.report)
            recorder.add(played.regrets, played.survivors)
            digest.update(played.arms)
            made += len(played.regrets)
            if progress is not None:
                progress(made)
        recorder.retire()
        meetings.append(
            Meeting(
                start=state.start,
                stop=state.stop,
                policy_id=state.policy.id,
                longest=max(share.stop - share.start for share in shares),
                received=meeting.size,
                sent=len(policy_to_bytes(state.policy)),
            )
        )
        state = meeting.finish()
    called, lost = repr(world) if name is None else name, unlearnable_regret(world, horizon, seed=seed)
    run = recorder.run(learner.name, called, seed=seed, policies=state.policies, unlearnable=lost)
    return Collaboration(run=run, agents=agents, meetings=meetings, decisions=digest.hexdigest())


def play_share(task: Task) -> Played:
    """Play an agent's part of a batch. It changes nothing, so it may be done again if it was lost."""
    share = Share(task.learner, task.state, task.agent, task.agents)
    regrets, arms, survivors = [], [], 0
    span = {"start": share.start, "stop": share.stop}
    for played in play_rounds(task.learner, task.state.policy, task.world, seed=task.seed, **span):
        share.add(played.rows)
        regrets.append(played.regrets)
        arms.append(played.decisions.arms.astype("<i8").tobytes())
        survivors += int(played.decisions.survivors.sum())
    return Played(
        report=share.report().to_bytes(), regrets=np.concatenate(regrets), arms=b"".join(arms), survivors=survivors
    )
