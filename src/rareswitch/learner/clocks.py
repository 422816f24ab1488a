"""When the next policy is due. Clocks may look at features, never at rewards."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from rareswitch.core import FloatArray, IntArray, Result, absorb, inverse_root, whole
from rareswitch.errors import ParameterError
from rareswitch.lanes import compiled

__all__ = ["Clock", "DeterminantGrowth", "Novelty"]

#: A determinant that has grown to C·(1 - TOLERANCE) has grown to C, so that rounding does not decide exact ties.
TOLERANCE = 1e-9


@compiled
def first_growth(features, layers, roots, growths, bar):  # type: ignore[no-untyped-def]
    """After how many decisions some layer's determinant has grown to ``bar``; 0 if none does.

    ``features`` (n, d) are absorbed into the model of ``layers`` (n,), none where that is negative; ``roots`` (S, d, d)
    and ``growths`` (S,), relative to the frozen determinants, are where the models stand, and are used up.
    """
    dim = features.shape[1]
    image = np.zeros(dim)
    sums = np.zeros(dim)
    for s in range(features.shape[0]):
        if layers[s] >= 0:
            growths[layers[s]] *= absorb(roots[layers[s]], features[s], image, sums)
            if growths[layers[s]] >= bar:
                return s + 1
    return 0


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelGrowth:
    """How far the S linear models behind a policy have come since it was made."""

    #: (S, d, d) Σ xxᵀ that each was frozen with, and the decisions behind them, (S,).
    frozen: FloatArray
    counts: IntArray
    #: (S, d, d) as they stand.
    grams: FloatArray
    #: (S,) decisions that each has learned from since.
    taught: IntArray
    #: λ
    ridge: float
    #: Decisions of the policies before it.
    start: int = 0
    #: Planned decisions of the current batch and of those after it.
    batch_sizes: tuple[int, ...] = ()

    @cached_property
    def roots(self) -> FloatArray:
        """(S, d, d) L⁻¹ of each precision Λ = LLᵀ as it stands."""
        return np.array([inverse_root(self._precision(gram)) for gram in self.grams])

    @cached_property
    def growths(self) -> FloatArray:
        """(S,) by what factor each det Λ has grown."""
        growths = np.ones(len(self.grams))
        for k in np.flatnonzero(self.taught > 0):
            now, then = (np.linalg.slogdet(self._precision(grams[k]))[1] for grams in (self.grams, self.frozen))
            growths[k] = np.exp(now - then)
        return growths

    def _precision(self, gram: FloatArray) -> FloatArray:
        return np.asarray(gram + self.ridge * np.eye(len(gram)))


class Novelty(Result, frozen=True, kw_only=True):
    """How far contexts are from those that were learned from. Prints as text."""

    #: 1 where they are as they were; many times that where features come that were hardly seen.
    value: float
    unlike: bool


class Clock(ABC):
    """Plans how long policies decide, and says when the features call for the next one earlier.

    ``horizon`` is T, the number of decisions in all; None where it is not known.
    """

    horizon: int | None
    #: Whether it looks at features, so that :meth:`due` may say something.
    uses_features: ClassVar[bool] = False
    #: Whether a policy may make so few decisions that its own sums are not worth keeping.
    every_step: ClassVar[bool] = False

    def begin(self) -> tuple[int, ...]:
        """The planned lengths of all batches, as far as they are known beforehand."""
        return self.batch_sizes((), batch=1, start=0)

    @abstractmethod
    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int) -> tuple[int, ...]:
        """The lengths of the batches from number ``batch`` on, the first of which begins now; none: the run is over.

        Parameters
        ----------
        planned
            What the plan before had for them.
        start
            Decisions made so far.
        """

    def policies_for(self, decisions: int, *, planned: tuple[int, ...], start: int) -> int:
        """The policies over which a forecast of ``decisions`` more is spread."""
        return max(1, len(planned))

    def due(self, progress: ModelGrowth, features: FloatArray, models: IntArray) -> int | None:
        """After how many of the decisions with these chosen features (n, d) the next policy is due; None: not yet.

        ``models`` (n,) says which model each of them teaches, -1 for none.
        """
        return None

    def early(self, progress: ModelGrowth) -> Novelty | None:
        """How unlike the features of the decisions so far are, where they call for the next policy now; else None."""
        return None


@dataclass(frozen=True, kw_only=True)
class ToTheHorizon(Clock):
    """Lets a policy decide all that is left of T decisions, unless it strikes before."""

    horizon: int

    def __post_init__(self) -> None:
        vars(self).update(horizon=whole("horizon", self.horizon, low=2))

    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int) -> tuple[int, ...]:
        return (self.horizon - start,) if start < self.horizon else ()


class EveryStep(ToTheHorizon):
    """A new policy after each decision: full adaptivity, to compare with."""

    every_step: ClassVar[bool] = True

    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int) -> tuple[int, ...]:
        return (1,) if start < self.horizon else ()


@dataclass(frozen=True, kw_only=True)
class DeterminantGrowth(ToTheHorizon):
    """A new policy when some det Λ has grown by the factor C since it was frozen (Abbasi-Yadkori et al. 2011).

    It looks at the features of the chosen arms and never at rewards, and the determinant bounds how often it strikes:
    at most d·log_C(1 + T/(dλ)) times.
    """

    factor: float = 2.0
    uses_features: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self).update(factor=growth_factor("factor", self.factor))

    def due(self, progress: ModelGrowth, features: FloatArray, models: IntArray) -> int | None:
        return first_growth(features, models, progress.roots.copy(), progress.growths.copy(), self.bar) or None

    @property
    def bar(self) -> float:
        """The growth at which it strikes."""
        return self.factor * (1.0 - TOLERANCE)

    def most(self, dim: int, ridge: float) -> int:
        """⌊1 + d·log_C(1 + T/(dλ))⌋, the most policies one model can call for in a run, the first included.

        det Λ starts at λ^d and ends at no more than (λ + T/d)^d, for vectors in the unit ball.

        >>> DeterminantGrowth(horizon=100_000).most(10, 1.0)
        133
        """
        growth = dim * math.log1p(self.horizon / (dim * ridge)) / math.log(self.factor)
        return 1 + math.floor(growth + TOLERANCE)


class EveryInformativeStep(ToTheHorizon):
    """A new policy after each decision that teaches a model."""

    uses_features: ClassVar[bool] = True
    every_step: ClassVar[bool] = True

    def due(self, progress: ModelGrowth, features: FloatArray, models: IntArray) -> int | None:
        taught = np.flatnonzero(models >= 0)
        return int(taught[0]) + 1 if len(taught) else None


def growth_factor(name: str, factor: float) -> float:
    """C, checked."""
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 1.0 < factor < math.inf:
        raise ParameterError(
            f"{name}, the factor C by which determinants grow, must be a number above 1; got {factor!r:.60}. At C = 1 "
            "every decision would bring a new policy: use a learner that is updated every step (linucb, suplinucb)."
        )
    return float(factor)
