"""SupLinUCB (Chu et al. 2011), updated at every step."""

import math
from typing import ClassVar

import numpy as np

from rareswitch.confidence import Confidence, ConfidenceMode, confidence
from rareswitch.learner.kernels import walk_layers
from rareswitch.learner.layered import LayeredLearner
from rareswitch.learner.walking import Walk, Walker
from rareswitch.linalg import inverse_root
from rareswitch.policy import Layered, Policy
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, Sets, number, whole


class SupLinUCB(LayeredLearner, Walker):
    """Regret √(dT log³(KT log T/δ)) for contexts of any kind; a new policy after each decision that teaches a layer.

    ⌈ln T⌉ layers, of which the s-th is accurate to 2^-s. Where all widths are below 1/√T the arm whose interval reaches
    highest is played, and nothing is learned. ``confidence="paper"`` is the authors' 1 + √(½ ln(2KT/δ)), for rewards in
    an interval of length 1.

    >>> SupLinUCB(dim=5, arms=10, horizon=1000).layer_count
    7
    """

    name: ClassVar[str] = "suplinucb"
    growth = 1.0

    def __init__(
        self,
        *,
        dim: int,
        arms: int,
        horizon: int,
        confidence: ConfidenceMode | float = "tight",
        delta: float = 0.05,
        noise: float = 1.0,
        norm: float = 1.0,
        ridge: float = 1.0,
    ) -> None:
        self._layers = max(1, math.ceil(math.log(whole("horizon", horizon, low=2))))
        self.confidence = self._intervals(
            confidence, dim=dim, arms=arms, horizon=horizon, delta=delta, noise=noise, norm=norm, ridge=ridge
        )
        self.accuracies: FloatArray = 0.5 ** np.arange(1.0, self._layers + 1)
        """(S,) 2^-s"""
        super().__init__(dim=dim, arms=arms, horizon=horizon)

    def _intervals(
        self,
        mode: ConfidenceMode | float,
        *,
        dim: int,
        arms: int,
        horizon: int,
        delta: float,
        noise: float,
        norm: float,
        ridge: float,
    ) -> Confidence:
        if mode == "paper":
            delta = number("delta", delta, low=0.0, high=1.0, open_low=True)
            multiplier = 1.0 + math.sqrt(0.5 * math.log(2 * whole("arms", arms) * horizon / delta))
            return Confidence(multiplier=multiplier, ridge=1.0, reason="the constants of Chu et al.")
        return confidence(
            mode,
            dim=dim,
            arms=arms,
            horizon=horizon,
            batches=self._layers + 1,
            estimates=horizon,
            delta=delta,
            noise=noise,
            norm=norm,
            ridge=ridge,
        )

    @property
    def layer_count(self) -> int:
        """⌈ln T⌉."""
        return self._layers

    @property
    def settings(self) -> str:
        """All that tells this learner's runs from those of another, on one line."""
        return f"{type(self).__name__} d={self.dim} K={self.arms} T={self.horizon} {self.confidence}"

    def _make_policy(self) -> Policy:
        estimates, roots, *tails = self._frozen_models()
        sampler = Layered(
            estimates=estimates,
            roots=roots,
            tails=tails[0] if tails else None,
            thresholds=self.accuracies,
            optimistic=True,
            exploit=1.0 / math.sqrt(self.horizon),
        )
        return Policy(dim=self.dim, sampler=sampler)

    def _model(self, layer: int, stats: Stats) -> tuple[FloatArray, ...]:
        root = self.confidence.multiplier * inverse_root(self.precision(stats))
        return stats.estimate(ridge=self.confidence.ridge), root

    def walk(self, sets: Sets, rewards: FloatArray, *, changes: int) -> Walk:
        count, ridge = len(sets.contexts), self.confidence.ridge
        arms = np.empty(count, dtype=np.int64)
        layers = np.empty(count, dtype=np.int64)
        grams = np.array([stats.gram for stats in self.current])
        moments = np.array([stats.moment for stats in self.current])
        steps = walk_layers(
            sets.contexts,
            sets.alive,
            rewards,
            np.array([inverse_root(self.precision(stats)) for stats in self.current]),
            np.array([stats.estimate(ridge=ridge) for stats in self.current]),
            grams,
            moments,
            self.accuracies,
            self.confidence.multiplier,
            1.0 / math.sqrt(self.horizon),
            changes,
            arms,
            layers,
        )
        arms, layers = arms[:steps], layers[:steps]
        seen = rewards[np.arange(steps), arms]
        self.current = self.frozen = tuple(
            Stats(
                gram=grams[k],
                moment=moments[k],
                count=old.count + int((layers == k).sum()),
                square_sum=old.square_sum + float((seen[layers == k] ** 2).sum()),
            )
            for k, old in enumerate(self.current)
        )
        self.start += steps
        self.done = self.start == self.horizon
        self.updates += int((layers >= 0).sum()) - bool(self.done and layers[-1] >= 0)
        if not self.done:
            self.policy = self._make_policy()
        return Walk(arms, None)
