"""BatchLinUCB (Algorithm 1)."""

from typing import ClassVar

from rareswitch.design import Sampler, Uniform
from rareswitch.learner.batched import BatchedLearner
from rareswitch.learner.grids import Grid, paper_grid


class BatchLinUCB(BatchedLearner):
    """Plays a uniformly random survivor; regret √(dKT log(dKT/δ))·log log T with ⌈log log T⌉ batches (Theorem 1).

    >>> learner = BatchLinUCB(dim=5, arms=10, horizon=10_000)
    >>> learner.grid.ends
    (100, 1000, 3162, 10000)
    """

    name: ClassVar[str] = "batch-linucb"

    def _default_grid(self, batches: int | None) -> Grid:
        return paper_grid(self.horizon, batches)

    def _first_sampler(self) -> Sampler:
        return Uniform()
