"""RHO: sampling probabilities by residual-horizon optimisation (Che and Namkoong 2023)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rareswitch.confidence import SelfNormalized
from rareswitch.contexts import ContextSets
from rareswitch.design import Uniform
from rareswitch.errors import BatchError
from rareswitch.learner.learner import Parts
from rareswitch.learner.linucb import StaleLearner
from rareswitch.learner.residual_horizon import ResidualHorizon, Stakes, ascend
from rareswitch.learner.rule import Ended, Made, Rule
from rareswitch.learner.settings import count, real, setting
from rareswitch.learner.statistics import OneModel
from rareswitch.linalg import inverse_root
from rareswitch.policy import Policy, PosteriorDraws
from rareswitch.rng import normals
from rareswitch.validation import FloatArray, IntArray

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

    def first(self) -> Made:
        return Made(Policy(dim=self.statistics.dim, sampler=Uniform()))

    def sample_size(self, number: int, ahead: tuple[int, ...]) -> int:
        return SAMPLE  # also where no plan is due: the forecast may change before the batch ends

    def next(self, ended: Ended) -> Made:
        (total,) = ended.sums
        estimate, precision = total.estimate(ridge=self.level.ridge), self.statistics.precision(total.gram)
        stakes = stakes_of(ended.ahead, self.weight)
        draws, parts = estimate[None], np.ones(1, dtype=np.int64)
        if self.level.noise > 0.0 and stakes.later > 0.0:  # else whatever is learned is worth nothing
            if ended.batch.sample is None:
                raise BatchError(
                    "rho plans with a sample of the context sets of the batch, and there are none. Give the rows the "
                    "sets of the decisions that learner.sample_size(state) asks for."
                )
            draws = self.draws(estimate, precision, ended.start)
            sets = thinned(ended.batch.sample.sets)
            horizon = ResidualHorizon.of(
                sets,
                draws,
                estimate=estimate,
                precision=precision,
                noise=self.level.noise,
                shocks=normals(self.seed, "rho", ended.start, 1, sets.alive.size * SHOCKS).reshape(
                    *sets.alive.shape, SHOCKS
                ),
                stakes=stakes,
            )
            parts = parts_of(ascend(horizon))
        sampler = PosteriorDraws(draws=np.repeat(draws, parts, axis=0))
        note = {"update": ended.state.updates, "noise": self.level.noise, "greedy": float(parts[0] / parts.sum())}
        return Made(Policy(dim=total.dim, sampler=sampler), note=note)

    def draws(self, estimate: FloatArray, precision: FloatArray, start: int) -> FloatArray:
        """(m, d) the parameters among which the probability is divided; the first is the estimate."""
        dim = len(estimate)
        z = normals(self.seed, "posterior", start, 1, len(SPREADS) * DRAWS * dim).reshape(len(SPREADS), DRAWS, dim)
        spread = np.array(SPREADS)[:, None, None] * self.level.noise * z @ inverse_root(precision)
        return np.concatenate([estimate[None], estimate + spread.reshape(-1, dim)])


def stakes_of(ahead: tuple[int, ...], weight: float | None) -> Stakes:
    """What is at stake in batches of these lengths.

    >>> stakes_of((100, 100, 100), None)        # the next batch pays and teaches, and those after it are greedy
    Stakes(learned=100, now=100, later=200)
    >>> stakes_of((100, 100, 100), 0.75)        # all batches pay and teach; one more would be greedy
    Stakes(learned=300, now=225.0, later=25.0)
    """
    total = sum(ahead)
    if weight is None:
        return Stakes(learned=ahead[0], now=ahead[0], later=total - ahead[0])
    return Stakes(learned=total, now=weight * total, later=(1.0 - weight) * ahead[0])


def parts_of(weights: FloatArray, parts: int = PARTS) -> IntArray:
    """(m,) how many of so many equal parts each of the weights gets, by largest remainders, in lowest terms.

    >>> parts_of(np.array([0.5, 0.26, 0.24]), 100).tolist()
    [25, 13, 12]
    """
    exact = parts * weights
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: parts - counts.sum()]] += 1
    return np.asarray(counts // math.gcd(*counts.tolist()))


def thinned(sets: ContextSets) -> ContextSets:
    """Fewer of the sets where they have so many arms that planning on all would take too much memory."""
    arms, dim = sets.contexts.shape[1:]
    step = -(-len(sets) // max(16, NUMBERS // (arms * max(dim, 1 + len(SPREADS) * DRAWS))))
    return ContextSets(sets.contexts[::step], sets.alive[::step])


@dataclass(frozen=True, kw_only=True)
class RHO(StaleLearner):
    """Plays posterior draws with the probabilities that look best for the rest of the run; updated by batch.

    Residual-horizon optimisation (Che and Namkoong, arXiv:2303.11582; with contexts AExGym, arXiv:2408.04570) plans at
    each update one way of playing the batches to come, by gradient ascent on the reward that the belief expects of it,
    and plans anew after the next batch. It is told the noise σ and the prior N(0, norm²·I).

    The papers optimise a table of probabilities, one row for each context that is about to be decided. A frozen policy
    must decide about contexts that nobody has seen, so here the probability is divided among 127 parameters, the
    estimate and posterior draws at half, once and twice the spread, each of which plays its best arm in any set.
    Propensities are exact, and what a policy teaches is linear in its weights.

    With a ``weight`` w the objective is AExGym's: w·(batches to come)·(reward of a decision) + (1 - w)·(reward of a
    decision by the best arm on the final estimate), for the same play in all batches to come. By default it is the
    regret of the run: the next batch pays and teaches, and all decisions after it take the best arm on what is known
    then. The first batch is uniform, and by default the last is greedy.

    >>> RHO(dim=5, arms=10, horizon=10_000, updates=3).clock.ends
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
