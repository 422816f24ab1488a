"""Sums in which older batches count less, for a θ that drifts."""

from collections.abc import Sequence
from dataclasses import replace

from rareswitch.learner.state import Batch
from rareswitch.stats import Stats


def faded(batches: Sequence[Batch], forget: float) -> list[Stats]:
    """The sums of each batch, the last one in full and each before it at ``forget`` times the weight of the next.

    A batch of n decisions counts as forget^k·n of them when k more have ended, rounded; one that is less than half a
    decision by then is forgotten.

    >>> batch = Batch(policy_id="a", decided=4, rewarded=4, stats=(Stats.of([[2.0]] * 4, [1.0] * 4),))
    >>> [(stats.count, stats.gram.item()) for stats in faded([batch, batch, batch], 0.5)]
    [(1, 4.0), (2, 8.0), (4, 16.0)]
    """
    return [
        _weighed(batch.stats[0], forget**age) for age, batch in zip(range(len(batches))[::-1], batches, strict=True)
    ]


def _weighed(stats: Stats, weight: float) -> Stats:
    if weight == 1.0:
        return stats
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
        expansion=None if stats.expansion is None else stats.expansion.scaled(weight),
    )
