"""The loop by hand, as a user of the library writes it."""

from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rareswitch.core import FloatArray
from rareswitch.decisions import DecisionLog
from rareswitch.lab.worlds import World
from rareswitch.learner import Learner, State, Summary

#: Learners whose policies rest on all decisions, whoever made them: they begin with a log, or with a baseline.
BEGIN_WITH_LOGS = (
    *("foresight", "oful", "batched-thompson", "linucb-grid", "thompson-grid", "linmed-grid"),
    *("pure-exploitation", "rho"),
)


def rows_of(
    state: State, world: World, seed: int, *, first: int | None = None, count: int | None = None
) -> DecisionLog:
    """What came of the current policy's decisions from ``first`` on; of all that are planned, by default."""
    first = state.start if first is None else first
    count = state.stop - first if count is None else count
    rounds = world.draw(count, seed=seed, first=first)
    decisions = state.policy.decide(rounds.contexts, rounds.available, ids=range(first, first + count), seed=seed)
    rewards = world.rewards(rounds.means[np.arange(count), decisions.arms], seed=seed, first=first)
    return DecisionLog.of(rounds.contexts, decisions, rewards, rounds.available)


def rows_for(
    state: State, contexts: FloatArray, theta: ArrayLike, noise: ArrayLike = 0.0, *, first: int = 0, seed: int = 1
) -> DecisionLog:
    """Decisions for these sets, numbered from ``first`` on, whose arms x pay xᵀθ and the noise (n,)."""
    decisions = state.policy.decide(contexts, ids=range(first, first + len(contexts)), seed=seed)
    chosen = contexts[np.arange(len(contexts)), decisions.arms]
    return DecisionLog.of(contexts, decisions, chosen @ np.asarray(theta) + np.asarray(noise))


class Step(NamedTuple):
    """What a policy did, and the state after it."""

    rows: DecisionLog
    summary: Summary
    state: State


def step(learner: Learner, state: State, world: World, seed: int = 1, *, most: int = 50) -> Step:
    """Decide with the current policy until the next one is due, looking ``most`` decisions ahead, and learn."""
    first, summary = state.start, None
    parts: list[DecisionLog] = []
    while True:
        count = min(most, state.stop - first)
        rounds = world.draw(count, seed=seed, first=first)
        decisions = state.policy.decide(rounds.contexts, rounds.available, ids=range(first, first + count), seed=seed)
        due = learner.due(state, rounds.contexts, decisions, summary, available=rounds.available)
        parts.append(rows_of(state, world, seed, first=first, count=count if due is None else due))
        part = learner.summarize(state, parts[-1], part=True)
        summary = part if summary is None else summary + part
        first += len(parts[-1])
        if due is not None or first == state.stop:
            summary = learner.fitted(
                state, summary, lambda at: reduce(add, (learner.summarize(at, rows, part=True) for rows in parts))
            )
            return Step(DecisionLog.concatenate(parts), summary, learner.next(state, summary))


def steps(learner: Learner, world: World, seed: int = 1, *, most: int = 50) -> Iterator[tuple[State, Step]]:
    """A whole run: each state, and what came of it."""
    state = learner.begin()
    while not state.done:
        done = step(learner, state, world, seed, most=most)
        yield state, done
        state = done.state


def after(learner: Learner, world: World, policies: int, seed: int = 1) -> State:
    """The state after so many updates, or at the end of the run if that comes first."""
    state = learner.begin()
    for _ in range(policies):
        if not state.done:
            state = step(learner, state, world, seed).state
    return state
