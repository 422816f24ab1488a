"""Frozen posterior draws: a few possible parameters, each of which has its own best arm."""

from dataclasses import dataclass
from typing import ClassVar

from rareswitch.errors import ShapeError
from rareswitch.policy.kernels import best_of_draws
from rareswitch.policy.sampler import FittedSampler
from rareswitch.validation import FloatArray, Sets, parameters


@dataclass(frozen=True, eq=False, kw_only=True)
class PosteriorDraws(FittedSampler):
    """The best living arm of one of m parameters, drawn anew for each decision.

    The probability of an arm is the share of parameters whose best arm it is: exact, without Monte Carlo. Of arms that
    tie, to a relative 1e-9, the first is best. A single parameter is greedy play.

    >>> draws = PosteriorDraws(draws=[[1.0, 0.0], [0.8, 0.1], [0.6, 0.9], [0.9, 0.2]])
    >>> draws.probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [0.75, 0.25]
    """

    #: (m, d)
    draws: FloatArray
    fitted: ClassVar[str] = "draws"

    def __post_init__(self) -> None:
        draws = parameters("draws", self.draws)
        if draws.ndim != 2 or not draws.size:
            raise ShapeError(f"draws must be (m, d), at least one parameter; got {draws.shape}.")
        vars(self).update(draws=draws)

    def fill(self, sets: Sets, probabilities: FloatArray) -> None:
        best_of_draws(sets.contexts, sets.alive, self.draws, probabilities)
