"""E4: explore, estimate, eliminate, exploit on a fixed action set (Ren, Jin and Xu 2024)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareswitch.core import BoolArray, FloatArray, Sets, context_sets, kind, probability_vector, vector
from rareswitch.design import GOptimal, g_optimal
from rareswitch.errors import ShapeError
from rareswitch.lab.rivals.cheapest import cheapest_allocation
from rareswitch.lab.rivals.fixed_sets import SAMPLE, check_one_set, the_actions
from rareswitch.learner import (
    BatchEnd,
    Clock,
    IntervalLearner,
    NewPolicy,
    OneModel,
    Parts,
    Rule,
    design_of_sets,
    real,
    setting,
)
from rareswitch.policy import Policy


@kind("allocation")
@dataclass(frozen=True, eq=False, kw_only=True)
class Allocation:
    """Arm k, by its place in the set, with probability ``weights[k]``, whatever its features are.

    For sets that never change. The share of an arm that is missing goes to the others in proportion; where none of them
    has one, all are alike. Arms beyond the weights have no share.

    >>> allocation = Allocation(weights=[0.5, 0.25, 0.25])
    >>> allocation.probabilities([[1.0], [2.0], [3.0]], [False, True, True]).tolist()
    [0.0, 0.5, 0.5]
    """

    #: (K,) probabilities.
    weights: FloatArray

    def __post_init__(self) -> None:
        weights = vector("weights", self.weights)
        if not len(weights):
            raise ShapeError("weights must be (K,), one for each arm of the set; got none.")
        vars(self).update(weights=probability_vector("weights", weights))

    def probabilities(self, contexts: Any, available: Any = None) -> FloatArray:
        sets = context_sets(contexts, available)
        arms = sets.available.shape[1]
        shares = np.pad(self.weights, (0, max(0, arms - len(self.weights))))[:arms]
        shared = np.where(sets.available, shares, 0.0)
        shared = np.where(shared.any(axis=1, keepdims=True), shared, sets.available)
        # summed from left to right, so that arms that are missing at the end change no bit
        probabilities = np.asarray(shared / np.cumsum(shared, axis=1)[:, -1:])
        return probabilities[0] if sets.single else probabilities


@dataclass(frozen=True, eq=False, kw_only=True)
class Standings:
    """What the pooled estimate says of the actions that are left."""

    #: (K, d)
    actions: FloatArray
    #: (K,)
    left: BoolArray
    #: (K,) estimated rewards.
    means: FloatArray
    #: (d, d) Λ
    precision: FloatArray

    @property
    def best(self) -> int:
        """The action that looks best of those that are left."""
        return int(np.where(self.left, self.means, -np.inf).argmax())

    @property
    def gaps(self) -> FloatArray:
        """(K,) how much worse each action looks."""
        return np.asarray(self.means[self.best] - self.means)

    def separation(self, noise: float) -> float:
        """The least gap²/(2σ²·‖x - best‖²) of the others, in the norm of Λ⁻¹: Chernoff's statistic."""
        between = np.delete(self.actions - self.actions[self.best], self.best, axis=0)[np.delete(self.left, self.best)]
        gaps = np.delete(self.gaps, self.best)[np.delete(self.left, self.best)]
        widths = 2.0 * noise**2 * np.einsum("nd,dn->n", between, np.linalg.solve(self.precision, between.T))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(widths > 0.0, gaps**2 / widths, np.inf)  # a copy of the best one need not be told from it
        return float(found.min(initial=np.inf))


@dataclass(frozen=True, eq=False, kw_only=True)
class ExploreEliminateExploit(Rule):
    """First the design, then the cheapest plays that tell the best action; more exploration only where they do not."""

    told: "E4"

    def first(self) -> NewPolicy:
        return NewPolicy(Policy(dim=self.told.dim, sampler=self.told.g_optimal))

    def sample_size(self, number: int, forecast: tuple[int, ...]) -> int:
        return SAMPLE

    def next(self, ended: BatchEnd) -> NewPolicy:
        told, number = self.told, ended.state.policies
        kept = the_actions(told.name, ended)
        (total,) = ended.sums
        ridge = told.parts.statistics.ridge
        actions, left = kept["actions"][0], kept["available"][0] != 0.0
        if "left" in ended.state.kept:
            left = ended.state.kept["left"] != 0.0
        means = actions @ total.estimate(ridge=ridge)
        standings = Standings(
            actions=actions, left=left, means=means, precision=told.parts.statistics.precision(total.gram)
        )
        if number == 1:
            plays = self.telling(standings)
        else:
            left = self.survivors(standings, number, ended.start)
            several = np.count_nonzero(left) > 1
            plays = self.exploring(actions, left, told.rate_of(number + 1)) if several else left.astype(np.float64)
        rest = sum(ended.batch_sizes)
        # the last policy decides all that is left
        length = rest if np.count_nonzero(plays) <= 1 else min(rest, int(plays.sum()))
        policy = Policy(dim=told.dim, sampler=Allocation(weights=plays / plays.sum()))
        batch_sizes = (length, rest - length) if length < rest else (rest,)
        return NewPolicy(policy, kept=kept | {"left": left.astype(np.float64)}, batch_sizes=batch_sizes)

    def telling(self, standings: Standings) -> FloatArray:
        """(K,) how often each action is played in the second batch (Algorithm 1, line 8)."""
        told, best = self.told, standings.best
        log, loglog = math.log(told.horizon), math.log(max(math.e, math.log(told.horizon)))
        alpha = (1.0 + 1.0 / loglog) * (1.0 + told.dim * loglog / log)
        most = max(1.0, min(log ** (1.0 + told.gamma), told.horizon / (2 * len(standings.means))))
        # a gap that T plays cannot see is as good as one that they just can: its plays are cut off either way
        gaps = np.maximum(standings.gaps, max(told.noise, 1e-6) / math.sqrt(told.horizon))
        gaps[best] = 0.0
        plays, at = np.zeros(len(gaps)), np.flatnonzero(standings.left)
        plays[at] = cheapest_allocation(standings.actions[at], gaps[at])
        wanted = np.full(len(gaps), most)
        others = np.isfinite(plays)
        plays = plays[others]
        # what was found by multiplication is never quite zero
        wanted[others] = np.where(plays > 1e-6 * plays.sum(), told.noise**2 * plays * alpha * log, 0.0)
        return np.asarray(np.ceil(np.minimum(wanted, most)))

    def survivors(self, standings: Standings, number: int, start: int) -> BoolArray:
        """(K,) the actions that are left after batch ``number``."""
        told = self.told
        if number == 2:
            bar = 0.25 * told.dim * math.log(start) + 0.5 * math.log(told.horizon)
            sure = standings.separation(told.noise) > bar
            return np.arange(len(standings.left)) == standings.best if sure else standings.left
        width = told.noise * math.sqrt(
            told.dim * math.log(len(standings.left) * float(told.horizon) ** 2) / told.rate_of(number)
        )
        return np.asarray(standings.left & (standings.gaps < max(2.0 * width, 1e-12)))

    def exploring(self, actions: FloatArray, left: BoolArray, rate: float) -> FloatArray:
        """(K,) ⌈2·π·g(π)·rate/d⌉ plays by the design π of the actions that are left."""
        design = g_optimal(actions, left, tol=self.told.g_optimal.tol)
        factor = 2.0 * float(design.max_leverage) * rate / self.told.dim
        return np.asarray(np.ceil(np.minimum(design.weights * factor, self.told.horizon)))


@dataclass(frozen=True, kw_only=True)
class ByRule(Clock):
    """A first batch of so many decisions; how long those after it are, the rule says when it makes their policies.

    >>> ByRule(horizon=100, first=20).begin()
    (20, 80)
    """

    horizon: int
    first: int

    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int) -> tuple[int, ...]:
        end = self.first if start == 0 else self.horizon
        return tuple(size for size in (end - start, self.horizon - end) if size > 0)


@dataclass(frozen=True, kw_only=True)
class E4(IntervalLearner):
    """Explores a fixed set by design, then by the cheapest plays that tell the best action, and exploits when sure.

    As T grows three policies are enough, with the least possible regret. Where the second batch does not tell the best
    action, further ones explore the surviving actions at the rates (ln T)^(1+γ), then T^(1-2^-k), k = 1, 2, …

    All sets must be the same. Actions are drawn where the authors round to whole numbers of plays. The constants are
    those of their program, in which the first batch explores at the rate √T; with its γ of 10 the third batch takes all
    that is left at any practical horizon. ``confidence`` and ``delta`` do not matter to it.

    >>> E4(dim=5, arms=9, horizon=10_000).begin().batch_sizes
    (200, 9800)
    """

    gamma: float = setting(10.0, "γ: a third batch explores at the rate (ln T)^(1+γ)", real(0.0, 1e3, open_low=True))
    g_optimal: GOptimal = setting(GOptimal(tol=0.01), "the design of the actions", design_of_sets)

    name: ClassVar[str] = "e4"
    text: ClassVar[str] = "explore, estimate, eliminate, exploit one fixed action set (Ren et al. 2024)"
    adaptivity: ClassVar[str] = "3, at most 4 + log log T"
    regret: ClassVar[str] = "√(dT), one fixed set; least possible as T grows"

    def compose(self) -> Parts:
        statistics = OneModel(dim=self.dim, ridge=self.self_normalized().ridge)
        clock = ByRule(horizon=self.horizon, first=min(self.horizon, math.ceil(2.0 * self.rate_of(1) - 1e-9)))
        return Parts(ExploreEliminateExploit(told=self), clock, statistics)

    def rate_of(self, number: int) -> float:
        """How many plays the design of batch ``number`` stands for, up to a factor of 2; at most T."""
        if number == 1:
            return math.sqrt(self.horizon)
        if number == 3:
            log = (1.0 + self.gamma) * math.log(max(1.0, math.log(self.horizon)))
            return math.exp(min(log, math.log(self.horizon)))
        return float(self.horizon ** (1.0 - 2.0 ** (3 - number)))

    def check(self, sets: Sets) -> None:
        super().check(sets)
        check_one_set(self.name, sets.contexts, sets.available)
