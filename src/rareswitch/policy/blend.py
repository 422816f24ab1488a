"""Two samplers in one: mostly the one, and now and then the other."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.design import Sampler
from rareswitch.errors import ParameterError
from rareswitch.policy.kernels import blend
from rareswitch.validation import FloatArray, context_sets, number


@dataclass(frozen=True, eq=False, kw_only=True)
class Blend:
    """``explorer`` with probability ``share``, else ``main``: a floor under the propensities of all that it may play.

    >>> from rareswitch.design import Uniform
    >>> from rareswitch.policy import PosteriorDraws
    >>> policy = Blend(main=PosteriorDraws(draws=[[1.0, 0.0]]), explorer=Uniform(), share=0.1)
    >>> policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).round(6).tolist()
    [0.95, 0.05]
    """

    main: Sampler
    explorer: Sampler
    share: float

    def __post_init__(self) -> None:
        for name in ("main", "explorer"):
            if not callable(getattr(getattr(self, name), "probabilities", None)):
                raise ParameterError(f"{name} must be a sampler with a method probabilities.")
        vars(self).update(share=number("share", self.share, low=0.0, high=1.0))

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = context_sets(contexts, alive)
        many = sets._replace(single=False) if sets.single else sets
        mixed = self.main.probabilities(many)
        if self.share > 0.0:
            main, mixed = mixed, np.empty(sets.alive.shape)
            blend(main, self.explorer.probabilities(many), self.share, mixed)
        return mixed[0] if sets.single else mixed
