"""One model of all decisions: LinUCB and Thompson sampling, at every step, on a grid, or when a determinant grows.

LinUCB: Li et al. 2010, Chu et al. 2011; OFUL: Abbasi-Yadkori et al. 2011; Thompson sampling: Agrawal and Goyal 2013.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from rareswitch.core import LARGEST_SCALE, Stats, inverse_root, log_growth, normals
from rareswitch.learner.confidence import GrowingLearner, IntervalLearner, OneModelRule, StaleLearner
from rareswitch.learner.learner import Parts
from rareswitch.learner.rule import NewPolicy
from rareswitch.learner.settings import count, real, setting
from rareswitch.policy import Optimistic, Policy, PosteriorDraws

__all__ = ["OFUL", "BatchedThompsonSampling", "LinUCB", "LinUCBGrid", "Optimism", "PosteriorSampling"]
__all__ += ["StaleThompsonSampling", "ThompsonSampling"]

#: The most parameters that a policy holds; a file of policies has room for no more of many features.
MOST_DRAWS = 10_000


class Optimism(OneModelRule):
    """The arm whose confidence interval, of all decisions so far, reaches highest."""

    def from_sums(self, sums: tuple[Stats, ...], start: int) -> NewPolicy:
        (total,) = sums
        precision, ridge = self.statistics.precision(total.gram), self.level.ridge
        alpha = self.level.multiplier(log_growth(precision, ridge))
        sampler = Optimistic.of(total.estimate(ridge=ridge), precision, alpha)
        return NewPolicy(Policy(dim=total.dim, sampler=sampler))


@dataclass(frozen=True, kw_only=True)
class LinUCB(IntervalLearner):
    """Plays the arm whose confidence interval reaches highest; regret d√T·log T when updated at every step.

    >>> LinUCB(dim=5, arms=10, horizon=1000, noise=0.5).begin().stop     # the first policy makes one decision
    1
    """

    name: ClassVar[str] = "linucb"
    text: ClassVar[str] = "the arm whose interval reaches highest, updated every step"
    adaptivity: ClassVar[str] = "T"
    regret: ClassVar[str] = "d√T, adversarial"

    def compose(self) -> Parts:
        return self.by_sums(Optimism)


@dataclass(frozen=True, kw_only=True)
class LinUCBGrid(StaleLearner, LinUCB):
    """LinUCB of practice, updated by batch; it has no bound: within a batch its optimism repeats itself.

    >>> LinUCBGrid(dim=5, arms=10, horizon=10_000, policies=3).clock.ends
    (100, 1000, 10000)
    """

    name: ClassVar[str] = "linucb-grid"
    text: ClassVar[str] = "LinUCB on a grid, geometric by default"


@dataclass(frozen=True, kw_only=True)
class OFUL(GrowingLearner, LinUCB):
    """LinUCB whose policy changes only when the determinant has grown by C; regret √C·d√T·log T.

    It deploys O(d log T/log C) policies.

    >>> OFUL(dim=5, arms=10, horizon=10_000, growth=4.0, noise=0.5).switch_bound
    33
    """

    name: ClassVar[str] = "oful"
    text: ClassVar[str] = "LinUCB, changed when the determinant grows by C"
    adaptivity: ClassVar[str] = "O(d log T / log C)"
    regret: ClassVar[str] = "√C·d√T, adversarial"


@dataclass(frozen=True, kw_only=True)
class PosteriorSampling(OneModelRule):
    """The best arm for a parameter drawn from N(θ̂, (scale·noise)²·Λ⁻¹); the draws are frozen in the policy."""

    scale: float
    draws: int
    seed: int

    def from_sums(self, sums: tuple[Stats, ...], start: int) -> NewPolicy:
        (total,) = sums
        z = normals(self.seed, "posterior", start, 1, self.draws * total.dim).reshape(self.draws, total.dim)
        spread = self.scale * self.level.noise * z @ inverse_root(self.statistics.precision(total.gram))
        sampler = PosteriorDraws(draws=total.estimate(ridge=self.level.ridge) + spread)
        return NewPolicy(Policy(dim=total.dim, sampler=sampler))


@dataclass(frozen=True, kw_only=True)
class ThompsonSampling(IntervalLearner):
    """Plays the best arm for a parameter drawn from the posterior, updated at every step.

    Its regret is d√T·log T on average over the prior; for every parameter it is d^1.5·√T·log T, with a scale of the
    order √(d log T) that nobody uses (Agrawal and Goyal 2013).

    >>> ThompsonSampling(dim=3, arms=4, horizon=1000).begin().policy.sampler.draws.shape
    (1, 3)
    """

    scale: float = setting(
        1.0,
        "multiple of the posterior's spread; 1 is the Bayesian one for the prior N(0, norm²·I)",
        real(0.0, LARGEST_SCALE),
    )
    draws: int = setting(1, "parameters that a policy holds", count(high=MOST_DRAWS))
    seed: int = setting(0, "keys the draws", count(low=0))

    name: ClassVar[str] = "thompson"
    text: ClassVar[str] = "the best arm of a posterior draw, updated every step"
    adaptivity: ClassVar[str] = "T"
    regret: ClassVar[str] = "d√T on average over the prior"

    def compose(self) -> Parts:
        return self.by_sums(partial(PosteriorSampling, scale=self.scale, draws=self.draws, seed=self.seed))


@dataclass(frozen=True, kw_only=True)
class StaleThompsonSampling(StaleLearner, ThompsonSampling):
    """Thompson sampling of practice, updated by batch, with ``draws`` frozen draws. It has no bound.

    >>> StaleThompsonSampling(dim=3, arms=4, horizon=1000).begin().policy.sampler.draws.shape
    (128, 3)
    """

    draws: int = setting(128, "parameters that a policy holds", count(high=MOST_DRAWS))

    name: ClassVar[str] = "thompson-grid"
    text: ClassVar[str] = "Thompson sampling on a grid, by frozen posterior draws"


@dataclass(frozen=True, kw_only=True)
class BatchedThompsonSampling(GrowingLearner, ThompsonSampling):
    """Thompson sampling from a frozen posterior, until the determinant of what was seen has doubled.

    For plain arms the authors, and Kalkanli and Özgür (2021), end a batch when the plays of an arm have doubled; the
    determinant, a product over the arms there, has doubled by then, and means the same for contexts. So the regret is
    that of Thompson sampling up to a constant, with O(d log T) policies.

    >>> BatchedThompsonSampling(dim=5, arms=10, horizon=10_000, noise=0.5).switch_bound
    65
    """

    draws: int = setting(128, "parameters that a policy holds", count(high=MOST_DRAWS))

    name: ClassVar[str] = "batched-thompson"
    text: ClassVar[str] = "Thompson sampling, changed when the determinant doubles (Karbasi et al. 2021)"
    adaptivity: ClassVar[str] = "O(d log T)"
    regret: ClassVar[str] = "d√T on average over the prior"
