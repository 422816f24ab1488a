"""Many runs: learners × worlds × horizons × seeds, resumable."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from rareswitch.env import World
from rareswitch.errors import InputError, UnsuitableError
from rareswitch.learner import Learner
from rareswitch.sim.progress import Progress
from rareswitch.sim.results import load_runs, save_runs
from rareswitch.sim.run import Run
from rareswitch.sim.simulate import check_length, check_rounds, simulate
from rareswitch.version import __version__

LearnerFactory = Callable[[World, int, int], Learner]
"""Makes a fresh learner for a world, a horizon and a seed; the seed is for learners that draw something themselves."""
WorldFactory = Callable[[int], World]
"""Makes a world for a horizon."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sweep:
    """What a sweep brought back."""

    runs: list[Run]
    """In the order learners, worlds, horizons, seeds; the finished ones."""
    interrupted: bool
    """Whether Ctrl-C ended it; the runs finished until then are all here."""
    resumed: int
    """How many runs were taken from the file."""
    skipped: dict[tuple[str, str], str]
    """Why a learner (by name) was not run in a world (by name): it is not made for it."""


def sweep(
    learners: Mapping[str, LearnerFactory],
    worlds: Mapping[str, World | WorldFactory],
    *,
    horizons: Iterable[int],
    seeds: Iterable[int],
    cap: int | None = None,
    path: str | Path | None = None,
    quiet: bool = False,
) -> Sweep:
    """Run every combination, with a progress bar on a terminal.

    Parameters
    ----------
    worlds
        By name; a function of the horizon where the world depends on it.
    cap
        The most policies that a run may deploy; see :func:`simulate`.
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
    ...     {"uniform": lambda world, t, seed: BatchLinUCB(dim=world.dim, arms=world.arms, horizon=t)},
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
    skipped: dict[tuple[str, str], str] = {}
    with Progress(total, "simulating", quiet=quiet) as bar:
        try:
            for name, make, place, world, horizon, seed in cases:
                here = world(horizon) if callable(world) else world
                before, done = done, done + horizon
                if (name, place) in skipped:
                    continue
                check_length(here, horizon)
                try:
                    learner = make(here, horizon, seed)
                    key = " | ".join(
                        (
                            name,
                            place,
                            str(seed),
                            learner.settings,
                            f"cap={cap}",
                            _fingerprint(here, horizon, seed),
                            __version__,
                        )
                    )
                    if key in kept:
                        finished[key] = kept[key]
                        resumed += 1
                    else:
                        show = partial(_show, bar, before, f"{name} in {place}, seed {seed}")
                        run = simulate(learner, here, seed=seed, cap=cap, name=place, progress=show)
                        finished[key] = kept[key] = replace(run, learner=name)
                        if path is not None:
                            save_runs(kept, path)
                except UnsuitableError as error:
                    skipped[name, place] = str(error)
        except KeyboardInterrupt:
            interrupted = True
    return Sweep(runs=list(finished.values()), interrupted=interrupted, resumed=resumed, skipped=skipped)


def _show(bar: Progress, before: int, detail: str, made: int) -> None:
    bar.update(before + made, detail)


def _fingerprint(world: World, horizon: int, seed: int) -> str:
    """Tells worlds apart by what they do: the name of their class, and a hash of some rounds and rewards.

    A world that can differ elsewhere says so by its own ``content``.
    """
    digest = hashlib.sha256()
    count = min(8, horizon)
    for first in (0, (horizon - count) // 2, horizon - count):
        rounds = world.draw(count, seed=seed, first=first)
        check_rounds(world, rounds, count)
        rewards = world.rewards(np.asarray(rounds.means)[:, 0], seed=seed, first=first)
        for array in (rounds.contexts, rounds.means, rounds.alive, rewards):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    digest.update(str(getattr(world, "content", "")).encode())
    return f"{type(world).__qualname__} {digest.hexdigest()[:16]}"
