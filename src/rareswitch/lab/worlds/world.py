"""What a world looks like: context sets come, an arm is chosen, a reward is paid."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from rareswitch.core import LARGEST_SCALE, BoolArray, FloatArray, normals, number, uniforms, whole
from rareswitch.errors import InputError

__all__ = ["CoinNoise", "GaussianNoise", "Noise", "Rounds", "UniformNoise", "World"]


@dataclass(frozen=True)
class Noise(ABC):
    """Independent noise of mean zero, keyed by the number of the round; its scale is σ."""

    scale: float = 0.5

    def __post_init__(self) -> None:
        number("scale", self.scale, low=0.0, high=LARGEST_SCALE)

    @abstractmethod
    def draw(self, count: int, *, seed: int, first: int = 0) -> FloatArray:
        """(count,) values for rounds ``first`` and following."""


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """Normal noise of standard deviation σ."""

    def draw(self, count: int, *, seed: int, first: int = 0) -> FloatArray:
        return self.scale * normals(seed, "noise", first, count)[:, 0]


@dataclass(frozen=True)
class UniformNoise(Noise):
    """Uniform noise on [-σ, σ]."""

    def draw(self, count: int, *, seed: int, first: int = 0) -> FloatArray:
        return self.scale * (2.0 * uniforms(seed, "noise", first, count)[:, 0] - 1.0)


@dataclass(frozen=True)
class CoinNoise(Noise):
    """σ or -σ, each with probability ½: the noise that its variance proxy describes exactly."""

    def draw(self, count: int, *, seed: int, first: int = 0) -> FloatArray:
        return np.where(uniforms(seed, "noise", first, count)[:, 0] < 0.5, -self.scale, self.scale)


NOISE = GaussianNoise()


@dataclass(frozen=True, kw_only=True)
class NoisyRewards:
    """What worlds share that add noise to expected rewards."""

    noise: Noise = NOISE

    @property
    def noise_scale(self) -> float:
        """σ of the rewards."""
        return self.noise.scale

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return means + self.noise.draw(len(means), seed=seed, first=first)


class ClickRewards:
    """What worlds share whose rewards are 1, with the expected reward as their probability, or 0."""

    #: Of the random numbers that tell which.
    stream: ClassVar[str] = "noise"
    #: σ of the rewards: that of any variable in [0, 1].
    noise_scale: ClassVar[float] = 0.5

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return (uniforms(seed, self.stream, first, len(means))[:, 0] < means).astype(np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rounds:
    """Consecutive rounds of a world."""

    #: (n, K, d), in the unit ball.
    contexts: FloatArray
    #: (n, K) expected reward of each arm: what regret is measured by, and learners never see.
    means: FloatArray
    #: (n, K) which arms exist; all by default.
    available: BoolArray | None = None


class World(Protocol):
    """A source of rounds, keyed by their number: any split gives the same rounds.

    A world may end: if it has a whole number ``rounds``, that is its length, and longer horizons are refused.

    Examples
    --------
    A world of your own takes ten lines. Its numbers ``noise_scale`` and ``norm``, if it has them, are passed to
    learners with these settings, as σ and as the length of θ:

    >>> import numpy as np
    >>> from rareswitch.core import normals, uniforms
    >>> class Prices:
    ...     dim, arms = 2, 3
    ...     def draw(self, count, *, seed, first=0):
    ...         x = uniforms(seed, "offers", first, count, 6).reshape(count, 3, 2) / 2
    ...         return Rounds(contexts=x, means=x @ np.array([0.6, -0.3]))
    ...     def rewards(self, means, *, seed, first=0):
    ...         return means + 0.1 * normals(seed, "noise", first, len(means))[:, 0]
    >>> from rareswitch import simulate
    >>> from rareswitch.learner import BatchLinUCB
    >>> run = simulate(BatchLinUCB(dim=2, arms=3, horizon=500, noise=0.1), Prices(), seed=1)
    >>> run.policies, run.regret < 500 * 0.45
    (4, True)
    """

    @property
    def dim(self) -> int:
        """Number of features of an arm."""

    @property
    def arms(self) -> int:
        """Most arms in a set."""

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        """Rounds number ``first`` … ``first + count - 1``."""

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        """Rewards (n,) of rounds ``first`` and following, given the expected rewards (n,) of the chosen arms.

        The same round may be asked for several arms, one after the other, and must pay each by its own mean.
        """


def check_ended(world: str, rounds: int, first: int, count: int) -> None:
    """Refuse rounds past the end of a world of ``rounds`` rounds."""
    last = whole("first", first, low=0) + whole("count", count, low=0)
    if last > rounds:
        what = f"{world} has {rounds} rounds, 0 to {rounds - 1}; rounds {first} to {last - 1} were asked for"
        raise InputError(f"{what}. Use a horizon of at most {rounds}, or make the world longer.")
