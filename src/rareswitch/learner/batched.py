"""The batched elimination framework that the three algorithms share (Section 4)."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from rareswitch.confidence import Confidence, ConfidenceMode, confidence
from rareswitch.contexts import ContextSets
from rareswitch.design import Sampler
from rareswitch.errors import ParameterError
from rareswitch.learner.feedback import Summary
from rareswitch.learner.grids import Grid
from rareswitch.learner.learner import Learner
from rareswitch.policy import Elimination, Policy
from rareswitch.policy.kernels import widest
from rareswitch.stats import Stats
from rareswitch.validation import BoolArray, FloatArray, IntArray

WIDTH_SAMPLE = 1000
"""Context sets from which an adaptive grid measures widths."""


class BatchedLearner(Learner):
    """Learns once at the end of each batch; what differs between algorithms is the sampler and what is learned.

    Parameters
    ----------
    dim, arms, horizon
        d, the most arms in a set K, and T.
    batches, grid
        How many batches, or where they end; the algorithm's own by default.
    confidence, delta, noise, norm, ridge
        See :func:`rareswitch.confidence.confidence`.
    """

    ridge_constant: ClassVar[float] = 16.0

    def __init__(
        self,
        *,
        dim: int,
        arms: int,
        horizon: int,
        batches: int | None = None,
        grid: Grid | None = None,
        confidence: ConfidenceMode | float = "tight",
        delta: float = 0.05,
        noise: float = 1.0,
        norm: float = 1.0,
        ridge: float | None = None,
    ) -> None:
        super().__init__(dim=dim, arms=arms, horizon=horizon)
        if batches is not None and grid is not None:
            raise ParameterError("give batches, for the algorithm's own grid of that many, or a grid; not both.")
        self.grid = self._default_grid(batches) if grid is None else grid
        if self.grid.horizon != self.horizon:
            raise ParameterError(f"the grid ends at {self.grid.horizon} where the horizon is {self.horizon}.")
        self.confidence = self._confidence(confidence, delta=delta, noise=noise, norm=norm, ridge=ridge)
        self.policy = Policy(dim=self.dim, sampler=self._first_sampler())
        self.stop = self.grid.end(1, 0, 1.0)

    def _confidence(
        self, mode: ConfidenceMode | float, *, delta: float, noise: float, norm: float, ridge: float | None
    ) -> Confidence:
        return confidence(
            mode,
            dim=self.dim,
            arms=self.arms,
            horizon=self.horizon,
            batches=self.grid.batches,
            delta=delta,
            noise=noise,
            norm=norm,
            ridge=ridge,
            ridge_constant=self.ridge_constant,
        )

    @property
    def batch(self) -> int:
        """Number of the current batch, from 1."""
        return self.updates

    @property
    def settings(self) -> str:
        """All that tells this learner's runs from those of another, on one line."""
        level = self.confidence
        return (
            f"{type(self).__name__} d={self.dim} K={self.arms} {self.grid} multiplier={level.multiplier!r} "
            f"ridge={level.ridge!r}{self._own_settings()}"
        )

    def _own_settings(self) -> str:
        """What a subclass adds to the settings."""
        return ""

    @abstractmethod
    def _default_grid(self, batches: int | None) -> Grid: ...

    @abstractmethod
    def _first_sampler(self) -> Sampler: ...

    def _next_sampler(self, elimination: Elimination, sample: ContextSets | None) -> Sampler:
        """The sampler of the next batch; the same one unless the algorithm learns it."""
        return self.policy.sampler

    def _counted(self, offsets: IntArray) -> BoolArray:
        """Which decisions of the batch, by their place in it, enter the statistics."""
        return np.ones(len(offsets), dtype=np.bool_)

    def sampled(self, decisions: IntArray) -> BoolArray:
        return self._sampled(decisions - self.start)

    def _sampled(self, offsets: IntArray) -> BoolArray:
        """Which context sets of the batch are kept for what is learned from them."""
        if not self.grid.needs_width:
            return np.zeros(len(offsets), dtype=np.bool_)
        return np.asarray(offsets % -(-(self.stop - self.start) // WIDTH_SAMPLE) == 0)

    def _count(self, offsets: IntArray, features: FloatArray, rewards: FloatArray) -> tuple[Stats, ...]:
        counted = self._counted(offsets)
        if not counted.all():
            features, rewards = features[counted], rewards[counted]
        return (Stats.of(features, rewards),)

    def _learn(self, summary: Summary) -> Policy:
        (stats,) = summary.stats
        ridge = self.confidence.ridge
        elimination = Elimination.of(
            stats.estimate(ridge=ridge), stats.gram + ridge * np.eye(self.dim), self.confidence.multiplier
        )
        sampler = self._next_sampler(elimination, summary.sample)
        return Policy(dim=self.dim, sampler=sampler, eliminations=(*self.policy.eliminations, elimination))

    def _next_stop(self, summary: Summary) -> int:
        return self.grid.end(self.batch, self.start, self._width(self.policy.eliminations[-1], summary.sample))

    def _width(self, elimination: Elimination, sample: ContextSets | None) -> float:
        """Mean over the sampled sets of the widest interval among the arms that survive the new elimination."""
        if sample is None:
            return 1.0
        kept = survivors_of(elimination, sample)
        widths = np.empty(len(kept))
        widest(kept.contexts, kept.alive, elimination.root, widths)
        return float(widths.mean())


def survivors_of(elimination: Elimination, sets: ContextSets) -> ContextSets:
    """The sets with the arms that one more elimination leaves."""
    from rareswitch.design import Uniform

    alone = Policy(dim=elimination.dim, sampler=Uniform(), eliminations=(elimination,))
    return ContextSets(sets.contexts, alone.survivors(sets.contexts, sets.alive))
