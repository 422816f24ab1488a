"""What sums say of θ and the noise, how θ becomes a reward, and whether a batch fits what was believed before it."""

import math
from dataclasses import dataclass, replace

import numpy as np

from rareswitch.core import FloatArray, Stats, first_highest


def logistic(values: FloatArray) -> FloatArray:
    """1/(1 + exp(-u)), without overflow.

    >>> logistic(np.array([-1000.0, 0.0])).tolist()
    [0.0, 0.5]
    """
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * values))


@dataclass(frozen=True, eq=False, kw_only=True)
class Link:
    """A reward is 1 with the probability 1/(1 + exp(-u)), u = xᵀθ or xᵀθ and a level, and else 0.

    It is what a belief about θ is part of: N(point, precision⁻¹), of θ alone or of θ and the level.
    """

    #: (d,) or (d + 1,)
    point: FloatArray
    #: (d, d) or (d + 1, d + 1)
    precision: FloatArray

    def rates(self, contexts: FloatArray, truths: FloatArray) -> FloatArray:
        """(n, K, J) how often arms (n, K, d) pay if each of the truths (J, d) holds, with the likeliest level for it.

        >>> link = Link(point=np.zeros(1), precision=np.eye(1))
        >>> link.rates(np.array([[[1.0], [-1.0]]]), np.array([[2.0]])).round(2).tolist()
        [[[0.88], [0.12]]]
        """
        dim = truths.shape[1]
        values = contexts @ truths.T
        if len(self.point) > dim:
            slopes = self.precision[-1, :dim] / self.precision[-1, -1]
            values += self.point[-1] - (truths - self.point[:dim]) @ slopes
        return logistic(values)


#: τ²·(mean squared length of the features)/σ²: how much of a reward the features tell. Below 0.1 it is not believed to
#: be: data that seem to tell nothing must not end the search for what they tell.
RATIOS = np.exp(np.linspace(math.log(0.1), math.log(1e8), 181))
#: Of the information of a decision: a direction of which no more is known was unknown.
HARDLY_KNOWN = 0.05
#: Times the prior's spread at which a direction of which nothing was known may turn out without being a surprise.
VAGUE = 10.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Posterior:
    """θ ~ N(estimate, noise²·precision⁻¹), precision = ridge·I + Σ xxᵀ."""

    #: (d,)
    estimate: FloatArray
    #: (d, d)
    precision: FloatArray
    #: σ
    noise: float
    #: σ²/τ², where θ ~ N(0, τ²·I) beforehand.
    ridge: float
    #: How xᵀθ becomes a reward; None where it is one.
    link: Link | None = None


def posterior(stats: Stats) -> Posterior:
    """The posterior at the σ and τ that make the rewards most likely (type-II maximum likelihood).

    Both follow the units of rewards and features, so nothing depends on them. With g the eigenvalues of Σ xxᵀ, c the
    squares that each explains, and ρ = τ²/σ², the most likely σ² given ρ is (rest + Σ c/(1 + ρg))/n, and ρ is found
    on a grid of relative steps of 12 %.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = rng.standard_normal((2000, 4))
    >>> found = posterior(Stats.of(x, x @ [3.0, -2.0, 0.0, 1.0] + 0.7 * rng.standard_normal(2000)))
    >>> round(found.noise, 2), found.estimate.round(1).tolist()
    (0.7, [3.0, -2.0, -0.0, 1.0])
    """
    # in units of about 1, powers of two that change no digit: squares of squares are taken here
    x, r = _unit(float(np.trace(stats.gram)), stats.count), _unit(stats.square_sum, stats.count)
    stats = replace(stats, gram=stats.gram / x**2, moment=stats.moment / (x * r), square_sum=stats.square_sum / r**2)
    values, vectors = np.linalg.eigh(stats.gram)
    largest = float(values[-1])
    known = values > 1e-12 * largest
    values, vectors = values[known], vectors[:, known]
    projections = vectors.T @ stats.moment
    explained = projections**2 / values
    total = max(stats.square_sum, float(explained.sum()))
    if total <= 0.0 or largest <= 0.0:  # every reward was zero, or every feature: nothing is known but the scale
        scale = largest / max(1, stats.count) or 1.0
        precision = (stats.gram + scale * np.eye(stats.dim)) * x**2
        return Posterior(estimate=np.zeros(stats.dim), precision=precision, noise=0.0, ridge=scale * x**2)
    trace = float(values.sum())
    ratios = RATIOS[:, None] * (stats.count / trace)  # ρ
    shrunk = 1.0 + ratios * values
    squares = (total - explained.sum() + (explained / shrunk).sum(axis=1)) / stats.count
    squares = np.maximum(squares, 1e-12 * total / stats.count)
    best = int(first_highest(-stats.count * np.log(squares) - np.log(shrunk).sum(axis=1)))
    ridge = float(1.0 / ratios[best, 0])
    return Posterior(
        estimate=vectors @ (projections / (values + ridge)) * (r / x),
        precision=(stats.gram + ridge * np.eye(stats.dim)) * x**2,
        noise=math.sqrt(squares[best]) * r,
        ridge=ridge * x**2,
    )


def vague_where_unknown(belief: Posterior, *, known: int) -> Posterior:
    """The belief as what comes is held against it: that a prior was wrong is no sign that the model is, or θ changed.

    Parameters
    ----------
    known
        Decisions that the belief rests on.

    Examples
    --------
    >>> belief = Posterior(estimate=np.zeros(2), precision=np.diag([1001.0, 1.0]), noise=1.0, ridge=1.0)
    >>> np.diag(vague_where_unknown(belief, known=1000).precision).round(2).tolist()
    [1001.0, 0.01]
    """
    information = belief.precision - belief.ridge * np.eye(len(belief.estimate))
    hardly = max(1e-9 * belief.ridge, HARDLY_KNOWN * float(np.trace(information)) / max(1, known))
    narrowed = np.linalg.inv(stretch(1.0, VAGUE, ignorance(information, hardly)))
    return replace(belief, precision=narrowed @ belief.precision @ narrowed)


def ignorance(information: FloatArray, half_known: float) -> FloatArray:
    """(d, d) the identity where ``information`` (d, d) is 0, a half where it is ``half_known``, 0 where it is large.

    It is continuous in the information, as a choice among its eigenvectors would not be.
    """
    return np.asarray(half_known * np.linalg.inv(information + half_known * np.eye(len(information))))


def stretch(known: float, unknown: float, ignorance: FloatArray) -> FloatArray:
    """(d, d) multiples of a spread: ``known`` in directions of no ignorance (d, d), ``unknown`` in those of all.

    >>> np.diag(stretch(0.3, 1.0, np.diag([0.0, 0.1, 1.0]))).round(3).tolist()
    [0.3, 0.307, 1.0]
    """
    return np.asarray(known * np.eye(len(ignorance)) + (unknown - known) * ignorance @ ignorance)


def _unit(squares: float, count: int) -> float:
    """About the root of the mean square, as a power of two."""
    return math.ldexp(1.0, math.frexp(squares / max(1, count))[1] // 2) if squares > 0.0 else 1.0


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
class ModelCheck:
    """How far a batch was from what was believed before it.

    >>> ModelCheck(surprise=1.2, rank=10).wrong, ModelCheck(surprise=5.0, rank=10).wrong
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
    def widening(self) -> float:
        """By what the belief's variance is multiplied."""
        return min(self.surprise, WIDEST) if self.wrong else 1.0

    @property
    def least_scale(self) -> float:
        """The least multiple of the spread: a plan made of a wrong belief must not end the search."""
        return LEAST_SCALE if self.wrong else 0.0

    @property
    def text(self) -> str:
        """What was concluded."""
        if self.rank == 0:
            return "nothing was believed before"
        if not self.wrong:
            return "what came is what was believed"
        return (
            f"what came is {math.sqrt(self.surprise):.1f} times as far from what was believed as chance alone would "
            f"put it: the belief is widened {math.sqrt(self.widening):.1f}-fold"
        )


NOTHING = ModelCheck(surprise=1.0, rank=0)


def innovation(before: Posterior, gram: FloatArray, moment: FloatArray, *, noise: float) -> ModelCheck:
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
    ModelCheck(surprise=1.5..., rank=2)
    """
    gap = moment - gram @ before.estimate
    values, vectors = np.linalg.eigh(gram + gram @ np.linalg.solve(before.precision, gram))
    taught = values > 1e-9 * max(values[-1], 0.0)
    rank = int(taught.sum())
    if rank == 0 or noise <= 0.0:
        return NOTHING
    # divided before they are squared: in some units squares of squares are too large
    parts = (vectors[:, taught].T @ gap) / (noise * np.sqrt(values[taught]))
    return ModelCheck(surprise=float(parts @ parts) / rank, rank=rank)
