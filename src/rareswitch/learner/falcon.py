"""FALCON for linear rewards (Simchi-Levi and Xu 2020)."""

import math
from dataclasses import dataclass
from typing import ClassVar

from rareswitch.confidence import SelfNormalized
from rareswitch.design import Uniform
from rareswitch.learner.grids import Grid, doubling_grid
from rareswitch.learner.interval_learner import GridLearner
from rareswitch.learner.learner import Parts
from rareswitch.learner.rule import Ended, Made, Rule
from rareswitch.learner.statistics import OneModel
from rareswitch.policy import InverseGap, Policy


@dataclass(frozen=True, kw_only=True)
class InverseGapWeighting(Rule):
    """Weigh arms by how far they look behind, on the estimate of the last epoch alone."""

    dim: int
    arms: int
    level: SelfNormalized

    def first(self) -> Made:
        return Made(Policy(dim=self.dim, sampler=Uniform()))

    def next(self, ended: Ended) -> Made:
        (epoch,) = ended.batch.stats
        tail = math.sqrt(2.0 * math.log(2.0 * (ended.state.updates + 1) ** 2 / self.level.delta))
        error = (self.level.noise * (math.sqrt(self.dim) + tail)) ** 2 / epoch.count
        gamma = 0.5 * math.sqrt(self.arms / error) if error > 0.0 else 1e9
        sampler = InverseGap(estimate=epoch.estimate(ridge=self.level.ridge), gamma=gamma)
        return Made(Policy(dim=self.dim, sampler=sampler))


@dataclass(frozen=True, kw_only=True)
class Falcon(GridLearner):
    """Inverse-gap weighting by epochs; regret √(KT·(d + log(1/δ)))·log factors with O(log T) or O(log log T) policies.

    The estimate of epoch m rests on the n decisions of the epoch before it alone, and γ = ½·√(K/ℰ), where
    ℰ = σ²·(√d + √(2 ln(2m²/δ)))²/n bounds the error of least squares on them with probability 1 - δ/(2m²). The first
    epoch is uniform. Epochs double by default; ``paper_grid(T)`` is the O(log log T) schedule, and ``updates`` gives
    that grid with so many.

    >>> Falcon(dim=5, arms=10, horizon=100).clock.ends
    (2, 4, 8, 16, 32, 64, 100)
    """

    name: ClassVar[str] = "falcon"
    text: ClassVar[str] = "inverse-gap weighting by epochs (Simchi-Levi and Xu 2020)"
    adaptivity: ClassVar[str] = "⌈log T⌉"
    regret: ClassVar[str] = "√(dKT), stochastic"

    def default_grid(self) -> Grid:
        return doubling_grid(self.horizon, self.updates)

    def compose(self) -> Parts:
        rule = InverseGapWeighting(dim=self.dim, arms=self.arms, level=self.self_normalized())
        return Parts(rule, self.pace(), OneModel(dim=self.dim, pooled=False))
