"""RarelySwitch-SupLinUCB (Algorithm 6)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rareswitch.core import FloatArray, Stats, inverse_root, log_growth
from rareswitch.learner.clocks import growth_factor
from rareswitch.learner.confidence import GrowingLearner, Intervals, SelfNormalized
from rareswitch.learner.learner import Parts
from rareswitch.learner.rule import LayerModels
from rareswitch.learner.settings import real, setting
from rareswitch.learner.suplinucb import Layers
from rareswitch.policy import Elimination, Layered, Policy

__all__ = ["RarelySwitchSupLinUCB"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactLayers(Layers):
    """Layer 0 eliminates by its intervals; layer κ plays its widest arm until all are known to ϖ_κ."""

    #: Of layer 0, whose estimate chose its own data.
    first_level: SelfNormalized
    level: Intervals
    #: (κ_0 + 1,) ϖ
    accuracies: FloatArray

    def model(self, layer: int, stats: Stats) -> tuple[FloatArray, ...]:
        precision, ridge = self.statistics.precision(stats.gram), self.level.ridge
        alpha = self.first_level.multiplier(log_growth(precision, ridge)) if layer == 0 else self.level.multiplier
        return stats.estimate(ridge=ridge), alpha * inverse_root(precision)

    def policy(self, *models: FloatArray) -> Policy:
        estimates, roots = models
        return Policy(
            dim=self.statistics.dim,
            eliminations=(Elimination(estimate=estimates[0], root=roots[0]),),
            sampler=Layered(estimates=estimates, roots=roots, thresholds=self.accuracies),
        )


@dataclass(frozen=True, kw_only=True)
class RarelySwitchSupLinUCB(GrowingLearner):
    """O(d log d log T/log C) policies for contexts of any kind; regret C√(dT)·log d·log T·log(dKT/δ).

    κ_0 = ⌈log d⌉ layers stand above layer 0, whose intervals hold although its estimate chose its own data. Layer κ is
    asked to be accurate to ϖ_κ = d^1.5/√T·2^-κ, which exceeds the rewards themselves while T < d³: layer 0 then passes
    sets on early, and the bound says nothing yet.

    Two misprints are corrected: layer κ plays its own widest arm, and ϖ_κ is half of ϖ_{κ-1}. The last layer may play
    any survivor; here it is the one with the best estimate.

    ``confidence="paper"``: α_0 = 2√(d ln(2T/δ)) and α_κ = 10√ln(2dKT/δ). ``"tight"``: for layer 0 the self-normalised
    bound of Abbasi-Yadkori et al., for the others the paper's lemma for independent noise, each with probability
    1 - δ/2. A number: that multiplier in all layers.

    >>> learner = RarelySwitchSupLinUCB(dim=5, arms=10, horizon=10_000)
    >>> learner.layers, learner.switch_bound
    (4, 220)
    """

    growth: float = setting(2.0, "C, by which a layer's determinant grows before it is frozen anew", growth_factor)
    ridge: float = setting(1.0, "λ; the paper's 1, on which its bound on the switches rests", real(open_low=True))

    name: ClassVar[str] = "rarely-switch-suplinucb"
    text: ClassVar[str] = "layers frozen until their determinants grow by C (Algorithm 6)"
    adaptivity: ClassVar[str] = "O(d log d log T / log C)"
    regret: ClassVar[str] = "C√(dT), adversarial"

    @property
    def layers(self) -> int:
        """κ_0 + 1."""
        return math.ceil(math.log2(self.dim)) + 1

    @property
    def switch_bound(self) -> int:
        """(κ_0 + 1)·(1 + d·log_C(1 + T/(dλ))), layer by layer rounded down: no run can deploy more policies."""
        return self.layers * super().switch_bound

    def compose(self) -> Parts:
        kappa = self.layers - 1
        share = self.delta if self.confidence == "paper" else self.delta / 2.0
        clock = self.pace()
        switches = clock.most(self.dim, self.ridge)
        statistics = LayerModels(dim=self.dim, layers=self.layers, ridge=self.ridge)
        rule = ExactLayers(
            statistics=statistics,
            growth=self.growth,
            first_level=self.self_normalized(delta=share),
            # κ_0 layers judge an arm, and each is frozen anew several times
            level=self.independent(batches=self.layers, estimates=max(1, kappa) * switches, delta=share),
            accuracies=self.dim**1.5 / math.sqrt(self.horizon) * 0.5 ** np.arange(kappa + 1),
        )
        return Parts(rule, clock, statistics)
