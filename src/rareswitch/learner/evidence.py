"""Whether what came is what was believed: the innovation of a batch, and what follows from it."""

import math
from dataclasses import dataclass

import numpy as np

from rareswitch.learner.posterior import Posterior
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray

#: Times as large as believed: less is borne, since plans are no worse for it.
BORNE = 2.0
#: Standard deviations of chance that an innovation must pass besides; one batch in two thousand does.
CHANCE = 3.3
#: The most by which the belief's variance is multiplied. Where the model is wrong a surprise may be of any size, and a
#: policy of draws that far apart would play at random.
WIDEST = 4.0
#: Multiple of the widened belief's spread at which policies draw at least while what comes is not what was believed.
LEAST_SCALE = 1.0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """How far a batch was from what was believed before it.

    >>> Evidence(surprise=1.2, rank=10).wrong, Evidence(surprise=5.0, rank=10).wrong
    (False, True)
    """

    #: Squared distance of the batch's moments from those believed, in units of their covariance: 1 on average where
    #: the belief is right.
    surprise: float
    #: Directions in which it was measured.
    rank: int

    @property
    def wrong(self) -> bool:
        """Whether chance does not explain it: the model is not that of the rewards, or θ has changed.

        A right belief gives χ² with ``rank`` degrees of freedom; its quantile is Wilson and Hilferty's.
        """
        if self.rank == 0:
            return False
        part = 2.0 / (9.0 * self.rank)
        return self.surprise > max(BORNE, (1.0 - part + CHANCE * math.sqrt(part)) ** 3)

    @property
    def excess(self) -> float:
        """How many times the belief's variance was too small."""
        return self.surprise if self.wrong else 1.0

    @property
    def widening(self) -> float:
        """By what the belief's variance is multiplied."""
        return min(self.excess, WIDEST)

    @property
    def least_scale(self) -> float:
        """The least multiple of the spread: a plan made of a wrong belief must not end the search."""
        return LEAST_SCALE if self.wrong else 0.0

    @property
    def text(self) -> str:
        """What was concluded."""
        if self.rank == 0:
            return "nothing was believed before"
        times = math.sqrt(self.surprise)
        far = f"what came is {times:.1f} times as far from what was believed as chance alone would put it"
        if not self.wrong:
            return "what came is what was believed"
        return f"{far}: the belief is widened {math.sqrt(self.widening):.1f}-fold"


NOTHING = Evidence(surprise=1.0, rank=0)


def innovation(before: Posterior, gram: FloatArray, moment: FloatArray, *, noise: float) -> Evidence:
    """The innovation of a batch with the sums G = Σ xxᵀ (d, d) and m = Σ x·r (d,), against N(θ̂, σ²Λ⁻¹).

    If the belief is right, m - Gθ̂ has the covariance σ²(G + GΛ⁻¹G).

    Parameters
    ----------
    noise
        σ as it is known now: before the batch it was less well.

    Examples
    --------
    >>> before = Posterior(estimate=np.zeros(2), precision=np.eye(2), noise=1.0, ridge=1.0)
    >>> innovation(before, 3.0 * np.eye(2), np.array([6.0, 0.0]), noise=1.0)
    Evidence(surprise=1.5..., rank=2)
    """
    gap = moment - gram @ before.estimate
    values, vectors = np.linalg.eigh(gram + gram @ np.linalg.solve(before.precision, gram))
    taught = values > 1e-9 * max(values[-1], 0.0)
    rank = int(taught.sum())
    if rank == 0 or noise <= 0.0:
        return NOTHING
    # divided before they are squared: in some units squares of squares are too large
    parts = (vectors[:, taught].T @ gap) / (noise * np.sqrt(values[taught]))
    return Evidence(surprise=float(parts @ parts) / rank, rank=rank)


def informed(stats: Stats) -> bool:
    """Whether so many decisions were rewarded that their noise is known at all."""
    return stats.count > stats.dim + 1


def on_the_way(draws: FloatArray, back: FloatArray, count: int) -> FloatArray:
    """``count`` parameters spread evenly over the way from the draws (m, d), m = 1 or ``count``, back by ``back`` (d,).

    Where the model is wrong, a batch is learned from as if the arms that its policy chose told of all others, and the
    next policy may undo what the last one had right, over and over. A learner that changes at every step stops half-way
    there. With a few policies a batch must show what lies between two of them.

    >>> on_the_way(np.array([[1.0]]), np.array([-1.0]), 4).ravel().tolist()
    [0.125, 0.375, 0.625, 0.875]
    """
    return np.asarray(draws + (1.0 - (np.arange(count)[:, None] + 0.5) / count) * back)
