"""How a learner is told beforehand how many policies it may deploy."""

import math
from typing import Any

from rareswitch.learner.catalogue import find_learner
from rareswitch.learner.grids import geometric_grid
from rareswitch.validation import whole

USUAL = 2.0
"""The growth of the determinant at which OFUL and RarelySwitch-SupLinUCB wait for no budget."""


def budget_settings(name: str, *, updates: int, dim: int, horizon: int) -> dict[str, Any]:
    """Settings with which the learner of that name spreads ``updates`` policies over its run; none if it cannot.

    Batched learners get so many batches, and those that would change at every step a geometric grid of as many. Those
    that wait for growing determinants get the C by which a determinant can grow so many times, (1 + T/d)^(d/updates),
    or their usual 2 if that is less. That is a plan and no promise: a cap holds because the loop enforces it.

    >>> budget_settings("stale-linucb", updates=4, dim=2, horizon=1000)
    {'batches': 4}
    >>> round(budget_settings("oful", updates=4, dim=2, horizon=1000)["growth"], 1)
    22.4
    >>> budget_settings("linucb", updates=4, dim=2, horizon=1000)["clock"].ends
    (31, 100, 316, 1000)
    """
    takes = find_learner(name).takes
    whole("updates", updates)
    if "updates" in takes:
        return {"updates": min(updates, horizon)}
    if "batches" in takes:
        return {"batches": min(updates, horizon)}
    if "clock" in takes:
        return {"clock": geometric_grid(horizon, min(updates, horizon))}
    if "growth" not in takes:
        return {}
    logarithm = dim * math.log1p(horizon / dim) / updates
    return {"growth": max(USUAL, math.exp(min(logarithm, 700.0)))}  # 700 is near the largest that a float can hold
