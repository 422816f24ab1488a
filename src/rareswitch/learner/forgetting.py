"""Sums in which older batches count less, for a θ that drifts."""

from collections.abc import Sequence
from dataclasses import replace

from rareswitch.learner.state import Batch
from rareswitch.stats import Stats


def remembered(batches: Sequence[Batch], forget: float) -> tuple[Stats, ...]:
    """The sums of batches, the last one in full and each of those before it at ``forget`` times the weight of the next.

    A batch of n decisions counts as forget^k·n of them when k more have ended, rounded; one that is less than half a
    decision by then is forgotten.

    >>> from rareswitch.stats import Stats
    >>> batch = Batch(policy_id="a", decided=4, rewarded=4, stats=(Stats.of([[2.0]] * 4, [1.0] * 4),))
    >>> remembered([batch, batch, batch], 0.5)[0].count, remembered([batch, batch, batch], 0.5)[0].gram.tolist()
    (7, [[28.0]])
    """
    total = batches[-1].stats
    weight = 1.0
    for batch in reversed(batches[:-1]):
        weight *= forget
        total = tuple(new + _weighed(old, weight) for new, old in zip(total, batch.stats, strict=True))
    return total


def _weighed(stats: Stats, weight: float) -> Stats:
    count = round(weight * stats.count)
    if not count:
        return Stats.zero(stats.dim)
    return replace(
        stats,
        gram=weight * stats.gram,
        moment=weight * stats.moment,
        count=count,
        square_sum=weight * stats.square_sum,
        reward_sum=None if stats.reward_sum is None else weight * stats.reward_sum,
    )
