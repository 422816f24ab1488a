"""BatchLinUCB-DG (Algorithm 5)."""

from typing import Any, ClassVar

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.design import GOptimal, Sampler
from rareswitch.learner.batched import BatchedLearner, survivors_of
from rareswitch.learner.designers import CoreLearning, Designer
from rareswitch.learner.grids import Grid, paper_design_grid
from rareswitch.policy import Elimination
from rareswitch.validation import BoolArray, IntArray, whole


class BatchLinUCBDG(BatchedLearner):
    """Learns at each batch's end how to explore the arms that will survive; regret √(dT log d log(dKT/δ))·log log T.

    Of each batch, the decisions at even places (the half 𝒜) give the estimate, those at odd places (ℬ) the context sets
    from which the next sampling policy is learned, after elimination by the new estimate (Theorem 6).

    Parameters
    ----------
    designer
        How the sampling policy is learned: :class:`~rareswitch.learner.CoreLearning` is the paper's, with λ = 1/T;
        :class:`~rareswitch.learner.CertifiedMixture` is the one we recommend.
    g_optimal
        π_0, the design of the first batch, at the paper's factor 2 by default.
    design_sample
        The most sets of ℬ that are kept for the designer, evenly spread over the batch, so that memory does not grow
        with T.
    warm_batches
        How many of the first batches are played and learned as BatchLinUCB-KW: all their decisions give the estimate
        and the sampler stays π_0. See :func:`~rareswitch.learner.warm_start`.

    Examples
    --------
    >>> BatchLinUCBDG(dim=5, arms=10, horizon=10_000).grid.ends
    (100, 200, 1000, 3162, 10000)
    """

    name: ClassVar[str] = "batch-linucb-dg"
    ridge_constant: ClassVar[float] = 32.0

    def __init__(
        self,
        *,
        designer: Designer | None = None,
        g_optimal: GOptimal | None = None,
        design_sample: int = 10_000,
        warm_batches: int = 0,
        **settings: Any,
    ) -> None:
        self.designer = CoreLearning() if designer is None else designer
        self.g_optimal = GOptimal(tol=1.0) if g_optimal is None else g_optimal
        self.design_sample = whole("design_sample", design_sample)
        self.warm_batches = whole("warm_batches", warm_batches, low=0)
        super().__init__(**settings)

    def _own_settings(self) -> str:
        return f" {self.g_optimal} {self.designer} sample={self.design_sample} warm={self.warm_batches}"

    def _default_grid(self, batches: int | None) -> Grid:
        return paper_design_grid(self.horizon, batches)

    def _first_sampler(self) -> Sampler:
        return self.g_optimal

    def _counted(self, offsets: IntArray) -> BoolArray:
        return np.asarray((offsets % 2 == 0) | (self.batch <= self.warm_batches))

    def _sampled(self, offsets: IntArray) -> BoolArray:
        if self.stop == self.horizon or (self.batch <= self.warm_batches and not self.grid.needs_width):
            return np.zeros(len(offsets), dtype=np.bool_)
        stride = -(-(self.stop - self.start) // 2 // self.design_sample)
        return np.asarray((offsets % 2 == 1) & (offsets // 2 % max(1, stride) == 0))

    def _next_sampler(self, elimination: Elimination, sample: ContextSets | None) -> Sampler:
        if sample is None or self.batch <= self.warm_batches:
            return self.g_optimal
        kept = survivors_of(elimination, sample)
        return self.designer.learn(kept.contexts, kept.alive, regularization=1.0 / self.horizon)
