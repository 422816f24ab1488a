"""The six worlds in which schedules are compared: three of the catalogue, and three written here."""

import math
from dataclasses import dataclass

import numpy as np

from measure import FloatArray
from rareswitch.env import Rounds, World, make_world
from rareswitch.rng import normals, uniforms


def _inside(x: FloatArray) -> FloatArray:
    """Vectors scaled into the unit ball where they are longer."""
    return np.asarray(x / np.maximum(1.0, np.linalg.norm(x, axis=-1, keepdims=True)))


@dataclass(frozen=True, kw_only=True)
class Disjoint:
    """Arms with parameters N(0, I) of their own over the user's features (1, z)/√(2p); noise 0.5."""

    arms: int = 6
    features: int = 5

    @property
    def dim(self) -> int:
        return self.arms * self.features

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        z = normals(seed, "users", first, count, self.features - 1)
        users = np.concatenate([np.ones((count, 1)), z], axis=1) / math.sqrt(2 * self.features)
        users = _inside(users)
        contexts = np.zeros((count, self.arms, self.dim))
        for arm in range(self.arms):
            contexts[:, arm, arm * self.features : (arm + 1) * self.features] = users
        return Rounds(contexts=contexts, means=contexts @ normals(seed, "theta", 0, 1, self.dim)[0])

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return means + 0.5 * normals(seed, "noise", first, len(means))[:, 0]


@dataclass(frozen=True, kw_only=True)
class Clicks:
    """Clicks of 1 to 8 %, logistic in x = z/√8: not linear. Learners see x and a constant."""

    arms: int = 15
    features: int = 8

    @property
    def dim(self) -> int:
        return self.features + 1

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        z = normals(seed, "items", first, count, self.arms * self.features).reshape(count, self.arms, self.features)
        x = _inside(z / math.sqrt(8.0))
        theta = normals(seed, "theta", 0, 1, self.features)[0]
        contexts = np.concatenate([x, np.ones((count, self.arms, 1))], axis=2) / math.sqrt(2.0)
        return Rounds(contexts=contexts, means=1.0 / (1.0 + np.exp(3.5 - 1.2 * (x @ theta))))

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return (uniforms(seed, "noise", first, len(means))[:, 0] < means).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class HeavyTails:
    """Unit vectors, unit θ, and noise like a Student t with three degrees of freedom, at a scale of 0.35."""

    arms: int = 10
    dim: int = 8

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        z = normals(seed, "items", first, count, self.arms * self.dim).reshape(count, self.arms, self.dim)
        x = z / np.linalg.norm(z, axis=2, keepdims=True)
        theta = normals(seed, "theta", 0, 1, self.dim)[0]
        return Rounds(contexts=x, means=x @ (theta / np.linalg.norm(theta)))

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        z = normals(seed, "noise", first, len(means), 4)
        return np.asarray(means + 0.35 * z[:, 0] / np.sqrt(np.square(z[:, 1:]).mean(axis=1)))


@dataclass(frozen=True, kw_only=True)
class LateGroups:
    """Four user groups with three features each, first seen after 0, 10, 30 and 60 % of 10,000 decisions."""

    arms: int = 10
    dim: int = 12

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        seen = np.searchsorted([1000, 3000, 6000], first + np.arange(count), side="right") + 1
        group = (uniforms(seed, "groups", first, count)[:, 0] * seen).astype(np.int64)
        z = normals(seed, "items", first, count, self.arms * 3).reshape(count, self.arms, 3)
        blocks = np.zeros((count, self.arms, 4, 3))
        blocks[np.arange(count), :, group] = z / np.linalg.norm(z, axis=2, keepdims=True)
        contexts = blocks.reshape(count, self.arms, self.dim)
        theta = normals(seed, "theta", 0, 1, self.dim)[0]
        return Rounds(contexts=contexts, means=contexts @ (theta / np.linalg.norm(theta)))

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        return means + 0.5 * normals(seed, "noise", first, len(means))[:, 0]


WORLDS: dict[str, World] = {
    **{name: make_world(name) for name in ("gaussian", "fixed", "segments")},
    "disjoint": Disjoint(),
    "clicks": Clicks(),
    "heavy tails": HeavyTails(),
}
#: σ as the yardstick is told it, where it is not 0.5.
NOISE = {"clicks": 0.2, "heavy tails": 0.6}
#: The length of θ, as it is told, where it is not 1.
NORM = {"disjoint": math.sqrt(30.0)}
