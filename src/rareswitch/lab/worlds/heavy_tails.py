"""Linear rewards with noise that is now and then very large."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rareswitch.lab.worlds.linear import direction
from rareswitch.lab.worlds.world import Rounds
from rareswitch.rng import normals
from rareswitch.validation import FloatArray, number, set_size


@dataclass(frozen=True, kw_only=True)
class HeavyTailsWorld:
    """Unit vectors, unit θ, and noise like a Student t with three degrees of freedom, times ``width``.

    >>> world = HeavyTailsWorld()
    >>> noise = world.rewards(np.zeros(10_000), seed=1)
    >>> bool(abs(np.median(noise)) < 0.02), bool(np.abs(noise).max() > 5.0)
    (True, True)
    """

    arms: int = 10
    dim: int = 8
    width: float = 0.35
    #: σ as learners are told it: at the width of 0.35 about the standard deviation, which is √3 times the width.
    noise_scale: ClassVar[float] = 0.6

    def __post_init__(self) -> None:
        set_size(self.dim, self.arms)
        number("width", self.width, low=0.0)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,), of norm 1."""
        return direction(seed, self.dim)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        z = normals(seed, "items", first, count, self.arms * self.dim).reshape(count, self.arms, self.dim)
        x = z / np.linalg.norm(z, axis=2, keepdims=True)
        return Rounds(contexts=x, means=x @ self.theta(seed))

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        z = normals(seed, "noise", first, len(means), 4)
        return np.asarray(means + self.width * z[:, 0] / np.sqrt(np.square(z[:, 1:]).mean(axis=1)))
