"""BatchLinUCB-KW (Appendix B)."""

from typing import Any, ClassVar

from rareswitch.design import GOptimal, Sampler
from rareswitch.learner.batched import BatchedLearner
from rareswitch.learner.grids import Grid, paper_grid


class BatchLinUCBKW(BatchedLearner):
    """Plays the G-optimal design of the survivors; regret d√(T log(dKT/δ))·log log T (Theorem 2).

    ``g_optimal`` is the design, at the paper's factor 2 by default; with at most 2d arms that design is uniform, and
    the learner that of Algorithm 1. ``GOptimal()`` is a tight one.

    >>> BatchLinUCBKW(dim=5, arms=10, horizon=10_000).grid.batches
    4
    """

    name: ClassVar[str] = "batch-linucb-kw"

    def __init__(self, *, g_optimal: GOptimal | None = None, **settings: Any) -> None:
        self.g_optimal = GOptimal(tol=1.0) if g_optimal is None else g_optimal
        super().__init__(**settings)

    def _own_settings(self) -> str:
        return f" {self.g_optimal}"

    def _default_grid(self, batches: int | None) -> Grid:
        return paper_grid(self.horizon, batches)

    def _first_sampler(self) -> Sampler:
        return self.g_optimal
