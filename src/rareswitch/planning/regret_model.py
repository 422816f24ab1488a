"""The one regret model, behind plans, schedules and their prices: what updates at given times cost.

In units of uniform exploration, a policy that was learned from n decisions loses ρ(n) a decision. A batch loses that
of the policy that decides it, full adaptivity the integral. Where nothing is known but d, ρ(n) = min(1, 2d/n): it is
what simulated runs lose where the best arm is about one standard deviation of a reward better than an average one
(benchmarks/regret.py, case schedules). Where contexts or rewards are known, :func:`~rareswitch.planning.plan` simulates
ρ (:mod:`rareswitch.planning.simulation`). Its schedule carries that curve, so that the status of the experiment says
what the plan said.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from rareswitch.core import FloatArray, IntArray, Result, first_highest, number, whole
from rareswitch.errors import ParameterError
from rareswitch.learner import PER_FEATURE
from rareswitch.policy import MinPropensity

__all__ = ["MinPropensityPrice", "RegretCurve", "adaptive_cost", "baseline_share", "best_ends", "cost"]
__all__ += ["min_propensity_price"]

#: Times at which an update may be made grow by this factor from one to the next.
STEP = 1.02
#: What a decision of the baseline is assumed to cost and to teach, beside one that explores: it is better than that,
#: and where it always shows the same it teaches little.
COST, LESSON = 0.5, 0.1
#: The share where the lengths of batches are not known.
USUAL = 0.1


class RegretCurve(NamedTuple):
    """ρ: 1 up to the first point, a power of n between two points, and falling as 1/n beyond the last."""

    #: Decisions learned from, increasing and above 0.
    known: tuple[float, ...]
    #: What a decision loses then, in units of uniform exploration, above 0 and at most 1.
    price: tuple[float, ...]

    @classmethod
    def of(cls, dim: int) -> Self:
        """The curve where nothing is known but the features of an arm.

        >>> RegretCurve.of(10).at(np.array([0.0, 20.0, 400.0])).tolist()
        [1.0, 1.0, 0.05]
        """
        return cls((PER_FEATURE * dim,), (1.0,))

    def at(self, known: FloatArray) -> FloatArray:
        """ρ of a policy that was learned from this number of decisions, an array of any shape."""
        points, price = np.array(self.known), np.array(self.price)
        count = np.asarray(known, dtype=np.float64)
        if len(points) == 1:
            return np.asarray(price[0] * points[0] / np.maximum(count, points[0]))
        inside = np.exp(np.interp(np.log(np.maximum(count, points[0])), np.log(points), np.log(price)))
        beyond = price[-1] * points[-1] / np.maximum(count, points[-1])
        return np.where(count < points[0], 1.0, np.where(count > points[-1], beyond, inside))

    def integral(self, total: float) -> float:
        """What a new policy after each of that many decisions loses."""
        points = np.array([*(point for point in self.known if point < total), total])
        free = float(min(points[0], total))
        if len(points) == 1:
            return free
        price = np.append(np.array(self.price)[: len(points) - 1], self.at(points[-1:]))
        steps = np.log(points[1:] / points[:-1])
        bends = np.log(price[1:] / price[:-1]) + steps  # of n·ρ(n), whose integral over ln n is wanted
        flat = np.abs(bends) < 1e-9
        means = np.where(flat, 1.0, np.expm1(bends) / np.where(flat, 1.0, bends))
        return free + float((points[:-1] * price[:-1] * steps) @ means)


def cost(ends: Sequence[float], *, dim: int, delay: float = 0.0, curve: RegretCurve | None = None) -> float:
    """What batches with these ends cost; rewards are known ``delay`` decisions after theirs.

    >>> cost([40, 400], dim=10), cost([200, 400], dim=10), cost([40, 200, 400], dim=10)
    (220.0, 220.0, 140.0)
    """
    starts = np.array([0.0, *ends[:-1]])
    return float((np.array(ends) - starts) @ (curve or RegretCurve.of(dim)).at(starts - delay))


def adaptive_cost(total: float, *, dim: int, curve: RegretCurve | None = None) -> float:
    """What a new policy after each decision costs, with no delay.

    >>> round(adaptive_cost(10_000, dim=10))
    144
    """
    return (curve or RegretCurve.of(dim)).integral(total)


def best_ends(
    total: float,
    policies: int,
    *,
    dim: int,
    start: float = 0.0,
    earliest: float = 0.0,
    gap: float = 0.0,
    delay: float = 0.0,
    times: Sequence[float] | None = None,
    curve: RegretCurve | None = None,
) -> tuple[float, ...]:
    """The ends of the current batch and of those after it with the least cost, found by dynamic programming.

    Parameters
    ----------
    total
        Decisions in all: the last end.
    policies
        The most batches, the current one included.
    start
        Decisions when the current batch began.
    earliest, gap
        Decisions before which it does not end, and the least that each batch between two updates has.
    delay
        Decisions that come between a decision and its reward.
    times
        Decisions at which a batch may end, increasing; where they are closer than 2 %, some are left out. All are
        allowed by default.
    curve
        What a decision costs after how many others; by default of ``dim`` features, where nothing else is known.

    Examples
    --------
    >>> [round(end) for end in best_ends(10_000, 8, dim=10)]
    [44, 95, 206, 454, 984, 2129, 4610, 10000]
    """
    grown = STEP ** np.arange(math.ceil(math.log(max(total, STEP)) / math.log(STEP)))
    if times is None:
        candidates = np.unique(np.append(np.round(grown), earliest))
    else:
        candidates = np.asarray(times, dtype=np.float64)
        if len(candidates) > len(grown):
            nearest = np.searchsorted(candidates, grown).clip(max=len(candidates) - 1)
            candidates = candidates[np.unique(nearest)]
    inside = candidates[(candidates > start) & (candidates >= earliest) & (candidates < total)]
    points = np.concatenate([[start], inside])
    prices = (curve or RegretCurve.of(dim)).at(points - delay)
    last = (total - points) * prices
    lengths = points[None, :] - points[:, None]
    allowed = lengths > 0.0
    allowed[1:] &= lengths[1:] >= gap
    steps = np.where(allowed, lengths * prices[:, None], np.inf)
    least, choices = last, list[IntArray]()
    for _ in range(policies - 1):
        through = steps + least
        chosen = first_highest(-through)
        costs = through[np.arange(len(points)), chosen]
        choices.append(np.where(costs < last, chosen, -1))
        least = np.minimum(costs, last)
    at, ends = 0, list[float]()
    for chosen in reversed(choices):
        if chosen[at] < 0:
            break
        at = int(chosen[at])
        ends.append(float(points[at]))
    return (*ends, total)


def baseline_share(dim: int, lengths: Sequence[int] | None) -> float:
    """The share of exploration beside a baseline that costs least over the batches to come, of these lengths.

    What the caller shows is taken to cost half as much as exploring, and to teach a tenth. The share is between 0.01
    and 0.5; 0.1 where the lengths are not known.

    >>> baseline_share(10, [1250] * 8), baseline_share(30, [1250] * 8), baseline_share(10, [44, 51, 111])
    (0.08, 0.23, 0.5)
    """
    whole("dim", dim)
    if lengths is None:
        return USUAL
    if np.ndim(lengths) != 1 or not len(lengths):
        raise ParameterError(f"lengths must be those of the batches to come, at least one; got {lengths!r:.60}.")
    batches = [number("lengths", length, low=1.0) for length in lengths]
    first, ends = batches[0], np.cumsum(batches)
    shares = np.arange(1, 51) / 100.0  # who names a baseline means it; and something is always learned
    taught = first * (shares + LESSON * (1.0 - shares))
    costs = first * (shares + COST * (1.0 - shares))
    for before, end in pairwise(ends):
        costs = costs + (end - before) * RegretCurve.of(dim).at(taught + before - first)
    return float(shares[int(first_highest(-costs))])


class MinPropensityPrice(Result, frozen=True, kw_only=True):
    """What a least probability of arms costs, in the unit of this model: a decision of uniform exploration.

    With 8 policies at their best times, 10,000 decisions with 10 features cost about 208 for learning. A least
    probability of 0.02 under 5 arms costs several times that:

    >>> print(min_propensity_price(MinPropensity(least=0.02), arms=5, ends=best_ends(10_000, 8, dim=10), dim=10))
    Minimum propensity: 0.02 for every offered arm, 10 % of decisions (5 arms per set). Expected cost: 1,000 exploring \
decisions of the next 10,000, beside 208 for learning.
    """

    least: float
    #: The arms it is for; None: all that are offered.
    only: tuple[str, ...] | None = None
    #: How many these are in a set, a mean where sets differ; None where it is not known.
    arms: float | None = None
    #: Share of the decisions that it makes.
    share: float | None = None
    #: To come; None where that is not known.
    decisions: int | None = None
    #: What it costs over these, and what learning does.
    cost: float | None = None
    learning: float | None = None


def min_propensity_price(
    min_propensity: MinPropensity,
    *,
    arms: float,
    ends: Sequence[float] | None,
    dim: int,
    before: float = 0.0,
    now: float | None = None,
    delay: float = 0.0,
    curve: RegretCurve | None = None,
) -> MinPropensityPrice:
    """What a floor costs over the decisions to come.

    Parameters
    ----------
    arms
        Arms in a set that the floor is for.
    ends
        Decisions in all at which the current batch and those after it end; None where that is not known.
    dim
        Features of an arm.
    before
        Decisions of the policies before the current one, from which it was learned.
    now
        Decisions so far; ``before`` by default.
    delay, curve
        As in :func:`best_ends`.
    """
    number("arms", arms, low=0.0)
    if min_propensity.least * arms > 1.0 + 1e-9:
        raise ParameterError(
            f"a minimum propensity of {min_propensity.least:g} is for at most {int(1.0 / min_propensity.least + 1e-9)} "
            f"arms of a set, since probabilities sum to 1; there are {arms:g}. Take at most {1.0 / arms:.4g}."
        )
    share = min_propensity.least * arms
    if not ends:
        return MinPropensityPrice(least=min_propensity.least, only=min_propensity.arms, arms=arms, share=share)
    begun = before if now is None else now
    points = np.array([begun, *(max(begun, end) for end in ends)])
    prices = (curve or RegretCurve.of(dim)).at(np.array([before, *ends[:-1]]) - delay)
    learning = sum(price * (b - a) for price, (a, b) in zip(prices.tolist(), pairwise(points.tolist()), strict=True))
    decisions = round(points[-1] - begun)
    return MinPropensityPrice(
        least=min_propensity.least,
        only=min_propensity.arms,
        arms=arms,
        share=share,
        decisions=decisions,
        cost=share * decisions,
        learning=float(learning),
    )
