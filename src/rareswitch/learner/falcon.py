"""FALCON for linear rewards (Simchi-Levi and Xu 2020)."""

import math
from typing import Any, ClassVar

from rareswitch.design import Uniform
from rareswitch.learner.feedback import Summary
from rareswitch.learner.grids import Grid, doubling_grid
from rareswitch.learner.pooled import PooledLearner
from rareswitch.policy import InverseGap, Policy


class Falcon(PooledLearner):
    """Inverse-gap weighting by epochs; regret √(KT·(d + log(1/δ)))·log factors with O(log T) or O(log log T) policies.

    The estimate of epoch m rests on the n decisions of the epoch before it alone, and γ = ½·√(K/ℰ), where
    ℰ = σ²·(√d + √(2 ln(2m²/δ)))²/n bounds the error of least squares on them with probability 1 - δ/(2m²). The first
    epoch is uniform.

    Parameters
    ----------
    batches, grid
        The doubling schedule 2, 4, 8, … by default. ``paper_grid(T)`` is the O(log log T) one; ``batches`` gives that
        grid with so many.

    Examples
    --------
    >>> Falcon(dim=5, arms=10, horizon=100).clock.ends
    (2, 4, 8, 16, 32, 64, 100)
    """

    name: ClassVar[str] = "falcon"

    def __init__(self, *, horizon: int, batches: int | None = None, grid: Grid | None = None, **settings: Any) -> None:
        if grid is None:
            grid = doubling_grid(horizon, batches)
        super().__init__(horizon=horizon, clock=grid, **settings)

    def _make_policy(self) -> Policy:
        return Policy(dim=self.dim, sampler=Uniform())

    def _learn(self, summary: Summary) -> Policy:
        (epoch,) = summary.stats
        level = self.confidence
        tail = math.sqrt(2.0 * math.log(2.0 * (self.updates + 1) ** 2 / level.delta))
        error = (level.noise * (math.sqrt(self.dim) + tail)) ** 2 / epoch.count
        gamma = 0.5 * math.sqrt(self.arms / error) if error > 0.0 else 1e9
        self.total = self.total + epoch
        self.start = summary.stop
        return Policy(
            dim=self.dim, sampler=InverseGap(estimate=epoch.estimate(ridge=level.ridge), gamma=min(gamma, 1e9))
        )
