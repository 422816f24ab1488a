"""What benchmarks share that run learners in worlds: seeds, all cores, regrets and ratios."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple, TypeVar

import numpy as np

from measure import FloatArray, available_cores
from rareswitch.executors import make_executor, run_shards
from rareswitch.lab import LearnerFactory, Run, WorldFactory, simulate
from rareswitch.lab.report import Ratio
from rareswitch.lab.worlds import World

J = TypeVar("J")
R = TypeVar("R")
#: The worlds in which schedules and numbers of updates are compared.
SIX = ("gaussian", "fixed", "segments", "disjoint", "rare-clicks", "heavy-tails")


def add_seeds(parser: argparse.ArgumentParser, seeds: int) -> None:
    """The options of benchmarks that run over seeds; by default so many from 0 on."""
    parser.add_argument("--seeds", type=int, default=seeds, help=f"how many seeds; {seeds} by default")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them; 0 by default")


def chosen_seeds(options: argparse.Namespace) -> range:
    """The seeds that were asked for; at most 2 of them for a quick look."""
    count = min(options.seeds, 2) if options.quick else options.seeds
    return range(options.first_seed, options.first_seed + count)


def spread(function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[tuple[J, R]]:
    """Each job with what came of it, in order: in as many processes as there are cores, with a word at times.

    The function must be one of a module's top level.
    """
    began = said = time.monotonic()
    with make_executor(f"processes:{available_cores()}") as engine:
        for done, (job, found) in enumerate(zip(jobs, run_shards(function, jobs, engine), strict=True), start=1):
            if (now := time.monotonic()) > said + 20.0:
                said, left = now, (now - began) * (len(jobs) / done - 1.0)
                print(f"{done:,} of {len(jobs):,} runs, about {left / 60.0:.0f} min left", file=sys.stderr, flush=True)
            yield job, found


class Job(NamedTuple):
    """A run, before it is run."""

    name: str
    make: LearnerFactory
    place: str
    world: World | WorldFactory
    horizon: int
    seed: int


def one_run(job: Job) -> Run:
    """What comes of a job."""
    world = job.world(job.horizon) if callable(job.world) else job.world
    return simulate(job.make(world, job.horizon, job.seed), world, seed=job.seed, name=job.place)


def runs_of(
    makers: Mapping[str, LearnerFactory],
    worlds: Mapping[str, World | WorldFactory],
    *,
    horizon: int,
    seeds: Iterable[int],
) -> dict[str, dict[str, list[Run]]]:
    """Runs by learner and world, seed by seed."""
    found: dict[str, dict[str, list[Run]]] = {name: {place: [] for place in worlds} for name in makers}
    every = product(makers.items(), worlds.items(), seeds)
    for job, run in spread(one_run, [Job(*maker, *world, horizon, seed) for maker, world, seed in every]):
        found[job.name][job.place].append(run)
    return found


def regrets(runs: Mapping[str, Sequence[Run]]) -> FloatArray:
    """(seeds, worlds) of runs by world."""
    return np.array([[run.regret for run in found] for found in runs.values()]).T


def mean_regrets(runs: Mapping[str, Sequence[Run]]) -> str:
    """The mean regret of runs by world."""
    found = zip(runs, regrets(runs).mean(axis=0), strict=True)
    return ", ".join(f"{world} {mean:,.0f}" for world, mean in found)


def with_interval(ratio: Ratio) -> str:
    """A ratio as tables show it."""
    return f"{ratio.value:.2f} ({ratio.interval or 'too few seeds'})"
