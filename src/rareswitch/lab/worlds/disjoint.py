"""Arms with parameters of their own over the features of a user."""

import math
from dataclasses import dataclass, field

import numpy as np

from rareswitch.lab.worlds.noise import GaussianNoise, Noise, NoisyRewards
from rareswitch.lab.worlds.world import Rounds, in_blocks, into_ball
from rareswitch.rng import normals
from rareswitch.validation import FloatArray, set_size, whole


@dataclass(frozen=True, kw_only=True)
class DisjointWorld(NoisyRewards):
    """Users with features (1, z)/√(2p), z standard normal; each arm has parameters N(0, I) of its own over them.

    The context of an arm is the user in its block of K·p coordinates, so what one arm pays says nothing about another.
    Users longer than 1 are shortened to that before anything is paid.

    >>> world = DisjointWorld(arms=3, features=2)
    >>> rounds = world.draw(4, seed=1)
    >>> world.dim, (rounds.contexts[0] != 0.0).astype(int).tolist()
    (6, [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]])
    """

    arms: int = 6
    #: p, the constant one included.
    features: int = 5
    noise: Noise = field(default_factory=GaussianNoise)

    def __post_init__(self) -> None:
        set_size(whole("arms", self.arms) * whole("features", self.features, low=2), self.arms)

    @property
    def dim(self) -> int:
        """Features times arms."""
        return self.arms * self.features

    @property
    def norm(self) -> float:
        """The root of the mean square of ‖θ‖."""
        return math.sqrt(self.dim)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameters (d,), arm after arm."""
        return np.asarray(normals(seed, "theta", 0, 1, self.dim)[0])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        z = normals(seed, "users", first, count, self.features - 1)
        users = into_ball(np.pad(z, ((0, 0), (1, 0)), constant_values=1.0) / math.sqrt(2 * self.features))
        contexts = in_blocks(users, self.arms)
        return Rounds(contexts=contexts, means=contexts @ self.theta(seed))
