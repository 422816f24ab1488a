"""What benchmarks share that run learners in worlds: seeds, all cores, regrets and ratios."""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from measure import FloatArray, available_cores
from rareswitch.engine import Processes
from rareswitch.env import World
from rareswitch.report import Ratio
from rareswitch.sim import LearnerFactory, Run, WorldFactory, sweep

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
    with Processes(available_cores()) as engine:
        for done, (job, found) in enumerate(zip(jobs, engine.map(function, jobs), strict=True), start=1):
            if (now := time.monotonic()) > said + 20.0:
                said, left = now, (now - began) * (len(jobs) / done - 1.0)
                print(f"{done:,} of {len(jobs):,} runs, about {left / 60.0:.0f} min left", file=sys.stderr, flush=True)
            yield job, found


def runs_of(
    makers: Mapping[str, LearnerFactory],
    worlds: Mapping[str, World | WorldFactory],
    *,
    horizon: int,
    seeds: Iterable[int],
) -> dict[str, dict[str, list[Run]]]:
    """Runs by learner and world, seed by seed, made in as many processes as there are cores."""
    with Processes(available_cores()) as engine:
        found = sweep(makers, worlds, horizons=[horizon], seeds=seeds, engine=engine)
    if found.skipped or found.interrupted:
        raise SystemExit(f"not all runs were made: {found.skipped or 'interrupted'}")
    runs: dict[str, dict[str, list[Run]]] = {name: {place: [] for place in worlds} for name in makers}
    for run in found.runs:
        runs[run.learner][run.world].append(run)
    return runs


def regrets(runs: Mapping[str, Sequence[Run]]) -> FloatArray:
    """(seeds, worlds) of runs by world."""
    return np.array([[run.regret for run in found] for found in runs.values()]).T


def mean_regrets(runs: Mapping[str, Sequence[Run]]) -> str:
    """The mean regret of runs by world."""
    found = zip(runs, regrets(runs).mean(axis=0), strict=True)
    return ", ".join(f"{world} {mean:,.0f}" for world, mean in found)


def with_interval(ratio: Ratio) -> str:
    """A ratio as tables show it."""
    return f"{ratio.value:.2f} ({ratio.interval or 'too few seeds for an interval'})"
