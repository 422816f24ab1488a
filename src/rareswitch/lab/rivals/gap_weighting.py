"""Learners that weigh arms by how far they look behind: FALCON, LinMED, and pure exploitation, which takes the best.

FALCON is of Simchi-Levi and Xu (2020), LinMED of Balagopalan and Jun (2025), pure exploitation in batches of Han et
al. (2020).
"""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from rareswitch.core import (
    LARGEST_PARAMETER,
    TIE,
    FloatArray,
    Sets,
    Stats,
    gather,
    kind,
    largest,
    log_growth,
    number,
    of_type,
    parameters,
    vector,
    workspace,
)
from rareswitch.design import GOptimal, Uniform
from rareswitch.lanes import add_rows, compiled, padded_length, triangular_squares
from rareswitch.learner import (
    LEAST_DELTA,
    BatchEnd,
    GridLearner,
    IntervalLearner,
    NewPolicy,
    OneModel,
    OneModelRule,
    Parts,
    Rule,
    SelfNormalized,
    StaleLearner,
    StaticGrid,
    design_of_sets,
    paper_grid,
    real,
    setting,
)
from rareswitch.policy import Elimination, FittedSampler, Policy, PosteriorDraws


class Greedy(OneModelRule):
    """The arm with the best estimate; uniform while nothing is known."""

    def from_sums(self, sums: tuple[Stats, ...], start: int) -> NewPolicy:
        (total,) = sums
        best = PosteriorDraws(draws=total.estimate(ridge=self.level.ridge)[None])
        return NewPolicy(Policy(dim=total.dim, sampler=best if total.count else Uniform()))


@dataclass(frozen=True, kw_only=True)
class PureExploitation(GridLearner):
    """Plays the arm with the best estimate; regret √(dT)·log factors where contexts explore by themselves.

    The bound asks for contexts whose best arms span all directions (Gaussian ones, say). Where they do not, the regret
    is linear: nothing in it ever looks again at an arm that looked bad. All data are pooled; the first batch, which
    knows nothing, is uniform.

    >>> PureExploitation(dim=5, arms=10, horizon=10_000, policies=3).clock.ends
    (193, 2682, 10000)
    """

    name: ClassVar[str] = "pure-exploitation"
    text: ClassVar[str] = "the best-looking arm, updated by batch (Han et al. 2020)"
    adaptivity: ClassVar[str] = "⌈log log T⌉"
    regret: ClassVar[str] = "√(dT), contexts that explore by themselves"

    def compose(self) -> Parts:
        return self.by_sums(Greedy)


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
    that grid with this number of policies.

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


@compiled
def divergences(contexts, available, estimate, root, agreement, best):  # type: ignore[no-untyped-def]
    """How well each available arm agrees with being best, exp(-gap²/‖root·(best - x)‖²), into ``agreement`` (n, K).

    ``best`` (n, K) becomes 1 for the arms that look best and 0 for the others. Both are zero before.
    """
    n, arm_count, dim = contexts.shape
    arms, zero, center, square, place = workspace(arm_count, dim)
    factors = np.ascontiguousarray(estimate).reshape((1, dim))
    for s in range(n):
        left = gather(contexts, available, s, arms, place)
        length = padded_length(left)
        add_rows(center, zero, 0, factors, 0, arms, dim, length)
        chosen = largest(center, left)
        highest_one = center[0, 0]
        for i in range(1, left):
            highest_one = max(highest_one, center[0, i])
        bar = highest_one - TIE * abs(highest_one)
        for j in range(dim):
            origin = arms[j, chosen]
            for i in range(length):
                arms[j, i] -= origin
        triangular_squares(square, root, arms, dim, length)
        for i in range(left):
            if center[0, i] >= bar:
                agreement[s, place[i]] = best[s, place[i]] = 1.0
            elif square[0, i] > 0.0:
                agreement[s, place[i]] = math.exp(-((highest_one - center[0, i]) ** 2) / square[0, i])


@compiled
def weighted(agreement, design, available, greedy, probabilities):  # type: ignore[no-untyped-def]
    """``probabilities`` (n, K), 1 for the best-looking arms before, become those of minimum empirical divergence."""
    for s in range(probabilities.shape[0]):
        left, best = 0.0, 0.0
        for i in range(probabilities.shape[1]):
            left += available[s, i]
            best += probabilities[s, i]
        total = 0.0
        for i in range(probabilities.shape[1]):
            if available[s, i]:
                rest = 0.5 * (1.0 - greedy) * (design[s, i] + 1.0 / left)
                probabilities[s, i] = (greedy * probabilities[s, i] / best + rest) * agreement[s, i]
                total += probabilities[s, i]
        for i in range(probabilities.shape[1]):
            probabilities[s, i] /= total


#: Arms that agree with the data less than this are left out of the design: they are hardly ever played.
LEAST_AGREEMENT = 1e-9


@kind("empirical-divergence")
@dataclass(frozen=True, eq=False, kw_only=True)
class EmpiricalDivergence(FittedSampler, Elimination):
    """Arm a with probability ∝ q_a·f_a, f_a = exp(-gap_a²/‖root·(â - a)‖²) (Balagopalan and Jun 2025, Algorithm 1).

    â is the best-looking arm and gap_a = (â - a)ᵀθ̂. The weights q are ``greedy`` for â, shared by arms that tie (to a
    relative 1e-9); half of the rest for the G-optimal design of the arms √f_a·a; the other half for all arms alike.

    >>> sampler = EmpiricalDivergence(estimate=[1.0], root=[[1.0]], greedy=0.5, design=GOptimal(tol=1.0))
    >>> sampler.probabilities([[1.0], [0.0]]).round(3).tolist()
    [0.891, 0.109]
    """

    greedy: float
    design: GOptimal = field(default_factory=lambda: GOptimal(tol=1.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        of_type("design", self.design, GOptimal)
        vars(self).update(greedy=number("greedy", self.greedy, low=0.0, high=1.0))

    def fill(self, sets: Sets, probabilities: FloatArray) -> None:
        agreement = np.zeros(probabilities.shape)
        divergences(sets.contexts, sets.available, self.estimate, self.root, agreement, probabilities)
        scaled = sets.contexts * np.sqrt(agreement)[:, :, None]
        designed = self.design.probabilities(Sets(scaled, agreement >= LEAST_AGREEMENT, False))
        weighted(agreement, designed, sets.available, self.greedy, probabilities)


@dataclass(frozen=True, kw_only=True)
class Divergence(OneModelRule):
    """Arms by how well all decisions so far agree with their being best, measured by the intervals."""

    greedy: float
    design: GOptimal

    def from_sums(self, sums: tuple[Stats, ...], start: int) -> NewPolicy:
        (total,) = sums
        precision, ridge = self.statistics.precision(total.gram), self.level.ridge
        beta = self.level.multiplier(log_growth(precision, ridge))  # √β of the paper
        sampler = EmpiricalDivergence.of(
            total.estimate(ridge=ridge), precision, beta, greedy=self.greedy, design=self.design
        )
        return NewPolicy(Policy(dim=total.dim, sampler=sampler))


@dataclass(frozen=True, kw_only=True)
class LinMED(IntervalLearner):
    """Plays arms in proportion to exp(-gap²/(β·‖â - a‖²)), with exact propensities; regret d√T·log T.

    ``greedy`` of 0.99, 0.9 and 0.5 are the authors' LinMED-99, -90 and -50; half of the rest goes to the design, the
    other half to all arms alike. The first policy, which knows nothing, shares all of it among the arms.

    >>> LinMED(dim=2, arms=2, horizon=100).begin().policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [0.5, 0.5]
    """

    greedy: float = setting(0.9, "weight of the best-looking arm before it is multiplied", real(0.0, 1.0))
    g_optimal: GOptimal = setting(GOptimal(tol=1.0), "the design of the arms that agree with the data", design_of_sets)
    delta: float = setting(0.01, "failure probability of the intervals", real(LEAST_DELTA, 1.0))

    name: ClassVar[str] = "linmed"
    text: ClassVar[str] = "minimum empirical divergence (Balagopalan and Jun 2025), updated every step"
    adaptivity: ClassVar[str] = "T"
    regret: ClassVar[str] = "d√T, adversarial"

    def compose(self) -> Parts:
        return self.by_sums(partial(Divergence, greedy=self.greedy, design=self.g_optimal))


@dataclass(frozen=True, kw_only=True)
class LinMEDGrid(StaleLearner, LinMED):
    """LinMED of practice, updated by batch. It has no bound.

    >>> LinMEDGrid(dim=5, arms=10, horizon=10_000, policies=3).clock.ends
    (100, 1000, 10000)
    """

    delta: float = setting(0.01, "failure probability of the intervals", real(LEAST_DELTA, 1.0))

    name: ClassVar[str] = "linmed-grid"
    text: ClassVar[str] = "LinMED on a grid, geometric by default"
