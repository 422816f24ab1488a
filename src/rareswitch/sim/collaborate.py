"""Collaborative learning: agents share each batch and meet only at its end."""

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rareswitch.engine import Engine, Serial
from rareswitch.env import World
from rareswitch.learner import CommunicationRound, Feedback, Learner, Share
from rareswitch.policy.files import to_bytes
from rareswitch.sim.run import Run
from rareswitch.sim.simulate import check_match, check_rounds, chunk_size
from rareswitch.sim.tally import Tally
from rareswitch.validation import FloatArray, whole


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """One communication round."""

    start: int
    stop: int
    policy_id: str
    """Of the policy that all agents played."""
    longest: int
    """Decisions of the agent with the largest share: how long the round takes, in decisions."""
    received: int
    """Bytes that all agents sent: statistics and sampled context sets."""
    sent: int
    """Bytes of the policy that each agent got."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Collaboration:
    """A run of many agents."""

    run: Run
    """Of all decisions together; its seconds are those of the whole simulation."""
    agents: int
    meetings: list[Meeting]
    """One a batch."""
    decisions: str
    """SHA-256 of all chosen arms in the order of the decisions: equal digests, equal decisions."""

    @property
    def parallel_time(self) -> int:
        """How long the run takes if agents play at the same time and meetings take none, in decisions."""
        return sum(meeting.longest for meeting in self.meetings)


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What an agent is told at the beginning of a batch."""

    learner: Learner
    """Its policy decides, and it knows what is to be summed; nothing that agents do changes it."""
    world: World
    agent: int
    agents: int
    seed: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Played:
    """What comes back from an agent; only the report would in earnest, the rest is for judging the run."""

    report: bytes
    regrets: FloatArray
    """(n,)"""
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
    """Run a fresh learner to its horizon with so many agents: decisions and policies do not depend on how many.

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
    >>> from rareswitch.env import make_world
    >>> from rareswitch.learner import Foresight
    >>> world = make_world("gaussian", dim=3, arms=5, noise=0.5)
    >>> one = collaborate(Foresight(dim=3, horizon=2000, updates=4), world, agents=1, seed=1)
    >>> many = collaborate(Foresight(dim=3, horizon=2000, updates=4), world, agents=16, seed=1)
    >>> many.decisions == one.decisions, len(many.meetings), many.parallel_time
    (True, 4, 127)
    """
    check_match(learner, world)
    whole("seed", seed, low=0)
    began = time.perf_counter()
    engine = Serial() if engine is None else engine
    tally, digest = Tally(learner.horizon), hashlib.sha256()
    meetings: list[Meeting] = []
    while not learner.done:
        start, stop, policy = learner.start, learner.stop, learner.policy
        meeting = CommunicationRound(learner, agents)
        sizes = [share.stop - share.start for share in (Share(learner, i, agents) for i in range(agents))]
        tasks = (
            Task(learner=learner, world=world, agent=i, agents=agents, seed=seed) for i in range(agents) if sizes[i]
        )
        idle = (i for i in range(agents) if not sizes[i])
        for agent in idle:
            meeting.add(Share(learner, agent, agents).report())
        made = start
        for played in engine.map(play_share, tasks, label="share of agent"):
            meeting.add(played.report)
            tally.lose(played.regrets, played.survivors)
            digest.update(played.arms)
            made += len(played.regrets)
            if progress is not None:
                progress(made)
        received = meeting.size
        meeting.finish()
        tally.retire()
        meetings.append(
            Meeting(
                start=start,
                stop=stop,
                policy_id=policy.id,
                longest=max(sizes),
                received=received,
                sent=len(to_bytes(policy)),
            )
        )
    run = tally.run(
        learner=learner.name,
        world=repr(world) if name is None else name,
        seed=seed,
        updates=len(meetings),
        seconds=time.perf_counter() - began,
    )
    return Collaboration(run=run, agents=agents, meetings=meetings, decisions=digest.hexdigest())


def play_share(task: Task) -> Played:
    """Play an agent's part of a batch. It changes nothing, so it may be done again if it was lost."""
    learner, world = task.learner, task.world
    share = Share(learner, task.agent, task.agents)
    regrets, arms, survivors = [], [], 0
    for first, count in _chunks(share, chunk_size(world.arms, world.dim)):
        rounds = world.draw(count, seed=task.seed, first=first)
        sets = check_rounds(world, rounds, count)
        decisions = learner.policy.decide(sets, seed=task.seed, first=first)
        means = np.asarray(rounds.means)
        expected = means[np.arange(count), decisions.arms]
        share.add(Feedback.of(sets, decisions, np.asarray(world.rewards(expected, seed=task.seed, first=first))))
        regrets.append(np.where(sets.alive, means, -np.inf).max(axis=1) - expected)
        arms.append(decisions.arms.astype("<i8").tobytes())
        survivors += int(decisions.survivors.sum())
    return Played(
        report=share.report().to_bytes(), regrets=np.concatenate(regrets), arms=b"".join(arms), survivors=survivors
    )


def _chunks(share: Share, size: int) -> Iterator[tuple[int, int]]:
    """First decision and count, in whole cells of about ``size`` decisions."""
    size = max(1, size // share.cell) * share.cell
    for first in range(share.start, share.stop, size):
        yield first, min(size, share.stop - first)
