"""Frozen posterior draws: a few possible parameters, each of which has its own best arm."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.errors import ShapeError
from rareswitch.policy.kernels import best_of_draws
from rareswitch.validation import FloatArray, finite_array, frozen, sets_of


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorDraws:
    """The best living arm of one of m parameters, drawn anew for each decision.

    The probability of an arm is the share of parameters whose best arm it is: exact, without Monte Carlo. Of arms that
    tie, to a relative 1e-9, the first is best. A single parameter is greedy play.

    >>> draws = PosteriorDraws(draws=[[1.0, 0.0], [0.8, 0.1], [0.6, 0.9], [0.9, 0.2]])
    >>> draws.probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [0.75, 0.25]
    """

    draws: FloatArray
    """(m, d)"""

    def __post_init__(self) -> None:
        draws = finite_array("draws", self.draws)
        if draws.ndim != 2 or not draws.size:
            raise ShapeError(f"draws must be (m, d), at least one parameter; got {draws.shape}.")
        object.__setattr__(self, "draws", frozen(draws))

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.draws.shape[1])

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = sets_of(self.dim, contexts, alive)
        probabilities = np.zeros(sets.alive.shape)
        best_of_draws(sets.contexts, sets.alive, self.draws, probabilities)
        return probabilities[0] if sets.single else probabilities
