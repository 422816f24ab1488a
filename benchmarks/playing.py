"""A run batch by batch, where a benchmark needs more of it than ``simulate`` tells: states, late rewards, baselines."""

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from measure import FloatArray
from rareswitch.lab import chunk_size
from rareswitch.lab.rounds import Drawn, Played, regrets
from rareswitch.lab.worlds import World
from rareswitch.learner import Learner, Rows, State, Summary
from rareswitch.validation import IntArray

#: Which arms (n,) the caller would show, given what arms pay in expectation (n, K), a seed and the number of the first.
Baseline = Callable[[FloatArray, int, int], IntArray]


class Batch(NamedTuple):
    """What a policy decided."""

    #: Whose policy it was; with the notes of the updates before it.
    state: State
    #: (n,) of its decisions.
    regrets: FloatArray
    #: (n,) what the best linear policy in hindsight would have lost; nothing where the best arms are those of one.
    unlearnable: FloatArray


def lived(
    learner: Learner,
    world: World,
    *,
    seed: int,
    begun: State | None = None,
    baseline: Baseline | None = None,
    late: int = 0,
) -> list[Batch]:
    """A run from its beginning, batch by batch.

    Parameters
    ----------
    begun
        The state to begin with; the learner's own by default.
    baseline
        What the first policy is shown, if it wants to be.
    late
        A reward is known when so many decisions have come after its own.
    """
    state, batches = learner.begin() if begun is None else begun, list[Batch]()
    before: list[Rows] = []
    while not state.done:
        start, stop, lost, here = state.start, state.stop, list[tuple[FloatArray, FloatArray]](), list[Rows]()
        for played in rounds(state, world, seed, baseline if state.updates == 1 else None):
            lost.append((played.regrets, unlearnable(world, played)))
            if late:
                times = np.arange(played.first, played.first + len(played.means)) * 1.0
                here.append(Rows.of(played.sets, played.decisions, played.rewards, times=times))
            else:
                here.append(played.rows)
        batches.append(Batch(state, *np.concatenate(lost, axis=1)))
        now: dict[str, Any] = {"window": float(late), "now": float(stop)} if late else {}
        summary, *older = (total(learner, state, rows, now) for rows in (here, before if late else []) if rows)
        state = learner.next(state, summary, late=older)
        before = here
        assert state.start == stop > start
    return batches


def rounds(state: State, world: World, seed: int, baseline: Baseline | None) -> Iterator[Played]:
    """The decisions of the current batch, chunk by chunk."""
    chunk = chunk_size(world.arms, world.dim)
    for first in range(state.start, state.stop, chunk):
        count = min(chunk, state.stop - first)
        drawn = Drawn.of(world, count, seed=seed, first=first)
        if baseline is None:
            yield drawn.play(state.policy, 0, count)
            continue
        means = drawn.rounds.means
        named, ids = baseline(means, seed, first), range(first, first + count)
        decisions = state.policy.decide(drawn.sets, ids=ids, seed=seed, baseline=named)
        yield Played(world=world, seed=seed, first=first, sets=drawn.sets, decisions=decisions, means=means)


def unlearnable(world: World, played: Played) -> FloatArray:
    """(n,) what the best linear policy in hindsight would have lost to the best arms."""
    best = getattr(world, "best_linear", None)
    if best is None:
        return np.zeros(len(played.means))
    contexts, alive = played.sets.contexts, played.sets.alive
    return regrets(played.means, alive, np.where(alive, contexts @ best(), -np.inf).argmax(axis=1))


def total(learner: Learner, state: State, rows: list[Rows], now: dict[str, Any]) -> Summary:
    """What is known now of the rows of a batch."""

    def summed(at: State) -> Summary:
        return reduce(add, (learner.summarize(at, part, **now, part=True) for part in rows))

    summary = summed(state)
    return learner.fitted(state, summary, summed) if summary.policy_id == state.policy.id else summary
