"""Many runs: learners × worlds × horizons × seeds, resumable."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from rareswitch.errors import FileFormatError, InputError, UnsuitableError
from rareswitch.executors import run_shards
from rareswitch.lab.results import add_runs, load_runs
from rareswitch.lab.rounds import check_length, check_rounds
from rareswitch.lab.run import Run
from rareswitch.lab.simulate import simulate
from rareswitch.lab.worlds import World
from rareswitch.learner import Learner
from rareswitch.report import ProgressBar
from rareswitch.version import __version__

#: Makes a learner for a world, a horizon and a seed; the seed is for learners that draw something themselves.
LearnerFactory = Callable[[World, int, int], Learner]
#: Makes a world for a horizon.
WorldFactory = Callable[[int], World]


@dataclass(frozen=True, eq=False, kw_only=True)
class Sweep:
    """What a sweep brought back."""

    #: In the order learners, worlds, horizons, seeds; the finished ones.
    runs: list[Run]
    #: Whether Ctrl-C ended it; the runs finished until then are all here.
    interrupted: bool
    #: How many runs were taken from the file.
    resumed: int
    #: Why a learner (by name) was not run in a world (by name): it is not made for it.
    skipped: dict[tuple[str, str], str]


def joined(parts: Iterable[Sweep]) -> Sweep:
    """Sweeps made one after the other, up to the first that was interrupted, as one."""
    runs: list[Run] = []
    skipped: dict[tuple[str, str], str] = {}
    resumed, interrupted = 0, False
    for part in parts:
        runs += part.runs
        skipped |= part.skipped
        resumed += part.resumed
        interrupted = part.interrupted
        if interrupted:
            break
    return Sweep(runs=runs, interrupted=interrupted, resumed=resumed, skipped=skipped)


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """One run of a sweep, before it is run."""

    name: str
    make: LearnerFactory
    place: str
    world: World | WorldFactory
    horizon: int
    seed: int
    cap: int | None
    #: Decisions of the cases before it.
    before: int

    @property
    def here(self) -> World:
        """The world, checked to be long enough."""
        world = self.world(self.horizon) if callable(self.world) else self.world
        check_length(world, self.horizon)
        return world

    @property
    def learner(self) -> Learner:
        """The learner, with the sizes of the world."""
        return self.make(self.here, self.horizon, self.seed)

    @property
    def key(self) -> str:
        """What tells this run from all others."""
        world = self.here
        facts = (self.name, self.place, str(self.seed), repr(self.learner), f"cap={self.cap}")
        return " | ".join((*facts, fingerprint(world, self.horizon, self.seed), __version__))


def sweep(
    learners: Mapping[str, LearnerFactory],
    worlds: Mapping[str, World | WorldFactory],
    *,
    horizons: Iterable[int],
    seeds: Iterable[int],
    cap: int | None = None,
    path: str | Path | None = None,
    executor: Executor | None = None,
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
        added at once. Sweeps may share a file at the same time.
    executor
        Where the runs are made, here by default. The same runs come back from all. To processes and clusters the
        factories must travel: functions at the top level of a module, or partials of them.
    quiet
        No progress bar.

    Examples
    --------
    >>> from rareswitch.lab.worlds import make_world
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
    cases: list[Case] = []
    for (name, make), (place, world), horizon, seed in product(learners.items(), worlds.items(), horizons, seeds):
        before = cases[-1].before + cases[-1].horizon if cases else 0
        cases.append(
            Case(name=name, make=make, place=place, world=world, horizon=horizon, seed=seed, cap=cap, before=before)
        )
    if not cases:
        raise InputError("a sweep needs at least one learner, world, horizon and seed.")
    # an unwritable path is an error now, not after the first run; and what a killed sweep left beside it goes
    kept = {} if path is None else _kept(cases, path)
    #: By key, in the order of the cases; None while a run is under way.
    finished: dict[str, Run | None] = {}
    resumed = 0
    interrupted = False
    skipped: dict[tuple[str, str], str] = {}
    under_way: deque[tuple[str, Case]] = deque()

    def missing() -> Iterator[Case]:
        """The cases whose runs are not kept, found as the executor asks for them."""
        nonlocal resumed
        for case in cases:
            if (case.name, case.place) in skipped:
                continue
            try:
                key = case.key
            except UnsuitableError as error:
                skipped[case.name, case.place] = str(error)
                continue
            if key in kept:
                finished[key] = kept[key]
                resumed += 1
            else:
                finished[key] = None
                under_way.append((key, case))
                yield case

    total = sum(case.horizon for case in cases)
    with ProgressBar("simulating", quiet=quiet) as bar:

        def show(made: int) -> None:
            _, case = under_way[0]
            bar(case.before + made, total, f"{case.name} in {case.place}, seed {case.seed}")

        # here a run can tell how far it is; from elsewhere only whole runs come back
        try:
            function = partial(run_case, progress=show) if executor is None else run_case
            for run in run_shards(function, missing(), executor, label="run"):
                show(under_way[0][1].horizon)
                key, case = under_way.popleft()
                if isinstance(run, str):
                    skipped[case.name, case.place] = run
                    continue
                if path is not None:  # with what others have added since, which need not be run here
                    kept |= add_runs(kept | {key: run}, path)
                finished[key] = kept[key] = run  # not before it is kept, as Ctrl-C may come in between
        except KeyboardInterrupt:
            interrupted = True
    runs = [run for run in finished.values() if run is not None]
    return Sweep(runs=runs, interrupted=interrupted, resumed=resumed, skipped=skipped)


def _kept(cases: list[Case], path: str | Path) -> dict[str, Run]:
    """The runs of a file, which must be one that can be added to unless it has all of them."""
    try:
        return add_runs({}, path)
    except FileFormatError:
        found = load_runs(path) if Path(path).is_file() else {}
        for case in cases:
            with suppress(UnsuitableError):  # it will be skipped
                if case.key not in found:
                    raise
        return found


def run_case(case: Case, progress: Callable[[int], None] | None = None) -> Run | str:
    """The run of a case, or why its learner is not made for its world."""
    try:
        run = simulate(case.learner, case.here, seed=case.seed, cap=case.cap, name=case.place, progress=progress)
    except UnsuitableError as error:
        return str(error)
    return replace(run, learner=case.name)


def fingerprint(world: World, horizon: int, seed: int) -> str:
    """Tells worlds apart by what they do: the name of their class, and a hash of some rounds and rewards.

    A world that can differ elsewhere says so by its own ``content``.
    """
    digest = hashlib.sha256()
    count = min(8, horizon)
    for first in (0, (horizon - count) // 2, horizon - count):
        rounds = world.draw(count, seed=seed, first=first)
        check_rounds(world, rounds, count)
        rewards = world.rewards(np.asarray(rounds.means)[:, 0], seed=seed, first=first)
        for array in (rounds.contexts, rounds.means, rounds.available, rewards):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    digest.update(str(getattr(world, "content", "")).encode())
    return f"{type(world).__qualname__} {digest.hexdigest()[:16]}"
