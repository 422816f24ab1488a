"""Residual-horizon optimisation: how often to play by each of some parameters, by gradient ascent."""

from dataclasses import dataclass

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.learner.kernels import best_columns
from rareswitch.linalg import inverse_root
from rareswitch.validation import BoolArray, FloatArray, IntArray, read_only

#: Of the ascent, in the logarithms of the weights (Adam).
STEPS, RATE = 60, 0.3
_DECAY, _SQUARE_DECAY = 0.9, 0.999


@dataclass(frozen=True, kw_only=True)
class Stakes:
    """What is at stake in the decisions to come."""

    #: Decisions from which the final estimate learns.
    learned: float
    #: What a unit of expected reward in each of these is worth.
    now: float
    #: What a unit of expected reward of the best arm, on the final estimate, is worth.
    later: float


@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualHorizon:
    """The value of weights on m parameters, each of which plays its best arm, on a sample of context sets.

    Play by weights w gathers the information H(w) = learned·E[Σ_a π_w(a)·x_a·x_aᵀ] (E over the sets), so that the
    final estimate is N(θ̂, C(w)) with C = σ²(Λ⁻¹ - (Λ + H)⁻¹), and their value is

        now·E[Σ_a π_w(a)·x_aᵀθ̂] + later·E[max_a (x_aᵀθ̂ + z_a·√(x_aᵀC(w)x_a))],    z_a ~ N(0, 1)

    (Che and Namkoong, arXiv:2303.11582, Section 4; with contexts arXiv:2408.04570). Only what tells the arms of a set
    apart matters to the second term: its features are taken less their mean over the set.
    """

    stakes: Stakes
    #: (d, d) Λ and Λ⁻¹
    precision: FloatArray
    inverse: FloatArray
    #: σ
    noise: float
    #: (n, K, d)
    contexts: FloatArray
    #: (n, K, d) less the mean of the living arms; 0 for an arm that is not there.
    centred: FloatArray
    #: (n, K) xᵀθ̂ of centred features; -∞ for an arm that is not there.
    means: FloatArray
    #: (n, m) the arm that each parameter plays.
    chosen: IntArray
    #: (n, K, J) z
    shocks: FloatArray

    @classmethod
    def of(
        cls,
        sets: ContextSets,
        parameters: FloatArray,
        *,
        estimate: FloatArray,
        precision: FloatArray,
        noise: float,
        shocks: FloatArray,
        stakes: Stakes,
    ) -> "ResidualHorizon":
        """For a belief N(θ̂, σ²Λ⁻¹), parameters (m, d) and shocks (n, K, J)."""
        alive, root = sets.alive[:, :, None], inverse_root(precision)
        mean = np.where(alive, sets.contexts, 0.0).sum(axis=1) / sets.alive.sum(axis=1)[:, None]
        centred = np.where(alive, sets.contexts - mean[:, None, :], 0.0)
        return cls(
            stakes=stakes,
            precision=precision,
            inverse=root.T @ root,
            noise=noise,
            contexts=np.where(alive, sets.contexts, 0.0),
            centred=centred,
            means=np.where(sets.alive, centred @ estimate, -np.inf),
            chosen=_best_arms(sets.contexts, sets.alive, parameters),
            shocks=shocks,
        )

    def value(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """The value of weights (m,), and its gradient (m,) in them."""
        stakes, (count, arms, dim) = self.stakes, self.contexts.shape
        x, centred, rows = self.contexts.reshape(-1, dim), self.centred.reshape(-1, dim), np.arange(count)[:, None]
        played = np.zeros((count, arms))
        np.add.at(played, (rows, self.chosen), weights)
        root = inverse_root(self.precision + stakes.learned / count * (x.T * played.ravel()) @ x)
        remaining = root.T @ root
        covariance = self.noise**2 * (self.inverse - remaining)
        variances = ((centred @ covariance) * centred).sum(axis=1).reshape(count, arms)
        told = variances > 0.0  # rounding leaves less where nothing is learned
        spreads = np.sqrt(np.where(told, variances, 0.0))
        scores = self.means[:, :, None] + spreads[:, :, None] * self.shocks
        best, draws = scores.argmax(axis=1), np.arange(self.shocks.shape[2])
        means = np.where(np.isfinite(self.means), self.means, 0.0)
        value = stakes.now * float((played * means).sum()) / count
        value += stakes.later * float(scores[rows, best, draws].mean())
        # of the second term in the variances, then in C, then in the information, then in the probabilities
        in_variances = np.zeros((count, arms))
        np.add.at(in_variances, (rows, best), self.shocks[rows, best, draws])
        in_variances = np.divide(in_variances, 2.0 * best.size * spreads, out=np.zeros_like(spreads), where=told)
        in_covariance = (centred.T * in_variances.ravel()) @ centred
        in_information = self.noise**2 * stakes.learned * remaining @ in_covariance @ remaining
        gains = stakes.now * means + stakes.later * ((x @ in_information) * x).sum(axis=1).reshape(count, arms)
        return value, np.asarray(gains[rows, self.chosen].mean(axis=0))


def ascend(horizon: ResidualHorizon) -> FloatArray:
    """The weights (m,) of the highest value that gradient ascent finds, beginning with equal ones."""
    logits = np.zeros(horizon.chosen.shape[1])
    step = square = np.zeros_like(logits)
    best, highest = np.full(len(logits), 1.0 / len(logits)), -np.inf
    for t in range(1, STEPS + 1):
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
        value, gradient = horizon.value(weights)
        if value > highest:
            best, highest = weights, value
        slope = weights * (gradient - weights @ gradient)
        step = _DECAY * step + (1.0 - _DECAY) * slope
        square = _SQUARE_DECAY * square + (1.0 - _SQUARE_DECAY) * slope**2
        size = np.sqrt(square / (1.0 - _SQUARE_DECAY**t))
        logits = logits + RATE * step / (1.0 - _DECAY**t) / np.maximum(size, 1e-300)
    return best


def _best_arms(contexts: FloatArray, alive: BoolArray, parameters: FloatArray) -> IntArray:
    """(n, m) the best living arm of each set for each of the parameters (m, d)."""
    count, arms, dim = contexts.shape
    scores = (contexts.reshape(-1, dim) @ parameters.T).reshape(count, arms, len(parameters))
    chosen = np.zeros((count, len(parameters)), dtype=np.int64)
    best_columns(read_only(scores), alive, np.empty(len(parameters)), chosen)
    return chosen
