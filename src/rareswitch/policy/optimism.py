"""The optimistic sampler: the arm whose interval reaches highest."""

from dataclasses import dataclass

from rareswitch.policy.elimination import Elimination
from rareswitch.policy.kernels import highest_arms
from rareswitch.policy.sampler import FittedSampler
from rareswitch.validation import FloatArray, Sets


@dataclass(frozen=True, eq=False, kw_only=True)
class Optimistic(FittedSampler, Elimination):
    """The living arm with the largest xᵀθ̂ + ‖root·x‖, the first of them on a tie (to a relative 1e-9).

    >>> Optimistic(estimate=[0.0, 0.5], root=[[1.0, 0.0], [0.0, 0.1]]).probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [1.0, 0.0]

    It has the intervals of an elimination, put to another use.
    """

    def fill(self, sets: Sets, probabilities: FloatArray) -> None:
        highest_arms(sets.contexts, sets.alive, self.estimate, self.root, probabilities)
