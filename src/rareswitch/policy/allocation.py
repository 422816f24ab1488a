"""A fixed share of the decisions for each arm of one set."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.errors import ShapeError
from rareswitch.validation import FloatArray, context_sets, probability_vector, vector


@dataclass(frozen=True, eq=False, kw_only=True)
class Allocation:
    """Arm k, by its place in the set, with probability ``weights[k]``, whatever its features are.

    For sets that never change. The share of an arm that is missing goes to the others in proportion; where none of them
    has one, all are alike. Arms beyond the weights have no share.

    >>> allocation = Allocation(weights=[0.5, 0.25, 0.25])
    >>> allocation.probabilities([[1.0], [2.0], [3.0]], [False, True, True]).tolist()
    [0.0, 0.5, 0.5]
    """

    #: (K,) probabilities.
    weights: FloatArray

    def __post_init__(self) -> None:
        weights = vector("weights", self.weights)
        if not len(weights):
            raise ShapeError("weights must be (K,), one for each arm of the set; got none.")
        vars(self).update(weights=probability_vector("weights", weights))

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = context_sets(contexts, alive)
        arms = sets.alive.shape[1]
        shares = np.pad(self.weights, (0, max(0, arms - len(self.weights))))[:arms]
        shared = np.where(sets.alive, shares, 0.0)
        shared = np.where(shared.any(axis=1, keepdims=True), shared, sets.alive)
        # summed from left to right, so that arms that are missing at the end change no bit
        probabilities = np.asarray(shared / np.cumsum(shared, axis=1)[:, -1:])
        return probabilities[0] if sets.single else probabilities
