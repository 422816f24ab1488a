"""A simulated run, watched: what was played, when the policy changed, and where the run stood at its end."""

import importlib
from contextlib import ExitStack
from typing import Any, NamedTuple
from unittest import mock

from rareswitch.core import FloatArray, IntArray
from rareswitch.lab import Run, simulate
from rareswitch.lab.worlds import World, make_world
from rareswitch.learner import Learner, State

simulation = importlib.import_module("rareswitch.lab.simulate")


NOISE = 0.4
PLACES = ("gaussian", "segments", "varying", "zipf", "plain")


def place(name: str) -> World:
    """A small world, in which learners are watched."""
    return make_world(name, dim=4, arms=6, noise=NOISE)


def sized(make: Any, world: World, horizon: int = 1000, **settings: Any) -> Any:
    """A learner for it."""
    return make(dim=world.dim, arms=world.arms, horizon=horizon, noise=NOISE, **settings)


class Watched(NamedTuple):
    """What was seen."""

    arms: list[int]
    switches: list[int]
    run: Run
    state: State


def watched(learner: Learner, world: World, seed: int, *, walks: bool = True, **options: Any) -> Watched:
    """Simulate, with compiled steps where there are any, unless ``walks`` is off."""
    arms: list[int] = []
    loops: list[Any] = []
    plain, loop = simulation.DrawnRounds.regrets, simulation.Loop

    def spy(drawn: Any, chosen: IntArray) -> FloatArray:
        arms.extend(chosen.tolist())
        found: FloatArray = plain(drawn, chosen)
        return found

    def remembered(*given: Any, **named: Any) -> Any:
        loops.append(loop(*given, **named))
        return loops[-1]

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(simulation.DrawnRounds, "regrets", spy))
        stack.enter_context(mock.patch.object(simulation, "Loop", remembered))
        if not walks:
            stack.enter_context(mock.patch.object(simulation, "find_walker", return_value=None))
        run = simulate(learner, world, seed=seed, **options)
    return Watched(arms, run.batch_ends[:-1].tolist(), run, loops[0].state)
