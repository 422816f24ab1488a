"""The best linear policy of a table in hindsight: what a learner that is linear can reach at most."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from rareswitch.validation import BoolArray, FloatArray, frozen, vector

#: Temperatures of the softmax that stands for the greedy policy, in units of the spread of its scores.
TEMPERATURES = (1.0, 0.3, 0.1, 0.03, 0.01)
#: Steps of L-BFGS at each temperature.
STEPS = 100
#: Weight of |θ|²/2 beside the logistic loss: where classes can be separated, that alone has no largest value.
RIDGE = 1e-6


class Table(Protocol):
    """All sets of a world that is made of a table, n sets of up to K arms, without the vectors themselves."""

    @property
    def dim(self) -> int:
        """Number of features of an arm, d."""

    @property
    def payoffs(self) -> FloatArray:
        """(n, K) rewards of the arms."""

    @property
    def offered(self) -> BoolArray:
        """(n, K) which arms there are."""

    def scores(self, theta: FloatArray) -> FloatArray:
        """(n, K) xᵀθ of all arms."""

    def pulled_back(self, weights: FloatArray) -> FloatArray:
        """(d,) the sum of all vectors with weights (n, K)."""

    def least_squares(self) -> FloatArray:
        """(d,) the θ that fits the rewards of all arms best."""


def greedy_value(table: Table, theta: Any) -> float:
    """What the policy that takes the first of the largest xᵀθ earns in a set, on average over the table; θ is (d,)."""
    theta = vector("theta", theta, table.dim)
    arms = np.where(table.offered, table.scores(theta), -np.inf).argmax(axis=1)
    return float(table.payoffs[np.arange(len(arms)), arms].mean())


def best_linear(table: Table) -> FloatArray:
    """The θ (d,) of length 1 whose greedy policy earns most over a table, of those that are looked at.

    The problem is hard in general; no claim of optimality is made. Looked at are θ along each axis, both ways (where
    arms have levels of their own, single arms are among them); the least-squares fit to all rewards; the fit of a
    logistic choice model; and from each of the latter two an ascent of the expected reward of softmax policies, whose
    temperature falls until they are nearly greedy. The same table gives the same θ.
    """
    best = (-np.inf, np.zeros(table.dim))
    for axis in np.eye(table.dim):
        for theta in (axis, -axis):
            best = _better(table, best, theta)
    start = table.least_squares()
    for theta in (start, _climb(_logistic, table, start)):
        best = _better(table, best, theta)
        for temperature in TEMPERATURES:
            theta = _climb(_softmax(temperature), table, theta)
            best = _better(table, best, theta)
    return best[1]


Objective = Callable[[Table, FloatArray], tuple[float, FloatArray]]


def _better(table: Table, best: tuple[float, FloatArray], theta: FloatArray) -> tuple[float, FloatArray]:
    length = float(np.linalg.norm(theta))
    if not 0.0 < length < np.inf:
        return best
    value = greedy_value(table, theta / length)
    return (value, theta / length) if value > best[0] else best


def _climb(objective: Objective, table: Table, theta: FloatArray) -> FloatArray:
    """The θ to which L-BFGS comes from another one, whose scores are first brought to a spread of 1 within sets."""
    from scipy.optimize import minimize

    scores, there = table.scores(theta), table.offered
    centred = scores - (np.where(there, scores, 0.0).sum(axis=1) / there.sum(axis=1))[:, None]
    spread = float(np.sqrt((centred[there] ** 2).mean()))
    theta = theta / spread if spread > 0.0 else theta
    found = minimize(
        lambda t: objective(table, t), theta, jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "gtol": 1e-7}
    )
    return np.asarray(found.x)


def _probabilities(table: Table, scores: FloatArray) -> FloatArray:
    scores = np.where(table.offered, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _softmax(temperature: float) -> Objective:
    """Minus the mean reward of arms chosen with probability ∝ exp(xᵀθ/temperature), and its gradient."""

    def objective(table: Table, theta: FloatArray) -> tuple[float, FloatArray]:
        chosen = _probabilities(table, table.scores(theta) / temperature)
        earned = (chosen * table.payoffs).sum(axis=1, keepdims=True)
        slopes = chosen * (table.payoffs - earned) / (temperature * len(chosen))
        return -float(earned.mean()), -table.pulled_back(slopes)

    return objective


def _logistic(table: Table, theta: FloatArray) -> tuple[float, FloatArray]:
    """The loss of a logistic choice model in which an arm weighs what it earns above the worst of its set."""
    there, payoffs = table.offered, table.payoffs
    worst = np.where(there, payoffs, np.inf).min(axis=1, keepdims=True)
    weights = np.where(there, payoffs - worst, 0.0)
    weights = weights / (weights.sum(axis=1).mean() or 1.0)
    chosen = _probabilities(table, table.scores(theta))
    logs = np.log(np.where(there & (chosen > 0.0), chosen, 1e-300))
    slopes = (chosen * weights.sum(axis=1, keepdims=True) - weights) / len(weights)
    loss = -float((weights * logs).sum()) / len(weights) + 0.5 * RIDGE * float(theta @ theta)
    return loss, table.pulled_back(slopes) + RIDGE * theta


class InHindsight:
    """What worlds share that are a :class:`Table`."""

    def best_linear(self) -> FloatArray:
        """(d,) the best linear policy that :func:`best_linear` finds, looked for when it is first asked for."""
        return self._best_linear

    @cached_property
    def _best_linear(self) -> FloatArray:
        table: Any = self
        return frozen(best_linear(table))
