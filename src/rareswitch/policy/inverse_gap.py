"""Inverse-gap weighting: the worse an arm looks, the more rarely it is played."""

from dataclasses import dataclass

from rareswitch.policy.kernels import inverse_gaps
from rareswitch.policy.sampler import FittedSampler
from rareswitch.validation import LARGEST_PARAMETER, FloatArray, Sets, number, parameters, vector


@dataclass(frozen=True, eq=False, kw_only=True)
class InverseGap(FittedSampler):
    """Arm i with probability 1/(K + γ·gap_i), the best-looking one with the rest (Foster and Rakhlin 2020).

    K counts the living arms of the set and gap_i = max_j x_jᵀθ̂ - x_iᵀθ̂.

    >>> InverseGap(estimate=[1.0], gamma=6.0).probabilities([[1.0], [0.0], [-1.0 / 3]]).round(3).tolist()
    [0.798, 0.111, 0.091]
    """

    #: (d,) θ̂
    estimate: FloatArray
    gamma: float

    def __post_init__(self) -> None:
        estimate = vector("estimate", parameters("estimate", self.estimate))
        vars(self).update(estimate=estimate, gamma=number("gamma", self.gamma, low=0.0, high=LARGEST_PARAMETER))

    def fill(self, sets: Sets, probabilities: FloatArray) -> None:
        inverse_gaps(sets.contexts, sets.alive, self.estimate, self.gamma, probabilities)
