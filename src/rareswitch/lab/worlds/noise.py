"""Noise that is added to expected rewards; ``scale`` is σ, the root of its sub-Gaussian variance proxy."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rareswitch.rng import normals, uniforms
from rareswitch.validation import LARGEST_SCALE, FloatArray, number


class Noise(Protocol):
    """Independent noise of mean zero, keyed by the number of the round."""

    @property
    def scale(self) -> float:
        """σ."""

    def draw(self, count: int, *, seed: int, first: int = 0) -> FloatArray:
        """(count,) values for rounds ``first`` and following."""


class NoisyRewards:
    """What worlds share that add ``noise`` to expected rewards."""

    noise: Noise

    @property
    def noise_scale(self) -> float:
        """σ of the rewards."""
        return self.noise.scale

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return means + self.noise.draw(len(means), seed=seed, first=first)


class ClickRewards:
    """What worlds share whose rewards are 1, with the expected reward as their probability, or 0."""

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return (uniforms(seed, "noise", first, len(means))[:, 0] < means).astype(np.float64)


@dataclass(frozen=True)
class _Scaled:
    """A noise with a checked σ."""

    scale: float = 0.5

    def __post_init__(self) -> None:
        number("scale", self.scale, low=0.0, high=LARGEST_SCALE)


@dataclass(frozen=True)
class GaussianNoise(_Scaled):
    """Normal noise of standard deviation σ."""

    def draw(self, count: int, *, seed: int, first: int = 0) -> FloatArray:
        return self.scale * normals(seed, "noise", first, count)[:, 0]


@dataclass(frozen=True)
class UniformNoise(_Scaled):
    """Uniform noise on [-σ, σ]."""

    def draw(self, count: int, *, seed: int, first: int = 0) -> FloatArray:
        return self.scale * (2.0 * uniforms(seed, "noise", first, count)[:, 0] - 1.0)


@dataclass(frozen=True)
class CoinNoise(_Scaled):
    """σ or -σ, each with probability ½: the noise that its variance proxy describes exactly."""

    def draw(self, count: int, *, seed: int, first: int = 0) -> FloatArray:
        return np.where(uniforms(seed, "noise", first, count)[:, 0] < 0.5, -self.scale, self.scale)
