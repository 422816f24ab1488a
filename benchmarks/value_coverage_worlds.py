"""The worlds of value_coverage.py: those of the contest, and tables replayed as worlds."""

import csv
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from measure import FloatArray
from rareswitch.lab import SUITES
from rareswitch.lab.worlds import ClassificationWorld, Rounds, World, make_world
from rareswitch.rng import uniforms

#: Sizes of the worlds that let one choose; those of the contest have 20 arms.
DIM, ARMS, NOISE = 8, 6, 0.5
#: Reported on, and developed on.
TABLES, OTHER_TABLES = ("phishing", "diamonds", "cracker"), ("banana", "segment")
#: By how many sets truths are computed, and of which seed, which no log has.
SETS, TRUTH_SEED = 100_000, 999_999


KEYED = (*SUITES["ten"].worlds, *TABLES, *OTHER_TABLES, "clicks")


class Place(NamedTuple):
    """Where a log is made: its name, and the folder of its data where it has one."""

    name: str
    folder: str = ""

    @property
    def key(self) -> int:
        """Added to seeds: worlds that share random numbers would be wrong together."""
        return 100_000 * (1 + KEYED.index(self.name))


def places(movielens: Path | None, tables: Path | None, *, developing: bool) -> list[Place]:
    """Those that can be made of the folders given."""
    found = [Place(name) for name in SUITES["ten"].worlds if name != "movielens"]
    if movielens is not None:
        found.append(Place("movielens", str(movielens)))
    if tables is not None:
        found += [Place(name, str(tables)) for name in (OTHER_TABLES if developing else TABLES)]
    return found


@lru_cache(maxsize=32)
def world_of(place: Place) -> World:
    """The world; made once in a process."""
    name, folder = place
    if name in TABLES + OTHER_TABLES:
        return purchases(Path(folder)) if name == "cracker" else table(name, Path(folder))
    if name == "clicks":
        return make_world(name, dim=4, arms=3)
    return make_world(f"{name}:{folder}" if folder else name, dim=DIM, arms=ARMS, noise=NOISE)


def everything(place: Place, seed: int) -> Rounds:
    """The sets over which a candidate's value is the truth: all rows of a table, many sets of a world without end."""
    world: Any = world_of(place)
    if isinstance(world, ClassificationWorld):
        return _of_examples(world)
    if isinstance(world, Purchases):
        return world.all
    if place.name in ("fixed", "end-of-optimism"):
        return world_of(place).draw(1, seed=seed)  # the same set in every round
    contexts = _many(place)
    return Rounds(contexts=contexts, means=contexts @ (world.hidden if place.folder else world.theta(seed)))


@lru_cache(maxsize=8)
def _many(place: Place) -> FloatArray:
    """Sets of a world whose seed tells θ and the draws, and nothing else about sets."""
    return world_of(place).draw(SETS, seed=TRUTH_SEED).contexts


def table(name: str, folder: Path) -> ClassificationWorld:
    """A table of numbers and a label, its columns standardised, cut off at three deviations, with a constant."""
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = np.array([[float(value) for key, value in row.items() if key != "label"] for row in rows])
    deviations = np.where(numbers.std(axis=0) > 0.0, numbers.std(axis=0), 1.0)
    standard = np.clip((numbers - numbers.mean(axis=0)) / deviations, -3.0, 3.0)
    labels = np.array([int(row["label"]) for row in rows])
    return ClassificationWorld(name=name, features=np.column_stack([np.ones(len(rows)), standard]), labels=labels)


@dataclass(frozen=True, eq=False)
class Purchases:
    """Each round is a random purchase of a table: what is known of each brand, and 1 for the one that was bought."""

    #: Every purchase of the table.
    all: Rounds

    @property
    def dim(self) -> int:
        return int(self.all.contexts.shape[2])

    @property
    def arms(self) -> int:
        return int(self.all.contexts.shape[1])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        which = np.floor(uniforms(seed, "purchases", first, count)[:, 0] * len(self.all.means)).astype(np.int64)
        return Rounds(contexts=self.all.contexts[which], means=self.all.means[which])

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return means


def purchases(folder: Path) -> Purchases:
    """The table of crackers: four brands, with display, advert and price."""
    with (folder / "cracker.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    brands = sorted({row["arm"] for row in rows})
    kinds = ("display", "advert", "price")
    sets = len(rows) // len(brands)
    contexts, means = np.zeros((sets, len(brands), len(brands) + len(kinds))), np.zeros((sets, len(brands)))
    for row in rows:
        which, brand = int(row["set"]), brands.index(row["arm"])
        contexts[which, brand, brand] = 1.0
        contexts[which, brand, len(brands) :] = [float(row[kind]) for kind in kinds]
        means[which, brand] = float(row["reward"])
    prices = contexts[:, :, -1]
    contexts[:, :, -1] = np.clip((prices - prices.mean()) / prices.std(), -3.0, 3.0) / 3.0
    longest = float(np.linalg.norm(contexts, axis=2).max())
    return Purchases(Rounds(contexts=contexts / longest, means=means))


@lru_cache(maxsize=8)
def _of_examples(world: ClassificationWorld) -> Rounds:
    """Every example of a table."""
    classes = np.arange(world.arms)
    contexts = np.zeros((len(world.labels), world.arms, world.arms, world.features.shape[1]))
    contexts[:, classes, classes] = world.features[:, None, :]
    means = (world.labels[:, None] == classes).astype(np.float64)
    return Rounds(contexts=contexts.reshape(len(means), world.arms, world.dim), means=means)
