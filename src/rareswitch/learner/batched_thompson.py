"""Batched Thompson sampling with its own batch rule (Karbasi, Mirrokni and Shadravan 2021)."""

from dataclasses import dataclass
from typing import ClassVar

from rareswitch.learner.growing import GrowingLearner
from rareswitch.learner.settings import count, setting
from rareswitch.learner.thompson import MOST_DRAWS, ThompsonSampling


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
