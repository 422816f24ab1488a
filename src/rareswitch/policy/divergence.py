"""Minimum empirical divergence: arms in proportion to how well the data agree with their being best."""

from dataclasses import dataclass, field

import numpy as np

from rareswitch.design import GOptimal
from rareswitch.errors import ParameterError
from rareswitch.policy.elimination import Elimination
from rareswitch.policy.kernels import divergences, weighted
from rareswitch.policy.sampler import FittedSampler
from rareswitch.validation import FloatArray, Sets, number

#: Arms that agree with the data less than this are left out of the design: they are hardly ever played.
LEAST_AGREEMENT = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class EmpiricalDivergence(FittedSampler, Elimination):
    """Arm a with probability ∝ q_a·f_a, f_a = exp(-gap_a²/‖root·(â - a)‖²) (Balagopalan and Jun 2025, Algorithm 1).

    â is the best-looking arm and gap_a = (â - a)ᵀθ̂. The weights q are ``greedy`` for â, shared by arms that tie (to a
    relative 1e-9); half of the rest for the G-optimal design of the arms √f_a·a; the other half for all arms alike.

    >>> sampler = EmpiricalDivergence(estimate=[1.0], root=[[1.0]], greedy=0.5, design=GOptimal(tol=1.0))
    >>> sampler.probabilities([[1.0], [0.0]]).round(3).tolist()
    [0.891, 0.109]
    """

    greedy: float
    design: GOptimal = field(default_factory=lambda: GOptimal(tol=1.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.design, GOptimal):
            raise ParameterError(f"design must be a GOptimal; got {self.design!r:.60}.")
        vars(self).update(greedy=number("greedy", self.greedy, low=0.0, high=1.0))

    def fill(self, sets: Sets, probabilities: FloatArray) -> None:
        agreement = np.zeros(probabilities.shape)
        divergences(sets.contexts, sets.alive, self.estimate, self.root, agreement, probabilities)
        scaled = sets.contexts * np.sqrt(agreement)[:, :, None]
        designed = self.design.probabilities(Sets(scaled, agreement >= LEAST_AGREEMENT, False))
        weighted(agreement, designed, sets.alive, self.greedy, probabilities)
