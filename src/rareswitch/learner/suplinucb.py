"""SupLinUCB (Chu et al. 2011), updated at every step."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rareswitch.confidence import Intervals
from rareswitch.learner.clocks import EveryLesson
from rareswitch.learner.interval_learner import IntervalLearner
from rareswitch.learner.layered import Layers
from rareswitch.learner.learner import Parts
from rareswitch.learner.settings import real, setting
from rareswitch.learner.statistics import LayerModels
from rareswitch.linalg import inverse_root
from rareswitch.policy import Layered, Policy
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class OptimisticLayers(Layers):
    """Layer s is accurate to 2^-s; where all widths are below ``exploit`` the highest interval is played."""

    level: Intervals
    settings: "SupLinUCB"

    def model(self, layer: int, stats: Stats) -> tuple[FloatArray, ...]:
        root = self.level.multiplier * inverse_root(self.statistics.precision(stats.gram))
        return stats.estimate(ridge=self.level.ridge), root

    def policy(self, *models: FloatArray) -> Policy:
        estimates, roots, *tails = models
        sampler = Layered(
            estimates=estimates,
            roots=roots,
            tails=tails[0] if tails else None,
            thresholds=0.5 ** np.arange(1.0, self.statistics.layers + 1),
            optimistic=True,
            exploit=1.0 / math.sqrt(self.settings.horizon),
        )
        return Policy(dim=self.statistics.dim, sampler=sampler)


@dataclass(frozen=True, kw_only=True)
class SupLinUCB(IntervalLearner):
    """Regret √(dT log³(KT log T/δ)) for contexts of any kind; a new policy after each decision that teaches a layer.

    ⌈ln T⌉ layers, of which the s-th is accurate to 2^-s. Where all widths are below 1/√T the arm whose interval reaches
    highest is played, and nothing is learned. ``confidence="paper"`` is the authors' 1 + √(½ ln(2KT/δ)), for rewards in
    an interval of length 1.

    >>> SupLinUCB(dim=5, arms=10, horizon=1000).layers
    7
    """

    ridge: float | None = setting(1.0, "λ", real(open_low=True))

    name: ClassVar[str] = "suplinucb"
    text: ClassVar[str] = "layered LinUCB, updated every step (Chu et al. 2011)"
    adaptivity: ClassVar[str] = "up to T"
    regret: ClassVar[str] = "√(dT), adversarial"
    layered: ClassVar[type[OptimisticLayers]] = OptimisticLayers

    @property
    def layers(self) -> int:
        """⌈ln T⌉."""
        return max(1, math.ceil(math.log(self.horizon)))

    def compose(self) -> Parts:
        level = self.intervals()
        statistics = LayerModels(dim=self.dim, layers=self.layers, ridge=level.ridge)
        rule = self.layered(statistics=statistics, level=level, settings=self)
        return Parts(rule, EveryLesson(horizon=self.horizon), statistics)

    def intervals(self) -> Intervals:
        """Those of a layer."""
        if self.confidence == "paper":
            multiplier = 1.0 + math.sqrt(0.5 * math.log(2 * self.arms * self.horizon / self.delta))
            return Intervals(multiplier=multiplier, ridge=1.0, reason="the constants of Chu et al.")
        return self.independent(batches=self.layers + 1, estimates=self.horizon)
