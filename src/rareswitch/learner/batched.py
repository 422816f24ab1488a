"""The batched elimination framework that the three algorithms share (Section 4)."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from rareswitch.confidence import Confidence, ConfidenceMode, confidence
from rareswitch.contexts import ContextSets
from rareswitch.design import Sampler
from rareswitch.errors import BatchError, ParameterError
from rareswitch.learner.feedback import Feedback, Summary
from rareswitch.learner.grids import Grid
from rareswitch.policy import Elimination, Policy
from rareswitch.policy.kernels import widest
from rareswitch.stats import Stats
from rareswitch.validation import BoolArray, IntArray, whole

WIDTH_SAMPLE = 1000
"""Context sets from which an adaptive grid measures widths."""


class BatchedLearner(ABC):
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

    name: ClassVar[str]
    """What it is called on the command line."""
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
        self.dim = whole("dim", dim)
        self.arms = whole("arms", arms)
        self.horizon = whole("horizon", horizon, low=2)
        if batches is not None and grid is not None:
            raise ParameterError("give batches, for the algorithm's own grid of that many, or a grid; not both.")
        self.grid = self._default_grid(batches) if grid is None else grid
        if self.grid.horizon != self.horizon:
            raise ParameterError(f"the grid ends at {self.grid.horizon} where the horizon is {self.horizon}.")
        self.confidence = self._confidence(confidence, delta=delta, noise=noise, norm=norm, ridge=ridge)
        self.policy = Policy(dim=self.dim, sampler=self._first_sampler())
        """The frozen policy that makes the decisions ``start`` … ``stop - 1``."""
        self.batch: int = 1
        """Number of the current batch, from 1."""
        self.start: int = 0
        self.stop: int = self.grid.end(1, 0, 1.0)
        self.updates = 1
        """Policies deployed so far, the first included: the paper's measure of adaptivity."""
        self.done = False
        """Whether the last batch is over."""

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

    def _sampled(self, offsets: IntArray) -> BoolArray:
        """Which context sets of the batch are kept for what is learned from them."""
        if not self.grid.needs_width:
            return np.zeros(len(offsets), dtype=np.bool_)
        return np.asarray(offsets % -(-(self.stop - self.start) // WIDTH_SAMPLE) == 0)

    def summarize(self, feedback: Feedback) -> Summary:
        """What this learner needs of a stretch of the current batch. Changes nothing."""
        count = len(feedback.arms)
        if self.done:
            raise BatchError("this run is over: its last batch has been learned from.")
        if feedback.policy_id != self.policy.id:
            raise BatchError(
                f"these decisions are of policy {feedback.policy_id[:12]}…, the current one is {self.policy.id[:12]}…: "
                "they belong to another learner, or to a batch that was learned from already."
            )
        if feedback.first < self.start or feedback.first + count > self.stop:
            raise BatchError(
                f"batch {self.batch} has the decisions {self.start} to {self.stop - 1}; got {feedback.first} to "
                f"{feedback.first + count - 1}."
            )
        sets = feedback.sets
        if sets.contexts.shape[2] != self.dim:
            raise BatchError(f"this learner is for {self.dim} features; got {sets.contexts.shape[2]}.")
        if sets.contexts.shape[1] > self.arms:
            raise BatchError(f"this learner was made for at most {self.arms} arms; got {sets.contexts.shape[1]}.")
        offsets = feedback.first - self.start + np.arange(count)
        counted = self._counted(offsets)
        features, rewards = feedback.features, feedback.rewards
        if not counted.all():
            features, rewards = features[counted], rewards[counted]
        sampled = np.flatnonzero(self._sampled(offsets))
        sample = None
        if len(sampled):
            contexts = sets.contexts[sampled]
            sample = ContextSets(contexts, self.policy.survivors(contexts, sets.alive[sampled]))
            if (sample.alive.sum(axis=1) != feedback.survivors[sampled]).any():
                raise BatchError(
                    "the policy decided between other arms than these contexts offer: was the mask of living arms that "
                    "decide was given left out of the feedback?"
                )
        return Summary(
            start=feedback.first,
            stop=feedback.first + count,
            policy_id=feedback.policy_id,
            stats=Stats.of(features, rewards),
            sample=sample,
        )

    def next(self, summary: Summary) -> Policy:
        """End the batch: learn from all of it and make the next policy. After the last batch nothing changes hands."""
        if self.done:
            raise BatchError("this run is over: its last batch has been learned from.")
        if summary.policy_id != self.policy.id:
            raise BatchError(
                f"this summary is of policy {summary.policy_id[:12]}… and the current one is {self.policy.id[:12]}…: "
                "it belongs to another learner, or to a batch that was learned from already."
            )
        if (summary.start, summary.stop) != (self.start, self.stop):
            raise BatchError(
                f"batch {self.batch} has the decisions {self.start} to {self.stop - 1}, all of which are needed; got "
                f"{summary.start} to {summary.stop - 1}."
            )
        if self.stop == self.horizon:
            self.done = True
            return self.policy
        ridge = self.confidence.ridge
        elimination = Elimination.of(
            summary.stats.estimate(ridge=ridge),
            summary.stats.gram + ridge * np.eye(self.dim),
            self.confidence.multiplier,
        )
        sampler = self._next_sampler(elimination, summary.sample)
        self.policy = Policy(dim=self.dim, sampler=sampler, eliminations=(*self.policy.eliminations, elimination))
        self.updates += 1
        self.batch += 1
        self.start = self.stop
        self.stop = self.grid.end(self.batch, self.start, self._width(elimination, summary.sample))
        return self.policy

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
