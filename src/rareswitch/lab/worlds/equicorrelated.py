"""Many features, few arms that are much alike, and few features that matter."""

import math
from dataclasses import dataclass, field

import numpy as np

from rareswitch.lab.worlds.linear import direction
from rareswitch.lab.worlds.noise import GaussianNoise, Noise, NoisyRewards
from rareswitch.lab.worlds.world import Rounds, into_ball
from rareswitch.rng import normals
from rareswitch.validation import FloatArray, set_size, whole


@dataclass(frozen=True, kw_only=True)
class EquicorrelatedWorld(NoisyRewards):
    """Arms x = (0.5·z + 0.85·c)/√d, where all arms of a set share c; z and c are standard normal.

    θ is a random direction of the first ``nonzero`` coordinates. Arms longer than 1 are shortened to that before
    anything is paid.

    >>> rounds = EquicorrelatedWorld().draw(500, seed=1)
    >>> round(float(np.corrcoef(rounds.contexts[:, 0, 0], rounds.contexts[:, 1, 0])[0, 1]), 1)  # 0.85²/(0.5² + 0.85²)
    0.7
    """

    arms: int = 4
    dim: int = 40
    nonzero: int = 6
    noise: Noise = field(default_factory=GaussianNoise)

    def __post_init__(self) -> None:
        set_size(self.dim, self.arms)
        whole("nonzero", self.nonzero, high=self.dim)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,), of norm 1."""
        return np.pad(direction(seed, self.nonzero), (0, self.dim - self.nonzero))

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        z = normals(seed, "items", first, count, self.arms * self.dim).reshape(count, self.arms, self.dim)
        common = normals(seed, "common", first, count, self.dim)
        x = into_ball((0.5 * z + 0.85 * common[:, None, :]) / math.sqrt(self.dim))
        return Rounds(contexts=x, means=x @ self.theta(seed))
