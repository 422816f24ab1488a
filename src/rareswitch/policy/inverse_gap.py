"""Inverse-gap weighting: the worse an arm looks, the more rarely it is played."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.policy.kernels import inverse_gaps
from rareswitch.validation import FloatArray, number, sets_of, vector


@dataclass(frozen=True, eq=False, kw_only=True)
class InverseGap:
    """Arm i with probability 1/(K + γ·gap_i), the best-looking one with the rest (Foster and Rakhlin 2020).

    K counts the living arms of the set and gap_i = max_j x_jᵀθ̂ - x_iᵀθ̂.

    >>> InverseGap(estimate=[1.0], gamma=6.0).probabilities([[1.0], [0.0], [-1.0 / 3]]).round(3).tolist()
    [0.798, 0.111, 0.091]
    """

    estimate: FloatArray
    """(d,) θ̂"""
    gamma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimate", vector("estimate", self.estimate))
        object.__setattr__(self, "gamma", number("gamma", self.gamma, low=0.0))

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = sets_of(len(self.estimate), contexts, alive)
        probabilities = np.zeros(sets.alive.shape)
        inverse_gaps(sets.contexts, sets.alive, self.estimate, self.gamma, probabilities)
        return probabilities[0] if sets.single else probabilities
