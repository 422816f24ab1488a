"""SupLinUCB (Chu et al. 2011), updated at every step, and the layers that it shares with RarelySwitch."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rareswitch.core import BoolArray, FloatArray, Stats, inverse_root
from rareswitch.learner.clocks import TOLERANCE, EveryInformativeStep
from rareswitch.learner.confidence import IntervalLearner, Intervals
from rareswitch.learner.learner import Parts
from rareswitch.learner.rule import BatchEnd, LayerModels, NewPolicy, SumsRule
from rareswitch.learner.settings import real, setting
from rareswitch.policy import Layered, Policy

__all__ = ["Layers", "OptimisticLayers", "SupLinUCB"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Layers(SumsRule):
    """A policy rests on the frozen statistics of its layers; a layer is frozen anew when its determinant has grown.

    ``growth`` is C, by which the determinant must grow; at 1 each decision that teaches a layer brings a new policy.
    """

    statistics: LayerModels
    growth: float = 1.0

    @abstractmethod
    def model(self, layer: int, stats: Stats) -> tuple[FloatArray, ...]:
        """What a policy needs of a layer with these statistics: its estimate (d,), the root (d, d) of its widths."""

    @abstractmethod
    def policy(self, *models: FloatArray) -> Policy:
        """The policy of the layers' estimates (S, d), roots (S, d, d) and what else a model has, stacked."""

    def from_sums(self, sums: tuple[Stats, ...], start: int) -> NewPolicy:
        models = zip(*(self.model(k, stats) for k, stats in enumerate(sums)), strict=True)
        grams, counts = np.array([stats.gram for stats in sums]), np.array([float(stats.count) for stats in sums])
        return NewPolicy(self.policy(*map(np.array, models)), rule_state={"frozen_gram": grams, "frozen_count": counts})

    def next(self, ended: BatchEnd) -> NewPolicy:
        sampler = ended.state.policy.sampler
        assert isinstance(sampler, Layered)
        held = [sampler.estimates, sampler.roots, *([] if sampler.tails is None else [sampler.tails])]
        models = [part.copy() for part in held]
        frozen = {name: part.copy() for name, part in ended.state.rule_state.items()}
        for k in np.flatnonzero(self.grown(ended)).tolist():
            for part, renewed in zip(models, self.model(k, ended.sums[k]), strict=True):
                part[k] = renewed
            frozen["frozen_gram"][k] = ended.sums[k].gram
            frozen["frozen_count"][k] = ended.sums[k].count
        return NewPolicy(self.policy(*models), rule_state=frozen)

    def grown(self, ended: BatchEnd) -> BoolArray:
        """(S,) which layers are frozen anew."""
        if self.growth == 1.0:
            return np.array([stats.count for stats in ended.sums]) > ended.state.rule_state["frozen_count"]
        growths = self.statistics.progress(ended.sums, ended.state.rule_state, None).growths
        return np.asarray(growths >= self.growth * (1.0 - 2.0 * TOLERANCE))


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
        return Parts(rule, EveryInformativeStep(horizon=self.horizon), statistics)

    def intervals(self) -> Intervals:
        """Those of a layer."""
        if self.confidence == "paper":
            multiplier = 1.0 + math.sqrt(0.5 * math.log(2 * self.arms * self.horizon / self.delta))
            return Intervals(multiplier=multiplier, ridge=1.0)
        return self.independent(batches=self.layers + 1, estimates=self.horizon)
