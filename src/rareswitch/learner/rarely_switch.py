"""RarelySwitch-SupLinUCB (Algorithm 6)."""

import math
from typing import ClassVar

import numpy as np

from rareswitch.confidence import ConfidenceMode, self_normalized
from rareswitch.confidence import confidence as independent
from rareswitch.learner.clocks import TOLERANCE, growth_factor, most_switches
from rareswitch.learner.kernels import advance_layers
from rareswitch.learner.layered import LayeredLearner
from rareswitch.learner.learner import Walk
from rareswitch.policy import Elimination, Layered, Policy
from rareswitch.policy.elimination import inverse_root
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, Sets, number, whole


class RarelySwitchSupLinUCB(LayeredLearner):
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
        self._models: tuple[tuple[Stats, FloatArray, FloatArray], ...] = ()
        super().__init__(dim=dim, arms=arms, horizon=horizon)
        self.walks = True

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
        ridge = self.confidence.ridge
        old = self._models or (None,) * self.layer_count
        self._models = tuple(  # most layers are as they were in the policy before
            was if was is not None and was[0] is stats else (stats, stats.estimate(ridge=ridge), self._root(k, stats))
            for k, (stats, was) in enumerate(zip(self.frozen, old, strict=True))
        )
        estimates = np.array([estimate for _, estimate, _ in self._models])
        roots = np.array([root for _, _, root in self._models])
        return Policy(
            dim=self.dim,
            eliminations=(Elimination(estimate=estimates[0], root=roots[0]),),
            sampler=Layered(estimates=estimates, roots=roots, thresholds=self.accuracies),
        )

    def _root(self, layer: int, stats: Stats) -> FloatArray:
        """α_κ·L⁻¹."""
        precision = self.precision(stats)
        multiplier = self.confidence.multiplier
        if layer == 0:
            grown = float(np.linalg.slogdet(precision / self.confidence.ridge)[1])
            multiplier = self.first_confidence.multiplier(max(0.0, grown))
        return np.asarray(multiplier * inverse_root(precision))

    def walk(self, sets: Sets, rewards: FloatArray, *, changes: int) -> Walk:
        count, done = len(sets.contexts), 0
        arms, layers, ends = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64), []
        bar = self.growth * (1.0 - TOLERANCE)
        while done < count and changes > 0:
            sampler = self.policy.sampler
            assert isinstance(sampler, Layered)
            now = self._now(self._pending)
            growths = self._growths(now)
            steps = advance_layers(
                sets.contexts[done:],
                sets.alive[done:],
                sampler.estimates,
                sampler.roots,
                sampler.thresholds,
                np.array([inverse_root(self.precision(stats)) for stats in now]),
                growths,
                bar,
                arms[done:],
                layers[done:],
            )
            at = np.arange(done, done + steps)
            done += steps
            self._pending = self._stretch(sets.contexts[at, arms[at]], rewards[at, arms[at]], layers[at])
            if (growths >= bar).any() or self._pending.stop == self.horizon:
                ends.append(self._pending.stop)
                self.next(self._pending)
                self._pending = None
                changes -= 1
        return Walk(arms[:done], np.array([end for end in ends if end < self.horizon], dtype=np.int64))
