"""The samplers of learned policies: frozen parameters that turn a set of arms into probabilities, and their kernels."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from rareswitch.core import (
    TIE,
    ContextSets,
    FloatArray,
    IntArray,
    Sets,
    SetsLike,
    finite_array,
    gather,
    highest,
    inverse_root,
    keep_intervals,
    kind,
    largest,
    number,
    parameters,
    pass_layers,
    read_only,
    sets_of,
    unit_at,
    unmasked,
    vector,
    workspace,
)
from rareswitch.design import Sampler, SetSampler, check_sampler
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.lanes import (
    add_rows,
    compiled,
    first_largest,
    lane_zeros,
    multiply_tile,
    padded_length,
    triangular_squares,
)

__all__ = ["Baseline", "Blend", "Elimination", "FittedSampler", "Layered", "Optimistic", "PosteriorDraws"]
__all__ += ["samplers_in", "widest_intervals"]


@compiled
def eliminate(contexts, available, estimates, roots, survivors, counts):  # type: ignore[no-untyped-def]
    """``survivors`` (n, K) becomes the arms that all eliminations keep, one after the other; ``counts`` how many.

    Returns the last set that has none left, or -1: where intervals overflow, no arm reaches the bar.

    Elimination κ keeps arm i iff r_i + ω_i ≥ max_j (r_j - ω_j), the maximum over the arms available before it, where
    r = xᵀ·estimates[κ] and ω = ‖roots[κ]·x‖ (roots lower triangular). Only arms that are still alive are computed with.
    """
    n, arm_count, dim = contexts.shape
    arms, zero, center, width, place = workspace(arm_count, dim)
    empty = -1
    for s in range(n):
        left = gather(contexts, available, s, arms, place)
        for r in range(estimates.shape[0]):
            if left > 1:
                length = padded_length(left)
                triangular_squares(width, roots[r], arms, dim, length)
                add_rows(center, zero, 0, estimates, r, arms, dim, length)
                for i in range(length):
                    width[0, i] = math.sqrt(width[0, i])
                left = keep_intervals(center, width, left, arms, place)
        for i in range(arm_count):
            survivors[s, i] = False
        for i in range(left):
            survivors[s, place[i]] = True
        counts[s] = left
        if left == 0:
            empty = s
    return empty


@compiled
def widest(contexts, available, root, widths):  # type: ignore[no-untyped-def]
    """``widths`` (n,) becomes the largest ‖root·x‖ over the available arms of each set; root lower triangular."""
    n, arm_count, dim = contexts.shape
    arms, _, squares, _, place = workspace(arm_count, dim)
    for s in range(n):
        left = gather(contexts, available, s, arms, place)
        triangular_squares(squares, root, arms, dim, padded_length(left))
        widths[s] = math.sqrt(squares[0, :left].max())


@compiled
def draw_arms(probabilities, key_0, key_1, keys, arms, propensities):  # type: ignore[no-untyped-def]
    """The arm at which the running sum of probabilities first exceeds the id's uniform number, and its probability.

    Returns the last set that has no arm of positive probability, or -1.
    """
    empty = -1
    for s in range(probabilities.shape[0]):
        uniform = unit_at(key_0, key_1, keys[s, 0], keys[s, 1])
        total = 0.0
        chosen = -1
        for i in range(probabilities.shape[1]):
            if probabilities[s, i] > 0.0:
                total += probabilities[s, i]
                chosen = i
                if total > uniform:
                    break
        arms[s] = chosen  # rounding can leave the sum just below the number: the last possible arm then
        propensities[s] = probabilities[s, chosen]
        if chosen < 0:
            empty = s
    return empty


@compiled
def blend(main, explorer, share, mixed):  # type: ignore[no-untyped-def]
    """``mixed`` (n, K) becomes (1 - share)·main + share·explorer."""
    for s in range(mixed.shape[0]):
        for i in range(mixed.shape[1]):
            mixed[s, i] = (1.0 - share) * main[s, i] + share * explorer[s, i]


@compiled
def raise_to(probabilities, available, protected, least, raised):  # type: ignore[no-untyped-def]
    """``raised`` (n, K) becomes (1 - m·least)·p, plus ``least`` for each of the m protected arms that are alive.

    A set that has no arm of positive probability stays so. Returns the first set in which m·least exceeds 1, or -1.
    """
    for s in range(raised.shape[0]):
        count, total = 0, 0.0
        for i in range(raised.shape[1]):
            total += probabilities[s, i]
            if protected[s, i] and available[s, i]:
                count += 1
        rest = 1.0 - count * least
        if rest < -1e-12:
            return s
        rest = max(rest, 0.0)
        for i in range(raised.shape[1]):
            raised[s, i] = rest * probabilities[s, i]
            if total > 0.0 and protected[s, i] and available[s, i]:
                raised[s, i] += least
    return -1


@compiled
def highest_arms(contexts, available, estimate, root, probabilities):  # type: ignore[no-untyped-def]
    """Put 1 into ``probabilities`` (n, K), zero before, at the largest xᵀ·estimate + ‖root·x‖ of each set."""
    n, arm_count, dim = contexts.shape
    columns, zero, center, width, place = workspace(arm_count, dim)
    factors = np.ascontiguousarray(estimate).reshape((1, dim))
    for s in range(n):
        left = gather(contexts, available, s, columns, place)
        probabilities[s, place[highest(columns, zero, center, width, left, factors, root, 1.0)]] = 1.0


@compiled
def best_of_draws(contexts, available, draws, probabilities):  # type: ignore[no-untyped-def]
    """``probabilities`` (n, K), zero before, becomes the share of ``draws`` (m, d) whose best arm each arm is."""
    n, arm_count, dim = contexts.shape
    arms, zero, center, _, place = workspace(arm_count, dim)
    tile = lane_zeros(np.int64(4), arms.shape[1])
    count = draws.shape[0]
    wins = np.zeros(arm_count, dtype=np.int64)
    for s in range(n):
        left = gather(contexts, available, s, arms, place)
        length = padded_length(left)
        for j in range(dim if count > 3 else 0):
            for i in range(left, length):
                arms[j, i] = arms[j, 0]  # what is no arm must not be better than all arms of a tile
        for m in range(0, count - 3, 4):
            multiply_tile(tile, draws, m, arms, dim, length)
            for best in first_largest(tile, 4, length, TIE):
                wins[best] += 1
        for m in range(count // 4 * 4, count):
            add_rows(center, zero, 0, draws, m, arms, dim, length)
            wins[largest(center, left)] += 1
        for i in range(left):
            probabilities[s, place[i]] = wins[i] / count
            wins[i] = 0


@compiled
def layered_arms(  # type: ignore[no-untyped-def]
    contexts, available, estimates, roots, tails, thresholds, optimistic, exploit, probabilities, layers
):
    """Put 1 into ``probabilities`` (n, K), zero before, at the arm that the layers choose; ``layers`` says who."""
    n, arm_count, dim = contexts.shape
    room = workspace(arm_count, dim)
    for s in range(n):
        left = gather(contexts, available, s, room[0], room[4])
        chosen = pass_layers(
            room, left, estimates, roots, tails, thresholds, 1.0, False, optimistic, exploit, layers, s
        )
        probabilities[s, chosen] = 1.0


class FittedSampler(SetSampler):
    """A sampler with parameters of ``dim`` features, whose probabilities a kernel fills in."""

    fitted: ClassVar[str] = "estimate"

    def of_sets(self, sets: Sets) -> FloatArray:
        probabilities = np.zeros(sets.available.shape)
        self.fill(sets, probabilities)
        return probabilities

    @abstractmethod
    def fill(self, sets: Sets, probabilities: FloatArray) -> IntArray | None:
        """Put the probabilities (n, K), which are zero before, of checked sets into place."""


@kind("elimination")
@dataclass(frozen=True, eq=False, kw_only=True)
class Elimination:
    """Confidence intervals xᵀθ̂ ± ‖root·x‖; an arm falls whose upper end is below another's lower end.

    The root is stored, not the matrix it comes from, so that a loaded policy computes with the very same numbers.
    """

    #: (d,) θ̂
    estimate: FloatArray
    #: (d, d), lower triangular: α·L⁻¹ where LLᵀ = Λ.
    root: FloatArray

    def __post_init__(self) -> None:
        estimate = vector("estimate", parameters("estimate", self.estimate))
        root = parameters("root", self.root)
        if root.shape != (len(estimate), len(estimate)) or np.triu(root, 1).any():
            raise ShapeError(
                f"root must be lower triangular {(len(estimate), len(estimate))} beside an estimate of "
                f"{len(estimate)}; got {root.shape}."
            )
        vars(self).update(estimate=estimate, root=root)

    @classmethod
    def of(cls, estimate: FloatArray, precision: FloatArray, multiplier: float, **others: Any) -> Self:
        """Intervals xᵀθ̂ ± multiplier·√(xᵀΛ⁻¹x) for ``precision`` Λ (d, d); ``others`` are fields of a kind of them."""
        number("multiplier", multiplier, low=0.0)
        root = multiplier * inverse_root(finite_array("precision", precision))
        return cls(estimate=estimate, root=root, **others)


def widest_intervals(elimination: Elimination, sets: ContextSets) -> FloatArray:
    """(n,) the largest half-width ‖root·x‖ among the available arms of each set."""
    widths = np.empty(len(sets))
    widest(sets.contexts, sets.available, elimination.root, widths)
    return widths


@kind("optimistic")
@dataclass(frozen=True, eq=False, kw_only=True)
class Optimistic(FittedSampler, Elimination):
    """The available arm with the largest xᵀθ̂ + ‖root·x‖, the first of them on a tie (to a relative 1e-9).

    >>> Optimistic(estimate=[0.0, 0.5], root=[[1.0, 0.0], [0.0, 0.1]]).probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [1.0, 0.0]

    It has the intervals of an elimination, put to another use.
    """

    def fill(self, sets: Sets, probabilities: FloatArray) -> None:
        highest_arms(sets.contexts, sets.available, self.estimate, self.root, probabilities)


@kind("posterior-draws")
@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorDraws(FittedSampler):
    """The best available arm of one of m parameters, drawn anew for each decision.

    The probability of an arm is the share of parameters whose best arm it is: exact, without Monte Carlo. Of arms that
    tie, to a relative 1e-9, the first is best. A single parameter is greedy play.

    >>> draws = PosteriorDraws(draws=[[1.0, 0.0], [0.8, 0.1], [0.6, 0.9], [0.9, 0.2]])
    >>> draws.probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [0.75, 0.25]
    """

    #: (m, d)
    draws: FloatArray
    fitted: ClassVar[str] = "draws"

    def __post_init__(self) -> None:
        draws = parameters("draws", self.draws)
        if draws.ndim != 2 or not draws.size:
            raise ShapeError(f"draws must be (m, d), at least one parameter; got {draws.shape}.")
        vars(self).update(draws=draws)

    def fill(self, sets: Sets, probabilities: FloatArray) -> None:
        best_of_draws(sets.contexts, sets.available, self.draws, probabilities)


@kind("layered")
@dataclass(frozen=True, eq=False, kw_only=True)
class Layered(FittedSampler):
    """Passes the available arms through the layers κ = 0, 1, … until one of them decides.

    In layer κ an arm has the estimate r = xᵀ·estimates[κ] and the width ω = ‖roots[κ]·x‖ + ‖tails[κ]·x‖.

    - If ``exploit`` is positive and no width exceeds it, the arm with the largest r + ω is played; no layer learns.
    - If no width exceeds thresholds[κ], the arms with v ≥ max v - 2·thresholds[κ] go on to the next layer, where
      v = r, or r + ω if ``optimistic``; in the last layer the one with the largest v is played.
    - Otherwise the widest arm is played, but in the last layer, unless ``optimistic``, the one with the largest r.

    >>> import numpy as np
    >>> policy = Layered(estimates=np.zeros((2, 1)), roots=[[[0.1]], [[1.0]]], thresholds=[0.5, 0.25])
    >>> policy.probabilities([[0.3], [1.0]]).tolist(), policy.layers([[0.3], [1.0]]).tolist()
    ([1.0, 0.0], 1)
    """

    #: (S, d)
    estimates: FloatArray
    #: (S, d, d), lower triangular.
    roots: FloatArray
    #: (S,) ϖ
    thresholds: FloatArray
    #: (S, d, d), lower triangular: a second width, for estimates that leave directions out.
    tails: FloatArray | None = None
    optimistic: bool = False
    exploit: float = 0.0
    fitted: ClassVar[str] = "estimates"

    def __post_init__(self) -> None:
        thresholds = vector("thresholds", parameters("thresholds", self.thresholds))
        if (thresholds < 0.0).any():
            raise ParameterError(f"thresholds must be at least 0, or a layer keeps no arm; got {thresholds.min()}.")
        estimates = parameters("estimates", self.estimates)
        if estimates.ndim != 2 or len(estimates) != len(thresholds) or not estimates.size:
            raise ShapeError(f"estimates must be ({len(thresholds)}, d), one a threshold; got {estimates.shape}.")
        shape = (*estimates.shape, estimates.shape[1])
        for name in ("roots", "tails"):
            value = getattr(self, name)
            if value is None:
                continue
            matrices = parameters(name, value)
            if matrices.shape != shape or np.triu(matrices, 1).any():
                raise ShapeError(f"{name} must be lower triangular {shape}; got {matrices.shape}.")
            vars(self)[name] = matrices
        exploit = number("exploit", self.exploit, low=0.0)
        vars(self).update(estimates=estimates, thresholds=thresholds, optimistic=bool(self.optimistic), exploit=exploit)

    def layers(self, contexts: SetsLike, available: ArrayLike | None = None) -> IntArray:
        """(n,) the layer that decides, which is the one that learns; -1 where none does. A number for one set."""
        sets = sets_of(self.estimates.shape[1], contexts, available)
        layers = self.fill(sets, np.zeros(sets.available.shape))
        return layers[0] if sets.single else layers

    def fill(self, sets: Sets, probabilities: FloatArray) -> IntArray:
        layers = np.empty(len(probabilities), dtype=np.int64)
        tails = read_only(np.empty((0, *self.roots.shape[1:]))) if self.tails is None else self.tails
        model = (self.estimates, self.roots, tails, self.thresholds, self.optimistic, self.exploit)
        layered_arms(sets.contexts, sets.available, *model, probabilities, layers)
        return layers


@kind("baseline")
@dataclass(frozen=True, kw_only=True)
class Baseline(SetSampler):
    """The arm that the request names, with probability 1; mostly the ``main`` part of a first policy's blend.

    >>> from rareswitch.design import Uniform
    >>> from rareswitch.policy import Blend, Policy
    >>> first = Policy(dim=2, sampler=Blend(main=Baseline(), explorer=Uniform(), share=0.1))
    >>> first.probabilities([[1.0, 0.0], [0.0, 1.0]], baseline=1).round(6).tolist()
    [0.05, 0.95]
    """

    def of_sets(self, sets: Sets) -> FloatArray:
        if sets.baseline is None:
            raise ParameterError(
                "baseline must be named for every decision of this policy, which plays it but for a share of "
                "exploration: pass baseline=…, the place of the arm that you would show. A later policy does not need "
                "it; begin without a baseline where none is known."
            )
        probabilities = np.zeros(sets.available.shape)
        probabilities[np.arange(len(sets.baseline)), sets.baseline] = 1.0
        return probabilities


def with_baseline(sets: Sets, baseline: ArrayLike | None) -> Sets:
    """The sets with the place (n,) of the arm that the caller would show in each, or one place for one set."""
    if baseline is None:
        return sets
    return sets._replace(baseline=_places(sets, baseline))


def _places(sets: Sets, baseline: ArrayLike) -> IntArray:
    unmasked("baseline", baseline, "Name an arm for every decision.")
    try:
        places = np.atleast_1d(np.asarray(baseline)) if sets.single else np.asarray(baseline)
    except ValueError:
        raise ShapeError("baseline must have one place for each set; got rows of different lengths.") from None
    count, arms = sets.available.shape
    if places.dtype.kind not in "iu" or places.shape != (count,):
        raise ShapeError(
            f"baseline must be {'one whole number' if sets.single else f'{count} whole numbers'}, the place of the arm "
            f"that you would show in each set, from 0; got {baseline!r:.60}."
        )
    inside = (places >= 0) & (places < arms)
    there = inside & sets.available[np.arange(count), np.where(inside, places, 0)]
    if not there.all():
        at = int(np.flatnonzero(~there)[0])
        living = np.flatnonzero(sets.available[at])
        raise ParameterError(
            f"baseline must be an available arm; set {at} has {len(living)}, at places {living[0]} to {living[-1]}, "
            f"and {int(places[at])} was named. Name one of these."
        )
    return places.astype(np.int64)


@kind("blend")
@dataclass(frozen=True, eq=False, kw_only=True)
class Blend(SetSampler):
    """``explorer`` with probability ``share``, else ``main``: a floor under the propensities of all that it may play.

    >>> from rareswitch.design import Uniform
    >>> from rareswitch.policy import PosteriorDraws
    >>> policy = Blend(main=PosteriorDraws(draws=[[1.0, 0.0]]), explorer=Uniform(), share=0.1)
    >>> policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).round(6).tolist()
    [0.95, 0.05]
    """

    main: Sampler
    explorer: Sampler
    share: float

    def __post_init__(self) -> None:
        for name in ("main", "explorer"):
            check_sampler(name, getattr(self, name))
        vars(self).update(share=number("share", self.share, low=0.0, high=1.0))

    def of_sets(self, sets: Sets) -> FloatArray:
        main = self.main.probabilities(sets)
        if self.share == 0.0:
            return main
        mixed = np.empty(sets.available.shape)
        blend(main, self.explorer.probabilities(sets), self.share, mixed)
        return mixed


def samplers_in(sampler: Sampler) -> Iterator[Sampler]:
    """A sampler and, where it is a blend, those that are in it."""
    yield sampler
    if isinstance(sampler, Blend):
        yield from samplers_in(sampler.main)
        yield from samplers_in(sampler.explorer)
