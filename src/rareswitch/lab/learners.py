"""Learners made for a world."""

from typing import Any

from rareswitch.lab.worlds import World
from rareswitch.learner import Learner, make_learner, takes


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
