"""Batched elimination on a fixed action set (Esfandiari et al. 2019)."""

import math
from typing import Any, ClassVar

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.design import GOptimal
from rareswitch.errors import UnsuitableError
from rareswitch.learner.batch_linucb_kw import BatchLinUCBKW
from rareswitch.learner.feedback import Summary
from rareswitch.learner.grids import Grid, growing_grid
from rareswitch.policy import Policy
from rareswitch.validation import BoolArray, FloatArray, IntArray, Sets

SAMPLE = 64
"""Sets of a batch that are compared, so that one that changes is noticed."""


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
        self._actions: ContextSets | None = None

    def _default_grid(self, batches: int | None) -> Grid:
        if batches is None:
            batches = min(self.horizon, math.ceil(math.log(self.horizon)))
        return growing_grid(self.horizon, batches)

    def check(self, sets: Sets) -> None:
        super().check(sets)
        _one_set(sets.contexts, sets.alive)

    def _sampled(self, offsets: IntArray) -> BoolArray:
        return np.asarray(offsets % -(-(self.stop - self.start) // SAMPLE) == 0)

    def _kept(self, offered: ContextSets, survivors: BoolArray) -> ContextSets:
        return offered

    def _learn(self, summary: Summary) -> Policy:
        assert summary.sample is not None
        seen = summary.sample if self._actions is None else ContextSets.concatenate([self._actions, summary.sample])
        _one_set(seen.contexts, seen.alive)
        self._actions = ContextSets(seen.contexts[:1], seen.alive[:1])
        return super()._learn(summary)


def _one_set(contexts: FloatArray, alive: BoolArray) -> None:
    if not (contexts == contexts[0]).all() or not (alive == alive[0]).all():
        raise UnsuitableError(
            "fixed-set-elimination is for one action set that never changes; these sets differ. Use batch-linucb-kw, "
            "which takes any."
        )
