"""The contest: learners of the library in fixed suites of worlds."""

import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from rareswitch.design import GOptimal
from rareswitch.errors import FileFormatError, InputError, UnsuitableError
from rareswitch.lab.sweep import Case, Sweep, learner_for, run_cases
from rareswitch.lab.worlds import NamedWorld, World
from rareswitch.learner import Learner, StaticGrid, geometric_grid

__all__ = ["ENTRANTS", "FROM_FILES", "SUITES", "choose_entrants", "contest", "left_out", "world_at"]

#: Sizes and σ of the worlds that let one choose.
DIM, ARMS, NOISE = 10, 20, 0.5
#: What a learner is developed on, or what is reported.
Half = Literal["development", "reporting"]
HALVES: tuple[Half, ...] = get_args(Half)
#: Real tables, in halves that were chosen before anything was developed on them.
DEVELOPMENT_TABLES = ("wine", "digits", "banana", "phishing", "movielens")
REPORTING_TABLES = ("iris", "breast-cancer", "segment", "diamonds", "cracker")
#: The first of the seeds on which learners are developed; those before are to report on.
DEVELOPMENT_SEED = 1000
#: Worlds that are made from files: the folder they are in, as it is asked for, and their names with that folder.
FROM_FILES: Mapping[str, tuple[Literal["data", "tables"], str]] = {
    "movielens": ("data", "movielens:{}"),
    **{name: ("tables", f"table:{{}}/{name}.csv") for name in ("segment", "phishing", "banana", "diamonds")},
    "cracker": ("tables", "choices:{}/cracker.csv"),
}


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Worlds that are run together, for how long, and who enters by default."""

    text: str
    worlds: tuple[str, ...]
    horizons: tuple[int, ...]
    #: Labels, or patterns of them as shells have them; all but the slow ones by default.
    entrants: tuple[str, ...] | None = None
    #: Whether its real tables come in halves.
    halved: bool = False

    def of(self, half: Half | None) -> tuple[str, ...]:
        """The worlds of a half: its tables, and what the seed draws anew; all worlds by default.

        >>> SUITES["field"].of("reporting")[:5]
        ('iris', 'breast-cancer', 'segment', 'diamonds', 'cracker')
        """
        if half is None:
            return self.worlds
        if half not in HALVES:
            raise InputError(f"the halves of a suite are {' and '.join(HALVES)}; got '{half}'.")
        if not self.halved:
            raise InputError("this suite has no halves; only the tables of 'field' are in two. Leave out half.")
        others = REPORTING_TABLES if half == "development" else DEVELOPMENT_TABLES
        return tuple(world for world in self.worlds if world not in others)


#: Who enters where relatives are compared. Others join by a line here.
RELATIVES = (
    *("foresight", "foresight 16", "linucb *", "thompson *", "oful*", "batched-thompson*"),
    *("thompson-grid *", "linmed-grid *", "pure-exploitation geometric", "rho*", "e4"),
)
SUITES: dict[str, Suite] = {
    "ten": Suite(
        text="the worlds on which foresight was developed",
        worlds=(
            *("gaussian", "anisotropic", "segments", "zipf", "fixed"),
            *("one-big", "counterexample", "end-of-optimism", "digits", "movielens"),
        ),
        horizons=(10_000, 100_000),
    ),
    "field": Suite(
        text="real tables, disjoint arms, clicks, heavy tails, many features, plain arms",
        worlds=(
            *(DEVELOPMENT_TABLES + REPORTING_TABLES),
            *("disjoint", "disjoint-noisy", "rare-clicks", "heavy-tails", "equicorrelated", "plain-20"),
        ),
        horizons=(30_000,),
        entrants=RELATIVES,
        halved=True,
    ),
    "changing": Suite(
        text="contexts or θ change in the course of the horizon",
        worlds=("late-groups", "mix-drift", "turning"),
        horizons=(30_000,),
        entrants=(*RELATIVES, "foresight *"),
    ),
}


def find_suite(name: str) -> Suite:
    """The suite of that name.

    >>> find_suite("changing").worlds
    ('late-groups', 'mix-drift', 'turning')
    """
    if name not in SUITES:
        raise InputError(f"there is no suite '{name}'; the suites are {', '.join(SUITES)}.")
    return SUITES[name]


def world_at(place: str, folders: Mapping[str, str | Path | None]) -> NamedWorld:
    """Makes the world of a name; one from files needs the folder ``data`` (ratings) or ``tables``."""
    name = place
    if place in FROM_FILES:
        which, pattern = FROM_FILES[place]
        folder = folders[which]
        if folder is None:
            what = "ratings" if which == "data" else "tables"
            remedy = f"Give it as {which} (--{which}) or leave the world out."
            raise InputError(f"the world '{place}' needs a folder of {what}. {remedy}")
        name = pattern.format(folder)
    return NamedWorld(name=name, dim=DIM, arms=ARMS, noise=NOISE)


def left_out(places: Iterable[str], folders: Mapping[str, str | Path | None]) -> dict[str, str]:
    """The worlds for which a folder is missing, with what it is asked for as.

    >>> left_out(SUITES["ten"].worlds, {"data": None, "tables": None})
    {'movielens': 'data'}
    """
    needed = {place: FROM_FILES[place][0] for place in places if place in FROM_FILES}
    return {place: which for place, which in needed.items() if folders[which] is None}


#: ``adaptive``: a new policy at every step. ``rare``: at most 8 policies in a run. ``other``: between the two.
Kind = Literal["adaptive", "rare", "other"]
KINDS: tuple[Kind, ...] = get_args(Kind)
#: Policies of the rare ones, where their number is a setting.
POLICIES = 8
#: Settings with which tunable learners enter: widths of LinUCB, spreads of Thompson sampling.
SCALES = (0.25, 0.5, 1.0, 2.0)
#: Weights of the best-looking arm with which LinMED enters: its authors' three.
GREEDY = (0.5, 0.9, 0.99)
SEEDS = 20
#: Learners with few updates, the best of which in each world is what the challengers are held against.
RIVALS = ("thompson-grid", "pure-exploitation", "e4", "rho", "linmed-grid")
CHALLENGERS = ("foresight",)


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """A learner with the settings it enters with.

    >>> from rareswitch.lab.worlds import make_world
    >>> world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    >>> entrant = Entrant(learner="pure-exploitation", kind="rare", grid=partial(geometric_grid, policies=3))
    >>> entrant.make(world, 10_000, 0).clock.ends
    (100, 1000, 10000)
    """

    #: Its name in the catalogue.
    learner: str
    kind: Kind
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Batch ends for a horizon, where the learner's own are not wanted.
    grid: Callable[[int], StaticGrid] | None = None
    #: Whether it stays out unless it is asked for.
    slow: bool = False

    def make(self, world: World, horizon: int, seed: int) -> Learner:
        """The learner, with the world's noise and length of θ where it takes them."""
        if self.settings.get("policies", 1) > horizon:
            raise UnsuitableError(f"{self.settings['policies']} policies do not fit into {horizon} decisions.")
        grid = {} if self.grid is None else {"grid": self.grid(horizon)}
        return learner_for(world, self.learner, horizon=horizon, seed=seed, noise=NOISE, **grid, **self.settings)


def _each(
    learner: str, kind: Kind, setting: str, values: Iterable[float], *, slow: bool = False, **others: Any
) -> dict[str, Entrant]:
    """A learner with each value of a setting."""
    entrants = {a: Entrant(learner=learner, kind=kind, settings={setting: a, **others}, slow=slow) for a in values}
    return {f"{learner} {a:g}": entrant for a, entrant in entrants.items()}


def _rare(
    learner: str, label: str = "", *, grid: Callable[[int], StaticGrid] | None = None, **settings: Any
) -> dict[str, Entrant]:
    return {label or learner: Entrant(learner=learner, kind="rare", settings=settings, grid=grid)}


#: Who takes part, by label. Another learner joins by a line here.
ENTRANTS: dict[str, Entrant] = {
    **_rare("foresight"),
    "foresight 16": Entrant(learner="foresight", kind="other", settings={"policies": 16}),
    # for contexts or a θ that change: policies in reserve, older batches discounted
    "foresight reserve 2": Entrant(learner="foresight", kind="rare", settings={"reserve": 2}, slow=True),
    "foresight 16 reserve 4": Entrant(
        learner="foresight", kind="other", settings={"policies": 16, "reserve": 4}, slow=True
    ),
    "foresight discount 0.5": Entrant(learner="foresight", kind="rare", settings={"discount": 0.5}, slow=True),
    **_each("linucb", "adaptive", "confidence", SCALES),
    **_each("thompson", "adaptive", "scale", SCALES),
    **_each("linmed", "adaptive", "greedy", GREEDY, slow=True),
    "suplinucb": Entrant(learner="suplinucb", kind="adaptive"),
    "suplinrel": Entrant(learner="suplinrel", kind="adaptive", slow=True),
    "oful": Entrant(learner="oful", kind="other"),
    "batched-thompson": Entrant(learner="batched-thompson", kind="other"),
    "batched-thompson 0.5": Entrant(learner="batched-thompson", kind="other", settings={"scale": 0.5}),
    "oful 1": Entrant(learner="oful", kind="other", settings={"confidence": 1.0}),
    "rarely-switch-suplinucb": Entrant(learner="rarely-switch-suplinucb", kind="other"),
    **_each("linucb-grid", "rare", "confidence", SCALES, policies=POLICIES),
    **_each("thompson-grid", "rare", "scale", SCALES, policies=POLICIES),
    **_each("linmed-grid", "rare", "greedy", GREEDY, policies=POLICIES),
    **_rare("pure-exploitation", policies=POLICIES),
    **_rare("pure-exploitation", "pure-exploitation geometric", grid=partial(geometric_grid, policies=POLICIES)),
    **_rare("rho", policies=POLICIES),
    **_rare("rho", "rho 0.7", policies=POLICIES, weight=0.7),
    **_rare("batch-linucb"),
    **_rare("batch-linucb-kw", g_optimal=GOptimal()),
    **_rare("batch-linucb-dg", g_optimal=GOptimal()),
    **_rare("batch-linucb-dg-certified", g_optimal=GOptimal()),
    **_rare("falcon", policies=POLICIES),
    **_rare("fixed-set-elimination", policies=POLICIES),
    **_rare("e4"),
    **_rare("base"),
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Contest(Sweep):
    """What a contest brought back: runs horizon by horizon, world by world, in the order of the entrants."""

    #: By label, which is the learner of the runs.
    entrants: Mapping[str, Entrant]


def choose_entrants(
    names: Iterable[str] | None = None, *, slow: bool = False, suite: str = "ten"
) -> dict[str, Entrant]:
    """The entrants of these labels, learners or kinds, in the order of :data:`ENTRANTS`; by default those of the suite.

    Labels may be patterns.

    >>> list(choose_entrants(["thompson 0.5", "oful*", "linmed"]))
    ['thompson 0.5', 'linmed 0.5', 'linmed 0.9', 'linmed 0.99', 'oful', 'oful 1']
    """
    if names is None:
        patterns = find_suite(suite).entrants
        if patterns is not None:
            return {label: e for label, e in ENTRANTS.items() if any(fnmatchcase(label, p) for p in patterns)}
        return {label: entrant for label, entrant in ENTRANTS.items() if slow or not entrant.slow}
    wanted = set(names)
    learners, kinds = {entrant.learner for entrant in ENTRANTS.values()} - set(ENTRANTS), set(KINDS)
    for name in sorted(wanted - learners - kinds):
        if not any(fnmatchcase(label, name) for label in ENTRANTS):
            raise InputError(
                f"nobody in the contest is called '{name}'; there are {', '.join(ENTRANTS)}. 'foresight*' stands for "
                f"all whose names begin so, a learner's name that is none of these for all its settings, and "
                f"{', '.join(KINDS)} for all of that kind."
            )

    def meant(label: str, entrant: Entrant) -> bool:
        named = any(fnmatchcase(label, name) for name in wanted)
        return named or entrant.learner in wanted & learners or (entrant.kind in wanted and (slow or not entrant.slow))

    return {label: entrant for label, entrant in ENTRANTS.items() if meant(label, entrant)}


def contest(
    entrants: Mapping[str, Entrant] | None = None,
    *,
    suite: str = "ten",
    half: Half | None = None,
    places: Iterable[str] | None = None,
    data: str | Path | None = None,
    tables: str | Path | None = None,
    horizons: Iterable[int] | None = None,
    seeds: Iterable[int] | None = None,
    path: str | Path | None = None,
    executor: Executor | None = None,
    quiet: bool = False,
) -> Contest:
    """Run every entrant in every world, on the same seeds.

    Parameters
    ----------
    entrants
        By label; those of the suite by default.
    suite
        One of :data:`SUITES`, from which worlds, entrants and horizons come that are not given.
    half
        Whether only the tables to develop on or those to report on are run, in a suite that has such halves.
    places
        Names of worlds; by default those of the suite whose folders are given.
    data
        The folder of ratings for movielens.
    tables
        The folder with segment.csv, phishing.csv, banana.csv, diamonds.csv and cracker.csv.
    seeds
        By default the first 20 that are to report on, or to develop on where that half is asked for.
    path
        A folder, made if need be, of Parquet files, one for each world and horizon, in which runs are kept as in
        :func:`~rareswitch.sweep`. Contests can share it at the same time.
    executor
        Where the runs are made, here by default.

    Examples
    --------
    >>> found = contest(choose_entrants(["linucb 1", "base"]), places=["fixed"], horizons=[100], seeds=range(2))
    >>> [(run.learner, run.seed) for run in found.runs], list(found.skipped)
    ([('linucb 1', 0), ('linucb 1', 1)], [('base', 'fixed')])
    """
    folders: dict[str, str | Path | None] = {"data": data, "tables": tables}
    chosen, missing = find_suite(suite), left_out(find_suite(suite).of(half), folders)
    entrants = choose_entrants(suite=suite) if entrants is None else entrants
    horizons = list(dict.fromkeys(chosen.horizons if horizons is None else horizons))
    seeds = list(dict.fromkeys(range(first_seed(half), first_seed(half) + SEEDS) if seeds is None else seeds))
    places = [place for place in chosen.of(half) if place not in missing] if places is None else list(places)
    other = [place for place in places if place in chosen.worlds and place not in chosen.of(half)]
    if other:
        raise InputError(f"{', '.join(other)}: not of the {half} half of the suite. Leave out half, or these worlds.")
    if not entrants or not places or not horizons or not seeds:
        raise InputError("a contest needs at least one entrant, world, horizon and seed.")
    folder, cases = None if path is None else _folder(Path(path)), []
    for horizon, place in product(horizons, dict.fromkeys(places)):
        facts = {"place": place, "world": world_at(place, folders), "horizon": horizon}
        file = None if folder is None else folder / f"{plain_name(place)}-{horizon}.parquet"
        every = product(entrants.items(), seeds)
        cases += [Case(name=label, make=e.make, seed=seed, path=file, **facts) for (label, e), seed in every]
    return Contest(entrants=entrants, **vars(run_cases(cases, executor=executor, quiet=quiet)))


def plain_name(place: str) -> str:
    """The name of a world as part of a file's name.

    >>> plain_name("worlds/own.py:Own")
    'worlds_own.py_Own'
    """
    return re.sub(r"[^\w.-]+", "_", place)


def first_seed(half: Half | None) -> int:
    """Where the seeds of a half begin.

    >>> first_seed("reporting"), first_seed("development")
    (0, 1000)
    """
    return DEVELOPMENT_SEED if half == "development" else 0


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise FileFormatError(f"{path}: a contest is kept in a folder and this is a file; name another.") from error
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be made ({error.strerror or error}).") from error
    return path
