"""The set of actions at which optimism fails."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rareswitch.lab.worlds.noise import GaussianNoise, Noise, NoisyRewards
from rareswitch.lab.worlds.world import Rounds
from rareswitch.rng import uniforms
from rareswitch.validation import FloatArray, number, whole


@dataclass(frozen=True, kw_only=True)
class EndOfOptimismWorld(NoisyRewards):
    """Three fixed arms in the plane, of which the worst teaches most (Lattimore & Szepesvári 2017).

    The arms are e_1, e_2 and (1 - gap, 2·gap), θ is e_1, and all are turned by an angle that the seed tells. The
    second tells fastest whether the third beats the first, and optimism soon gives it up.

    >>> world = EndOfOptimismWorld(gap=0.1)
    >>> np.abs(world.draw(1, seed=1).means.round(9)).tolist()
    [[1.0, 0.0, 0.9]]
    """

    #: How much worse the third arm is than the first; at most 0.4, where its norm is 1.
    gap: float = 0.05
    noise: Noise = field(default_factory=GaussianNoise)
    dim: ClassVar[int] = 2
    arms: ClassVar[int] = 3

    def __post_init__(self) -> None:
        number("gap", self.gap, low=0.0, high=0.4, open_low=True)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (2,), of norm 1."""
        angle = 2.0 * math.pi * float(uniforms(seed, "theta", 0, 1)[0, 0])
        return np.array([math.cos(angle), math.sin(angle)])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        theta = self.theta(seed)
        x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0 - self.gap, 2.0 * self.gap]])
        turned = np.outer(x[:, 0], theta) + np.outer(x[:, 1], [-theta[1], theta[0]])
        contexts = np.repeat(turned[None], whole("count", count, low=0), axis=0)
        return Rounds(contexts=contexts, means=contexts @ theta)
