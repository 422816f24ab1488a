"""Worlds of clicks."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rareswitch.lab.worlds.world import ClickRewards, Rounds, into_ball
from rareswitch.rng import normals, uniforms
from rareswitch.validation import LARGEST_SCALE, FloatArray, number, set_size, whole


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


@dataclass(frozen=True, kw_only=True)
class LogisticBallWorld(ClickRewards):
    """Rewards are 1 with probability 1/(1 + exp(-xᵀθ)) and otherwise 0; arms are uniform in the unit ball.

    With the defaults and 20,000 decisions it is the setting in which RS-GLinCB was published (Sawarni, Das, Barman and
    Sinha 2024, arXiv:2404.06831): θ is the direction of a vector uniform in [-1, 1]^d, of length 5.

    >>> LogisticBallWorld().draw(3, seed=1).means.shape
    (3, 20)
    """

    dim: int = 5
    arms: int = 20
    #: ‖θ‖
    norm: float = 5.0
    #: σ of the rewards: that of any variable in [0, 1].
    noise_scale: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        set_size(self.dim, self.arms)
        number("norm", self.norm, low=0.0, high=LARGEST_SCALE)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,) of the log-odds."""
        direction = 2.0 * uniforms(seed, "theta", 0, 1, self.dim)[0] - 1.0
        return np.asarray(self.norm * direction / np.linalg.norm(direction))

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        x = normals(seed, "ball", first, count, self.arms * self.dim).reshape(count, self.arms, self.dim)
        radii = uniforms(seed, "ball/radius", first, count, self.arms) ** (1.0 / self.dim)
        x *= (radii / np.linalg.norm(x, axis=2))[:, :, None]
        return Rounds(contexts=x, means=1.0 / (1.0 + np.exp(-(x @ self.theta(seed)))))
