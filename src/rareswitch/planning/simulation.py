"""What a decision loses after how many others were learned from, by simulation on the contexts of a problem.

For each of several parameters θ that are possible beforehand, Thompson sampling at half the posterior's spread is
updated whenever the decisions have doubled, from none to the end. A policy plays a few hundred context sets, which
stand for all decisions of its batch; what these teach is the normal experiment of the same information, so that no
rewards need be drawn. A schedule of other batches then costs the sum of their lengths, each times what the policy that
begins it loses (:func:`~rareswitch.planning.cost`). The case plan of benchmarks/regret.py has runs of foresight beside
it.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rareswitch.belief import Posterior, logistic
from rareswitch.core import BoolArray, ContextSets, FloatArray, inverse_root, normals, uniforms

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


class Truth(NamedTuple):
    """Parameters that are possible beforehand."""

    #: (d,)
    theta: FloatArray
    #: σ; where rewards are clicks 1, as each has a variance of its own.
    noise: float
    #: In logits; None where rewards are no clicks.
    level: float | None = None

    def values(self, contexts: FloatArray) -> FloatArray:
        """(n, K) what arms (n, K, d) pay."""
        values = contexts @ self.theta
        return values if self.level is None else logistic(values + self.level)


def truth_count(dim: int) -> int:
    """How many parameters are tried."""
    return max(12, min(TRUTHS, (1 << 19) // dim**2))


def gain_of(values: FloatArray, available: BoolArray) -> float:
    """What the best arm of a set pays above uniform choice, on average over sets with values (n, K)."""
    uniform = np.where(available, values, 0.0).sum(axis=1) / available.sum(axis=1)
    return float((np.where(available, values, -np.inf).max(axis=1) - uniform).mean())


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

    low, high = 1e-6, 1e3
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
    dim = len(truth.theta)
    spread = max(float(truth.theta @ truth.theta) / dim, 1e-30)
    precision, moment = truth.noise**2 / spread * np.eye(dim), np.zeros(dim)
    first = number * MOST_STAGES
    draws = normals(seed, "plan draws", first, len(lengths), played * dim).reshape(len(lengths), played, dim)
    shocks = normals(seed, "plan shocks", first, len(lengths), played)
    rows, regrets = np.arange(played), []
    for k, length in enumerate(lengths):
        at = (rows + k * played) % len(sets)
        contexts, available = sets.contexts[at], sets.available[at]
        values = truth.values(contexts)
        if k == 0:
            scores = uniforms(seed, "plan first", first, 1, values.size).reshape(values.shape)
            regrets.append(gain_of(values, available))
        else:
            thetas = np.linalg.solve(precision, moment) + SCALE * truth.noise * draws[k] @ inverse_root(precision)
            scores = (contexts @ thetas[:, :, None])[:, :, 0]
        chosen = np.where(available, scores, -np.inf).argmax(axis=1)
        paid = values[rows, chosen]
        if k:
            regrets.append(float((np.where(available, values, -np.inf).max(axis=1) - paid).mean()))
        features = contexts[rows, chosen]
        if truth.level is not None:
            features = features * np.sqrt(_click_weights(features, truth.level, precision, moment))[:, None]
        share = float(length) / played
        information = share * features.T @ features
        moment = moment + information @ truth.theta + truth.noise * math.sqrt(share) * shocks[k] @ features
        precision = precision + information
    return regrets


def _click_weights(features: FloatArray, level: float, precision: FloatArray, moment: FloatArray) -> FloatArray:
    """(n,) what clicks of chosen arms (n, d) teach, against rewards of variance 1: p(1 − p) of the expected logit.

    Where the logit is known up to a variance v, p is that of the logit divided by √(1 + πv/8), and teaches as much less
    (MacKay 1992). At the truth alone certain clicks would teach nothing, even of a learner that knows nothing yet.
    """
    variances = np.square(features @ inverse_root(precision).T).sum(axis=1)
    shrunk = 1.0 / np.sqrt(1.0 + math.pi / 8.0 * variances)
    rates = logistic(shrunk * (features @ np.linalg.solve(precision, moment) + level))
    return np.asarray(shrunk**2 * rates * (1.0 - rates))
