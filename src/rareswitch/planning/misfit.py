"""What the rewards of a log say that no θ says: the discrepancy of the model (Kennedy and O'Hagan, 2001).

A reward, or its logit where it is a click, is a level, xᵀθ and δ(x), δ a Gaussian process with a squared-exponential
covariance: Nyström's approximation by INDUCING arms of the log. Its length and size are the most likely of a grid,
for clicks by Laplace's approximation; it is left out where rewards are likelier without it. Where an arm was logged
several times with the same features, only the pure error of its rewards is chance, as in the test for lack of fit, and
the rest lasts. Learners are then held against the best policy that any θ has.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from rareswitch.belief import Posterior, logistic
from rareswitch.core import BoolArray, ContextSets, FloatArray, IntArray, first_highest, normals, uniforms

__all__ = ["Payoffs", "choice_probabilities", "climb", "softmax"]

#: Logged arms that stand for all, and rewards from which δ is learned.
INDUCING, ROWS = 200, 4000
#: Lengths in units of the median distance of logged arms; sizes in logits, or in standard deviations of chance.
LENGTHS, SIZES = (0.125, 0.25, 0.5, 1.0, 2.0), (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
#: Standard deviation of a level beforehand, in the same units.
LEVEL_SPREAD = 4.0
#: Newton steps at the most, and the squared decrement that ends them.
STEPS, NEAR = 20, 1e-2
#: Standard errors that a share must be above 0 to count.
SURE = 1.5
#: Temperatures of the softmax that stands for the best policy that a θ has, and steps of L-BFGS at each.
TEMPERATURES, ASCENTS = (0.3, 0.05), 30
#: The most numbers of the sets on which that is looked for.
NUMBERS = 1 << 20


class Payoffs(Protocol):
    """What arms of n sets of up to K pay, and linear scores of them."""

    @property
    def payoffs(self) -> FloatArray:
        """(n, K) on average."""

    @property
    def offered(self) -> BoolArray:
        """(n, K) which arms there are."""

    def scores(self, theta: FloatArray) -> FloatArray:
        """(n, K) xᵀθ of all arms of all sets."""

    def pulled_back(self, weights: FloatArray) -> FloatArray:
        """(d,) the sum of the vectors of all arms of all sets, with weights (n, K)."""


class Misfit(NamedTuple):
    """What arms of context sets pay where no θ says it."""

    #: (n, K)
    payoffs: FloatArray
    offered: BoolArray
    contexts: FloatArray
    #: Standard deviation of chance; of clicks 1.
    noise: float

    def scores(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.contexts @ theta)

    def pulled_back(self, weights: FloatArray) -> FloatArray:
        return np.asarray(weights.ravel() @ self.contexts.reshape(-1, self.contexts.shape[2]))

    def best(self) -> IntArray:
        """(n,) the arms of the best policy that a θ has, of those that ascents of softmax policies come to."""
        few = max(1, NUMBERS // self.contexts[0].size)
        part = Misfit(self.payoffs[:few], self.offered[:few], self.contexts[:few], self.noise)
        rows = self.contexts[self.offered]
        paid = self.payoffs[self.offered]
        theta, *_ = np.linalg.lstsq(rows - rows.mean(axis=0), paid - paid.mean(), rcond=None)
        thetas = [theta]
        for temperature in TEMPERATURES:
            thetas.append(climb(softmax(temperature), part, thetas[-1], steps=ASCENTS))
        policies = [np.where(self.offered, self.scores(theta), -np.inf).argmax(axis=1) for theta in thetas]
        earned = [float(np.take_along_axis(self.payoffs, arms[:, None], axis=1).mean()) for arms in policies]
        return np.asarray(policies[int(first_highest(np.array(earned)))])


Objective = Callable[[Payoffs, FloatArray], tuple[float, FloatArray]]


def climb(objective: Objective, table: Payoffs, theta: FloatArray, *, steps: int) -> FloatArray:
    """The θ to which L-BFGS comes from another one, whose scores are first brought to a spread of 1 within sets."""
    from scipy.optimize import minimize

    scores, there = table.scores(theta), table.offered
    centred = scores - (np.where(there, scores, 0.0).sum(axis=1) / there.sum(axis=1))[:, None]
    spread = float(np.sqrt((centred[there] ** 2).mean()))
    theta = theta / spread if spread > 0.0 else theta
    minimum = minimize(
        lambda t: objective(table, t), theta, jac=True, method="L-BFGS-B", options={"maxiter": steps, "gtol": 1e-7}
    )
    return np.asarray(minimum.x)


def choice_probabilities(table: Payoffs, scores: FloatArray) -> FloatArray:
    """(n, K) of arms that are chosen with probability ∝ exp(score)."""
    scores = np.where(table.offered, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def softmax(temperature: float) -> Objective:
    """Minus the mean reward of arms chosen with probability ∝ exp(xᵀθ/temperature), and its gradient."""

    def objective(table: Payoffs, theta: FloatArray) -> tuple[float, FloatArray]:
        chosen = choice_probabilities(table, table.scores(theta) / temperature)
        earned = (chosen * table.payoffs).sum(axis=1, keepdims=True)
        slopes = chosen * (table.payoffs - earned) / (temperature * len(chosen))
        return -float(earned.mean()), -table.pulled_back(slopes)

    return objective


def discrepancies(
    features: FloatArray, paid: FloatArray, belief: Posterior, sets: ContextSets, *, count: int, seed: int
) -> list[Misfit]:
    """What is possible of the payoffs of sets; none where a θ says all.

    Parameters
    ----------
    features, paid
        (n, d) of logged arms, and their rewards (n,).
    belief
        What they say of θ if there is no δ.
    """
    every = max(1, -(-len(paid) // ROWS))
    features, paid, clicks = features[::every], paid[::every], belief.link is not None
    if np.ptp(paid) == 0.0:  # of these, though not of all
        return []
    level = 0.0 if clicks else float(paid.mean())
    distinct = np.unique(features, axis=0)
    inducing = distinct[:: max(1, -(-len(distinct) // INDUCING))]
    prior = np.append(1.0 / LEVEL_SPREAD**2, np.full(features.shape[1], belief.ridge))
    plain = np.column_stack([np.ones(len(features)), features])
    embed: Embedding = _no_process
    linear = fit = _fit(plain, paid - level, prior, clicks)
    scale = float(np.sqrt(np.median(_squares(inducing, inducing)))) if len(inducing) > 2 else 0.0
    fits = list[tuple[Fit, Embedding]]()
    for length in LENGTHS if scale > 0.0 else ():
        wider = _embedding(inducing, length * scale)
        rows = np.column_stack([plain, wider(features)])
        for size in SIZES:
            precisions = np.append(prior, np.full(rows.shape[1] - len(prior), size**-2.0))
            fits.append((_fit(rows, paid - level, precisions, clicks), wider))
    factors = np.array([other.log_evidence - linear.log_evidence for other, _ in fits])
    if len(fits) and np.logaddexp.reduce(factors) > math.log(len(fits)):  # the Bayes factor of all is above 1
        fit, embed = fits[int(first_highest(factors))]
    logits = np.column_stack([plain, embed(features)]) @ fit.estimate
    expected = logistic(logits) if clicks else logits
    variances = expected * (1.0 - expected) if clicks else np.full(len(paid), fit.noise**2)
    lasting = _lasting(features, paid, variances)
    if fit is linear and lasting == 0.0:
        return []
    z = normals(seed, "plan misfit", 0, count, len(fit.estimate))
    weights = fit.estimate + fit.noise * np.linalg.solve(np.linalg.cholesky(fit.precision).T, z.T).T
    payoffs = np.empty((count, *sets.available.shape))
    for k, contexts in enumerate(sets.contexts):
        payoffs[:, k] = weights @ np.column_stack([np.ones(len(contexts)), contexts, embed(contexts)]).T
    payoffs = logistic(payoffs) if clicks else payoffs
    if lasting > 0.0:  # what lasts of an arm and a set is drawn once for all times that they come
        _, which = np.unique(sets.contexts.reshape(-1, sets.contexts.shape[2]), axis=0, return_inverse=True)
        which = which.reshape(sets.available.shape)
        width = int(which.max()) + 1
        for j, values in enumerate(payoffs):
            if clicks:
                u = uniforms(seed, "plan lasting", 2 * j, 2, width)[:, which]
                values[:] = np.where(u[0] < lasting, u[1] < values, values)
            else:
                values += math.sqrt(lasting) * fit.noise * normals(seed, "plan lasting", j, 1, width)[0, which]
    noise = 1.0 if clicks else max(fit.noise * math.sqrt(1.0 - lasting), 1e-6 * belief.noise)
    return [Misfit(values + level, sets.available, sets.contexts, noise) for values in payoffs]


class Fit(NamedTuple):
    """N(estimate, noise²·precision⁻¹) of a level, θ and the weights of δ."""

    log_evidence: float
    estimate: FloatArray
    precision: FloatArray
    noise: float


def _fit(rows: FloatArray, paid: FloatArray, prior: FloatArray, clicks: bool) -> Fit:
    """Of weights with these precisions (p,) beforehand; where rewards are no clicks, in units of the noise."""
    if not clicks:
        precision, moment = rows.T @ rows + np.diag(prior), rows.T @ paid
        estimate = np.asarray(np.linalg.solve(precision, moment), dtype=np.float64)
        noise = math.sqrt(max(float(paid @ paid - moment @ estimate) / len(paid), 1e-12 * float(paid @ paid)))
        return Fit(_evidence(-len(paid) * math.log(noise), precision, prior), estimate, precision, noise)
    signs = np.where(paid == 1.0, -1.0, 1.0)

    def log_density(point: FloatArray) -> float:
        return -float(np.logaddexp(0.0, signs * (rows @ point)).sum() + 0.5 * prior @ point**2)

    estimate = np.zeros(len(prior), dtype=np.float64)
    value = log_density(estimate)
    for _ in range(STEPS):
        expected = logistic(rows @ estimate)
        precision = (rows * (expected * (1.0 - expected))[:, None]).T @ rows + np.diag(prior)
        step = np.asarray(np.linalg.solve(precision, rows.T @ (paid - expected) - prior * estimate))
        near = float(step @ precision @ step) < NEAR
        while (reached := log_density(estimate + step)) < value and not near:
            step = 0.5 * step
        estimate, value = estimate + step, reached
        if near:
            break
    return Fit(_evidence(value, precision, prior), estimate, precision, 1.0)


def _evidence(log_density: float, precision: FloatArray, prior: FloatArray) -> float:
    """Its logarithm, of the density at the mode."""
    return log_density + 0.5 * float(np.log(prior).sum() - np.linalg.slogdet(precision)[1])


Embedding = Callable[[FloatArray], FloatArray]


def _no_process(rows: FloatArray) -> FloatArray:
    """Where δ is 0."""
    return np.empty((len(rows), 0))


def _embedding(inducing: FloatArray, length: float) -> Embedding:
    """Of rows (n, d) the features (n, p) of which δ is a linear function with independent standard weights."""

    def kernel(rows: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-0.5 * _squares(rows, inducing) / length**2))

    values, vectors = np.linalg.eigh(kernel(inducing))
    large = values > 1e-6 * values[-1]
    root = vectors[:, large] / np.sqrt(values[large])
    return lambda rows: np.asarray(kernel(rows) @ root)


def _squares(left: FloatArray, right: FloatArray) -> FloatArray:
    """(n, m) squared distances of rows (n, d) and (m, d)."""
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * left @ right.T
    return np.asarray(np.maximum(squares, 0.0))


def _lasting(features: FloatArray, paid: FloatArray, variances: FloatArray) -> float:
    """Which share of the variances (n,) of rewards around what is expected of them is not there between equal rows.

    That of rewards (n,) of equal rows (n, d) is pure error, whatever else is expected; 0 where it may be by chance.
    """
    _, which, counts = np.unique(features, axis=0, return_inverse=True, return_counts=True)
    which, freedom = which.ravel(), float((counts - 1).sum())
    own = paid - np.bincount(which, paid)[which] / counts[which]
    believed = float((variances * (1.0 - 1.0 / counts[which])).sum())
    if freedom == 0.0 or believed == 0.0:
        return 0.0
    lasting = 1.0 - float(own @ own) / believed
    clicks = bool(np.isin(paid, (0.0, 1.0)).all())  # most often in pairs, which differ or do not
    error = math.sqrt(0.5 / believed if clicks else 2.0 / freedom)
    return max(0.0, lasting) if lasting > SURE * error else 0.0
