"""Collaborative learning: agents share each batch and meet only at its end."""

import hashlib
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import ClassVar

import numpy as np

from rareswitch.core import Displayed, FloatArray, run_shards
from rareswitch.errors import UnsuitableError
from rareswitch.lab.simulate import Recorder, Run, check_run, draw_chunks
from rareswitch.lab.worlds import World
from rareswitch.learner import Learner, State, summaries_from_bytes, summaries_to_bytes
from rareswitch.policy import policy_to_bytes

__all__ = ["collaborate"]


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """One communication round."""

    start: int
    stop: int
    #: Of the policy that all agents played.
    policy_id: str
    #: Decisions of the agent with the largest share: how long the round takes, in decisions.
    longest: int
    #: Bytes that all agents sent: sums and sampled context sets.
    received: int
    #: Bytes of the policy that each agent got.
    sent: int


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Collaboration(Displayed):
    """A run of many agents."""

    shown_by: ClassVar[str] = "rareswitch.lab.report.plots"

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
class Share:
    """An agent's part of a batch: the decisions from ``start`` to before ``stop``."""

    learner: Learner
    state: State
    world: World
    seed: int
    start: int
    stop: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ShareResult:
    """What comes back from an agent; only the summary would in earnest, the rest is for judging the run."""

    summary: bytes
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
    executor: Executor | None = None,
    name: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Collaboration:
    """Run a learner to its horizon with many agents. Up to rounding, policies do not depend on their number.

    Each agent plays its share of every batch with the same frozen policy and sends its sums; when all are in, they are
    added and the learner makes the next policy. There is one round of communication a policy, and A agents
    take at most T/A + M decisions one after the other.

    Parameters
    ----------
    learner
        One whose batches end at known decisions: foresight, the batched family, or any on a grid.
    executor
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
    horizon = check_run(learner, world, horizon=None, seed=seed, agents=agents)
    if learner.clock.uses_features:
        raise UnsuitableError(
            f"{learner.name} changes its policy when it has seen enough, not after a batch that could be shared "
            "beforehand. Let agents act together at each step instead: simulate(..., agents=A)."
        )
    recorder, digest = Recorder(horizon), hashlib.sha256()
    meetings: list[Meeting] = []
    state = learner.begin()
    while not state.done:
        length, make = state.stop - state.start, partial(Share, learner=learner, state=state, world=world, seed=seed)
        cuts = [state.start + agent * length // agents for agent in range(agents + 1)]
        shares = [make(start=start, stop=stop) for start, stop in pairwise(cuts) if start < stop]
        summaries = []
        for share, result in zip(shares, run_shards(play_share, shares, executor, label="share"), strict=True):
            summaries.append(result.summary)
            recorder.add(result.regrets, result.survivors)
            digest.update(result.arms)
            if progress is not None:
                progress(share.stop)
        recorder.retire()
        meetings.append(
            Meeting(
                start=state.start,
                stop=state.stop,
                policy_id=state.policy.id,
                longest=max(share.stop - share.start for share in shares),
                received=sum(map(len, summaries)),
                sent=len(policy_to_bytes(state.policy)),
            )
        )
        state = learner.next(state, reduce(add, (summaries_from_bytes(data)[0] for data in summaries)))
    run = recorder.run(state, world, seed=seed, name=name)
    return Collaboration(run=run, agents=agents, meetings=meetings, decisions=digest.hexdigest())


def play_share(share: Share) -> ShareResult:
    """Play an agent's part of a batch. It changes nothing, so it may be done again if it was lost."""
    learner, state = share.learner, share.state
    summaries, regrets, arms, survivors = [], [], [], 0
    for drawn in draw_chunks(share.world, seed=share.seed, start=share.start, stop=share.stop):
        learner.check(drawn.sets)
        decisions = drawn.decide(state.policy)
        summaries.append(learner.summarize(state, drawn.log(decisions), part=True))
        regrets.append(drawn.regrets(decisions.arms))
        arms.append(decisions.arms.astype("<i8").tobytes())
        survivors += int(decisions.survivors.sum())
    summary = summaries_to_bytes([reduce(add, summaries)])
    return ShareResult(summary=summary, regrets=np.concatenate(regrets), arms=b"".join(arms), survivors=survivors)
