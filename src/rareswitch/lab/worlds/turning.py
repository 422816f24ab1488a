"""A world whose θ changes slowly."""

import math
from dataclasses import dataclass, field

import numpy as np

from rareswitch.lab.worlds.noise import GaussianNoise, Noise, NoisyRewards
from rareswitch.lab.worlds.world import Rounds, within
from rareswitch.rng import normals
from rareswitch.validation import FloatArray, number, set_size, whole


@dataclass(frozen=True, kw_only=True)
class TurningWorld(NoisyRewards):
    """Arms are random unit vectors; the unit vector θ turns by ``angle`` in the course of the horizon, evenly.

    Old data mislead more and more, while contexts show nothing of it. After a quarter turn, the default, what was
    learned in the first round says nothing about the last. Regret is counted against the best arm of each round.

    >>> theta = TurningWorld(rounds=1001, dim=5, arms=3).thetas(1001, seed=1)
    >>> (theta[[0, 500, 1000]] @ theta[0]).round(3).tolist()
    [1.0, 0.707, 0.0]
    """

    rounds: int
    dim: int
    arms: int
    #: Radians.
    angle: float = math.pi / 2
    noise: Noise = field(default_factory=GaussianNoise)

    def __post_init__(self) -> None:
        whole("rounds", self.rounds)
        set_size(self.dim, self.arms, low=2)
        number("angle", self.angle, low=0.0)

    def thetas(self, count: int, *, seed: int, first: int = 0) -> FloatArray:
        """The hidden parameter (count, d) of each of the rounds ``first`` and following."""
        plane, _ = np.linalg.qr(normals(seed, "theta", 0, 2, self.dim).T)
        turned = np.arange(first, first + count) / max(1, self.rounds - 1) * self.angle
        return np.asarray(np.cos(turned)[:, None] * plane[:, 0] + np.sin(turned)[:, None] * plane[:, 1])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        within("the turning world", self.rounds, first, count)
        z = normals(seed, "items", first, count, self.arms * self.dim).reshape(count, self.arms, self.dim)
        x = z / np.linalg.norm(z, axis=2, keepdims=True)
        return Rounds(contexts=x, means=np.vecdot(x, self.thetas(count, seed=seed, first=first)[:, None, :]))
