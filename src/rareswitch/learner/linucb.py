"""LinUCB (Li et al. 2010, Chu et al. 2011) at every step or on any grid, and OFUL (Abbasi-Yadkori et al. 2011)."""

from dataclasses import dataclass
from typing import ClassVar

from rareswitch.learner.grids import StaticGrid, geometric_grid
from rareswitch.learner.interval_learner import GridLearner, GrowingLearner, IntervalLearner
from rareswitch.learner.learner import Parts
from rareswitch.learner.rule import NewPolicy, OneModelRule
from rareswitch.linalg import log_growth
from rareswitch.policy import Optimistic, Policy
from rareswitch.stats import Stats

#: Batches of a stale learner.
USUAL_UPDATES = 8


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
class StaleLearner(GridLearner):
    """A learner of practice, which was made to be updated at every step and is updated by batch."""

    adaptivity: ClassVar[str] = "updates (8)"
    regret: ClassVar[str] = "none"

    def default_grid(self) -> StaticGrid:
        return geometric_grid(
            self.horizon, min(self.horizon, USUAL_UPDATES) if self.policies is None else self.policies
        )


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
