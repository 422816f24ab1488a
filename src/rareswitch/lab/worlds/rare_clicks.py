"""Clicks that are rare, and not linear in the features."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rareswitch.lab.worlds.noise import ClickRewards
from rareswitch.lab.worlds.world import Rounds, into_ball
from rareswitch.rng import normals
from rareswitch.validation import FloatArray, set_size, whole


@dataclass(frozen=True, kw_only=True)
class RareClicksWorld(ClickRewards):
    """Rewards are 1 with probability 1/(1 + exp(3.5 − 1.2·xᵀθ)) and otherwise 0.

    x = z/√p with z standard normal, shortened to length 1 where it is longer; θ ~ N(0, I), and learners see (x, 1)/√2.
    The rates of the middle half of all arms are about 1 to 8 %.

    >>> world = RareClicksWorld()
    >>> world.dim, bool(0.01 < world.draw(1000, seed=1).means.mean() < 0.08)
    (9, True)
    """

    arms: int = 15
    #: p, the constant one not included.
    features: int = 8
    #: σ of the rewards: about the root of the mean of q(1 − q).
    noise_scale: ClassVar[float] = 0.2

    def __post_init__(self) -> None:
        set_size(whole("features", self.features) + 1, self.arms)

    @property
    def dim(self) -> int:
        """Number of features of an arm, the constant one included."""
        return self.features + 1

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameters (p,) of the log-odds."""
        return np.asarray(normals(seed, "theta", 0, 1, self.features)[0])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        z = normals(seed, "items", first, count, self.arms * self.features).reshape(count, self.arms, self.features)
        x = into_ball(z / math.sqrt(self.features))
        contexts = np.pad(x, ((0, 0), (0, 0), (0, 1)), constant_values=1.0) / math.sqrt(2.0)
        return Rounds(contexts=contexts, means=1.0 / (1.0 + np.exp(3.5 - 1.2 * (x @ self.theta(seed)))))
