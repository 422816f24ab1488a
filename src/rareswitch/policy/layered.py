"""The layered sampler of the SupLin family: ever sharper models, each asked only where those before it are sure."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareswitch.errors import ParameterError, ShapeError
from rareswitch.policy.kernels import layered_arms
from rareswitch.policy.sampler import FittedSampler
from rareswitch.validation import FloatArray, IntArray, Sets, number, parameters, read_only, sets_of, vector


@dataclass(frozen=True, eq=False, kw_only=True)
class Layered(FittedSampler):
    """Passes the living arms through the layers κ = 0, 1, … until one of them decides.

    In layer κ an arm has the estimate r = xᵀ·estimates[κ] and the width ω = ‖roots[κ]·x‖ + ‖tails[κ]·x‖.

    - If ``exploit`` is positive and no width exceeds it, the arm with the largest r + ω is played; no layer learns.
    - If no width exceeds thresholds[κ], the arms with v ≥ max v - 2·thresholds[κ] go on to the next layer, where
      v = r, or r + ω if ``optimistic``; in the last layer the one with the largest v is played.
    - Otherwise the widest arm is played, but in the last layer, unless ``optimistic``, the one with the largest r.

    >>> import numpy as np
    >>> policy = Layered(estimates=np.zeros((2, 1)), roots=[[[0.1]], [[1.0]]], thresholds=[0.5, 0.25])
    >>> policy.probabilities([[0.3], [1.0]]).tolist(), policy.layers([[0.3], [1.0]]).tolist()
    ([1.0, 0.0], 1)
    """

    #: (S, d)
    estimates: FloatArray
    #: (S, d, d), lower triangular.
    roots: FloatArray
    #: (S,) ϖ
    thresholds: FloatArray
    #: (S, d, d), lower triangular: a second width, for estimates that leave directions out.
    tails: FloatArray | None = None
    optimistic: bool = False
    exploit: float = 0.0
    fitted: ClassVar[str] = "estimates"

    def __post_init__(self) -> None:
        thresholds = vector("thresholds", parameters("thresholds", self.thresholds))
        if (thresholds < 0.0).any():
            raise ParameterError(f"thresholds must be at least 0, or a layer keeps no arm; got {thresholds.min()}.")
        estimates = parameters("estimates", self.estimates)
        if estimates.ndim != 2 or len(estimates) != len(thresholds) or not estimates.size:
            raise ShapeError(f"estimates must be ({len(thresholds)}, d), one a threshold; got {estimates.shape}.")
        shape = (*estimates.shape, estimates.shape[1])
        for name in ("roots", "tails"):
            given = getattr(self, name)
            if given is None:
                continue
            matrices = parameters(name, given)
            if matrices.shape != shape or np.triu(matrices, 1).any():
                raise ShapeError(f"{name} must be lower triangular {shape}; got {matrices.shape}.")
            vars(self)[name] = matrices
        exploit = number("exploit", self.exploit, low=0.0)
        vars(self).update(estimates=estimates, thresholds=thresholds, optimistic=bool(self.optimistic), exploit=exploit)

    def layers(self, contexts: Any, alive: Any = None) -> IntArray:
        """(n,) the layer that decides, which is the one that learns; -1 where none does. A number for one set."""
        sets = sets_of(self.dim, contexts, alive)
        layers = self.fill(sets, np.zeros(sets.alive.shape))
        return layers[0] if sets.single else layers

    def fill(self, sets: Sets, probabilities: FloatArray) -> IntArray:
        layers = np.empty(len(probabilities), dtype=np.int64)
        tails = read_only(np.empty((0, self.dim, self.dim))) if self.tails is None else self.tails
        model = (self.estimates, self.roots, tails, self.thresholds, self.optimistic, self.exploit)
        layered_arms(sets.contexts, sets.alive, *model, probabilities, layers)
        return layers
