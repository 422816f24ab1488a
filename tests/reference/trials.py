"""Experiments that are played in a world: the same decisions and rewards for the same seed."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rareswitch.experiment import Advance, Experiment
from rareswitch.lab.worlds import World, make_world

ARMS = 5


def play(
    trial: Experiment,
    world: World,
    first: int,
    count: int,
    *,
    seed: int = 7,
    now: float = 0.0,
    paid: Callable[[Any, Any], Any] | None = None,
    **more: Any,
) -> None:
    """Decisions number ``first`` and following, with rewards; ``paid`` makes them of ids and what the world pays."""
    rounds, ids = world.draw(count, seed=seed, first=first), np.arange(first, first + count)
    choices = trial.decide_many(rounds.contexts, ids=ids.tolist(), now=now, **more)
    means = rounds.means[np.arange(count), [int(choice.arm) for choice in choices]]
    rewards = world.rewards(means, seed=seed, first=first)
    trial.reward_many(ids.tolist(), (rewards if paid is None else paid(ids, rewards)).tolist(), now=now)


def play_batch(trial: Experiment, *, count: int | None = None, env: str = "gaussian", seed: int = 1) -> None:
    """The decisions that are planned for the current policy, with their rewards."""
    state = trial.store.versions(trial.store.head() - 1)[0]
    first = sum(one.decisions for one in trial.store.counts())
    count = planned(trial) if count is None else count
    world = make_world(env, dim=trial.description.learner.dim, arms=ARMS, noise=0.5)
    play(trial, world, first, count, seed=seed, now=float(state.number))


def planned(trial: Experiment) -> int:
    from rareswitch.learner import state_from_bytes

    return state_from_bytes(trial.store.versions(trial.store.head() - 1)[0].state).batch_sizes[0]


def advance_batch(trial: Experiment, **given: Any) -> Advance:
    """Play a batch, and learn from it."""
    play_batch(trial, env=given.pop("env", "gaussian"))
    done = trial.advance(now=100.0 * trial.store.head(), force=True, **given)
    assert done.made
    return done
