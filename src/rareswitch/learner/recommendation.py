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
    if arms <= dim:
        reason = (
            f"K = {arms} is at most d = {dim}: the uniform sampler's √(dKT) is no worse than the G-optimal one's d√T, "
            "and nothing has to be computed."
        )
        return Recommendation(learner="batch-linucb", updates=batches, reason=reason)
    reason = (
        f"T = {horizon} is below exp(d): learning how to explore saves up to √d = {math.sqrt(dim):.1f} in the bound "
        "over the G-optimal design of each set."
    )
    return Recommendation(learner="batch-linucb-dg-certified", updates=batches + 1, reason=reason)
