"""Suites of worlds in which contests are held."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rareswitch.errors import InputError
from rareswitch.lab.worlds import NamedWorld

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
