"""Worlds by name."""

import importlib.util
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from rareswitch.core import LARGEST_SCALE, count_of, number, whole
from rareswitch.errors import InputError, did_you_mean
from rareswitch.lab import distributions as sources
from rareswitch.lab.context_files import SUFFIXES
from rareswitch.lab.worlds.changing import DriftingWorld, LateGroupsWorld, MixDriftWorld, StarvingWorld, TurningWorld
from rareswitch.lab.worlds.classification import LOADERS, ClassificationWorld
from rareswitch.lab.worlds.clicks import LogisticBallWorld, RareClicksWorld
from rareswitch.lab.worlds.linear import (
    ActionsWorld,
    AdaptiveTrialWorld,
    ClickWorld,
    DisjointWorld,
    EndOfOptimismWorld,
    EquicorrelatedWorld,
    HeavyTailsWorld,
    LinearWorld,
    PlainWorld,
)
from rareswitch.lab.worlds.lower_bound import LowerBoundWorld, most_stages
from rareswitch.lab.worlds.movielens import MovieLensWorld
from rareswitch.lab.worlds.sequence import SequenceWorld
from rareswitch.lab.worlds.tables import TABLES, world_of_file
from rareswitch.lab.worlds.world import GaussianNoise, World

#: Makes a world for a number of features, a number of arms, a noise σ and a horizon.
Maker = Callable[[int, int, float, int | None], World]


def _linear(source: Callable[..., sources.ContextDistribution]) -> Maker:
    return lambda d, k, s, t: LinearWorld(source=source(dim=d, arms=k), noise=GaussianNoise(s))


def _ending(name: str, world: Callable[..., World]) -> Maker:
    return lambda d, k, s, t: world(rounds=_given(name, t), dim=d, arms=k, noise=GaussianNoise(s))


def _scikit(name: str) -> Maker:
    return lambda d, k, s, t: ClassificationWorld.scikit(name)


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
        lambda d, k, s, t: EndOfOptimismWorld(noise=GaussianNoise(s)),
    ),
    "random-actions": (
        "one published set of random actions for each size, random-actions:KxD; seeds differ in the noise",
        lambda d, k, s, t: ActionsWorld.random(k, d, noise=GaussianNoise(s)),
    ),
    "adaptive-trial": (
        "ten treatments, five features of users, σ² = 0.2 (AExGym)",
        lambda d, k, s, t: AdaptiveTrialWorld(),
    ),
    "drifting": ("directions that turn over the horizon", _ending("drifting", DriftingWorld)),
    "starving": ("features that first show up late", _ending("starving", StarvingWorld)),
    "lower-bound": (
        "the paper's, for rare switches; two arms, d even; lower-bound:L has L stages",
        lambda d, k, s, t: _lower_bound("", d, s, t),
    ),
    "clicks": (
        "gaussian with rewards 0 or 1",
        lambda d, k, s, t: ClickWorld(source=sources.Gaussian(dim=whole("dim", d, low=2) - 1, arms=k)),
    ),
    "logistic-ball": (
        "logistic clicks, ‖θ‖ = 5, arms in the unit ball; d = 5, 20 arms (RS-GLinCB)",
        lambda d, k, s, t: LogisticBallWorld(),
    ),
    "disjoint": ("6 arms with own parameters over 5 features of a user", lambda d, k, s, t: DisjointWorld()),
    "disjoint-noisy": (
        "4 arms with own parameters over 8 features, σ = 1.5",
        lambda d, k, s, t: DisjointWorld(arms=4, features=8, noise=GaussianNoise(1.5)),
    ),
    "rare-clicks": ("rewards 0 or 1, of 1 to 8 %, logistic; 15 arms", lambda d, k, s, t: RareClicksWorld()),
    "heavy-tails": ("noise like a Student t; 10 arms, d = 8", lambda d, k, s, t: HeavyTailsWorld()),
    "equicorrelated": ("4 arms much alike, d = 40", lambda d, k, s, t: EquicorrelatedWorld()),
    "plain-20": ("20 arms without features that pay 0 to 1 on average", lambda d, k, s, t: PlainWorld()),
    "late-groups": (
        "user groups that appear after 10, 30 and 60 % of the horizon",
        lambda d, k, s, t: LateGroupsWorld(rounds=_given("late-groups", t)),
    ),
    "mix-drift": (
        "user groups whose shares move over the horizon",
        lambda d, k, s, t: MixDriftWorld(rounds=_given("mix-drift", t)),
    ),
    "turning": ("gaussian, with a θ that turns over the horizon", _ending("turning", TurningWorld)),
    "digits": ("handwritten digits as a bandit", lambda d, k, s, t: ClassificationWorld.digits()),
    **{name: (f"scikit-learn's {name} as a bandit", _scikit(name)) for name in LOADERS},
    "movielens": (
        "films for users, from a folder of ratings: movielens:FOLDER",
        lambda d, k, s, t: _movielens("", d, k),
    ),
    "table": (
        "rows of a labelled table, its classes as arms: table:FILE or, as an example, "
        "table:FILE,label=cut,features=shared",
        lambda d, k, s, t: world_of_file("table", ""),
    ),
    "choices": (
        "sets of a table with a row for each set and arm: choices:FILE",
        lambda d, k, s, t: world_of_file("choices", ""),
    ),
}


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
        horizon = count_of("horizon", horizon)
    kind, _, rest = name.partition(":")
    if kind == "movielens":
        return _movielens(rest, dim, arms)
    if kind in TABLES:
        return world_of_file(kind, rest)
    if ".py:" in name:
        return _from_file(name)
    if kind == "lower-bound":
        return _lower_bound(rest, dim, noise, horizon)
    if kind in ("end-of-optimism", "random-actions") and rest:
        return _actions(kind, rest, noise)
    if name not in WORLDS:
        if Path(name).suffix.lower() in SUFFIXES:
            return SequenceWorld.from_file(name, noise=GaussianNoise(noise))
        others = f"path/to/file.py:Class for your own, or a file of context sets ({', '.join(SUFFIXES)})"
        known = f"the worlds are {', '.join(WORLDS)}, or {others}.{did_you_mean(name, WORLDS)}"
        raise InputError(f"there is no world '{name}'; {known}")
    return WORLDS[name][1](dim, arms, noise, horizon)


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


def _given(name: str, horizon: int | None) -> int:
    if horizon is None:
        raise InputError(f"the world '{name}' is made for a horizon, and none was given. Pass horizon=….")
    return horizon


def _lower_bound(text: str, dim: int, noise: float, horizon: int | None) -> World:
    """The instance with the given number of stages; by default the most at υ ≤ 1/4, or the most that there can be."""
    horizon = _given("lower-bound", horizon)
    if text and not (text.isdecimal() and len(text) <= 9):
        raise InputError(f"lower-bound:L takes a whole number of stages; got '{text}'.")
    most = most_stages(horizon=horizon, dim=dim, inverse=4) or most_stages(horizon=horizon, dim=dim) or 1
    return LowerBoundWorld(horizon=horizon, stages=int(text or most), dim=dim, noise=GaussianNoise(noise))


def _actions(kind: str, text: str, noise: float) -> World:
    """The instance of D features, or of K actions and D features."""
    sizes = [int(size) for size in text.split("x") if size.isdecimal() and len(size) <= 9]
    if len(sizes) != text.count("x") + 1 or len(sizes) != (1 if kind == "end-of-optimism" else 2):
        form = "end-of-optimism:5 for 5 features" if kind == "end-of-optimism" else "random-actions:KxD, as in 50x20"
        raise InputError(f"a fixed set of actions is named like {form}; got '{kind}:{text:.60}'.")
    if sizes[0] < 2 or sizes[-1] < 1:
        least = "2 features" if kind == "end-of-optimism" else "2 actions of at least 1 feature"
        raise InputError(f"{kind} has at least {least}; got '{kind}:{text:.60}'.")
    if kind == "end-of-optimism":
        return ActionsWorld.end_of_optimism(sizes[0], noise=GaussianNoise(noise))
    return ActionsWorld.random(sizes[0], sizes[1], noise=GaussianNoise(noise))


def _movielens(folder: str, dim: int, arms: int) -> World:
    if not folder:
        raise InputError("the world 'movielens' is made from a folder of ratings. Name it: movielens:path/to/folder.")
    return MovieLensWorld.from_folder(folder, dim=dim, arms=arms)


def _from_file(name: str) -> World:
    path, _, attribute = name.rpartition(":")
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}; a world of your own is named path/to/file.py:Class.")
    spec = importlib.util.spec_from_file_location(f"rareswitch_world_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        world: World = getattr(module, attribute)()
    except AttributeError as error:
        raise InputError(f"{path} has no class {attribute} ({error}).") from error
    except Exception as error:
        raise InputError(f"{name} could not be made: {type(error).__name__}: {error}") from error
    for needed in ("dim", "arms", "draw", "rewards"):
        if not hasattr(world, needed):
            raise InputError(f"{name} has no '{needed}'; a world needs dim, arms, draw and rewards.")
    return world
