"""What sums say of θ and the noise, by a linear model and by a logistic one, and whether a batch fits a belief.

Rewards of 0 and 1: the Laplace posterior of a logistic model, found by Newton steps over the rows of a batch.

A decision for x pays 1 with the probability μ(xᵀθ), μ(u) = 1/(1 + exp(-u)), where the last feature may be the constant
of a level. What earlier batches say is a normal belief about θ, so the posterior after a batch is the product of that
and of the likelihood of its rows. Its mode is found by Newton's method with a line search (:func:`next_point`): a pass
over the rows at a point gives value, gradient and curvature there (:class:`~rareswitch.core.Expansion`), sums that
add up, and the next point follows from them. Every step that is kept makes the posterior larger, so the estimate
cannot run away. The expansion of the last pass is what a batch adds to the belief from then on.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from rareswitch.core import TIE, Expansion, FloatArray, Stats, first_highest, read_only
from rareswitch.lanes import compiled

__all__ = ["NOTHING", "Link", "ModelCheck", "Posterior", "Search", "expanded", "innovation", "logistic"]
__all__ += ["logistic_posterior", "next_point", "posterior", "summed_blindly", "vague_where_unknown", "values_of"]


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
        values = contexts @ truths.T
        if len(self.point) > truths.shape[1]:
            values += self.levels(truths)
        return logistic(values)

    def levels(self, truths: FloatArray) -> FloatArray:
        """(J,) the likeliest level for each of the truths (J, d); 0 where there is none."""
        dim = truths.shape[1]
        if len(self.point) == dim:
            return np.zeros(len(truths))
        slopes = self.precision[-1, :dim] / self.precision[-1, -1]
        return np.asarray(self.point[-1] - (truths - self.point[:dim]) @ slopes)


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
    >>> belief = posterior(Stats.of(x, x @ [3.0, -2.0, 0.0, 1.0] + 0.7 * rng.standard_normal(2000)))
    >>> round(belief.noise, 2), belief.estimate.round(1).tolist()
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


#: Nothing was believed before.
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


#: The least weight of a decision: one without any would have no place for its reward.
LEAST_WEIGHT = 1e-12
#: κ² at the least: decisions whose rewards are predicted without fail would put θ at infinity.
LEAST_SHRUNK = 0.1
#: Standard deviation of a level beforehand, in logits: rates from 0.03 % to 99.97 % are within two of them.
LEVEL_SPREAD = 4.0
#: Passes over the rows of a batch, at the most.
PASSES = 6
#: The squared Newton decrement, in squared standard deviations of the posterior, below which a point is its mode.
NEAR = 0.05


@compiled
def predictions(features, estimate, means):  # type: ignore[no-untyped-def]
    """xᵀθ of each row of ``features`` (n, d), into an array (n,).

    Every row in one order of summation, so that its place among others does not change a bit.
    """
    for s in range(features.shape[0]):
        mean = 0.0
        for i in range(features.shape[1]):
            mean += features[s, i] * estimate[i]
        means[s] = mean


def expanded(
    features: FloatArray, rewards: FloatArray, point: FloatArray, rates: Sequence[FloatArray] = ()
) -> Expansion:
    """The log-likelihood of rewards (n,) of 0 or 1 for features (n, d), around a point (d,).

    Parameters
    ----------
    rates
        (n,) each: what models of earlier rows say of the probabilities of these.

    Examples
    --------
    >>> expanded(np.array([[1.0], [2.0]]), np.array([1.0, 0.0]), np.zeros(1)).gradient.tolist()     # Σ (r - ½)·x
    [-0.5]
    """
    logits = values_of(features, point)
    expected = logistic(logits)
    roots = np.sqrt(np.maximum(expected * (1.0 - expected), LEAST_WEIGHT))
    sums = Stats.of(features * roots[:, None], (rewards - expected) / roots)
    return Expansion(
        point=point,
        value=float(-np.logaddexp(0.0, np.where(rewards == 1.0, -logits, logits)).sum()),
        gradient=sums.moment,
        curvature=sums.gram,
        held_out=np.array([np.log(np.where(rewards == 1.0, rate, 1.0 - rate)).sum() for rate in rates]),
    )


def values_of(features: FloatArray, point: FloatArray) -> FloatArray:
    """xᵀθ (n,) of features (n, d), each in one order of summation."""
    values = np.empty(len(features))
    predictions(read_only(features), read_only(np.ascontiguousarray(point)), values)
    return values


class Belief(NamedTuple):
    """What batches say of θ, and the level if there is one: the parabola -½θᵀ·precision·θ + momentᵀθ."""

    precision: FloatArray
    moment: FloatArray
    ridge: float
    #: The direction in which θ changes the level alone, (d,); zero if there is none.
    level: FloatArray

    @property
    def mode(self) -> FloatArray:
        """The most likely θ, (d,)."""
        return np.asarray(np.linalg.solve(self.precision, self.moment), dtype=np.float64)

    def value(self, point: FloatArray) -> float:
        """Of the parabola at a point (d,)."""
        return float(self.moment @ point - 0.5 * point @ self.precision @ point)


def is_click_data(batches: Sequence[Stats]) -> bool:
    """Whether all rewards were 0 or 1, and some of each."""
    count, clicks = sum(stats.count for stats in batches), sum(map(_clicks, batches))
    return all(stats.expansion is not None for stats in batches if stats.count) and 0.0 < clicks < count


def logistic_belief(batches: Sequence[Stats], *, intercept: bool) -> Belief:
    """What batches of clicks say of θ, with the τ that makes them most likely if θ ~ N(0, τ²I) beforehand.

    Of a level little is believed beforehand, also where features can express it.
    """
    batches = [stats for stats in batches if stats.count]
    dim = batches[0].dim
    curvature, moment = np.zeros((dim, dim)), np.zeros(dim)
    blind = [stats for stats in batches if summed_blindly(stats)]
    if blind:
        curvature, moment = _at_level(reduce(add, blind))
    for stats in batches:
        if not summed_blindly(stats):
            assert stats.expansion is not None
            curvature, moment = curvature + stats.expansion.curvature, moment + stats.expansion.moment
    level = np.eye(dim)[-1] if intercept else np.zeros(dim)
    others = np.eye(dim)
    if level.any():
        along = np.outer(level, level) / (level @ level)
        curvature, others = curvature + along / (level @ level) / LEVEL_SPREAD**2, others - along
    ridge = _ridge(*_without(level, curvature, moment), sum(stats.count for stats in batches))
    return Belief(curvature + ridge * others, moment, ridge, level)


def logistic_posterior(batches: Sequence[Stats], *, intercept: bool) -> Posterior | None:
    """The Laplace posterior of clicks; None where some rewards were other than 0 and 1, or all were the same.

    Parameters
    ----------
    batches
        The sums of each batch, expanded at a point.
    intercept
        Whether the last feature is the constant of a level.
    """
    if not is_click_data(batches):
        return None
    belief = logistic_belief(batches, intercept=intercept)
    point, size = _damped(belief.mode, batches[-1]), len(belief.moment) - intercept
    return Posterior(
        estimate=point[:size],
        precision=_without(belief.level, belief.precision, belief.moment)[0][:size, :size],
        noise=1.0,
        ridge=belief.ridge,
        link=Link(point=point, precision=belief.precision),
    )


def _damped(mode: FloatArray, batch: Stats) -> FloatArray:
    """The end of a damped Newton step from where a batch was expanded, towards the ``mode`` (d,) of the parabola there.

    A step that would move the logits of the batch by D > 1, as a root mean square, moves them by 1 + ln D instead: the
    curvature of a logistic likelihood changes e-fold at most where logits change by 1, so that far away the parabola
    says nothing (generalised self-concordance).
    """
    if batch.expansion is None or not batch.count or summed_blindly(batch):
        return mode
    step = mode - batch.expansion.point
    far = math.sqrt(float(step @ batch.gram @ step) / batch.count)
    return batch.expansion.point + ((1.0 + math.log(far)) / far if far > 1.0 else 1.0) * step


class Search(NamedTuple):
    """Where the passes over a batch stand: how many there were, and the best point so far with its log-likelihood."""

    passes: int = 1
    best: FloatArray | None = None
    value: float = -math.inf


def next_point(
    earlier: Sequence[Stats], batch: Stats, search: Search, *, intercept: bool
) -> tuple[FloatArray, Search] | None:
    """Where the rows of a batch are to be expanded next; None where their expansion is at the mode, or enough tried.

    Newton's method: the next point is the maximum of the parabola at this one, or on the way there if it is far. Where
    the posterior is smaller there than it was at the best point so far, half-way back to that.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.standard_normal((2000, 2))
    >>> r = (rng.random(2000) < logistic(x @ [4.0, -1.0])).astype(float)
    >>> from dataclasses import replace
    >>> point, search, values = np.zeros(2), Search(), []
    >>> while True:
    ...     batch = replace(Stats.of(x, r), expansion=expanded(x, r, point))
    ...     values += [round(batch.expansion.value)]
    ...     step = next_point([], batch, search, intercept=False)
    ...     if step is None:
    ...         break
    ...     point, search = step
    >>> values[0] < values[1] < values[-1], search.passes, point.round(1).tolist()
    (True, 4, [3.9, -0.9])
    """
    if search.passes >= PASSES or not is_click_data([*earlier, batch]):
        return None
    assert batch.expansion is not None
    point, passes = batch.expansion.point, search.passes + 1
    belief = logistic_belief([*earlier, batch], intercept=intercept)
    if summed_blindly(batch):
        return belief.mode, Search(passes)
    # the batch's own parabola is replaced by its likelihood where that was summed
    rest = Belief(
        belief.precision - batch.expansion.curvature, belief.moment - batch.expansion.moment, belief.ridge, belief.level
    )
    if search.best is not None:
        now, before = batch.expansion.value + rest.value(point), search.value + rest.value(search.best)
        if now < before - TIE * abs(before):
            if passes == PASSES:
                return search.best, Search(passes)
            return 0.5 * (point + search.best), search._replace(passes=passes)
    step = belief.mode - point
    if float(step @ belief.precision @ step) <= NEAR or passes == PASSES:
        return None
    return _damped(belief.mode, batch), Search(passes, point, batch.expansion.value)


def _clicks(stats: Stats) -> float:
    """Σ r of rewards that are all 0 or 1: their squares are the same."""
    return stats.shifted(0.0).square_sum


def summed_blindly(stats: Stats) -> bool:
    """Whether decisions were summed before there was a belief: at the point 0, where all logits are the same."""
    return stats.expansion is not None and not stats.expansion.point.any()


def _at_level(stats: Stats) -> tuple[FloatArray, FloatArray]:
    """Σ w·xxᵀ and Σ x·(r - p + w·u) of decisions that are all put at the level u of their rewards.

    At a rate p that is log(p/(1 - p)) with the weight p(1 - p), if the decisions differ little. Where their xᵀθ are
    normal around the level with variance v, p is κ times as steep, κ² = 1/(1 + π·v/8), and the first of these fits is
    κ times as long as θ: so its own variance is κ²v, and κ² = 1 - π·κ²v/8.
    """
    assert stats.expansion is not None
    plain = stats.shifted(0.0)
    total = 2.0 * (plain.moment - stats.expansion.gradient)  # Σ x, since the gradient at 0 is Σ (r - ½)·x
    clicks = min(_clicks(stats), plain.count)  # the counts of batches that fade are rounded, their clicks are not
    rate = (clicks + 0.5) / (plain.count + 1.0)
    logit = math.log(rate / (1.0 - rate))

    def put(shrunk: float) -> tuple[FloatArray, FloatArray]:
        weight = shrunk * rate * (1.0 - rate)
        return weight * plain.gram, plain.moment + (weight * logit / shrunk - rate) * total

    gram, moment = put(1.0)
    fit = np.linalg.solve(gram + _ridge(gram, moment, plain.count) * np.eye(plain.dim), moment)
    variance = float(fit @ plain.gram @ fit) / plain.count - (float(fit @ total) / plain.count) ** 2
    return put(math.sqrt(max(LEAST_SHRUNK, 1.0 - math.pi / 8.0 * variance)))


def _without(level: FloatArray, precision: FloatArray, moment: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Precision and moment of what a direction, if any, leaves to the others."""
    if not level.any():
        return precision, moment
    column = precision @ level
    share = column / (level @ column)
    return precision - np.outer(share, column), moment - share * (level @ moment)


def _ridge(gram: FloatArray, moment: FloatArray, count: int) -> float:
    """1/τ², where the sums Σ w·xxᵀ and Σ w·x·(reward) of decisions with the noise variances 1/w are most likely."""
    values, vectors = np.linalg.eigh(gram)
    known = values > 1e-12 * values[-1]
    values, squares = values[known], (vectors.T @ moment)[known] ** 2
    ratios = RATIOS[:, None] * (count / values.sum())  # τ², where w·‖x‖² says how much features tell of a click
    evidence = (squares / (values + 1.0 / ratios)).sum(axis=1) - np.log1p(ratios * values).sum(axis=1)
    return float(1.0 / ratios[int(first_highest(evidence)), 0])
