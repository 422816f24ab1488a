"""RHO: sampling probabilities by residual-horizon optimisation (Che and Namkoong 2023)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rareswitch.belief import best_arms, within_memory
from rareswitch.core import ContextSets, FloatArray, IntArray, inverse_root, normals
from rareswitch.design import Uniform
from rareswitch.errors import BatchError
from rareswitch.learner import (
    BatchEnd,
    NewPolicy,
    OneModel,
    Parts,
    Rule,
    SelfNormalized,
    StaleLearner,
    count,
    real,
    setting,
)
from rareswitch.policy import Policy, PosteriorDraws

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
    #: (n, K, d) less the mean of the available arms; 0 for an arm that is not there.
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
        available, root = sets.available[:, :, None], inverse_root(precision)
        mean = np.where(available, sets.contexts, 0.0).sum(axis=1) / sets.available.sum(axis=1)[:, None]
        centred = np.where(available, sets.contexts - mean[:, None, :], 0.0)
        return cls(
            stakes=stakes,
            precision=precision,
            inverse=root.T @ root,
            noise=noise,
            contexts=np.where(available, sets.contexts, 0.0),
            centred=centred,
            means=np.where(sets.available, centred @ estimate, -np.inf),
            chosen=best_arms(sets.contexts, sets.available, parameters),
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
        uncertain = variances > 0.0  # rounding leaves less where nothing is learned
        spreads = np.sqrt(np.where(uncertain, variances, 0.0))
        scores = self.means[:, :, None] + spreads[:, :, None] * self.shocks
        best, draws = scores.argmax(axis=1), np.arange(self.shocks.shape[2])
        means = np.where(np.isfinite(self.means), self.means, 0.0)
        value = stakes.now * float((played * means).sum()) / count
        value += stakes.later * float(scores[rows, best, draws].mean())
        # of the second term in the variances, then in C, then in the information, then in the probabilities
        in_variances = np.zeros((count, arms))
        np.add.at(in_variances, (rows, best), self.shocks[rows, best, draws])
        in_variances = np.divide(in_variances, 2.0 * best.size * spreads, out=np.zeros_like(spreads), where=uncertain)
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


#: Multiples of the posterior's spread at which parameters are drawn, and how many at each; the estimate joins them.
SPREADS, DRAWS = (0.5, 1.0, 2.0), 42
#: Parts into which the probability is divided among them: a policy holds each as often as it has parts.
PARTS = 128
#: Context sets from which an update plans, and draws of what each would say of its arms.
SAMPLE, SHOCKS = 128, 32
#: The most numbers that an update may work with at a time.
NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False, kw_only=True)
class WeighDraws(Rule):
    """Weigh posterior draws by what playing them costs, and by what it teaches for the rest of the run."""

    statistics: OneModel
    level: SelfNormalized
    weight: float | None
    seed: int
    any_first: ClassVar[bool] = True

    @property
    def any_past(self) -> bool:
        return True

    def first(self) -> NewPolicy:
        return NewPolicy(Policy(dim=self.statistics.dim, sampler=Uniform()))

    def sample_size(self, number: int, forecast: tuple[int, ...]) -> int:
        return SAMPLE  # also where no plan is due: the forecast may change before the batch ends

    def next(self, ended: BatchEnd) -> NewPolicy:
        (total,) = ended.sums
        estimate, precision = total.estimate(ridge=self.level.ridge), self.statistics.precision(total.gram)
        stakes = stakes_of(ended.batch_sizes, self.weight)
        draws, parts = estimate[None], np.ones(1, dtype=np.int64)
        if self.level.noise > 0.0 and stakes.later > 0.0:  # else whatever is learned is worth nothing
            if ended.batch.sample is None:
                raise BatchError(
                    "rho plans with a sample of the context sets of the batch, and there are none. Give the rows the "
                    "sets of the decisions that learner.sample_size(state) asks for."
                )
            draws = self.draws(estimate, precision, ended.start)
            sets = within_memory(ended.batch.sample.sets, columns=1 + len(SPREADS) * DRAWS, numbers=NUMBERS)
            horizon = ResidualHorizon.of(
                sets,
                draws,
                estimate=estimate,
                precision=precision,
                noise=self.level.noise,
                shocks=normals(self.seed, "rho", ended.start, 1, sets.available.size * SHOCKS).reshape(
                    *sets.available.shape, SHOCKS
                ),
                stakes=stakes,
            )
            parts = parts_of(ascend(horizon))
        sampler = PosteriorDraws(draws=np.repeat(draws, parts, axis=0))
        note = {"update": ended.state.policies, "noise": self.level.noise, "greedy": float(parts[0] / parts.sum())}
        return NewPolicy(Policy(dim=total.dim, sampler=sampler), note=note)

    def draws(self, estimate: FloatArray, precision: FloatArray, start: int) -> FloatArray:
        """(m, d) the parameters among which the probability is divided; the first is the estimate."""
        dim = len(estimate)
        z = normals(self.seed, "posterior", start, 1, len(SPREADS) * DRAWS * dim).reshape(len(SPREADS), DRAWS, dim)
        spread = np.array(SPREADS)[:, None, None] * self.level.noise * z @ inverse_root(precision)
        return np.concatenate([estimate[None], estimate + spread.reshape(-1, dim)])


def stakes_of(forecast: tuple[int, ...], weight: float | None) -> Stakes:
    """What is at stake in batches of these lengths.

    >>> stakes_of((100, 100, 100), None)        # the next batch pays and teaches, and those after it are greedy
    Stakes(learned=100, now=100, later=200)
    >>> stakes_of((100, 100, 100), 0.75)        # all batches pay and teach; one more would be greedy
    Stakes(learned=300, now=225.0, later=25.0)
    """
    total = sum(forecast)
    if weight is None:
        return Stakes(learned=forecast[0], now=forecast[0], later=total - forecast[0])
    return Stakes(learned=total, now=weight * total, later=(1.0 - weight) * forecast[0])


def parts_of(weights: FloatArray, parts: int = PARTS) -> IntArray:
    """(m,) the number of equal parts that each of the weights gets, by largest remainders, in lowest terms.

    >>> parts_of(np.array([0.5, 0.26, 0.24]), 100).tolist()
    [25, 13, 12]
    """
    exact = parts * weights
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: parts - counts.sum()]] += 1
    return np.asarray(counts // math.gcd(*counts.tolist()))


@dataclass(frozen=True, kw_only=True)
class RHO(StaleLearner):
    """Plays posterior draws with the probabilities that look best for the rest of the run; updated by batch.

    Residual-horizon optimisation (Che and Namkoong, arXiv:2303.11582; with contexts AExGym, arXiv:2408.04570) plans at
    each update one way of playing the batches to come, by gradient ascent on the reward that the belief expects of it,
    and plans anew after the next batch. It takes the noise σ and the prior N(0, norm²·I).

    The papers optimise a table of probabilities, one row for each context that is about to be decided. A frozen policy
    must decide about contexts that nobody has seen, so here the probability is divided among 127 parameters, the
    estimate and posterior draws at half, once and twice the spread, each of which plays its best arm in any set.
    Propensities are exact, and what a policy teaches is linear in its weights.

    With a ``weight`` w the objective is AExGym's: w·(batches to come)·(reward of a decision) + (1 - w)·(reward of a
    decision by the best arm on the final estimate), for the same play in all batches to come. By default it is the
    regret of the run: the next batch pays and teaches, and all decisions after it take the best arm on what is known
    then. The first batch is uniform, and by default the last is greedy.

    >>> RHO(dim=5, arms=10, horizon=10_000, policies=3).clock.ends
    (100, 1000, 10000)
    """

    weight: float | None = setting(
        None,
        "share of rewards within the run in AExGym's objective; by default the objective is regret",
        real(0.0, 1.0),
    )
    seed: int = setting(0, "keys the draws", count(low=0))

    name: ClassVar[str] = "rho"
    text: ClassVar[str] = "posterior draws, weighed for the rest of the run (Che and Namkoong 2023)"

    def compose(self) -> Parts:
        level = self.self_normalized()
        statistics = OneModel(dim=self.dim, ridge=level.ridge)
        rule = WeighDraws(statistics=statistics, level=level, weight=self.weight, seed=self.seed)
        return Parts(rule, self.pace(), statistics)
