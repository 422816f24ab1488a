"""SupLinRel (Auer 2002), updated at every step."""

import math
from typing import ClassVar

import numpy as np

from rareswitch.confidence import Confidence, ConfidenceMode
from rareswitch.errors import ParameterError
from rareswitch.learner.suplinucb import SupLinUCB
from rareswitch.linalg import lower_triangular
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, number, whole


class SupLinRel(SupLinUCB):
    """SupLinUCB's ancestor, whose layers estimate by truncated least squares; regret √(dT)·log factors.

    Directions whose eigenvalue in Σ xxᵀ is below 1 are left out of the estimate, and the length of an arm's part in
    them is added to its width, times ``norm``. ``confidence="paper"`` multiplies the other part by the author's
    √ln(2KT/δ), for rewards in [0, 1]; ``"tight"`` by noise·√(2 ln(2KT·layers/δ)). It steps in Python, and is slow.

    >>> SupLinRel(dim=5, arms=10, horizon=1000).name
    'suplinrel'
    """

    name: ClassVar[str] = "suplinrel"

    def __init__(
        self, *, norm: float = 1.0, noise: float = 1.0, ridge: float | None = None, **settings: object
    ) -> None:
        if ridge is not None:
            raise ParameterError(f"suplinrel truncates in place of a ridge, and takes none; got ridge={ridge!r}.")
        self.norm = number("norm", norm, low=0.0)
        super().__init__(norm=norm, noise=noise, **settings)  # type: ignore[arg-type]
        self.walks = False

    def _intervals(
        self,
        mode: ConfidenceMode | float,
        *,
        dim: int,
        arms: int,
        horizon: int,
        delta: float,
        noise: float,
        norm: float,
        ridge: float,
    ) -> Confidence:
        whole("dim", dim)
        delta = number("delta", delta, low=0.0, high=1.0, open_low=True)
        tests = 2 * whole("arms", arms) * horizon / delta
        if mode == "paper":
            return Confidence(multiplier=math.sqrt(math.log(tests)), ridge=1.0, reason="the constants of Auer 2002")
        if mode == "tight":
            gamma = number("noise", noise, low=0.0) * math.sqrt(2.0 * math.log(tests * self._layers))
            return Confidence(
                multiplier=gamma, ridge=1.0, reason="sub-Gaussian noise, a union bound over arms and steps"
            )
        return super()._intervals(
            mode, dim=dim, arms=arms, horizon=horizon, delta=delta, noise=noise, norm=norm, ridge=1.0
        )

    @property
    def settings(self) -> str:
        """All that tells this learner's runs from those of another, on one line."""
        return f"{super().settings} norm={self.norm!r}"

    def _model(self, layer: int, stats: Stats) -> tuple[FloatArray, ...]:
        return truncated(stats, self.confidence.multiplier, self.norm)


def truncated(stats: Stats, multiplier: float, norm: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The estimate (d,) in the directions with eigenvalue at least 1, and the roots (d, d) of both widths."""
    values, vectors = np.linalg.eigh(stats.gram)
    known = values >= 1.0
    scaled = np.where(known, 1.0 / np.sqrt(np.where(known, values, 1.0)), 0.0)
    inverse = (vectors * scaled**2) @ vectors.T
    root = multiplier * lower_triangular(scaled[:, None] * vectors.T)
    tail = norm * lower_triangular(np.where(known, 0.0, 1.0)[:, None] * vectors.T)
    return inverse @ stats.moment, root, tail
