"""Which of the paper's algorithms fits a problem, and why."""

import math
from dataclasses import dataclass

from rareswitch.learner.grids import loglog_batches
from rareswitch.validation import whole


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A learner by name, the number of policies it deploys, and the reason."""

    learner: str
    updates: int
    reason: str


def recommend(*, dim: int, arms: int, horizon: int) -> Recommendation:
    """The algorithm of the batched family with the best regret bound for d, K and T.

    Examples
    --------
    >>> print(recommend(dim=5, arms=20, horizon=100_000).reason)
    T = 100000 is at least exp(d) = 148: BatchLinUCB-KW is already optimal up to logarithms and has no design to learn.
    >>> recommend(dim=20, arms=50, horizon=100_000).learner
    'batch-linucb-dg-certified'
    """
    whole("dim", dim)
    whole("arms", arms)
    whole("horizon", horizon, low=2)
    batches = loglog_batches(horizon)
    if math.log(horizon) >= dim:
        reason = (
            f"T = {horizon} is at least exp(d) = {math.exp(dim):.0f}: BatchLinUCB-KW is already optimal up to "
            "logarithms and has no design to learn."
        )
        return Recommendation(learner="batch-linucb-kw", updates=batches, reason=reason)
    growth = {
        "batch-linucb": math.sqrt(dim * arms),
        "batch-linucb-kw": float(dim),
        "batch-linucb-dg-certified": math.sqrt(dim * max(1.0, math.log2(dim))),
    }
    best = min(growth, key=lambda name: growth[name])
    reason = (
        f"T = {horizon} is below exp(d). Up to constants and logarithms of T the regret bounds are √T times "
        f"√(dK) = {growth['batch-linucb']:.1f} for uniform play, d = {dim} for the G-optimal design of each set and "
        f"√(d log d) = {growth['batch-linucb-dg-certified']:.1f} for a learned design."
    )
    return Recommendation(learner=best, updates=batches + (best == "batch-linucb-dg-certified"), reason=reason)
