"""Rewards of 0 and 1: a logistic model of sums that stay additive.

A decision for x pays 1 with the probability μ(xᵀθ), μ(u) = 1/(1 + exp(-u)). Its likelihood is not a parabola, and the
sums of a linear model do not tell it. So each decision is summed at the belief N(θ₀, V) that its policy was made from,
which is frozen while the policy decides: with u ~ N(xᵀθ₀, xᵀVx), w = E μ′(u) and m = E μ(u), it counts as a reward
xᵀθ₀ + (r - m)/w for x, with a noise variance of 1/w. Averages over the belief hold where the belief is still vague,
and the slope at a single point does not. For them the normal's mean of a logistic is taken by the usual approximation
E μ(u) ≈ μ(κ·xᵀθ₀), κ = (1 + π·xᵀVx/8)^(-½), and its slope.

Before there is a belief, decisions are counted without a point, with Σ x beside Σ r·x, and put at the level of their
rewards when it is known.
"""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add

import numpy as np

from rareswitch.learner.kernels import predictions
from rareswitch.learner.link import Link, logistic
from rareswitch.learner.posterior import RATIOS, Posterior
from rareswitch.linalg import inverse_root
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, read_only

#: By what names a state keeps the belief that decisions are summed at: θ₀ and V⁻¹, of the features and of the level.
POINT, PRECISION = "logistic_point", "logistic_precision"
#: How many times V was found to be too small, where it was.
WIDENING = "logistic_widening"
#: The least weight of a decision: one without any would have no place for its reward.
LEAST_WEIGHT = 1e-12
#: κ² at the least: decisions whose rewards can be told without fail would put θ at infinity.
LEAST_SHRUNK = 0.1
#: Of a level, in logits, beforehand: rates from 0.03 % to 99.97 % are within two of them.
LEVEL_SPREAD = 4.0


def linearised(features: FloatArray, rewards: FloatArray, kept: Mapping[str, FloatArray]) -> Stats:
    """Decisions with features (n, d) and rewards (n,) of 0 or 1, as linear ones at the belief that a state keeps.

    Without a belief it is the sums of the same features with rewards of 1.

    >>> x = np.array([[1.0], [2.0]])
    >>> at_zero = {POINT: np.zeros(1), PRECISION: np.array([[1e12]])}
    >>> linearised(x, np.array([1.0, 0.0]), at_zero).moment.round(6).tolist()        # Σ (r - 1/2)·x
    [-0.5]
    """
    if POINT not in kept:
        return Stats.of(features, np.ones(len(features)))
    point, root = kept[POINT], inverse_root(kept[PRECISION] / float(kept.get(WIDENING, 1.0)))
    means, variances = np.empty(len(features)), np.empty(len(features))
    predictions(read_only(features), read_only(point), read_only(root), means, variances)
    shrunk = 1.0 / np.sqrt(1.0 + math.pi / 8.0 * variances)
    rates = logistic(shrunk * means)
    weights = np.maximum(shrunk * rates * (1.0 - rates), LEAST_WEIGHT)
    roots = np.sqrt(weights)
    return Stats.of(features * roots[:, None], roots * means + (rewards - rates) / roots)


def logistic_posterior(batches: Sequence[Stats], *, intercept: bool) -> Posterior | None:
    """What clicks say of θ, with the τ that makes them most likely if θ ~ N(0, τ²I) beforehand; None if they do not.

    They do not where some rewards were other than 0 and 1, so that some of the sums are not linearised, and where all
    were the same.

    Parameters
    ----------
    batches
        The sums of each batch, linearised at a belief or at none.
    intercept
        Whether the last feature is the constant of a level. Of a level little is believed beforehand, also where
        features can express it.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.standard_normal((8000, 2))
    >>> r = (rng.random(8000) < logistic(x @ [2.0, -1.0])).astype(float)
    >>> from dataclasses import replace
    >>> batches, kept = [], {}
    >>> for rows in (slice(0, 100), slice(100, 1000), slice(1000, 8000)):
    ...     batches += [replace(Stats.of(x[rows], r[rows]), linearised=linearised(x[rows], r[rows], kept))]
    ...     found = logistic_posterior(batches, intercept=False)
    ...     kept = kept_point(found)
    >>> found.estimate.round(1).tolist()
    [2.0, -1.0]
    """
    batches = [one for one in batches if one.count]
    if any(one.linearised is None for one in batches):
        return None
    count, clicks = sum(one.count for one in batches), sum(_clicks(one) for one in batches)
    if clicks <= 0.0 or clicks >= count:
        return None
    blind, seen = [one for one in batches if summed_blindly(one)], [one for one in batches if not summed_blindly(one)]
    dim = batches[0].dim
    gram, moment = _at_level(reduce(add, blind)) if blind else (np.zeros((dim, dim)), np.zeros(dim))
    for one in seen:
        assert one.linearised is not None
        gram, moment = gram + one.linearised.gram, moment + one.linearised.moment
    level = np.eye(dim)[-1] if intercept else _constant(blind, dim)
    others = np.eye(dim)
    if level.any():
        along = np.outer(level, level) / (level @ level)
        gram, others = gram + along / (level @ level) / LEVEL_SPREAD**2, others - along
    ridge = _ridge(*_without(level, gram, moment), count)
    precision, size = gram + ridge * others, dim - intercept
    point = np.asarray(np.linalg.solve(precision, moment), dtype=np.float64)
    return Posterior(
        estimate=point[:size],
        precision=_without(level, precision, moment)[0][:size, :size] if intercept else precision,
        noise=1.0,
        ridge=ridge,
        link=Link(point=point, precision=precision),
    )


def kept_point(belief: Posterior, *, widening: float = 1.0) -> dict[str, FloatArray]:
    """What a state keeps of a belief, so that the decisions of its policy can be summed at it.

    Parameters
    ----------
    widening
        By what its variance is multiplied for that. Far out, where a wrong belief is sure of its rates, decisions would
        have next to no weight, and the first that are otherwise would carry the estimate beyond all bounds.
    """
    if belief.link is None:
        return {}
    kept = {POINT: belief.link.point, PRECISION: belief.link.precision}
    return kept if widening == 1.0 else kept | {WIDENING: np.array(widening)}


def frozen_point(kept: Mapping[str, FloatArray]) -> Posterior | None:
    """The belief that a state keeps, of the features and of the level; None where it keeps none."""
    if POINT not in kept:
        return None
    return Posterior(estimate=kept[POINT], precision=kept[PRECISION], noise=1.0, ridge=0.0)


def _clicks(stats: Stats) -> float:
    """Σ r of rewards that are all 0 or 1: their squares are the same."""
    return stats.shifted(0.0).square_sum


def summed_blindly(stats: Stats) -> bool:
    """Whether decisions were summed before there was a belief: with weights of 1, where a logistic's are at most ¼."""
    return stats.linearised is not None and np.array_equal(stats.gram, stats.linearised.gram)


def _at_level(stats: Stats) -> tuple[FloatArray, FloatArray]:
    """Σ w·xxᵀ and Σ x·(r - p + w·u) of decisions that are all put at the level u of their rewards.

    At a rate p that is log(p/(1 - p)) with the weight p(1 - p), if the decisions differ little. Where their xᵀθ are
    normal around the level with variance v, p is κ times as steep, κ² = 1/(1 + π·v/8), and the first of these fits is
    κ times as long as θ: so its own variance is κ²v, and κ² = 1 - π·κ²v/8.
    """
    assert stats.linearised is not None
    plain, total = stats.shifted(0.0), stats.linearised.moment  # Σ x
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


def _constant(blind: Sequence[Stats], dim: int) -> FloatArray:
    """The c (d,) with cᵀx = 1 for all x that were chosen before there was a belief; 0 if there is none.

    It is the direction in which θ changes the level alone.
    """
    if blind:
        total = reduce(add, blind)
        assert total.linearised is not None
        found = np.linalg.lstsq(total.gram, total.linearised.moment, rcond=1e-10)[0]
        if abs(total.count - total.linearised.moment @ found) < 1e-6 * total.count and total.count > dim:
            return np.asarray(found)
    return np.zeros(dim)


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
    return float(1.0 / ratios[int(evidence.argmax()), 0])
