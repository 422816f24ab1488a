"""Batched elimination on a fixed action set (Esfandiari et al. 2019)."""

import math
from typing import Any, ClassVar

from rareswitch.design import GOptimal
from rareswitch.errors import UnsuitableError
from rareswitch.learner.batch_linucb_kw import BatchLinUCBKW
from rareswitch.learner.feedback import Feedback
from rareswitch.learner.grids import Grid, growing_grid
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray


class FixedSetElimination(BatchLinUCBKW):
    """Plays the G-optimal design of the surviving actions in ever longer batches; regret √(dT log(KT))·T^(1/2M).

    The M batches have lengths q, q², …, q^M; by default M = ⌈ln T⌉. All sets must be the same. Actions are drawn from
    the design where the authors round it to whole numbers of plays.

    >>> FixedSetElimination(dim=5, arms=10, horizon=10_000, batches=3).grid.ends
    (21, 470, 10000)
    """

    name: ClassVar[str] = "fixed-set-elimination"

    def __init__(self, *, g_optimal: GOptimal | None = None, **settings: Any) -> None:
        super().__init__(g_optimal=GOptimal() if g_optimal is None else g_optimal, **settings)
        self._actions: FloatArray | None = None

    def _default_grid(self, batches: int | None) -> Grid:
        if batches is None:
            batches = min(self.horizon, math.ceil(math.log(self.horizon)))
        return growing_grid(self.horizon, batches)

    def _stats(self, feedback: Feedback) -> tuple[Stats, ...]:
        contexts = feedback.sets.contexts
        if self._actions is None:
            self._actions = contexts[0].copy()
        if contexts.shape[1:] != self._actions.shape or not (contexts == self._actions).all():
            raise UnsuitableError(
                "fixed-set-elimination is for one action set that never changes; these sets differ. Use "
                "batch-linucb-kw, which takes any."
            )
        return super()._stats(feedback)
