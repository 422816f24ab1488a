"""Many runs: learners × worlds × horizons × seeds, resumable; under caps on the number of policies."""

import hashlib
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from rareswitch.core import run_shards, whole
from rareswitch.errors import FileFormatError, InputError, UnsuitableError
from rareswitch.lab.results import add_runs, load_runs
from rareswitch.lab.simulate import DrawnRounds, Run, check_length, simulate
from rareswitch.lab.worlds import World
from rareswitch.learner import Learner, make_learner, takes
from rareswitch.report import ProgressBar
from rareswitch.version import __version__


def learner_for(world: World, name: str, *, horizon: int, seed: int, noise: float, **settings: Any) -> Learner:
    """The learner of that name with the sizes of the world; it is told noise, norm and seed if it wants to know.

    Parameters
    ----------
    noise
        σ, where the world does not say what its own is.
    settings
        Those named here go before what a world says.

    Examples
    --------
    >>> from rareswitch.lab.worlds import make_world
    >>> learner_for(make_world("digits", dim=0, arms=0, noise=0.0), "oful", horizon=1000, seed=0, noise=0.5).dim
    90
    """
    told = {"noise": getattr(world, "noise_scale", noise), "norm": getattr(world, "norm", 1.0), "seed": seed}
    wanted = {key: value for key, value in told.items() if key in takes(name)} | settings
    return make_learner(name, dim=world.dim, arms=world.arms, horizon=horizon, **wanted)


#: The growth of the determinant at which OFUL and RarelySwitch-SupLinUCB wait for no budget.
USUAL = 2.0
#: What stands in for a learner that would change at every step.
STALE = {"linucb": "linucb-grid", "thompson": "thompson-grid", "linmed": "linmed-grid"}


def budgeted(name: str, *, policies: int, dim: int, horizon: int) -> tuple[str, dict[str, Any]]:
    """The learner, and the settings with which it spreads ``policies`` policies over its run; none if it cannot.

    Learners that would change at every step are replaced by those that learn by batch. Those that wait for growing
    determinants get the C by which a determinant can grow so many times, (1 + T/d)^(d/policies), or their usual 2 if
    that is less. That is a plan and no promise: a cap holds because the loop enforces it.

    >>> budgeted("linucb", policies=4, dim=2, horizon=1000)
    ('linucb-grid', {'policies': 4})
    >>> round(budgeted("oful", policies=4, dim=2, horizon=1000)[1]["growth"], 1)
    22.4
    """
    whole("policies", policies)
    name = STALE.get(name, name)
    if "policies" in takes(name):
        return name, {"policies": min(policies, horizon)}
    if "growth" not in takes(name):
        return name, {}
    logarithm = dim * math.log1p(horizon / dim) / policies
    largest = 700.0  # exp(700) is near the largest that a float can hold
    return name, {"growth": max(USUAL, math.exp(min(logarithm, largest)))}


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


def one_sweep(parts: Iterable[Sweep]) -> Sweep:
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

    def find_world(self) -> World:
        """The world, checked to be long enough; it does not travel with the case."""
        world = self.world(self.horizon) if callable(self.world) else self.world
        check_length(world, self.horizon)
        return world

    @cached_property
    def learner(self) -> Learner:
        """The learner, with the sizes of the world."""
        return self.make(self.find_world(), self.horizon, self.seed)

    @property
    def key(self) -> str:
        """What tells this run from all others."""
        facts = (self.name, self.place, str(self.seed), repr(self.learner), f"cap={self.cap}")
        return " | ".join((*facts, fingerprint(self.find_world(), self.horizon, self.seed), __version__))


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
    for case in cases:
        if case.seed == seeds[0]:  # what cannot be made is an error before any work
            with suppress(UnsuitableError):
                _ = case.learner
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
        run = simulate(
            case.learner, case.find_world(), seed=case.seed, cap=case.cap, name=case.place, progress=progress
        )
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
        drawn = DrawnRounds.of(world, count, seed=seed, first=first)
        rewards = drawn.rewards(np.zeros(count, dtype=np.int64))
        for array in (drawn.sets.contexts, drawn.means, drawn.sets.available, rewards):
            digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(str(getattr(world, "content", "")).encode())
    return f"{type(world).__qualname__} {digest.hexdigest()[:16]}"


#: Makes a learner for a cap (None for none), a world, a horizon and a seed.
CappedFactory = Callable[[int | None, World, int, int], Learner]


@dataclass(frozen=True, eq=False, kw_only=True)
class Tradeoff(Sweep):
    """Runs by cap."""

    #: By cap, from few policies to many; None, the last, are the runs without one.
    runs: dict[int | None, list[Run]]  # type: ignore[assignment]


def tradeoff(
    learners: Mapping[str, CappedFactory],
    world: World,
    *,
    horizon: int,
    caps: Iterable[int],
    seeds: Iterable[int],
    name: str = "world",
    path: str | Path | None = None,
    quiet: bool = False,
) -> Tradeoff:
    """Run every learner under every cap and without one, on the same seeds.

    ``path`` is a Parquet file in which runs are kept, as in :func:`~rareswitch.sweep`.

    >>> from rareswitch.lab.worlds import make_world
    >>> from rareswitch.learner import OFUL
    >>> found = tradeoff(
    ...     {"oful": lambda cap, world, t, seed: OFUL(dim=world.dim, arms=world.arms, horizon=t)},
    ...     make_world("gaussian", dim=3, arms=4, noise=0.5), horizon=200, caps=[1, 4], seeds=range(2),
    ... )
    >>> {cap: [run.policies for run in runs] for cap, runs in found.runs.items()}
    {1: [1, 1], 4: [4, 4], None: [17, 16]}
    """
    caps = sorted({whole("cap", cap) for cap in caps})
    seeds = list(seeds)
    if not caps:
        raise InputError("a trade-off needs at least one cap.")
    runs: dict[int | None, list[Run]] = {}

    def under(cap: int | None) -> Sweep:
        makers = {label: partial(make, cap) for label, make in learners.items()}
        found = sweep(makers, {name: world}, horizons=[horizon], seeds=seeds, cap=cap, path=path, quiet=quiet)
        if found.runs:
            runs[cap] = found.runs
        return found

    return Tradeoff(**vars(one_sweep(map(under, (*caps, None)))) | {"runs": runs})
