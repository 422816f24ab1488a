"""LinMED: linear minimum empirical divergence (Balagopalan and Jun 2025), at every step or stale on any grid."""

from dataclasses import dataclass
from typing import ClassVar

from rareswitch.confidence import LEAST_DELTA
from rareswitch.design import GOptimal
from rareswitch.learner.interval_learner import IntervalLearner
from rareswitch.learner.learner import Parts
from rareswitch.learner.linucb import StaleLearner
from rareswitch.learner.rule import Made, OneModelRule
from rareswitch.learner.settings import design_of_sets, real, setting
from rareswitch.linalg import log_growth
from rareswitch.policy import EmpiricalDivergence, Policy
from rareswitch.stats import Stats


@dataclass(frozen=True, kw_only=True)
class Divergence(OneModelRule):
    """Arms by how well all decisions so far agree with their being best, measured by the intervals."""

    greedy: float
    design: GOptimal

    def resumed(self, sums: tuple[Stats, ...], start: int) -> Made:
        (total,) = sums
        precision, ridge = self.statistics.precision(total.gram), self.level.ridge
        beta = self.level.multiplier(log_growth(precision, ridge))  # √β of the paper
        sampler = EmpiricalDivergence.of(
            total.estimate(ridge=ridge), precision, beta, greedy=self.greedy, design=self.design
        )
        return Made(Policy(dim=total.dim, sampler=sampler))


@dataclass(frozen=True, kw_only=True)
class LinMED(IntervalLearner):
    """Plays arms in proportion to exp(-gap²/(β·‖â - a‖²)), with exact propensities; regret d√T·log T.

    ``greedy`` of 0.99, 0.9 and 0.5 are the authors' LinMED-99, -90 and -50; half of the rest goes to the design, the
    other half to all arms alike. The first policy, which knows nothing, shares all of it among the arms.

    >>> LinMED(dim=2, arms=2, horizon=100).begin().policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [0.5, 0.5]
    """

    greedy: float = setting(0.9, "weight of the best-looking arm before it is multiplied", real(0.0, 1.0))
    g_optimal: GOptimal = setting(GOptimal(tol=1.0), "the design of the arms that agree with the data", design_of_sets)
    delta: float = setting(0.01, "failure probability of the intervals", real(LEAST_DELTA, 1.0))

    name: ClassVar[str] = "linmed"
    text: ClassVar[str] = "minimum empirical divergence (Balagopalan and Jun 2025), updated every step"
    adaptivity: ClassVar[str] = "T"
    regret: ClassVar[str] = "d√T, adversarial"

    def compose(self) -> Parts:
        return self.by_sums(Divergence, greedy=self.greedy, design=self.g_optimal)


@dataclass(frozen=True, kw_only=True)
class StaleLinMED(StaleLearner, LinMED):
    """LinMED of practice, updated by batch. It has no bound.

    >>> StaleLinMED(dim=5, arms=10, horizon=10_000, updates=3).clock.ends
    (100, 1000, 10000)
    """

    delta: float = setting(0.01, "failure probability of the intervals", real(LEAST_DELTA, 1.0))

    name: ClassVar[str] = "stale-linmed"
    text: ClassVar[str] = "LinMED on a grid, geometric by default"
