"""What updates at given times cost: one number for each feature, good enough to choose a schedule by.

In units of blind play, a policy that was learned from n decisions pays ρ(n) = min(1, c·d/n) a decision. A batch pays
that of the policy that decides it; full adaptivity pays the integral. Where regret falls as 1/t this is what is
measured: the case schedules of benchmarks/regret.py has the model beside the measurements.
"""

import math
from collections.abc import Sequence

import numpy as np

from rareswitch.choosing import first_highest
from rareswitch.validation import FloatArray, IntArray

#: c, the decisions for each feature up to which a policy is about as bad as a blind one. With 2 the model says of
#: weekly updates, of a day's gap and of never updating what was measured in six worlds, within a tenth.
PER_FEATURE = 2.0
#: Times at which an update may be made grow by this factor from one to the next.
STEP = 1.02


def price_of(known: FloatArray, dim: int) -> FloatArray:
    """ρ, what a decision costs after so many decisions were learned from.

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

    Examples
    --------
    >>> [round(end) for end in best_ends(10_000, 8, dim=10)]
    [44, 95, 206, 454, 984, 2129, 4610, 10000]
    """
    grown = STEP ** np.arange(math.ceil(math.log(max(total, STEP)) / math.log(STEP)))
    candidates = np.unique(np.append(np.round(grown), earliest))
    inside = candidates[(candidates > start) & (candidates >= earliest) & (candidates < total)]
    times = np.concatenate([[start], inside])
    prices = price_of(times - delay, dim)
    last = (total - times) * prices
    lengths = times[None, :] - times[:, None]
    allowed = lengths > 0.0
    allowed[1:] &= lengths[1:] >= gap
    steps = np.where(allowed, lengths * prices[:, None], np.inf)
    least, choices = last, list[IntArray]()
    for _ in range(policies - 1):
        through = steps + least
        chosen = first_highest(-through)
        found = through[np.arange(len(times)), chosen]
        choices.append(np.where(found < last, chosen, -1))
        least = np.minimum(found, last)
    at, ends = 0, list[float]()
    for chosen in reversed(choices):
        if chosen[at] < 0:
            break
        at = int(chosen[at])
        ends.append(float(times[at]))
    return (*ends, total)
