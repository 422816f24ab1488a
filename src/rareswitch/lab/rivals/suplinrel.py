"""SupLinRel (Auer 2002), updated at every step."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rareswitch.core import TIE, FloatArray, Stats, semidefinite_root
from rareswitch.errors import ParameterError
from rareswitch.learner import Intervals, OptimisticLayers, SupLinUCB, setting


class TruncatedLayers(OptimisticLayers):
    """Layers that leave directions out of their estimates in which they know little."""

    def model(self, layer: int, stats: Stats) -> tuple[FloatArray, ...]:
        return truncated(stats, self.level.multiplier, self.settings.norm)


@dataclass(frozen=True, kw_only=True)
class SupLinRel(SupLinUCB):
    """SupLinUCB's ancestor, whose layers estimate by truncated least squares; regret √(dT)·log factors.

    Directions whose eigenvalue in Σ xxᵀ is below 1 are left out of the estimate, and the length of an arm's part in
    them is added to its width, times ``norm``. ``confidence="paper"`` multiplies the other part by the author's
    √ln(2KT/δ), for rewards in [0, 1]; ``"tight"`` by noise·√(2 ln(2KT·layers/δ)). It steps in Python, and is slow.

    >>> SupLinRel(dim=5, arms=10, horizon=1000).name
    'suplinrel'
    """

    ridge: None = setting(None, "none: it truncates instead")

    name: ClassVar[str] = "suplinrel"
    text: ClassVar[str] = "layered truncated least squares, updated every step (Auer 2002); slow"
    layered: ClassVar[type[OptimisticLayers]] = TruncatedLayers

    def intervals(self) -> Intervals:
        if self.ridge is not None:
            raise ParameterError(f"suplinrel truncates in place of a ridge, and takes none; got ridge={self.ridge!r}.")
        tests = 2 * self.arms * self.horizon / self.delta
        if self.confidence == "paper":
            return Intervals(multiplier=math.sqrt(math.log(tests)), ridge=1.0)
        if self.confidence == "tight":
            gamma = self.noise * math.sqrt(2.0 * math.log(tests * self.layers))
            return Intervals(multiplier=gamma, ridge=1.0)
        return self.independent(batches=self.layers + 1, estimates=self.horizon, ridge=1.0)


def truncated(stats: Stats, multiplier: float, norm: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The estimate (d,) in the directions with eigenvalue at least 1, and the roots (d, d) of both widths."""
    values, vectors = np.linalg.eigh(stats.gram)
    known = values >= 1.0 - TIE  # a unit vector that was played once has the eigenvalue 1, up to rounding
    inverse = (vectors * np.where(known, 1.0 / np.where(known, values, 1.0), 0.0)) @ vectors.T
    unknown = vectors[:, ~known] @ vectors[:, ~known].T
    return inverse @ stats.moment, multiplier * semidefinite_root(inverse), norm * semidefinite_root(unknown)
