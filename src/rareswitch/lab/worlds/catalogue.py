"""Worlds by name."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rareswitch.core import LARGEST_SCALE, class_of_file, number, whole
from rareswitch.errors import InputError, did_you_mean
from rareswitch.lab import distributions as sources
from rareswitch.lab.context_files import SUFFIXES
from rareswitch.lab.worlds import clicks, linear, tables
from rareswitch.lab.worlds.classification import LOADERS, ClassificationWorld
from rareswitch.lab.worlds.lower_bound import LowerBoundWorld, most_stages
from rareswitch.lab.worlds.movielens import MovieLensWorld
from rareswitch.lab.worlds.sequence import SequenceWorld
from rareswitch.lab.worlds.world import GaussianNoise, World

__all__ = ["WORLDS", "NamedWorld", "make_world"]


class WorldRequest(NamedTuple):
    """What a world is asked for."""

    name: str
    #: What follows the name after a colon.
    rest: str
    dim: int
    arms: int
    noise: GaussianNoise
    horizon: int | None

    @property
    def rounds(self) -> int:
        """The horizon, which must be there."""
        if self.horizon is None:
            raise InputError(f"the world '{self.name}' is made for a horizon, and none was given. Pass horizon=….")
        return self.horizon


Maker = Callable[[WorldRequest], World]


def _linear(source: Callable[..., sources.ContextDistribution]) -> Maker:
    return lambda asked: linear.LinearWorld(source=source(dim=asked.dim, arms=asked.arms), noise=asked.noise)


def _ending(world: Callable[..., World]) -> Maker:
    return lambda asked: world(rounds=asked.rounds, dim=asked.dim, arms=asked.arms, noise=asked.noise)


def _lower_bound(asked: WorldRequest) -> World:
    """The instance with the given number of stages; by default the most at υ ≤ 1/4, or the most that there can be."""
    horizon, dim, text = asked.rounds, asked.dim, asked.rest
    if text and not (text.isdecimal() and len(text) <= 9):
        raise InputError(f"lower-bound:L takes a whole number of stages; got '{text}'.")
    most = most_stages(horizon=horizon, dim=dim, inverse=4) or most_stages(horizon=horizon, dim=dim) or 1
    return LowerBoundWorld(horizon=horizon, stages=int(text or most), dim=dim, noise=asked.noise)


def _end_of_optimism(asked: WorldRequest) -> World:
    if not asked.rest:
        return linear.EndOfOptimismWorld(noise=asked.noise)
    (dim,) = _sizes(asked, "end-of-optimism:5 for 5 features", (2,), "2 features")
    return linear.ActionsWorld.end_of_optimism(dim, noise=asked.noise)


def _random_actions(asked: WorldRequest) -> World:
    arms, dim = asked.arms, asked.dim
    if asked.rest:
        arms, dim = _sizes(asked, "random-actions:KxD, as in 50x20", (2, 1), "2 actions of at least 1 feature")
    return linear.ActionsWorld.random(arms, dim, noise=asked.noise)


def _sizes(asked: WorldRequest, form: str, least: tuple[int, ...], least_text: str) -> list[int]:
    """The whole numbers, separated by x, that follow a name."""
    sizes = [int(size) for size in asked.rest.split("x") if size.isdecimal() and len(size) <= 9]
    if len(sizes) != asked.rest.count("x") + 1 or len(sizes) != len(least):
        raise InputError(f"a fixed set of actions is named like {form}; got '{asked.name}:{asked.rest:.60}'.")
    if any(size < low for size, low in zip(sizes, least, strict=True)):
        raise InputError(f"{asked.name} has at least {least_text}; got '{asked.name}:{asked.rest:.60}'.")
    return sizes


def _movielens(asked: WorldRequest) -> World:
    if not asked.rest:
        raise InputError("the world 'movielens' is made from a folder of ratings. Name it: movielens:path/to/folder.")
    return MovieLensWorld.from_folder(asked.rest, dim=asked.dim, arms=asked.arms)


def _usual(world: Callable[..., World], **settings: object) -> Maker:
    """A world that has sizes of its own."""
    return lambda asked: world(**settings)


def _of_file(asked: WorldRequest) -> World:
    return tables.world_of_file(asked.name, asked.rest)


def _clicks(asked: WorldRequest) -> World:
    source = sources.Gaussian(dim=whole("dim", asked.dim, low=2) - 1, arms=asked.arms)
    return linear.ClickWorld(source=source)


WORLDS: dict[str, tuple[str, Maker]] = {
    "gaussian": ("arms are random directions", _linear(sources.Gaussian)),
    "anisotropic": ("variance falls over the axes; one is rare", _linear(sources.Anisotropic)),
    "segments": ("user segments, each rarer than the last", _linear(sources.Segments)),
    "zipf": ("arms along axes, some of them rare", _linear(sources.Zipf)),
    "fixed": ("one fixed set of random actions", _linear(sources.FixedActions)),
    "one-big": ("one long vector among short ones", _linear(sources.OneBig)),
    "counterexample": (
        "the paper's, γ = 1000; two arms",
        _linear(lambda dim, arms: sources.Counterexample(dim=dim, sample=1000)),
    ),
    "varying": (
        "gaussian, with some arms missing",
        _linear(lambda **sizes: sources.VaryingArms(source=sources.Gaussian(**sizes))),
    ),
    "plain": ("arms without features; d is their number", _linear(lambda dim, arms: sources.PlainArms(arms=arms))),
    "end-of-optimism": (
        "three arms, of which the worst teaches most; d = 2; end-of-optimism:D has 2D - 1 of them",
        _end_of_optimism,
    ),
    "random-actions": (
        "one published set of random actions for each size, random-actions:KxD; seeds differ in the noise",
        _random_actions,
    ),
    "adaptive-trial": ("ten treatments, five features of users, σ² = 0.2 (AExGym)", _usual(linear.AdaptiveTrialWorld)),
    "drifting": ("directions that turn over the horizon", _ending(linear.DriftingWorld)),
    "starving": ("features that first show up late", _ending(linear.StarvingWorld)),
    "lower-bound": ("the paper's, for rare switches; two arms, d even; lower-bound:L has L stages", _lower_bound),
    "clicks": ("gaussian with rewards 0 or 1", _clicks),
    "logistic-ball": (
        "logistic clicks, ‖θ‖ = 5, arms in the unit ball; d = 5, 20 arms (RS-GLinCB)",
        _usual(clicks.LogisticBallWorld),
    ),
    "disjoint": ("6 arms with own parameters over 5 features of a user", _usual(linear.DisjointWorld)),
    "disjoint-noisy": (
        "4 arms with own parameters over 8 features, σ = 1.5",
        _usual(linear.DisjointWorld, arms=4, features=8, noise=GaussianNoise(1.5)),
    ),
    "rare-clicks": ("rewards 0 or 1, of 1 to 8 %, logistic; 15 arms", _usual(clicks.RareClicksWorld)),
    "heavy-tails": ("noise like a Student t; 10 arms, d = 8", _usual(linear.HeavyTailsWorld)),
    "equicorrelated": ("4 arms much alike, d = 40", _usual(linear.EquicorrelatedWorld)),
    "plain-20": ("20 arms without features that pay 0 to 1 on average", _usual(linear.PlainWorld)),
    "late-groups": (
        "user groups that appear after 10, 30 and 60 % of the horizon",
        lambda asked: linear.LateGroupsWorld(rounds=asked.rounds),
    ),
    "mix-drift": (
        "user groups whose shares move over the horizon",
        lambda asked: linear.MixDriftWorld(rounds=asked.rounds),
    ),
    "turning": ("gaussian, with a θ that turns over the horizon", _ending(linear.TurningWorld)),
    "digits": ("handwritten digits as a bandit", _usual(ClassificationWorld.digits)),
    **{name: (f"scikit-learn's {name} as a bandit", _usual(ClassificationWorld.scikit, name=name)) for name in LOADERS},
    "movielens": ("films for users, from a folder of ratings: movielens:FOLDER", _movielens),
    "table": (
        "rows of a labelled table, its classes as arms: table:FILE or, as an example, "
        "table:FILE,label=cut,features=shared",
        _of_file,
    ),
    "choices": ("sets of a table with a row for each set and arm: choices:FILE", _of_file),
}


#: What may follow the name of these after a colon: sizes, or a file.
EXTENSIBLE = {"movielens", "lower-bound", "end-of-optimism", "random-actions", *tables.TABLES}


def make_world(name: str, *, dim: int = 10, arms: int = 20, noise: float = 0.5, horizon: int | None = None) -> World:
    """The world of that name; that of a class in a file, ``path/to/file.py:Class``; or the sets of a file, a path.

    ``table:FILE`` and ``choices:FILE`` are worlds of tables, see :func:`~rareswitch.lab.worlds.table_world` and
    :meth:`ChoiceWorld.from_file <rareswitch.lab.worlds.ChoiceWorld.from_file>`; what these take follows the file after
    commas, ``table:FILE,label=cut,features=shared``.

    Parameters
    ----------
    name
        One of :data:`WORLDS`, or a path. Some worlds have sizes of their own: see their ``dim`` and ``arms``.
    noise
        σ of the rewards, where the world lets one choose.
    horizon
        The length of worlds that end; the others do not need it.

    Examples
    --------
    >>> make_world("starving", dim=4, arms=3, noise=0.5, horizon=1000).draw(2, seed=1).contexts.shape
    (2, 3, 4)
    """
    if not isinstance(name, str):
        raise InputError(f"a world is named by a text; got {name!r:.60}. A world of your own needs no name.")
    number("noise", noise, low=0.0, high=LARGEST_SCALE)
    if horizon is not None:
        horizon = whole("horizon", horizon)
    kind, colon, rest = name.partition(":")
    if kind in (EXTENSIBLE if colon else WORLDS):
        _, make = WORLDS[kind]
        return make(WorldRequest(kind, rest, dim, arms, GaussianNoise(noise), horizon))
    if ".py:" in name:
        return _from_file(name)
    meant = did_you_mean(kind, EXTENSIBLE) if colon else did_you_mean(name, WORLDS)
    if Path(name).suffix.lower() in SUFFIXES and not (colon and meant):
        return SequenceWorld.from_file(name, noise=GaussianNoise(noise))
    others = f"path/to/file.py:Class for your own, or a file of context sets ({', '.join(SUFFIXES)})"
    known = f"the worlds are {', '.join(WORLDS)}, or {others}.{meant}"
    raise InputError(f"there is no world '{name}'; {known}")


@dataclass(frozen=True, kw_only=True)
class NamedWorld:
    """Makes the world of a name for any horizon, here or in a process to which only the name travels.

    Each horizon's world is made once in a process.

    >>> NamedWorld(name="gaussian", dim=4, arms=3, noise=0.5)(1000).dim
    4
    """

    name: str
    dim: int
    arms: int
    noise: float
    #: Tells it from others of the same name: a file may have changed in between.
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __call__(self, horizon: int) -> World:
        """The world, as :func:`make_world` makes it."""
        return _made(self, horizon)


@lru_cache(maxsize=16)
def _made(named: NamedWorld, horizon: int) -> World:
    return make_world(named.name, dim=named.dim, arms=named.arms, noise=named.noise, horizon=horizon)


def _from_file(name: str) -> World:
    try:
        world: World = class_of_file(name, "world")()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name} could not be made: {type(error).__name__}: {error}") from error
    for needed in ("dim", "arms", "draw", "rewards"):
        if not hasattr(world, needed):
            raise InputError(f"{name} has no '{needed}'; a world needs dim, arms, draw and rewards.")
    return world
