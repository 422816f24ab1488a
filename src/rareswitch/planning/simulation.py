"""What a decision loses after how many others were learned from, by simulation on the contexts of a problem.

For each of several parameters θ that are possible beforehand, Thompson sampling at half the posterior's spread is
updated whenever the decisions have doubled, from none to the end. A policy plays a few hundred context sets, which
stand for all decisions of its batch: where each stands for several, the mean of their rewards is normal. A schedule of
other batches then costs the sum of their lengths, each times what the policy that begins it loses
(:func:`~rareswitch.planning.cost`). The case plan of benchmarks/regret.py has runs of foresight beside it.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rareswitch.belief import Posterior, logistic
from rareswitch.core import BoolArray, ContextSets, FloatArray, IntArray, inverse_root, normals, uniforms
from rareswitch.planning.misfit import Misfit

#: Parameters that are tried, fewer where there are many features.
TRUTHS = 48
#: Context sets that stand for a batch, fewer where they are large.
SETS = 400
#: The most numbers in these, and the sets with which parameters are scaled.
NUMBERS, SCALED = 1 << 21, 100
#: Rewards for each feature below which nothing counts as learned: with fewer, neither the noise nor the length of θ is
#: known, and a policy may be sure of the wrong arms for the rest of the run.
FEWEST = 3.0
#: Decisions grow by this factor from one policy to the next.
GROWTH = 2.0
#: More batches than a chain can have; keys its draws.
MOST_STAGES = 128
#: Of the variance of all rewards, what is chance at least.
LEAST_NOISE = 0.1
#: Multiple of the posterior's spread at which arms are drawn: with half of it Thompson sampling loses least.
SCALE = 0.5
#: Of each policy that learns from clicks, from the estimate of the one before it; and the squared decrement that ends
#: them, in squared standard deviations of the posterior.
NEWTON_STEPS, NEAR = 20, 0.05
#: Standard deviation of logits at the most: more would make all clicks certain.
STEEPEST = 10.0
#: Of a level beforehand, in logits or in standard deviations of a reward.
LEVEL_SPREAD = 4.0
#: The least of a click's variance that counts.
LEAST_WEIGHT = 1e-12


class Truth(NamedTuple):
    """Parameters that are possible beforehand."""

    #: (d,)
    theta: FloatArray
    #: σ; where rewards are clicks 1, as each has a variance of its own.
    noise: float
    #: In logits; None where rewards are no clicks.
    level: float | None = None
    #: What the sets pay in place of that, and the arms (n,) of the best θ; None where the model fits.
    misfit: Misfit | None = None
    best: IntArray | None = None

    def values(self, contexts: FloatArray) -> FloatArray:
        """(n, K) what arms (n, K, d) pay."""
        values = contexts @ self.theta
        return values if self.level is None else logistic(values + self.level)


def truth_count(dim: int) -> int:
    """How many parameters are tried."""
    return max(12, min(TRUTHS, (1 << 19) // dim**2))


def gain_of(values: FloatArray, available: BoolArray, best: IntArray | None = None) -> float:
    """What the best arms (n,) pay above uniform choice, on average over sets with values (n, K); by default of all."""
    uniform = np.where(available, values, 0.0).sum(axis=1) / available.sum(axis=1)
    if best is None:
        best = np.where(available, values, -np.inf).argmax(axis=1)
    return float((values[np.arange(len(values)), best] - uniform).mean())


def prior_truths(
    sets: ContextSets,
    gains: tuple[float, float],
    *,
    noise: float,
    spread: float | None = None,
    click_rate: float | None,
    seed: int,
) -> tuple[Truth, ...]:
    """Parameters of random directions, so long that the best arms gain log-uniformly within a range.

    Parameters
    ----------
    gains
        In the unit of the rewards. Of clicks, what certainty leaves above the rate limits it.
    noise
        σ, where rewards are no clicks.
    spread
        The standard deviation of all rewards, where that is known in place of σ: a part of it is of the arms' values.
    click_rate
        Of uniform choice, where they are.
    """
    count, dim = truth_count(sets.contexts.shape[2]), sets.contexts.shape[2]
    contexts, available = sets.contexts[:SCALED], sets.available[:SCALED]
    low, high = gains
    truths = []
    for k, direction in enumerate(normals(seed, "plan truths", 0, count, dim)):
        gain = low * (high / low) ** ((k + 0.5) / count)
        scores = contexts @ direction
        unit = gain_of(scores, available) or 1.0  # the arms of each set may be alike
        if click_rate is None:
            theta = gain / unit * direction
            own = 0.0 if spread is None else (gain / unit * float(scores[available].std()) / spread) ** 2
            truths.append(Truth(theta, noise * math.sqrt(max(1.0 - own, LEAST_NOISE))))
        else:
            length, level = _scaled(scores / unit, available, click_rate, min(gain, 0.9 * (1.0 - click_rate)))
            truths.append(Truth(length / unit * direction, 1.0, level))
    return tuple(truths)


def _scaled(scores: FloatArray, available: BoolArray, rate: float, wanted: float) -> tuple[float, float]:
    """The length and the level at which uniform choice among logits pays the rate, and the best arms gain as wanted."""
    weights = available / available.sum(axis=1, keepdims=True) / len(available)

    def level_of(logits: FloatArray) -> float:
        low, high = -60.0, 60.0
        for _ in range(24):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if float((weights * logistic(logits + middle)).sum()) < rate else (low, middle)
        return high

    low, high = 1e-6, STEEPEST / max(float(scores[available].std()), 1e-30)
    for _ in range(20):
        length = math.sqrt(low * high)
        reached = gain_of(logistic(length * scores + level_of(length * scores)), available)
        low, high = (length, high) if reached < wanted else (low, length)
    return high, level_of(high * scores)


def posterior_truths(belief: Posterior, *, seed: int) -> tuple[Truth, ...]:
    """Parameters that a log leaves possible."""
    dim = len(belief.estimate)
    z = normals(seed, "plan truths", 0, truth_count(dim), dim)
    thetas = belief.estimate + belief.noise * z @ inverse_root(belief.precision)
    if belief.link is None:
        return tuple(Truth(theta, belief.noise) for theta in thetas)
    levels = belief.link.levels(thetas).tolist()
    return tuple(Truth(theta, 1.0, level) for theta, level in zip(thetas, levels, strict=True))


class Curves(NamedTuple):
    """What decisions lose under each truth, after how many were learned from."""

    #: (S,) decisions, the first 0, which is uniform choice.
    known: FloatArray
    #: (J, S) in the unit of the rewards.
    regret: FloatArray


def regret_curves(
    sets: ContextSets,
    truths: tuple[Truth, ...],
    *,
    total: float,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Curves:
    """The curves of all truths, up to a policy that was learned from at least half of the decisions."""
    arms, dim = sets.contexts.shape[1:]
    first = FEWEST * dim
    stages = max(1, math.ceil(math.log(max(total / first, 1.0), GROWTH)))
    known = np.array([0.0, *(first * GROWTH**k for k in range(stages))])
    played = max(50, min(SETS, NUMBERS // (arms * dim)))
    curves = []
    for j, truth in enumerate(truths):
        curves.append(_curve(sets, truth, np.diff(known, append=known[-1] * GROWTH), played, seed, j))
        if progress is not None:
            progress(j + 1, len(truths))
    return Curves(known, np.array(curves))


def _curve(sets: ContextSets, truth: Truth, lengths: FloatArray, played: int, seed: int, number: int) -> list[float]:
    """What a decision of each policy loses, where batches have these lengths."""
    dim, first = len(truth.theta), number * MOST_STAGES
    learner = _Learner(truth, dim)
    draws = normals(seed, "plan draws", first, len(lengths), played * dim).reshape(len(lengths), played, dim)
    shocks = normals(seed, "plan shocks", first, len(lengths), played)
    rows, regrets = np.arange(played), []
    for k, length in enumerate(lengths):
        at = (rows + k * played) % len(sets)
        contexts, available = sets.contexts[at], sets.available[at]
        values = truth.values(contexts) if truth.misfit is None else truth.misfit.payoffs[at]
        best = np.where(available, values, -np.inf).argmax(axis=1) if truth.best is None else truth.best[at]
        if k == 0:
            scores = uniforms(seed, "plan first", first, 1, values.size).reshape(values.shape)
            regrets.append(gain_of(values, available, best))
        else:
            estimate, precision = learner.belief()
            thetas = estimate + SCALE * draws[k] @ inverse_root(precision)
            scores = (contexts @ thetas[:, :, None])[:, :, 0]
        chosen = np.where(available, scores, -np.inf).argmax(axis=1)
        if k:
            regrets.append(float((values[rows, best] - values[rows, chosen]).mean()))
        learner.learn(contexts[rows, chosen], values[rows, chosen], float(length), shocks[k])
    return regrets


class _Learner:
    """Learns a linear or a logistic model with a level, from rewards that are as if many had been drawn."""

    def __init__(self, truth: Truth, dim: int) -> None:
        self.clicks, self.noise = truth.level is not None, truth.noise
        spread = max(float(truth.theta @ truth.theta) / dim, 1e-30)
        self.prior = np.append(np.full(dim, 1.0 / spread), 1.0 / (LEVEL_SPREAD * self.noise) ** 2)
        self.point = np.zeros(dim + 1)
        self.rows, self.shares, self.moment = np.empty((0, dim + 1)), np.empty(0), np.zeros(dim + 1)

    def learn(self, features: FloatArray, values: FloatArray, count: float, shocks: FloatArray) -> None:
        """Of a batch whose arms are like these (n, d), which pay (n,) on average; shocks (n,) are their chance.

        Where the batch has fewer decisions, these are its decisions; else each stands for several, and the mean of
        their rewards is normal.
        """
        from scipy.special import ndtr

        drawn = max(1, min(len(features), round(count)))
        features, values, shocks = features[:drawn], values[:drawn], shocks[:drawn]
        share = count / drawn
        if self.clicks and share <= 1.5:
            paid = (ndtr(shocks) < values).astype(np.float64)
        else:
            chance = np.sqrt(values * (1.0 - values)) if self.clicks else self.noise
            paid = values + chance * shocks / math.sqrt(share)
        rows = np.column_stack([features, np.ones(drawn)])
        self.moment = self.moment + share * rows.T @ paid
        self.rows, self.shares = np.concatenate([self.rows, rows]), np.append(self.shares, np.full(drawn, share))

    def belief(self) -> tuple[FloatArray, FloatArray]:
        """The likeliest θ (d,) and its precision (d, d), by damped Newton steps from the last estimate."""
        for _ in range(NEWTON_STEPS if self.clicks else 1):
            expected, precision = self._expanded()
            step = np.linalg.solve(
                precision,
                (self.moment - (self.shares * expected) @ self.rows) / self.noise**2 - self.prior * self.point,
            )
            far = math.sqrt(float(np.square(self.rows @ step).mean())) if self.clicks else 0.0
            self.point = self.point + ((1.0 + math.log(far)) / far if far > 1.0 else 1.0) * step
            if float(step @ precision @ step) < NEAR:
                break
        _, precision = self._expanded()
        across = precision[:-1, -1]
        return self.point[:-1], precision[:-1, :-1] - np.outer(across, across) / precision[-1, -1]

    def _expanded(self) -> tuple[FloatArray, FloatArray]:
        """What is expected of the rows (n,), and the precision (d + 1, d + 1) there."""
        expected = self.rows @ self.point
        weights = self.shares / self.noise**2
        if self.clicks:
            expected = logistic(expected)
            weights = self.shares * np.maximum(expected * (1.0 - expected), LEAST_WEIGHT)
        return expected, (self.rows * weights[:, None]).T @ self.rows + np.diag(self.prior)
