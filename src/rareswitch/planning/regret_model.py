"""What updates at given times cost: one number for each feature, good enough to choose a schedule by.

In units of uniform exploration, a policy that was learned from n decisions pays ρ(n) = min(1, c·d/n) a decision. A
batch pays that of the policy that decides it; full adaptivity pays the integral. Where regret falls as 1/t this is
what is measured: the case schedules of benchmarks/regret.py has the model beside the measurements.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rareswitch.core import FloatArray, IntArray, Result, first_highest, number, whole
from rareswitch.errors import ParameterError
from rareswitch.learner import PER_FEATURE
from rareswitch.policy import MinPropensity

__all__ = ["MinPropensityPrice", "adaptive_cost", "baseline_share", "best_ends", "cost", "min_propensity_price"]

#: Times at which an update may be made grow by this factor from one to the next.
STEP = 1.02
#: What a decision of the baseline is assumed to cost and to teach, beside one that explores: it is better than that,
#: and where it always shows the same it teaches little.
COST, LESSON = 0.5, 0.1
#: The share where the lengths of batches are not known.
USUAL = 0.1


def price_of(known: FloatArray, dim: int) -> FloatArray:
    """ρ, what a decision costs after this number of decisions was learned from.

    >>> price_of(np.array([0.0, 20.0, 400.0]), 10).tolist()
    [1.0, 1.0, 0.05]
    """
    free = PER_FEATURE * dim
    return np.asarray(free / np.maximum(known, free))


def cost(ends: Sequence[float], *, dim: int, delay: float = 0.0) -> float:
    """What batches with these ends cost; rewards are known ``delay`` decisions after theirs.

    >>> cost([40, 400], dim=10), cost([200, 400], dim=10), cost([40, 200, 400], dim=10)
    (220.0, 220.0, 140.0)
    """
    starts = np.array([0.0, *ends[:-1]])
    return float((np.array(ends) - starts) @ price_of(starts - delay, dim))


def adaptive_cost(total: float, *, dim: int) -> float:
    """What a new policy after each decision costs, with no delay.

    >>> round(adaptive_cost(10_000, dim=10))
    144
    """
    free = min(PER_FEATURE * dim, total)
    return free * (1.0 + math.log(total / free))


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
    prices = price_of(points - delay, dim)
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
        costs = costs + (end - before) * price_of(taught + before - first, dim)
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
    prices = price_of(np.array([before, *ends[:-1]]), dim)
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
