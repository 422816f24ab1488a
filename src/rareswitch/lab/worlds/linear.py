"""Stochastic linear worlds: contexts from a distribution, rewards linear in the chosen vector."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rareswitch.distributions import Sourced
from rareswitch.lab.worlds.noise import GaussianNoise, Noise, NoisyRewards
from rareswitch.lab.worlds.world import Rounds
from rareswitch.rng import normals, uniforms
from rareswitch.validation import FloatArray, number


@dataclass(frozen=True, kw_only=True)
class LinearWorld(Sourced, NoisyRewards):
    """Rewards xᵀθ + noise; θ is a random direction of length ``norm`` that the seed tells.

    Examples
    --------
    >>> from rareswitch.distributions import Gaussian
    >>> world = LinearWorld(source=Gaussian(dim=3, arms=4))
    >>> rounds = world.draw(5, seed=1)
    >>> rounds.contexts.shape, rounds.means.shape
    ((5, 4, 3), (5, 4))
    """

    noise: Noise = field(default_factory=GaussianNoise)
    norm: float = 1.0

    def __post_init__(self) -> None:
        number("norm", self.norm, low=0.0)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,)."""
        return self.norm * direction(seed, self.dim)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        sets = self.source.draw(count, seed=seed, first=first)
        return Rounds(contexts=sets.contexts, means=sets.contexts @ self.theta(seed), available=sets.available)


@dataclass(frozen=True, kw_only=True)
class ClickWorld(Sourced):
    """Rewards are 1 with probability (1 + xᵀθ)/2 and otherwise 0: linear in (1, x)/√2, which is what learners see.

    >>> from rareswitch.distributions import Gaussian
    >>> world = ClickWorld(source=Gaussian(dim=3, arms=4))
    >>> world.dim, sorted(set(world.rewards(world.draw(50, seed=1).means[:, 0], seed=1).tolist()))
    (4, [0.0, 1.0])
    """

    #: σ of the rewards: that of any variable in [0, 1].
    noise_scale: ClassVar[float] = 0.5

    @property
    def dim(self) -> int:
        """Number of features of an arm, the constant one included."""
        return self.source.dim + 1

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,), of norm 1."""
        return np.append(1.0, direction(seed, self.source.dim)) / math.sqrt(2.0)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        sets = self.source.draw(count, seed=seed, first=first)
        contexts = np.pad(sets.contexts, ((0, 0), (0, 0), (1, 0)), constant_values=1.0) / math.sqrt(2.0)
        return Rounds(contexts=contexts, means=contexts @ self.theta(seed), available=sets.available)

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return (uniforms(seed, "noise", first, len(means))[:, 0] < means).astype(np.float64)


def direction(seed: int, dim: int) -> FloatArray:
    """A random unit vector (d,) that the seed tells."""
    z = normals(seed, "theta", 0, 1, dim)[0]
    return np.asarray(z / np.linalg.norm(z))
