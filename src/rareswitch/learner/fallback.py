"""The policy that earned most so far: what to fall back on when learning has made things worse."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rareswitch.policy import Blend, Policy, PosteriorDraws
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray

#: By what names a state keeps it.
MEAN, ERROR, DRAWS = "best_mean", "best_error", "best_draws"
#: Standard errors by which a batch must have earned less.
SURE = 2.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Earned:
    """What the decisions of a policy earned on average, and the parameters that it drew from."""

    mean: float
    #: Of the mean.
    error: float
    #: (m, d)
    draws: FloatArray

    @classmethod
    def of(cls, policy: Policy, batch: Stats) -> "Earned | None":
        """What came of a batch; None where its policy drew no parameters, or its rewards were not summed.

        >>> from rareswitch.design import Uniform
        >>> Earned.of(Policy(dim=1, sampler=Uniform()), Stats.of([[1.0]], [1.0])) is None
        True
        """
        sampler = policy.sampler.main if isinstance(policy.sampler, Blend) else policy.sampler
        if not isinstance(sampler, PosteriorDraws) or batch.reward_sum is None or batch.count < 2:
            return None
        plain = batch.shifted(0.0)
        assert plain.reward_sum is not None
        mean = plain.reward_sum / plain.count
        variance = max(0.0, plain.square_sum / plain.count - mean**2)
        return cls(mean=mean, error=math.sqrt(variance / plain.count), draws=sampler.draws)

    @classmethod
    def kept(cls, kept: Mapping[str, FloatArray]) -> "Earned | None":
        """The one that a state keeps."""
        if MEAN not in kept:
            return None
        return cls(mean=float(kept[MEAN]), error=float(kept[ERROR]), draws=kept[DRAWS])

    @property
    def to_keep(self) -> dict[str, FloatArray]:
        """What a state keeps of it."""
        return {MEAN: np.array(self.mean), ERROR: np.array(self.error), DRAWS: self.draws}

    def beats(self, other: "Earned") -> bool:
        """Whether it earned more than another, beyond chance.

        >>> good, bad = (Earned(mean=m, error=0.01, draws=np.zeros((1, 1))) for m in (0.9, 0.8))
        >>> good.beats(bad), bad.beats(good), good.beats(good)
        (True, False, False)
        """
        return self.mean - other.mean > SURE * math.hypot(self.error, other.error)


def half_and_half(new: FloatArray, old: FloatArray, count: int) -> FloatArray:
    """``count`` parameters, half of them spread over ``new`` (m, d) and half over ``old`` (k, d).

    >>> half_and_half(np.array([[1.0], [2.0]]), np.array([[9.0]]), 4).ravel().tolist()
    [1.0, 2.0, 9.0, 9.0]
    """
    half = np.arange(count // 2)
    return np.concatenate([part[half * len(part) // len(half)] for part in (new, old)])
