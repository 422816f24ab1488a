"""RarelySwitch-SupLinUCB (Algorithm 6)."""

import math
from typing import ClassVar

import numpy as np

from rareswitch.confidence import ConfidenceMode, self_normalized
from rareswitch.confidence import confidence as independent
from rareswitch.learner.clocks import TOLERANCE, growth_factor, most_switches
from rareswitch.learner.kernels import advance_layers
from rareswitch.learner.layered import LayeredLearner
from rareswitch.learner.walking import Advance, GrowthWalker
from rareswitch.linalg import inverse_root, log_growth
from rareswitch.policy import Elimination, Layered, Policy
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, IntArray, Sets, number, whole


class RarelySwitchSupLinUCB(LayeredLearner, GrowthWalker):
    """O(d log d log T/log C) policies for contexts of any kind; regret C√(dT)·log d·log T·log(dKT/δ).

    κ_0 = ⌈log d⌉ layers stand above layer 0, whose intervals hold although its estimate chose its own data. Layer κ is
    asked to be accurate to ϖ_κ = d^1.5/√T·2^-κ, which exceeds the rewards themselves while T < d³: layer 0 then passes
    sets on early, and the bound says nothing yet.

    Two misprints are corrected: layer κ plays its own widest arm, and ϖ_κ is half of ϖ_{κ-1}. The last layer may play
    any survivor; here it is the one with the best estimate.

    Parameters
    ----------
    growth
        C, by which a layer's determinant must grow before its statistics are frozen anew.
    confidence
        ``"paper"``: α_0 = 2√(d ln(2T/δ)) and α_κ = 10√ln(2dKT/δ). ``"tight"``: for layer 0 the self-normalised bound of
        Abbasi-Yadkori et al., for the others the paper's lemma for independent noise, each with probability 1 - δ/2. A
        number: that multiplier in all layers.
    ridge
        λ; the paper's 1 by default, in every mode, on which its bound on the number of switches rests.

    Examples
    --------
    >>> learner = RarelySwitchSupLinUCB(dim=5, arms=10, horizon=10_000)
    >>> learner.layer_count, learner.switch_bound
    (4, 220)
    """

    name: ClassVar[str] = "rarely-switch-suplinucb"

    def __init__(
        self,
        *,
        dim: int,
        arms: int,
        horizon: int,
        growth: float = 2.0,
        confidence: ConfidenceMode | float = "tight",
        delta: float = 0.05,
        noise: float = 1.0,
        norm: float = 1.0,
        ridge: float = 1.0,
    ) -> None:
        self.growth = growth_factor(growth)
        self.kappa = math.ceil(math.log2(whole("dim", dim)))
        whole("arms", arms)
        whole("horizon", horizon, low=2)
        number("ridge", ridge, low=0.0, open_low=True)
        delta = number("delta", delta, low=0.0, high=1.0, open_low=True)
        share = delta if confidence == "paper" else delta / 2.0
        self.confidence = independent(  # κ_0 layers judge an arm, and each is frozen anew several times
            confidence,
            dim=dim,
            arms=arms,
            horizon=horizon,
            batches=self.kappa + 1,
            estimates=max(1, self.kappa) * most_switches(dim=dim, horizon=horizon, factor=self.growth, ridge=ridge),
            delta=share,
            noise=noise,
            norm=norm,
            ridge=ridge,
        )
        self.first_confidence = self_normalized(
            confidence, dim=dim, horizon=horizon, delta=share, noise=noise, norm=norm, ridge=ridge
        )
        """Of layer 0."""
        self.accuracies: FloatArray = dim**1.5 / math.sqrt(horizon) * 0.5 ** np.arange(self.kappa + 1)
        """(κ_0 + 1,) ϖ"""
        super().__init__(dim=dim, arms=arms, horizon=horizon)

    @property
    def layer_count(self) -> int:
        """κ_0 + 1."""
        return self.kappa + 1

    @property
    def switch_bound(self) -> int:
        """(κ_0 + 1)·(1 + d·log_C(1 + T/(dλ))), layer by layer rounded down: no run can deploy more policies."""
        return self.layer_count * most_switches(
            dim=self.dim, horizon=self.horizon, factor=self.growth, ridge=self.confidence.ridge
        )

    @property
    def settings(self) -> str:
        """All that tells this learner's runs from those of another, on one line."""
        return (
            f"{type(self).__name__} d={self.dim} K={self.arms} T={self.horizon} C={self.growth!r} "
            f"{self.first_confidence} multiplier={self.confidence.multiplier!r}"
        )

    def _make_policy(self) -> Policy:
        estimates, roots = self._frozen_models()
        return Policy(
            dim=self.dim,
            eliminations=(Elimination(estimate=estimates[0], root=roots[0]),),
            sampler=Layered(estimates=estimates, roots=roots, thresholds=self.accuracies),
        )

    def _model(self, layer: int, stats: Stats) -> tuple[FloatArray, ...]:
        precision, ridge = self.precision(stats), self.confidence.ridge
        if layer == 0:
            multiplier = self.first_confidence.multiplier(log_growth(precision, ridge))
        else:
            multiplier = self.confidence.multiplier
        return stats.estimate(ridge=ridge), multiplier * inverse_root(precision)

    def _advance(self, sets: Sets, arms: IntArray) -> Advance:
        assert isinstance(self.policy.sampler, Layered)
        sampler, now = self.policy.sampler, self._now(self._pending)
        growths, bar = self._growths(now), self.growth * (1.0 - TOLERANCE)
        layers = np.empty(len(arms), dtype=np.int64)
        steps = advance_layers(
            sets.contexts,
            sets.alive,
            sampler.estimates,
            sampler.roots,
            sampler.thresholds,
            np.array([inverse_root(self.precision(stats)) for stats in now]),
            growths,
            bar,
            arms,
            layers,
        )
        return Advance(steps, bool((growths >= bar).any()), layers[:steps])
