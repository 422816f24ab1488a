"""Which learner fits a problem, and why."""

import math
from dataclasses import dataclass

from rareswitch.learner.grids import loglog_batches
from rareswitch.validation import count_of, whole


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A learner by name, the number of policies it deploys, and the reason."""

    learner: str
    updates: int
    reason: str
    #: The batched algorithm of the paper with the best regret bound, for those who need one.
    proven: str
    proven_updates: int
    proven_reason: str


def recommend(*, dim: int, arms: int, horizon: int, updates: int = 8) -> Recommendation:
    """What to use for d, K and T: the learner that pays least, and the one whose bound is best.

    Examples
    --------
    >>> found = recommend(dim=5, arms=20, horizon=100_000)
    >>> found.learner, found.updates
    ('foresight', 8)
    >>> print(found.proven_reason)
    T = 100000 is at least exp(d) = 148: BatchLinUCB-KW is already optimal up to logarithms and has no design to learn.
    >>> recommend(dim=20, arms=50, horizon=100_000).proven
    'batch-linucb-dg-certified'
    """
    dim, arms, horizon = count_of("dim", dim), count_of("arms", arms), count_of("horizon", horizon, low=2)
    updates = min(whole("updates", updates), horizon)
    growth = {
        "batch-linucb": math.sqrt(dim * arms),
        "batch-linucb-kw": float(dim),
        "batch-linucb-dg-certified": math.sqrt(dim * max(1.0, math.log2(dim))),
    }
    if math.log(horizon) >= dim:
        proven = "batch-linucb-kw"
        why = (
            f"T = {horizon} is at least exp(d) = {math.exp(dim):.0f}: BatchLinUCB-KW is already optimal up to "
            "logarithms and has no design to learn."
        )
    else:
        proven = min(growth, key=lambda name: growth[name])
        why = (
            f"T = {horizon} is below exp(d). Up to constants and logarithms of T the regret bounds are √T times "
            f"√(dK) = {growth['batch-linucb']:.1f} for uniform play, d = {dim} for the G-optimal design of each set "
            f"and √(d log d) = {growth['batch-linucb-dg-certified']:.1f} for a learned design."
        )
    return Recommendation(
        learner="foresight",
        updates=updates,
        reason="it plans its exploration, has nothing to tune, and leads those with so few policies in the contest.",
        proven=proven,
        proven_updates=loglog_batches(horizon) + (proven == "batch-linucb-dg-certified"),
        proven_reason=why,
    )
