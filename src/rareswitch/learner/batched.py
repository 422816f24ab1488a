"""Batched elimination (Section 4): what the paper's algorithms share, BatchLinUCB (Algorithm 1), -KW (Appendix B)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rareswitch.core import ContextSets, Stats
from rareswitch.design import GOptimal, Sampler, Uniform
from rareswitch.learner.confidence import GridLearner, Intervals
from rareswitch.learner.grids import ADAPTIVE, AdaptiveGrid, GridLike, StaticGrid, as_grid_or_adaptive
from rareswitch.learner.learner import Parts
from rareswitch.learner.rule import BatchEnd, NewPolicy, OneModel, Rule
from rareswitch.learner.settings import design_of_sets, setting
from rareswitch.learner.state import Sample
from rareswitch.policy import Elimination, Policy, widest_intervals

__all__ = ["BatchLinUCB", "BatchLinUCBKW", "BatchedLearner", "EliminateByBatch"]

#: Context sets over which the widths of intervals are averaged.
WIDTH_SAMPLE = 1000


@dataclass(frozen=True, eq=False, kw_only=True)
class EliminateByBatch(Rule):
    """Eliminate by each batch's own estimate, and draw one of the surviving arms."""

    dim: int
    intervals: Intervals
    sampler: Sampler
    #: Given where the lengths of batches follow the widths of intervals.
    grid: AdaptiveGrid | None = None

    def first(self) -> NewPolicy:
        return NewPolicy(Policy(dim=self.dim, sampler=self.sampler))

    def next(self, ended: BatchEnd) -> NewPolicy:
        policy = replace(ended.state.policy, eliminations=(*ended.state.policy.eliminations, self.elimination(ended)))
        policy = replace(policy, sampler=self.learned(ended.state.policies, policy, ended.batch.sample))
        return NewPolicy(policy, batch_sizes=self.next_length(ended, policy))

    def next_length(self, ended: BatchEnd, policy: Policy) -> tuple[int, ...]:
        """The length of the next batch by the widths of its policy's intervals; empty where the clock plans it."""
        if self.grid is None:
            return ()
        width = mean_width(policy, ended.batch.sample)
        return (self.grid.length(batch=ended.state.policies + 1, start=ended.start, width=width),)

    def sample_size(self, number: int, batch_sizes: tuple[int, ...]) -> int:
        return 0 if self.grid is None else WIDTH_SAMPLE

    def elimination(self, ended: BatchEnd) -> Elimination:
        """The verdict of the batch."""
        (stats,) = ended.batch.stats
        return batch_elimination(stats, self.intervals)

    def learned(self, number: int, policy: Policy, sample: Sample | None) -> Sampler:
        """The sampler of the next batch; the same one unless the algorithm learns it."""
        return policy.sampler


def batch_elimination(stats: Stats, intervals: Intervals) -> Elimination:
    """The intervals xᵀθ̂ ± α·√(xᵀΛ⁻¹x) of one batch by itself."""
    precision = stats.gram + intervals.ridge * np.eye(stats.dim)
    return Elimination.of(stats.estimate(ridge=intervals.ridge), precision, intervals.multiplier)


def surviving(policy: Policy, sets: ContextSets) -> ContextSets:
    """The sets with the arms that the policy's eliminations leave."""
    return ContextSets(sets.contexts, policy.survivors(sets))


def mean_width(policy: Policy, sample: Sample | None) -> float:
    """Mean over the sampled sets of the widest interval, of the newest elimination, among the surviving arms."""
    if sample is None:
        return 1.0
    return float(widest_intervals(policy.eliminations[-1], surviving(policy, sample.sets)).mean())


@dataclass(frozen=True, kw_only=True)
class BatchedLearner(GridLearner):
    """Learns once at the end of each batch; what differs between algorithms is the sampler and what is learned.

    ``confidence`` is explained at :func:`rareswitch.learner.confidence.independent_intervals`.
    """

    grid: GridLike | None = setting(
        None,
        "where batches end, as a list or a grid; 'adaptive': at most policies of them, each as long as the widths of "
        "the intervals allow when it begins; the algorithm's own by default",
        as_grid_or_adaptive,
    )

    ridge_constant: ClassVar[float] = 16.0

    def eliminating(self, sampler: Sampler, rule: Callable[..., EliminateByBatch] = EliminateByBatch) -> Parts:
        """A rule that begins with this sampler, and each batch judged by itself."""
        grid = self.schedule()
        adaptive = grid if isinstance(grid, AdaptiveGrid) else None
        eliminate = rule(dim=self.dim, intervals=self.intervals(grid.policies), sampler=sampler, grid=adaptive)
        return Parts(eliminate, grid, OneModel(dim=self.dim, pooled=False))

    def schedule(self) -> StaticGrid | AdaptiveGrid:
        """The grid that was given, the adaptive one included, or the algorithm's own."""
        if isinstance(self.grid, AdaptiveGrid):
            return self.grid
        if self.grid == ADAPTIVE:
            return AdaptiveGrid(horizon=self.horizon, policies=self.default_grid().policies)
        return self.pace()

    def intervals(self, policies: int) -> Intervals:
        """Those of a run with this number of batches."""
        return self.independent(batches=policies, ridge_constant=self.ridge_constant)


@dataclass(frozen=True, kw_only=True)
class BatchLinUCB(BatchedLearner):
    """Plays a uniformly random survivor; regret √(dKT log(dKT/δ))·log log T with ⌈log log T⌉ batches (Theorem 1).

    >>> BatchLinUCB(dim=5, arms=10, horizon=10_000).clock.ends
    (100, 1000, 3162, 10000)
    """

    name: ClassVar[str] = "batch-linucb"
    text: ClassVar[str] = "uniform among the survivors of elimination (Algorithm 1)"
    adaptivity: ClassVar[str] = "⌈log log T⌉"
    regret: ClassVar[str] = "√(dKT), stochastic"

    def compose(self) -> Parts:
        return self.eliminating(Uniform())


@dataclass(frozen=True, kw_only=True)
class BatchLinUCBKW(BatchedLearner):
    """Plays the G-optimal design of the survivors; regret d√(T log(dKT/δ))·log log T (Theorem 2).

    With at most 2d arms the paper's design is uniform, and the learner that of Algorithm 1; ``GOptimal()`` is a tight
    one.

    >>> BatchLinUCBKW(dim=5, arms=10, horizon=10_000).clock.policies
    4
    """

    g_optimal: GOptimal = setting(
        GOptimal(tol=1.0), "the design of a set, at the paper's factor 2 by default", design_of_sets
    )

    name: ClassVar[str] = "batch-linucb-kw"
    text: ClassVar[str] = "G-optimal design of the survivors (Appendix B)"
    adaptivity: ClassVar[str] = "⌈log log T⌉"
    regret: ClassVar[str] = "d√T, stochastic"

    def compose(self) -> Parts:
        return self.eliminating(self.g_optimal)
