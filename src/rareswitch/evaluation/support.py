"""Whether a log can answer for a candidate at all: what is known without looking at a single reward.

A decision of the log counts for a candidate π with the weight w = π(a | x)/μ(a | x), where μ is the policy that
decided. Where π shows what μ could not have shown, no number of decisions helps: the mean weight is below 1 by that
share, and the usual effective sample size (Σw)²/Σw² does not notice. Where μ could, but rarely did, few decisions carry
everything, and neither estimates nor their errors can be trusted. Both are read off the probabilities alone: what is
refused does not depend on what was earned.

How few decisions carry a sum of weights follows from its skewness, E w³/((E w²)^(3/2) √n): it bounds the distance
from the normal distribution (Berry and Esseen). A sum of N equal weights has 1/√N, so N = n (E w²)³/(E w³)² is taken
for the number of decisions that carry it: n where all count alike, n μ(a) for a candidate that always shows a, never
more than n/E w². Weights above :data:`MOST_WEIGHT` are truncated to 0: such play counts as unsupported.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from rareswitch.core import BoolArray, FloatArray, IntArray
from rareswitch.evaluation.results import Overlap
from rareswitch.lanes import compiled

__all__ = ["LEAST_POWER", "weight_counts"]

#: Most of a candidate's play that may have had probability 0; intervals are longer by it times the range of rewards.
MAX_UNSUPPORTED = 0.01
#: Play whose weight would be larger counts as unsupported: few logs show it once.
MOST_WEIGHT = 20_000.0
#: Ranges of :func:`weight_counts` begin at 2 to these powers.
LEAST_POWER, MOST_POWER = -4, 10
#: Chance of a mean weight this far from 1, of one batch or of all together, below which it is no chance; and where all
#: probabilities are known, so that nothing can be missing unseen, and only wrong propensities are left to be found.
CHANCE = 0.001
KNOWN_CHANCE = 1e-5


@dataclass(frozen=True, eq=False, kw_only=True)
class Support:
    """Sums over decisions of one batch, for one candidate; add up.

    Examples
    --------
    Two arms, of which the log showed the first alone:

    >>> candidate, logging = np.full((50, 2), 0.5), np.tile([1.0, 0.0], (50, 1))
    >>> support = Support.of(np.full(50, 0.5), candidate=candidate, logging=logging)
    >>> support.mean_weight, support.unsupported
    (0.5, 0.5)
    >>> (support + support).count
    100
    """

    count: int
    #: Decisions of these of which the probabilities of all offered arms are known.
    known: int
    #: Σ w, Σ w², and the largest w.
    weights: float
    squares: float
    largest: float
    #: Σ_x Σ_a π where μ is 0, of the known ones.
    missed: float
    #: Σ_x Σ_a π² and π³: 1 each where the candidate does not draw.
    concentration: float
    cubes: float
    #: Most arms that were offered at once.
    arms: int
    #: Σ_x Σ_a π²/μ and π³/μ² over what μ could show; Σ w² and Σ w³ where only the propensity of chosen arms is known.
    second: float
    third: float
    #: The least μ of an arm on offer, of the known ones; infinite where there are none.
    least: float = math.inf
    #: Whether decisions without a reward, of which these are not, showed what the candidate would.
    unrewarded: bool = False

    @classmethod
    def zero(cls) -> Self:
        """Of no decisions."""
        sums = ("weights", "squares", "largest", "missed", "concentration", "cubes", "second", "third")
        return cls(count=0, known=0, arms=0, least=math.inf, unrewarded=False, **dict.fromkeys(sums, 0.0))

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        *,
        candidate: FloatArray,
        logging: FloatArray | None = None,
        available: BoolArray | None = None,
    ) -> Self:
        """Of decisions of one batch.

        Parameters
        ----------
        weights
            (n,) the candidate's probability of the chosen arm over the propensity.
        candidate
            (n, K) the candidate's probabilities π, 0 where an arm was not offered.
        logging
            (n, K) those of the policy that decided, μ, where they are known.
        available
            (n, K) which arms were offered; all by default.
        """
        if len(weights) == 0:
            return cls.zero()
        squares, seen = candidate * candidate, weights * weights
        missed, second, third, least = 0.0, float(seen.sum()), float(seen @ weights), math.inf
        if logging is not None:
            missed, second, third = _ratio_sums(candidate, logging)
            least = float(logging.min(initial=math.inf, where=True if available is None else available))
        return cls(
            count=len(weights),
            known=0 if logging is None else len(weights),
            weights=float(weights.sum()),
            squares=float(seen.sum()),
            largest=float(weights.max()),
            missed=missed,
            concentration=float(squares.sum()),
            cubes=float(np.vdot(squares, candidate)),
            arms=candidate.shape[1] if available is None or available.all() else int(available.sum(axis=1).max()),
            second=second,
            third=third,
            least=least,
        )

    def __add__(self, other: Self) -> Self:
        most = ("largest", "arms", "unrewarded")
        pairs = {name: (value, getattr(other, name)) for name, value in vars(self).items()}
        sums = {name: max(pair) if name in most else sum(pair) for name, pair in pairs.items()}
        return type(self)(**sums | {"least": min(pairs["least"])})

    @property
    def mean_weight(self) -> float:
        """Should be 1."""
        return self.weights / self.count if self.count else 0.0

    @property
    def mean_weight_error(self) -> float:
        """Standard error of the mean weight in a log that shows everything.

        Exact given the contexts where all probabilities are known. Else the variance is Σ w²/Σ w − 1, which does not
        fall with the mean as that of the weights themselves does; and what is missing, if it came with weights of 2
        and chance alone kept it away, has at least its own share as variance, though no weight shows it.
        """
        if self.count < 2:
            return math.inf
        if self.known == self.count:
            return math.sqrt(max(self.second / self.count - (1.0 - self.missed / self.count) ** 2, 0.0) / self.count)
        typical = self.squares / self.weights if self.weights > 0.0 else 0.0
        return math.sqrt(max(typical - 1.0, 1.0 - self.mean_weight, 0.0) / self.count)

    @property
    def spread(self) -> float:
        """E Σ π²/μ = E_π[w] over what could be shown: the variance of weights is this less 1."""
        return self.second / self.count if self.count else math.inf

    @property
    def unsupported(self) -> float | None:
        """Share of the candidate's play that had probability 0; None where that is not known."""
        return self.missed / self.known if self.known else None

    @property
    def effective(self) -> float:
        """The effective sample size, n/spread."""
        return self.count / self.spread if self.count and self.spread > 0.0 else 0.0

    @property
    def carried(self) -> float:
        """How many decisions carry the sum of the weights, N."""
        return self.second**3 / self.third**2 if self.third > 0.0 else 0.0

    @property
    def largest_share(self) -> float:
        """Of the largest weight in the sum of all."""
        return self.largest / self.weights if self.weights > 0.0 else 1.0

    @property
    def unlikely(self) -> bool:
        """Whether chance does not explain how far the mean weight is from 1, less what is known to be unsupported."""
        missed = self.missed / self.count if self.known == self.count else 0.0
        gap, error = abs(self.mean_weight - (1.0 - missed)), self.mean_weight_error
        if gap <= 1e-9 or error == 0.0:
            return gap > 1e-9
        return math.erfc(gap / error / math.sqrt(2.0)) < (KNOWN_CHANCE if self.known == self.count else CHANCE)


def carried(supports: Sequence[Support], *, stationary: bool = False) -> float:
    """How many decisions carry the sum of the weights of batches, which count with their traffic or their precision.

    >>> one = Support.of(np.ones(100), candidate=np.ones((100, 1)))
    >>> carried([one, one])
    200.0
    """
    seen = [support for support in supports if support.second > 0.0]
    factors = [1.0 / support.spread if stationary else 1.0 for support in seen]
    second = sum(factor**2 * support.second for factor, support in zip(factors, seen, strict=True))
    third = sum(factor**3 * support.third for factor, support in zip(factors, seen, strict=True))
    return second**3 / third**2 if third > 0.0 else 0.0


def overlap(supports: Sequence[Support]) -> Overlap:
    """How well batches support a candidate, all together."""
    whole = sum(supports, Support.zero())
    return Overlap(
        decisions=whole.count,
        mean_weight=whole.mean_weight,
        mean_weight_error=whole.mean_weight_error,
        unsupported=whole.unsupported,
        effective=whole.effective,
        largest=whole.largest,
        largest_share=whole.largest_share,
    )


def weight_counts(weights: FloatArray) -> IntArray:
    """How many weights lie in each range.

    Parameters
    ----------
    weights
        (n,) of decisions, at least 0.

    Returns
    -------
    (17,)
        How many are 0, above 0 but below 1/16, in [1/16, 1/8), [1/8, 1/4) … [512, 1024), and 1024 or more.

    Examples
    --------
    >>> weight_counts(np.array([0.0, 0.01, 1.0, 1.9, 2.0, 5000.0]))
    array([1, 1, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    """
    powers = np.frexp(weights)[1] - 1  # ⌊log2⌋, exactly
    places = np.clip(powers, LEAST_POWER - 1, MOST_POWER) - (LEAST_POWER - 2)
    places[weights == 0.0] = 0
    return np.bincount(places, minlength=MOST_POWER - LEAST_POWER + 3)


@compiled
def _ratio_sums(candidate, logging):  # type: ignore[no-untyped-def]
    """Σ π where π/μ is above the most, and Σ π²/μ and Σ π³/μ² elsewhere, of probabilities π and μ (n, K)."""
    missed = second = third = 0.0
    for s in range(candidate.shape[0]):
        for i in range(candidate.shape[1]):
            mass, seen = candidate[s, i], logging[s, i]
            if mass > MOST_WEIGHT * seen:
                missed += mass
            elif mass > 0.0:
                ratio = mass / seen
                second += mass * ratio
                third += mass * ratio * ratio
    return missed, second, third
