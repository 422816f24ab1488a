"""What the samplers of this room share."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rareswitch.validation import FloatArray, Sets, sets_of


class FittedSampler(ABC):
    """A sampler with parameters of so many features, whose probabilities a kernel fills in."""

    #: The field whose last axis are the features.
    fitted: ClassVar[str] = "estimate"

    @cached_property
    def dim(self) -> int:
        """Number of features."""
        return int(getattr(self, self.fitted).shape[-1])

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = sets_of(self.dim, contexts, alive)
        probabilities = np.zeros(sets.alive.shape)
        self.fill(sets, probabilities)
        return probabilities[0] if sets.single else probabilities

    @abstractmethod
    def fill(self, sets: Sets, probabilities: FloatArray) -> Any:
        """Put the probabilities (n, K), which are zero before, of checked sets into place."""
