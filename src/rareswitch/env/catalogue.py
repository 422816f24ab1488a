"""Worlds by name."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rareswitch.distributions import (
    Anisotropic,
    Counterexample,
    FixedActions,
    Gaussian,
    OneBig,
    Segments,
    VaryingArms,
    Zipf,
)
from rareswitch.env.linear import ClickWorld, LinearWorld
from rareswitch.env.noise import GaussianNoise
from rareswitch.env.replay import ClassificationWorld
from rareswitch.env.world import World
from rareswitch.errors import InputError

WORLDS: dict[str, tuple[str, Callable[[int, int, float], World]]] = {
    "gaussian": ("arms are random directions", lambda d, k, s: _linear(Gaussian(dim=d, arms=k), s)),
    "anisotropic": (
        "variance falls over the axes; one is rare",
        lambda d, k, s: _linear(Anisotropic(dim=d, arms=k), s),
    ),
    "segments": ("user segments, each rarer than the last", lambda d, k, s: _linear(Segments(dim=d, arms=k), s)),
    "zipf": ("arms along axes, some of them rare", lambda d, k, s: _linear(Zipf(dim=d, arms=k), s)),
    "fixed": ("one fixed set of random actions", lambda d, k, s: _linear(FixedActions(dim=d, arms=k), s)),
    "one-big": ("one long vector among short ones", lambda d, k, s: _linear(OneBig(dim=d, arms=k), s)),
    "counterexample": (
        "the paper's, γ = 1000; two arms",
        lambda d, k, s: _linear(Counterexample(dim=d, sample=1000), s),
    ),
    "varying": (
        "gaussian, with some arms missing",
        lambda d, k, s: _linear(VaryingArms(source=Gaussian(dim=d, arms=k)), s),
    ),
    "clicks": ("gaussian with rewards 0 or 1", lambda d, k, s: ClickWorld(source=Gaussian(dim=d - 1, arms=k))),
    "digits": ("handwritten digits as a bandit", lambda d, k, s: ClassificationWorld.digits()),
}


def make_world(name: str, *, dim: int, arms: int, noise: float) -> World:
    """The world of that name, or that of a class in a file, ``path/to/file.py:Class``."""
    if ".py:" in name:
        return _from_file(name)
    if name not in WORLDS:
        raise InputError(
            f"there is no world '{name}'; the worlds are {', '.join(WORLDS)}, or path/to/file.py:Class for your own."
        )
    return WORLDS[name][1](dim, arms, noise)


def _linear(source: Any, noise: float) -> World:
    return LinearWorld(source=source, noise=GaussianNoise(noise))


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
