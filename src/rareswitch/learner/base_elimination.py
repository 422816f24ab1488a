"""BaSE: batched successive elimination of plain arms (Gao et al. 2019)."""

import math
from typing import Any, ClassVar

import numpy as np

from rareswitch.confidence import ConfidenceMode
from rareswitch.design import Sampler, Uniform
from rareswitch.errors import ParameterError, UnsuitableError
from rareswitch.learner.batched import BatchedLearner
from rareswitch.learner.feedback import Summary
from rareswitch.learner.grids import Grid, paper_grid
from rareswitch.policy import Elimination, Policy
from rareswitch.stats import Stats
from rareswitch.validation import Sets, number


class BaSE(BatchedLearner):
    """Plays the surviving arms evenly and drops those that pooled means prove worse; regret √(KT)·log factors.

    For plain arms only: arm k's context is the k-th unit vector in every set. Its O(log log T) batches end as those of
    :func:`~rareswitch.learner.paper_grid`. Arms are drawn uniformly where the authors take turns.

    Parameters
    ----------
    confidence
        ``"paper"``: an arm falls whose mean is √(12·ln(KT)/n)·noise below the best, n the fewest plays of a survivor.
        ``"tight"``: means ± noise·√(2 ln(2KT/δ)/plays), which hold together, for every number of plays, with
        probability 1 - δ. A number: that multiple of 1/√plays.

    Examples
    --------
    >>> BaSE(arms=5, dim=5, horizon=10_000).grid.batches
    4
    """

    name: ClassVar[str] = "base"

    def __init__(
        self,
        *,
        dim: int,
        arms: int,
        confidence: ConfidenceMode | float = "tight",
        delta: float = 0.05,
        noise: float = 1.0,
        **settings: Any,
    ) -> None:
        if dim != arms:
            raise UnsuitableError(
                f"base is for plain arms, each its own unit vector: dim must equal arms; got {dim} and {arms}."
            )
        if isinstance(confidence, str) and confidence not in ("paper", "tight"):
            raise ParameterError(f"confidence must be 'paper', 'tight' or a number; got {confidence!r}.")
        self.mode, self.delta, self.noise = confidence, delta, number("noise", noise, low=0.0)
        super().__init__(dim=dim, arms=arms, confidence=confidence, delta=delta, noise=noise, **settings)
        self.total = Stats.zero(self.dim)
        """Of all decisions before ``start``."""

    def _own_settings(self) -> str:
        return f" {self.mode!r} delta={self.delta!r} noise={self.noise!r}"

    def _default_grid(self, batches: int | None) -> Grid:
        return paper_grid(self.horizon, batches)

    def _first_sampler(self) -> Sampler:
        return Uniform()

    def check(self, sets: Sets) -> None:
        super().check(sets)
        if not (sets.contexts == np.eye(self.dim)).all():
            raise UnsuitableError(
                "base is for plain arms: the context of arm k must be the k-th unit vector in every set. For other "
                "contexts use fixed-set-elimination or batch-linucb-kw."
            )

    def _learn(self, summary: Summary) -> Policy:
        self.total = self.total + summary.stats[0]
        plays = np.maximum(np.diag(self.total.gram), 1e-12)  # an arm never played may be anything
        if self.mode == "paper":
            alive = self.policy.survivors(np.eye(self.dim))
            plays = np.full(self.dim, plays[alive].min())
            multiplier = 0.5 * self.noise * math.sqrt(12.0 * math.log(self.dim * self.horizon))
        elif self.mode == "tight":
            multiplier = self.noise * math.sqrt(2.0 * math.log(2 * self.dim * self.horizon / self.delta))
        else:
            multiplier = float(self.mode)
        means = self.total.moment / np.maximum(np.diag(self.total.gram), 1.0)
        elimination = Elimination.of(means, np.diag(plays), multiplier)
        return Policy(dim=self.dim, sampler=self.policy.sampler, eliminations=(*self.policy.eliminations, elimination))
