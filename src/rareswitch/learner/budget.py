"""How a learner is told beforehand how many policies it may deploy."""

import math
from typing import Any

from rareswitch.learner.catalogue import find_learner
from rareswitch.learner.grids import geometric_grid
from rareswitch.validation import whole

NEVER = 1e300
"""A growth of the determinant that is out of reach."""


def budget_settings(name: str, *, updates: int, dim: int, horizon: int) -> dict[str, Any]:
    """Settings with which the learner of that name spreads ``updates`` policies over its run; none if it cannot.

    Batched learners get so many batches, and those that would change at every step a geometric grid of as many. Those
    that wait for growing determinants get the C at which the most policies they could call for, with ridge 1, are so
    many.

    >>> budget_settings("stale-linucb", updates=4, dim=2, horizon=1000)
    {'batches': 4}
    >>> round(budget_settings("oful", updates=4, dim=2, horizon=1000)["growth"])
    63
    >>> budget_settings("linucb", updates=4, dim=2, horizon=1000)["clock"].ends
    (31, 100, 316, 1000)
    """
    takes = find_learner(name).takes
    whole("updates", updates)
    if "batches" in takes:
        return {"batches": min(updates, horizon)}
    if "clock" in takes:
        return {"clock": geometric_grid(horizon, min(updates, horizon))}
    if "growth" not in takes:
        return {}
    models = 1 + math.ceil(math.log2(dim)) if name == "rarely-switch-suplinucb" else 1
    growths = updates / models - 1.0
    logarithm = dim * math.log1p(horizon / dim) / growths if growths > 0.0 else math.inf
    return {"growth": math.exp(logarithm) if logarithm < math.log(NEVER) else NEVER}
