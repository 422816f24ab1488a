"""Many runs: learners × worlds × horizons × seeds, resumable; under caps on the number of policies.

Runs are kept in Parquet files, written whole or not at all; several writers of one file all keep their runs.
"""

import hashlib
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rareswitch.core import Displayed, lock, opened_parquet, pyarrow, replacing, run_shards, seal_footer, whole
from rareswitch.errors import FileFormatError, InputError, UnsuitableError
from rareswitch.lab.simulate import DrawnRounds, Run, check_length, simulate
from rareswitch.lab.worlds import World
from rareswitch.learner import Learner, make_learner, takes
from rareswitch.report import ProgressBar
from rareswitch.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["budgeted", "learner_for", "load_runs", "sweep"]


def learner_for(world: World, name: str, *, horizon: int, seed: int, noise: float, **settings: Any) -> Learner:
    """The learner of that name with the sizes of the world, and noise, norm and seed where it takes them.

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
    of_world = {"noise": getattr(world, "noise_scale", noise), "norm": getattr(world, "norm", 1.0), "seed": seed}
    wanted = {key: value for key, value in of_world.items() if key in takes(name)} | settings
    return make_learner(name, dim=world.dim, arms=world.arms, horizon=horizon, **wanted)


#: The growth of the determinant at which OFUL and RarelySwitch-SupLinUCB wait for no budget.
USUAL = 2.0
#: What stands in for a learner that would change at every step.
STALE = {"linucb": "linucb-grid", "thompson": "thompson-grid", "linmed": "linmed-grid"}


def budgeted(name: str, *, policies: int, dim: int, horizon: int) -> tuple[str, dict[str, float]]:
    """The learner, and the settings with which it spreads ``policies`` policies over its run; none if it cannot.

    Learners that would change at every step are replaced by those that learn by batch. Those that wait for growing
    determinants get the C by which one can grow ``policies`` times, (1 + T/d)^(d/policies), or their usual 2 if
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
class Case:
    """One run of a sweep, before it is run."""

    name: str
    make: LearnerFactory
    place: str
    world: World | WorldFactory
    horizon: int
    seed: int
    cap: int | None = None
    #: The file in which its run is kept.
    path: Path | None = None

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
    def group(self) -> tuple[str, str, int, int | None]:
        """What it has in common with those that differ in the seed alone."""
        return self.name, self.place, self.horizon, self.cap

    @property
    def key(self) -> str:
        """What tells this run from all others."""
        facts = (self.name, self.place, str(self.seed), repr(self.learner), f"cap={self.cap}")
        return " | ".join((*facts, fingerprint(self.find_world(), self.horizon, self.seed), __version__))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Sweep(Displayed):
    """What a sweep brought back."""

    shown_by: ClassVar[str] = "rareswitch.lab.report.plots"

    #: The finished runs, in the order learners, worlds, horizons, seeds.
    runs: list[Run]
    #: Whether Ctrl-C ended it; the runs finished until then are all here.
    interrupted: bool
    #: How many runs were taken from the file.
    resumed: int
    #: Why a learner (by name) was not run in a world (by name): it is not made for it.
    skipped: dict[tuple[str, str], str]


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
    file, horizons, seeds = None if path is None else Path(path), dict.fromkeys(horizons), dict.fromkeys(seeds)
    cases = [
        Case(name=name, make=make, place=place, world=world, horizon=horizon, seed=seed, cap=cap, path=file)
        for name, make in learners.items()
        for place, world in worlds.items()
        for horizon, seed in product(horizons, seeds)
    ]
    return run_cases(cases, executor=executor, quiet=quiet)


def run_cases(cases: Sequence[Case], *, executor: Executor | None = None, quiet: bool = False) -> Sweep:
    """Make the runs that the cases' files do not hold, and keep each in its file as soon as it is finished."""
    if not cases:
        raise InputError("a sweep needs at least one learner, world, horizon and seed.")
    files: dict[Path, dict[str, Run]] = {}

    def runs_of_file(case: Case) -> dict[str, Run]:
        """The runs of the case's file, which is read when the first case of it is due."""
        if case.path is None:
            return {}
        if case.path not in files:
            files[case.path] = _kept([other for other in cases if other.path == case.path], case.path)
        return files[case.path]

    runs_of_file(cases[0])  # an unwritable path is an error now, not after the first run
    for case in cases:
        if case.seed == cases[0].seed:  # what cannot be made is an error before any work
            with suppress(UnsuitableError):
                _ = case.learner
    finished: dict[Case, Run] = {}
    skipped: dict[tuple[str, str, int, int | None], str] = {}
    under_way: deque[tuple[Case, str]] = deque()
    resumed, interrupted = 0, False

    def missing() -> Iterator[Case]:
        """The cases whose runs are not kept, found as the executor asks for them."""
        nonlocal resumed
        for case in cases:
            if case.group in skipped:
                continue
            try:
                key = case.key
            except UnsuitableError as error:
                skipped[case.group] = str(error)
                continue
            if run := runs_of_file(case).get(key):
                finished[case] = run
                resumed += 1
            else:
                under_way.append((case, key))
                yield case

    *before, total = accumulate((case.horizon for case in cases), initial=0)
    starts = dict(zip(cases, before, strict=True))
    with ProgressBar("simulating", quiet=quiet) as bar:

        def show(decided: int) -> None:
            case, _ = under_way[0]
            bar(starts[case] + decided, total, f"{case.name} in {case.place}, seed {case.seed}")

        # here a run can tell how far it is; from elsewhere only whole runs come back
        try:
            function = partial(run_case, progress=show) if executor is None else run_case
            for run in run_shards(function, missing(), executor, label="run"):
                show(under_way[0][0].horizon)
                case, key = under_way.popleft()
                if isinstance(run, str):
                    skipped[case.group] = run
                    continue
                if case.path is not None:  # with what others have added since, which need not be run here
                    files[case.path] |= add_runs(files[case.path] | {key: run}, case.path)
                finished[case] = run  # not before it is kept, as Ctrl-C may come in between
        except KeyboardInterrupt:
            interrupted = True
    reasons = {(name, place): reason for (name, place, *_), reason in skipped.items()}
    runs = [finished[case] for case in cases if case in finished]
    return Sweep(runs=runs, interrupted=interrupted, resumed=resumed, skipped=reasons)


def _kept(cases: list[Case], path: Path) -> dict[str, Run]:
    """The runs of a file, which must be one that can be added to unless it has all of them."""
    try:
        return add_runs({}, path)
    except FileFormatError:
        runs = load_runs(path) if path.is_file() else {}
        for case in cases:
            with suppress(UnsuitableError):  # it will be skipped
                if case.key not in runs:
                    raise
        return runs


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


FORMAT = {b"format": b"rareswitch-runs-1"}
#: The fields of a run, and the types of Arrow in which they are kept; those of arrays are of their entries.
SCALARS = {
    **{"learner": "string", "world": "string", "horizon": "int64", "seed": "int64", "policies": "int64"},
    **{"regret": "double", "linear_regret": "double", "seconds": "double"},
}
ARRAYS = {"times": "int64", "regrets": "double", "batch_ends": "int64", "survivors": "double"}


def add_runs(runs: Mapping[str, Run], path: str | Path) -> dict[str, Run]:
    """Add runs under their keys to those of a file, which is made if it is not there, and return all of them.

    Processes and threads that add to one file take turns, so that the runs of all of them stay.
    """
    pa, parquet = pyarrow()
    path = Path(path)
    with _locked(path):
        every = load_runs(path) if path.exists() else {}
        every |= runs
        rows = [{"key": key, **vars(run)} for key, run in every.items()]
        with replacing(path) as temporary:
            parquet.write_table(pa.Table.from_pylist(rows, _schema()), temporary, write_page_checksum=True)
            seal_footer(temporary)
    return every


def load_runs(path: str | Path) -> dict[str, Run]:
    """The runs of a file by their keys, if they are those that were written."""
    schema = _schema()
    with opened_parquet(str(path)) as file:
        if file.schema_arrow.metadata != FORMAT or file.schema_arrow.names != schema.names:
            raise FileFormatError(f"{path}: a Parquet file, but not one of runs. Name another file.")
        table = file.read().cast(schema)
    columns = {name: table[name].to_pylist() for name in ("key", *SCALARS)}
    columns |= {name: [*table[name].to_numpy()] for name in ARRAYS}
    keys = columns.pop("key")
    runs = (Run(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))
    return dict(zip(keys, runs, strict=True))


def _schema() -> "pa.Schema":
    pa, _ = pyarrow()
    types = {"key": "string", **SCALARS, **{name: pa.list_(pa.type_for_alias(kind)) for name, kind in ARRAYS.items()}}
    return pa.schema(types, FORMAT)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """A block in which nobody else adds runs to a file of its folder; others wait until it is left, or has died."""
    try:
        handle = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be written ({error.strerror or error}).") from error
    try:
        with suppress(OSError):  # some file systems have no locks: then writers only merge
            lock(handle)
        yield
    finally:
        os.close(handle)
