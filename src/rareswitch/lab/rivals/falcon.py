"""FALCON for linear rewards (Simchi-Levi and Xu 2020)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rareswitch.core import (
    LARGEST_PARAMETER,
    FloatArray,
    Sets,
    gather,
    kind,
    largest,
    number,
    parameters,
    vector,
    workspace,
)
from rareswitch.design import Uniform
from rareswitch.lanes import add_rows, compiled, padded_length
from rareswitch.learner import (
    BatchEnd,
    GridLearner,
    NewPolicy,
    OneModel,
    Parts,
    Rule,
    SelfNormalized,
    StaticGrid,
    paper_grid,
)
from rareswitch.policy import FittedSampler, Policy


@compiled
def inverse_gaps(contexts, available, estimate, gamma, probabilities):  # type: ignore[no-untyped-def]
    """``probabilities`` (n, K), zero before, becomes 1/(living + γ·gap); the first best arm has the rest."""
    n, arm_count, dim = contexts.shape
    arms, zero, center, _, place = workspace(arm_count, dim)
    factors = np.ascontiguousarray(estimate).reshape((1, dim))
    for s in range(n):
        left = gather(contexts, available, s, arms, place)
        add_rows(center, zero, 0, factors, 0, arms, dim, padded_length(left))
        best = largest(center, left)
        rest = 1.0
        for i in range(left):
            if i != best:
                share = 1.0 / (left + gamma * max(0.0, center[0, best] - center[0, i]))
                probabilities[s, place[i]] = share
                rest -= share
        probabilities[s, place[best]] = rest


@kind("inverse-gap")
@dataclass(frozen=True, eq=False, kw_only=True)
class InverseGap(FittedSampler):
    """Arm i with probability 1/(K + γ·gap_i), the best-looking one with the rest (Foster and Rakhlin 2020).

    K counts the available arms of the set and gap_i = max_j x_jᵀθ̂ - x_iᵀθ̂.

    >>> InverseGap(estimate=[1.0], gamma=6.0).probabilities([[1.0], [0.0], [-1.0 / 3]]).round(3).tolist()
    [0.798, 0.111, 0.091]
    """

    #: (d,) θ̂
    estimate: FloatArray
    gamma: float

    def __post_init__(self) -> None:
        estimate = vector("estimate", parameters("estimate", self.estimate))
        vars(self).update(estimate=estimate, gamma=number("gamma", self.gamma, low=0.0, high=LARGEST_PARAMETER))

    def fill(self, sets: Sets, probabilities: FloatArray) -> None:
        inverse_gaps(sets.contexts, sets.available, self.estimate, self.gamma, probabilities)


@dataclass(frozen=True, kw_only=True)
class InverseGapWeighting(Rule):
    """Weigh arms by how far they look behind, on the estimate of the last epoch alone."""

    dim: int
    arms: int
    level: SelfNormalized

    def first(self) -> NewPolicy:
        return NewPolicy(Policy(dim=self.dim, sampler=Uniform()))

    def next(self, ended: BatchEnd) -> NewPolicy:
        (epoch,) = ended.batch.stats
        tail = math.sqrt(2.0 * math.log(2.0 * (ended.state.policies + 1) ** 2 / self.level.delta))
        error = (self.level.noise * (math.sqrt(self.dim) + tail)) ** 2 / epoch.count
        gamma = 0.5 * math.sqrt(self.arms / error) if error > 0.0 else 1e9
        sampler = InverseGap(estimate=epoch.estimate(ridge=self.level.ridge), gamma=gamma)
        return NewPolicy(Policy(dim=self.dim, sampler=sampler))


@dataclass(frozen=True, kw_only=True)
class Falcon(GridLearner):
    """Inverse-gap weighting by epochs; regret √(KT·(d + log(1/δ)))·log factors with O(log T) or O(log log T) policies.

    The estimate of epoch m rests on the n decisions of the epoch before it alone, and γ = ½·√(K/ℰ), where
    ℰ = σ²·(√d + √(2 ln(2m²/δ)))²/n bounds the error of least squares on them with probability 1 - δ/(2m²). The first
    epoch is uniform. Epochs double by default; ``paper_grid(T)`` is the O(log log T) schedule, and ``policies`` gives
    that grid with so many.

    >>> Falcon(dim=5, arms=10, horizon=100).clock.ends
    (2, 4, 8, 16, 32, 64, 100)
    """

    name: ClassVar[str] = "falcon"
    text: ClassVar[str] = "inverse-gap weighting by epochs (Simchi-Levi and Xu 2020)"
    adaptivity: ClassVar[str] = "⌈log T⌉"
    regret: ClassVar[str] = "√(dKT), stochastic"

    def default_grid(self) -> StaticGrid:
        if self.policies is not None:
            return paper_grid(self.horizon, self.policies)
        return StaticGrid(ends=(*(2**i for i in range(1, (self.horizon - 1).bit_length())), self.horizon))

    def compose(self) -> Parts:
        rule = InverseGapWeighting(dim=self.dim, arms=self.arms, level=self.self_normalized())
        return Parts(rule, self.pace(), OneModel(dim=self.dim, pooled=False))
