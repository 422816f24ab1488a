"""Many runs: learners × worlds × horizons × seeds, resumable."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rareswitch.env import World
from rareswitch.errors import InputError
from rareswitch.learner import BatchedLearner
from rareswitch.sim.progress import Progress
from rareswitch.sim.results import load_runs, save_runs
from rareswitch.sim.run import Run
from rareswitch.sim.simulate import check_rounds, simulate
from rareswitch.version import __version__

LearnerFactory = Callable[[World, int], BatchedLearner]
"""Makes a fresh learner for a world and a horizon."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sweep:
    """What a sweep brought back."""

    runs: list[Run]
    """In the order learners, worlds, horizons, seeds; the finished ones."""
    interrupted: bool
    """Whether Ctrl-C ended it; the runs finished until then are all here."""
    resumed: int
    """How many runs were taken from the file."""


def sweep(
    learners: Mapping[str, LearnerFactory],
    worlds: Mapping[str, World],
    *,
    horizons: Iterable[int],
    seeds: Iterable[int],
    path: str | Path | None = None,
    quiet: bool = False,
) -> Sweep:
    """Run every combination, with a progress bar on a terminal.

    Parameters
    ----------
    path
        A Parquet file. Runs that it holds already, with the same settings, are not run again; each run that finishes is
        added at once.
    quiet
        No progress bar.

    Examples
    --------
    >>> from rareswitch.env import make_world
    >>> from rareswitch.learner import BatchLinUCB
    >>> found = sweep(
    ...     {"uniform": lambda world, t: BatchLinUCB(dim=world.dim, arms=world.arms, horizon=t)},
    ...     {"gaussian": make_world("gaussian", dim=3, arms=4, noise=0.5)},
    ...     horizons=[100, 200], seeds=range(2),
    ... )
    >>> [(run.horizon, run.seed) for run in found.runs]
    [(100, 0), (100, 1), (200, 0), (200, 1)]
    """
    horizons, seeds = list(dict.fromkeys(horizons)), list(dict.fromkeys(seeds))
    cases = [
        (name, make, place, world, horizon, seed)
        for name, make in learners.items()
        for place, world in worlds.items()
        for horizon in horizons
        for seed in seeds
    ]
    if not cases:
        raise InputError("a sweep needs at least one learner, world, horizon and seed.")
    kept = load_runs(path) if path is not None and Path(path).exists() else {}
    if path is not None and not kept:
        save_runs({}, path)  # an unwritable path is an error now, not after the first run
    finished: dict[str, Run] = {}
    total = sum(horizon for *_, horizon, _ in cases)
    done = resumed = 0
    interrupted = False
    with Progress(total, "simulating", quiet=quiet) as bar:
        try:
            for name, make, place, world, horizon, seed in cases:
                learner = make(world, horizon)
                key = f"{name} | {place} | {seed} | {learner.settings} | {_fingerprint(world, seed)} | {__version__}"
                if key in kept:
                    finished[key] = kept[key]
                    resumed += 1
                else:
                    detail = f"{name} in {place}, seed {seed}"
                    before = done
                    run = simulate(
                        learner,
                        world,
                        seed=seed,
                        name=place,
                        progress=lambda n, b=before, d=detail: bar.update(b + n, d),  # type: ignore[misc]
                    )
                    finished[key] = kept[key] = replace(run, learner=name)
                    if path is not None:
                        save_runs(kept, path)
                done += horizon
        except KeyboardInterrupt:
            interrupted = True
    return Sweep(runs=list(finished.values()), interrupted=interrupted, resumed=resumed)


def _fingerprint(world: World, seed: int) -> str:
    """Tells worlds apart by what they do: the name of their class, and a hash of their first rounds and rewards."""
    rounds = world.draw(8, seed=seed)
    check_rounds(world, rounds, 8)
    digest = hashlib.sha256()
    rewards = world.rewards(np.asarray(rounds.means)[:, 0], seed=seed)
    for array in (rounds.contexts, rounds.means, rounds.alive, rewards):
        digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    return f"{type(world).__qualname__} {digest.hexdigest()[:16]}"
