"""Batched elimination on a fixed action set (Esfandiari et al. 2019)."""

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

import numpy as np

from rareswitch.core import BoolArray, FloatArray, Sets, whole
from rareswitch.design import GOptimal
from rareswitch.errors import UnsuitableError
from rareswitch.learner import (
    BatchEnd,
    BatchLinUCBKW,
    EliminateByBatch,
    NewPolicy,
    Parts,
    StaticGrid,
    design_of_sets,
    setting,
    whole_ends,
)

#: Sets of a batch that are compared, so that one that changes is noticed.
SAMPLE = 64
#: More would take long to plan.
MOST_BATCHES = 10_000


class EliminateActions(EliminateByBatch):
    """Eliminate as before, if the actions are still the same."""

    def sample_size(self, number: int, forecast: tuple[int, ...]) -> int:
        return SAMPLE

    def next(self, ended: BatchEnd) -> NewPolicy:
        return super().next(ended)._replace(kept=the_actions("fixed-set-elimination", ended))


@dataclass(frozen=True, kw_only=True)
class FixedSetElimination(BatchLinUCBKW):
    """Plays the G-optimal design of the surviving actions in ever longer batches; regret √(dT log(KT))·T^(1/2M).

    The M batches have lengths q, q², …, q^M; by default M = ⌈ln T⌉. All sets must be the same. Actions are drawn from
    the design where the authors round it to whole numbers of plays.

    >>> FixedSetElimination(dim=5, arms=10, horizon=10_000, policies=3).clock.ends
    (21, 470, 10000)
    """

    g_optimal: GOptimal = setting(GOptimal(), "the design of the actions", design_of_sets)

    name: ClassVar[str] = "fixed-set-elimination"
    text: ClassVar[str] = "G-optimal elimination of one fixed action set (Esfandiari et al. 2019)"
    adaptivity: ClassVar[str] = "⌈ln T⌉"
    regret: ClassVar[str] = "√(dT), one fixed set"

    def compose(self) -> Parts:
        return self.eliminating(self.g_optimal, EliminateActions)

    def default_grid(self) -> StaticGrid:
        usual = min(self.horizon, math.ceil(math.log(self.horizon)))
        return growing_grid(self.horizon, usual if self.policies is None else self.policies)

    def check(self, sets: Sets) -> None:
        super().check(sets)
        check_one_set(self.name, sets.contexts, sets.available)


def growing_grid(horizon: int, policies: int) -> StaticGrid:
    """Batches of lengths q, q², …, q^M, with q such that they add up to T.

    >>> growing_grid(1000, 3).ends
    (9, 102, 1000)
    """
    whole("policies", policies, high=min(whole("horizon", horizon, low=2), MOST_BATCHES))
    powers = range(1, policies + 1)
    low, high = 1.0, horizon ** (1.0 / policies) * (1.0 + 1e-9)  # the last batch alone is no longer than T
    while low < (ratio := (low + high) / 2.0) < high:  # bisection, to the last bit
        low, high = (ratio, high) if sum(ratio**i for i in powers) < horizon else (low, ratio)
    return StaticGrid(ends=whole_ends([*accumulate(low**i for i in powers)][:-1], start=0, stop=horizon))


def the_actions(name: str, ended: BatchEnd) -> dict[str, FloatArray]:
    """What is kept of the set: ``actions`` (1, K, d) and ``available`` (1, K), after a check that it is the same."""
    sample = ended.batch.sample
    assert sample is not None  # a batch with decisions has a sample of them
    actions, available = sample.sets.contexts, sample.sets.available
    if ended.state.kept:
        actions = np.concatenate([ended.state.kept["actions"], actions])
        available = np.concatenate([ended.state.kept["available"] != 0.0, available])
    check_one_set(name, actions, available)
    return {"actions": actions[:1], "available": available[:1].astype(np.float64)}


def check_one_set(name: str, contexts: FloatArray, available: BoolArray) -> None:
    """Refuse sets that differ."""
    if not (contexts == contexts[0]).all() or not (available == available[0]).all():
        raise UnsuitableError(
            f"{name} is for one action set that never changes; these sets differ. Use batch-linucb-kw, which takes any."
        )
