"""Arms without features."""

from dataclasses import dataclass, field

import numpy as np

from rareswitch.lab.worlds.noise import GaussianNoise, Noise, NoisyRewards
from rareswitch.lab.worlds.world import Rounds
from rareswitch.rng import uniforms
from rareswitch.validation import FloatArray, set_size, whole


@dataclass(frozen=True, kw_only=True)
class PlainWorld(NoisyRewards):
    """Arms that are basis vectors, with expected rewards that the seed draws uniformly from [0, 1].

    >>> rounds = PlainWorld(arms=2).draw(1, seed=1)
    >>> rounds.contexts.tolist(), rounds.means.round(2).tolist()
    ([[[1.0, 0.0], [0.0, 1.0]]], [[0.22, 0.33]])
    """

    arms: int = 20
    noise: Noise = field(default_factory=GaussianNoise)

    def __post_init__(self) -> None:
        set_size(self.arms, self.arms)

    @property
    def dim(self) -> int:
        """As many as there are arms."""
        return self.arms

    def theta(self, seed: int) -> FloatArray:
        """The expected rewards (K,)."""
        return np.asarray(uniforms(seed, "theta", 0, 1, self.arms)[0])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        contexts = np.repeat(np.eye(self.arms)[None], whole("count", count, low=0), axis=0)
        return Rounds(contexts=contexts, means=contexts @ self.theta(seed))
