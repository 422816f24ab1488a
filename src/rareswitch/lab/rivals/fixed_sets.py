"""Learners for actions that never change: batched elimination, E4, and BaSE for plain arms.

Elimination is of Esfandiari et al. (2019), E4 of Ren, Jin and Xu (2024), BaSE of Gao et al. (2019).
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from rareswitch.core import (
    BoolArray,
    FloatArray,
    Sets,
    SetsLike,
    context_sets,
    finite_array,
    kind,
    number,
    probability_vector,
    vector,
    whole,
)
from rareswitch.design import GOptimal, Uniform, g_optimal
from rareswitch.errors import ParameterError, ShapeError, UnsuitableError
from rareswitch.learner import (
    BatchedLearner,
    BatchEnd,
    BatchLinUCBKW,
    Clock,
    EliminateByBatch,
    IntervalLearner,
    NewPolicy,
    OneModel,
    Parts,
    Rule,
    StaticGrid,
    design_of_sets,
    real,
    setting,
    whole_ends,
)
from rareswitch.policy import Elimination, Policy

#: Sets of a batch that are compared, so that one that changes is noticed.
SAMPLE = 64
#: More would take long to plan.
MOST_BATCHES = 10_000


class EliminateActions(EliminateByBatch):
    """Eliminate as before, if the actions are still the same."""

    def sample_size(self, number: int, forecast: tuple[int, ...]) -> int:
        return SAMPLE

    def next(self, ended: BatchEnd) -> NewPolicy:
        return super().next(ended)._replace(rule_state=the_actions("fixed-set-elimination", ended))


@dataclass(frozen=True, kw_only=True)
class FixedSetElimination(BatchLinUCBKW):
    """Plays the G-optimal design of the surviving actions in ever longer batches; regret √(dT log(KT))·T^(1/2M).

    The M batches have lengths q, q², …, q^M; by default M = ⌈ln T⌉. All sets must be the same. Actions are drawn from
    the design where the authors round it to whole numbers of plays.

    >>> FixedSetElimination(dim=5, arms=10, horizon=10_000, policies=3).clock.ends
    (21, 470, 10000)
    """

    g_optimal: GOptimal = setting(GOptimal(), "the design of the actions", design_of_sets)

    name: ClassVar[str] = "fixed-set-elimination"
    text: ClassVar[str] = "G-optimal elimination of one fixed action set (Esfandiari et al. 2019)"
    adaptivity: ClassVar[str] = "⌈ln T⌉"
    regret: ClassVar[str] = "√(dT), one fixed set"

    def compose(self) -> Parts:
        return self.eliminating(self.g_optimal, EliminateActions)

    def default_grid(self) -> StaticGrid:
        usual = min(self.horizon, math.ceil(math.log(self.horizon)))
        return growing_grid(self.horizon, usual if self.policies is None else self.policies)

    def check(self, sets: Sets) -> None:
        super().check(sets)
        check_one_set(self.name, sets.contexts, sets.available)


def growing_grid(horizon: int, policies: int) -> StaticGrid:
    """Batches of lengths q, q², …, q^M, with q such that they add up to T.

    >>> growing_grid(1000, 3).ends
    (9, 102, 1000)
    """
    whole("policies", policies, high=min(whole("horizon", horizon, low=2, high=None), MOST_BATCHES))
    powers = range(1, policies + 1)
    low, high = 1.0, horizon ** (1.0 / policies) * (1.0 + 1e-9)  # the last batch alone is no longer than T
    while low < (ratio := (low + high) / 2.0) < high:  # bisection, to the last bit
        low, high = (ratio, high) if sum(ratio**i for i in powers) < horizon else (low, ratio)
    return StaticGrid(ends=whole_ends([*accumulate(low**i for i in powers)][:-1], start=0, stop=horizon))


def the_actions(name: str, ended: BatchEnd) -> dict[str, FloatArray]:
    """What is kept of the set: ``actions`` (1, K, d) and ``available`` (1, K), after a check that it is the same."""
    sample = ended.batch.sample
    assert sample is not None  # a batch with decisions has a sample of them
    actions, available = sample.sets.contexts, sample.sets.available
    if ended.state.rule_state:
        actions = np.concatenate([ended.state.rule_state["actions"], actions])
        available = np.concatenate([ended.state.rule_state["available"] != 0.0, available])
    check_one_set(name, actions, available)
    return {"actions": actions[:1], "available": available[:1].astype(np.float64)}


def check_one_set(name: str, contexts: FloatArray, available: BoolArray) -> None:
    """Refuse sets that differ."""
    if not (contexts == contexts[0]).all() or not (available == available[0]).all():
        raise UnsuitableError(
            f"{name} is for one action set that never changes; these sets differ. Use batch-linucb-kw, which takes any."
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class EliminateMeans(EliminateByBatch):
    """Eliminate by the means of all plays so far."""

    settings: "BaSE"

    def elimination(self, ended: BatchEnd) -> Elimination:
        settings, (total,) = self.settings, ended.sums
        plays = np.maximum(np.diag(total.gram), 1e-12)  # an arm never played may be anything
        if settings.confidence == "paper":
            available = ended.state.policy.survivors(np.eye(settings.dim))
            plays = np.full(settings.dim, plays[available].min())
            multiplier = 0.5 * settings.noise * math.sqrt(12.0 * math.log(settings.dim * settings.horizon))
        elif settings.confidence == "tight":
            multiplier = settings.noise * math.sqrt(
                2.0 * math.log(2 * settings.dim * settings.horizon / settings.delta)
            )
        else:
            multiplier = float(settings.confidence)
        means = total.moment / np.maximum(np.diag(total.gram), 1.0)
        return Elimination.of(means, np.diag(plays), multiplier)


@dataclass(frozen=True, kw_only=True)
class BaSE(BatchedLearner):
    """Plays the surviving arms evenly and drops those that pooled means prove worse; regret √(KT)·log factors.

    For plain arms only: arm k's context is the k-th unit vector in every set. Its O(log log T) batches end as those of
    :func:`~rareswitch.learner.paper_grid`. Arms are drawn uniformly where the authors take turns.

    ``confidence="paper"``: an arm falls whose mean is √(12·ln(KT)/n)·noise below the best, n the fewest plays of a
    survivor. ``"tight"``: means ± noise·√(2 ln(2KT/δ)/plays), which hold together, for every number of plays, with
    probability 1 - δ. A number: that multiple of 1/√plays.

    >>> BaSE(arms=5, dim=5, horizon=10_000).clock.policies
    4
    """

    name: ClassVar[str] = "base"
    text: ClassVar[str] = "successive elimination of plain arms by batch (Gao et al. 2019)"
    adaptivity: ClassVar[str] = "⌈log log T⌉"
    regret: ClassVar[str] = "√(KT), plain arms"

    def compose(self) -> Parts:
        if self.dim != self.arms:
            raise UnsuitableError(
                f"base is for plain arms, each a unit vector: dim must equal arms; got {self.dim} and {self.arms}."
            )
        return self.eliminating(Uniform(), partial(EliminateMeans, settings=self))._replace(
            statistics=OneModel(dim=self.dim)
        )

    def check(self, sets: Sets) -> None:
        super().check(sets)
        self._check_plain(sets.contexts == np.eye(self.dim))

    def check_chosen(self, features: FloatArray) -> None:
        super().check_chosen(features)
        self._check_plain(np.sort(features) == np.eye(self.dim)[-1])

    def _check_plain(self, plain: BoolArray) -> None:
        if not plain.all():
            raise UnsuitableError(
                "base is for plain arms: the context of arm k must be the k-th unit vector in every set. For other "
                "contexts use fixed-set-elimination or batch-linucb-kw."
            )


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

    def probabilities(self, contexts: SetsLike, available: npt.ArrayLike | None = None) -> FloatArray:
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
            # a copy of the best one need not be distinguished from it
            return float(np.where(widths > 0.0, gaps**2 / widths, np.inf).min(initial=np.inf))


@dataclass(frozen=True, eq=False, kw_only=True)
class ExploreEliminateExploit(Rule):
    """First the design, then the cheapest plays that tell the best action; more exploration only where they do not."""

    settings: "E4"

    def first(self) -> NewPolicy:
        return NewPolicy(Policy(dim=self.settings.dim, sampler=self.settings.g_optimal))

    def sample_size(self, number: int, forecast: tuple[int, ...]) -> int:
        return SAMPLE

    def next(self, ended: BatchEnd) -> NewPolicy:
        settings, number = self.settings, ended.state.policies
        known = the_actions(settings.name, ended)
        (total,) = ended.sums
        ridge = settings.parts.statistics.ridge
        actions, left = known["actions"][0], known["available"][0] != 0.0
        if "left" in ended.state.rule_state:
            left = ended.state.rule_state["left"] != 0.0
        means = actions @ total.estimate(ridge=ridge)
        standings = Standings(
            actions=actions, left=left, means=means, precision=settings.parts.statistics.precision(total.gram)
        )
        if number == 1:
            plays = self.telling(standings)
        else:
            left = self.survivors(standings, number, ended.start)
            several = np.count_nonzero(left) > 1
            plays = self.exploring(actions, left, settings.rate_of(number + 1)) if several else left.astype(np.float64)
        rest = sum(ended.batch_sizes)
        # the last policy decides all that is left
        length = rest if np.count_nonzero(plays) <= 1 else min(rest, int(plays.sum()))
        policy = Policy(dim=settings.dim, sampler=Allocation(weights=plays / plays.sum()))
        batch_sizes = (length, rest - length) if length < rest else (rest,)
        return NewPolicy(policy, rule_state=known | {"left": left.astype(np.float64)}, batch_sizes=batch_sizes)

    def telling(self, standings: Standings) -> FloatArray:
        """(K,) how often each action is played in the second batch (Algorithm 1, line 8)."""
        settings, best = self.settings, standings.best
        log, loglog = math.log(settings.horizon), math.log(max(math.e, math.log(settings.horizon)))
        alpha = (1.0 + 1.0 / loglog) * (1.0 + settings.dim * loglog / log)
        most = max(1.0, min(log ** (1.0 + settings.gamma), settings.horizon / (2 * len(standings.means))))
        # a gap that T plays cannot see is as good as one that they just can: its plays are cut off either way
        gaps = np.maximum(standings.gaps, max(settings.noise, 1e-6) / math.sqrt(settings.horizon))
        gaps[best] = 0.0
        plays, at = np.zeros(len(gaps)), np.flatnonzero(standings.left)
        plays[at] = cheapest_allocation(standings.actions[at], gaps[at])
        wanted = np.full(len(gaps), most)
        others = np.isfinite(plays)
        plays = plays[others]
        # what was found by multiplication is never quite zero
        wanted[others] = np.where(plays > 1e-6 * plays.sum(), settings.noise**2 * plays * alpha * log, 0.0)
        return np.asarray(np.ceil(np.minimum(wanted, most)))

    def survivors(self, standings: Standings, number: int, start: int) -> BoolArray:
        """(K,) the actions that are left after batch ``number``."""
        settings = self.settings
        if number == 2:
            bar = 0.25 * settings.dim * math.log(start) + 0.5 * math.log(settings.horizon)
            sure = standings.separation(settings.noise) > bar
            return np.arange(len(standings.left)) == standings.best if sure else standings.left
        width = settings.noise * math.sqrt(
            settings.dim * math.log(len(standings.left) * float(settings.horizon) ** 2) / settings.rate_of(number)
        )
        return np.asarray(standings.left & (standings.gaps < max(2.0 * width, 1e-12)))

    def exploring(self, actions: FloatArray, left: BoolArray, rate: float) -> FloatArray:
        """(K,) ⌈2·π·g(π)·rate/d⌉ plays by the design π of the actions that are left."""
        design = g_optimal(actions, left, tol=self.settings.g_optimal.tol)
        factor = 2.0 * float(design.max_leverage) * rate / self.settings.dim
        return np.asarray(np.ceil(np.minimum(design.weights * factor, self.settings.horizon)))


@dataclass(frozen=True, kw_only=True)
class ByRule(Clock):
    """A first batch of a number of decisions; the rule sets the lengths of later ones when it makes their policies.

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
        return Parts(ExploreEliminateExploit(settings=self), clock, statistics)

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


#: The powers by which a maximum is smoothed, one after the other, and the steps that each may take.
_POWERS = (2, 8, 32, 128)
_STEPS = 500


def cheapest_allocation(actions: npt.ArrayLike, gaps: npt.ArrayLike, *, tol: float = 0.02) -> FloatArray:
    """How often to play each action, at the least cost Σ w_x·gap_x, such that xᵀH⁻¹x ≤ gap_x²/2 with H = Σ w_x·xxᵀ.

    These plays, times σ² ln T, are what the best possible learner makes of the worse actions as T grows (Lattimore and
    Szepesvári 2017). The best one costs nothing and is played without end: its entry is inf.

    Parameters
    ----------
    actions
        (K, d)
    gaps
        (K,) how much worse each action is than the best; 0 for exactly one of them, and positive for the others.
    tol
        The relative excess of the cost over the least one at which the search ends, if it gets there within its steps.
        All bounds are kept in any case.

    Examples
    --------
    Of plain arms each must be played 2/gap² times; here the second action tells more about the third than the third:

    >>> cheapest_allocation([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.5]).round(3).tolist()
    [inf, 8.0]
    >>> cheapest_allocation([[1.0, 0.0], [0.0, 1.0], [0.8, 0.4]], [0.0, 1.0, 0.2], tol=1e-4).round(2).tolist()
    [inf, 8.0, 0.0]
    """
    x = finite_array("actions", actions)
    if x.ndim != 2 or not x.size:
        raise ShapeError(f"actions must be (arms, dim), at least one of each; got {x.shape}.")
    gap = vector("gaps", gaps, len(x))
    if (gap < 0.0).any() or np.count_nonzero(gap == 0.0) != 1:
        raise ParameterError(
            f"gaps must be 0 for exactly one action and positive for the others; got {gap[:8]!s:.80}. Where two are "
            "best, give one of them a small gap."
        )
    number("tol", tol, low=0.0, open_low=True)
    best = int(gap.argmin())
    plays = np.zeros(len(x))
    plays[best] = math.inf
    others, across = _across(x, best)
    if len(others):
        plays[others] = _balanced(across, gap[others], tol)
    return plays


def _across(x: FloatArray, best: int) -> tuple[FloatArray, FloatArray]:
    """The actions that are not along the best one, and their parts across it, in coordinates of their span."""
    along = x[best] / (np.linalg.norm(x[best]) or 1.0)
    parts = x - np.outer(x @ along, along)
    lengths = np.linalg.norm(parts, axis=1)
    others = np.flatnonzero(lengths > 1e-12 * max(1.0, float(np.abs(x).max())))
    others = others[others != best]
    if not len(others):
        return others, parts[:0]
    _, sizes, axes = np.linalg.svd(parts[others], full_matrices=False)
    return others, np.asarray(parts[others] @ axes[sizes > 1e-10 * sizes[0]].T)


def _balanced(across: FloatArray, gap: FloatArray, tol: float) -> FloatArray:
    """The plays of actions (n, r) of full rank.

    With u_x = w_x·gap_x/Σ w·gap and y_x = x/√gap_x the cost is the largest 2·y_xᵀM⁻¹y_x/gap_x, M = Σ u_x·y_x·y_xᵀ: a
    design that is found by multiplying u with powers of the gradient of a smoothed maximum. With weights λ of the
    actions, f = Σ λ_x·2·y_xᵀM⁻¹y_x/gap_x and its slopes g, no design has a cost below f²/max g.
    """
    y = across / np.sqrt(gap)[:, None]
    u = np.full(len(y), 1.0 / len(y))
    cost, design, least = math.inf, u, 0.0
    for power in _POWERS:
        for _ in range(_STEPS):
            information = (y.T * u) @ y
            # weights that vanish must not make it singular by rounding
            information += 1e-13 * np.trace(information) * np.eye(len(information))
            solved = np.linalg.solve(information, y.T)  # (r, n)
            forms = 2.0 * np.einsum("nr,rn->n", y, solved) / gap
            largest = float(forms.max())
            if largest < cost:
                cost, design = largest, u
            weights = (forms / largest) ** (power - 1)
            weights /= weights.sum()
            slopes = ((y @ solved) ** 2 * (2.0 / gap)[:, None] * weights[:, None]).sum(axis=0)
            level = float(u @ slopes)
            least = max(least, level**2 / float(slopes.max()))
            if cost <= (1.0 + tol) * least:
                return np.asarray(cost * design / gap)
            if slopes.max() <= (1.0 + 0.1 * tol) * level:
                break  # the best design for this power
            u = u * (slopes / level) ** (1.0 / (power + 1))
            u = u / u.sum()
    return np.asarray(cost * design / gap)
