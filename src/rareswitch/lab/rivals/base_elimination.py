"""BaSE: batched successive elimination of plain arms (Gao et al. 2019)."""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from rareswitch.core import BoolArray, FloatArray, Sets
from rareswitch.design import Uniform
from rareswitch.errors import UnsuitableError
from rareswitch.learner import BatchedLearner, BatchEnd, EliminateByBatch, OneModel, Parts
from rareswitch.policy import Elimination


@dataclass(frozen=True, eq=False, kw_only=True)
class EliminateMeans(EliminateByBatch):
    """Eliminate by the means of all plays so far."""

    settings: "BaSE"

    def elimination(self, ended: BatchEnd) -> Elimination:
        told, (total,) = self.settings, ended.sums
        plays = np.maximum(np.diag(total.gram), 1e-12)  # an arm never played may be anything
        if told.confidence == "paper":
            available = ended.state.policy.survivors(np.eye(told.dim))
            plays = np.full(told.dim, plays[available].min())
            multiplier = 0.5 * told.noise * math.sqrt(12.0 * math.log(told.dim * told.horizon))
        elif told.confidence == "tight":
            multiplier = told.noise * math.sqrt(2.0 * math.log(2 * told.dim * told.horizon / told.delta))
        else:
            multiplier = float(told.confidence)
        means = total.moment / np.maximum(np.diag(total.gram), 1.0)
        return Elimination.of(means, np.diag(plays), multiplier)


@dataclass(frozen=True, kw_only=True)
class BaSE(BatchedLearner):
    """Plays the surviving arms evenly and drops those that pooled means prove worse; regret √(KT)·log factors.

    For plain arms only: arm k's context is the k-th unit vector in every set. Its O(log log T) batches end as those of
    :func:`~rareswitch.learner.paper_grid`. Arms are drawn uniformly where the authors take turns.

    ``confidence="paper"``: an arm falls whose mean is √(12·ln(KT)/n)·noise below the best, n the fewest plays of a
    survivor. ``"tight"``: means ± noise·√(2 ln(2KT/δ)/plays), which hold together, for every number of plays, with
    probability 1 - δ. A number: that multiple of 1/√plays.

    >>> BaSE(arms=5, dim=5, horizon=10_000).clock.policies
    4
    """

    name: ClassVar[str] = "base"
    text: ClassVar[str] = "successive elimination of plain arms by batch (Gao et al. 2019)"
    adaptivity: ClassVar[str] = "⌈log log T⌉"
    regret: ClassVar[str] = "√(KT), plain arms"

    def compose(self) -> Parts:
        if self.dim != self.arms:
            raise UnsuitableError(
                f"base is for plain arms, each a unit vector: dim must equal arms; got {self.dim} and {self.arms}."
            )
        return self.eliminating(Uniform(), partial(EliminateMeans, settings=self))._replace(
            statistics=OneModel(dim=self.dim)
        )

    def check(self, sets: Sets) -> None:
        super().check(sets)
        self._check_plain(sets.contexts == np.eye(self.dim))

    def check_chosen(self, features: FloatArray) -> None:
        super().check_chosen(features)
        self._check_plain(np.sort(features) == np.eye(self.dim)[-1])

    def _check_plain(self, plain: BoolArray) -> None:
        if not plain.all():
            raise UnsuitableError(
                "base is for plain arms: the context of arm k must be the k-th unit vector in every set. For other "
                "contexts use fixed-set-elimination or batch-linucb-kw."
            )
