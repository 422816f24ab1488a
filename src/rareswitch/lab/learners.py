"""Learners made for a world, or for a number of policies."""

import math
from typing import Any

from rareswitch.lab.worlds import World
from rareswitch.learner import Learner, make_learner, takes
from rareswitch.validation import whole


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
