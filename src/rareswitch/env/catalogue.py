"""Worlds by name."""

import importlib.util
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from rareswitch.context_files import SUFFIXES
from rareswitch.distributions import (
    Anisotropic,
    Counterexample,
    FixedActions,
    Gaussian,
    OneBig,
    PlainArms,
    Segments,
    VaryingArms,
    Zipf,
)
from rareswitch.env.adversary import DriftingWorld, StarvingWorld
from rareswitch.env.linear import ClickWorld, LinearWorld
from rareswitch.env.lower_bound import LowerBoundWorld, most_stages
from rareswitch.env.movielens import MovieLensWorld
from rareswitch.env.noise import GaussianNoise
from rareswitch.env.optimism import EndOfOptimismWorld
from rareswitch.env.replay import ClassificationWorld
from rareswitch.env.sequence import SequenceWorld
from rareswitch.env.world import World
from rareswitch.errors import InputError

WORLDS: dict[str, tuple[str, Callable[[int, int, float, int | None], World]]] = {
    "gaussian": ("arms are random directions", lambda d, k, s, t: _linear(Gaussian(dim=d, arms=k), s)),
    "anisotropic": (
        "variance falls over the axes; one is rare",
        lambda d, k, s, t: _linear(Anisotropic(dim=d, arms=k), s),
    ),
    "segments": ("user segments, each rarer than the last", lambda d, k, s, t: _linear(Segments(dim=d, arms=k), s)),
    "zipf": ("arms along axes, some of them rare", lambda d, k, s, t: _linear(Zipf(dim=d, arms=k), s)),
    "fixed": ("one fixed set of random actions", lambda d, k, s, t: _linear(FixedActions(dim=d, arms=k), s)),
    "one-big": ("one long vector among short ones", lambda d, k, s, t: _linear(OneBig(dim=d, arms=k), s)),
    "counterexample": (
        "the paper's, γ = 1000; two arms",
        lambda d, k, s, t: _linear(Counterexample(dim=d, sample=1000), s),
    ),
    "varying": (
        "gaussian, with some arms missing",
        lambda d, k, s, t: _linear(VaryingArms(source=Gaussian(dim=d, arms=k)), s),
    ),
    "plain": ("arms without features; d is their number", lambda d, k, s, t: _linear(PlainArms(arms=k), s)),
    "end-of-optimism": (
        "three arms, of which the worst teaches most; d = 2",
        lambda d, k, s, t: EndOfOptimismWorld(noise=GaussianNoise(s)),
    ),
    "drifting": (
        "directions that turn over the horizon",
        lambda d, k, s, t: DriftingWorld(rounds=_given("drifting", t), dim=d, arms=k, noise=GaussianNoise(s)),
    ),
    "starving": (
        "features that first show up late",
        lambda d, k, s, t: StarvingWorld(rounds=_given("starving", t), dim=d, arms=k, noise=GaussianNoise(s)),
    ),
    "lower-bound": (
        "the paper's, for rare switches; two arms, d even; lower-bound:L has L stages",
        lambda d, k, s, t: _lower_bound(d, s, _given("lower-bound", t)),
    ),
    "clicks": ("gaussian with rewards 0 or 1", lambda d, k, s, t: ClickWorld(source=Gaussian(dim=d - 1, arms=k))),
    "digits": ("handwritten digits as a bandit", lambda d, k, s, t: ClassificationWorld.digits()),
    "movielens": (
        "films for users, from a folder of ratings: movielens:FOLDER",
        lambda d, k, s, t: _movielens("", d, k),
    ),
}


def make_world(name: str, *, dim: int, arms: int, noise: float, horizon: int | None = None) -> World:
    """The world of that name; that of a class in a file, ``path/to/file.py:Class``; or the sets of a file, a path.

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
    if name.startswith("movielens:"):
        return _movielens(name.partition(":")[2], dim, arms)
    if ".py:" in name:
        return _from_file(name)
    name, _, stages = name.partition(":") if name.startswith("lower-bound:") else (name, "", "")
    if stages:
        return _lower_bound(dim, noise, _given(name, horizon), _stages(stages))
    if name not in WORLDS and Path(name).suffix.lower() in SUFFIXES:
        return SequenceWorld.from_file(name, noise=GaussianNoise(noise))
    if name not in WORLDS:
        raise InputError(
            f"there is no world '{name}'; the worlds are {', '.join(WORLDS)}, or path/to/file.py:Class for your own, "
            f"or a file of context sets ({', '.join(SUFFIXES)})."
        )
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
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Tells it from others of the same name: a file may have changed in between."""

    def __call__(self, horizon: int) -> World:
        """The world, as :func:`make_world` makes it."""
        return _made(self, horizon)


@lru_cache(maxsize=16)
def _made(named: NamedWorld, horizon: int) -> World:
    return make_world(named.name, dim=named.dim, arms=named.arms, noise=named.noise, horizon=horizon)


def _linear(source: Any, noise: float) -> World:
    return LinearWorld(source=source, noise=GaussianNoise(noise))


def _given(name: str, horizon: int | None) -> int:
    if horizon is None:
        raise InputError(f"the world '{name}' is made for a horizon, and none was given. Pass horizon=….")
    return horizon


def _stages(text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"lower-bound:L takes a whole number of stages; got '{text}'.")
    return int(text)


def _lower_bound(dim: int, noise: float, horizon: int, stages: int | None = None) -> World:
    """The instance with so many stages; by default the most at υ ≤ 1/4, or the most that there can be."""
    if stages is None:
        stages = most_stages(horizon=horizon, dim=dim, inverse=4) or most_stages(horizon=horizon, dim=dim) or 1
    return LowerBoundWorld(horizon=horizon, stages=stages, dim=dim, noise=GaussianNoise(noise))


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
