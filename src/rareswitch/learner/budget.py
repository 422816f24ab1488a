"""How a learner is told beforehand how many policies it may deploy."""

import math
from typing import Any

from rareswitch.learner.catalogue import takes
from rareswitch.validation import whole

#: The growth of the determinant at which OFUL and RarelySwitch-SupLinUCB wait for no budget.
USUAL = 2.0
#: What stands in for a learner that would change at every step.
STALE = {"linucb": "stale-linucb", "thompson": "stale-thompson", "linmed": "stale-linmed"}


def budgeted(name: str, *, updates: int, dim: int, horizon: int) -> tuple[str, dict[str, Any]]:
    """The learner, and the settings with which it spreads ``updates`` policies over its run; none if it cannot.

    Learners that would change at every step are replaced by those that learn by batch. Those that wait for growing
    determinants get the C by which a determinant can grow so many times, (1 + T/d)^(d/updates), or their usual 2 if
    that is less. That is a plan and no promise: a cap holds because the loop enforces it.

    >>> budgeted("linucb", updates=4, dim=2, horizon=1000)
    ('stale-linucb', {'updates': 4})
    >>> round(budgeted("oful", updates=4, dim=2, horizon=1000)[1]["growth"], 1)
    22.4
    """
    whole("updates", updates)
    name = STALE.get(name, name)
    if "updates" in takes(name):
        return name, {"updates": min(updates, horizon)}
    if "growth" not in takes(name):
        return name, {}
    logarithm = dim * math.log1p(horizon / dim) / updates
    largest = 700.0  # exp(700) is near the largest that a float can hold
    return name, {"growth": max(USUAL, math.exp(min(logarithm, largest)))}
