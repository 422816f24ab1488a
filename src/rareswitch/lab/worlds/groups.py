"""Groups of users whose shares change in the course of the horizon."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rareswitch.lab.worlds.linear import direction
from rareswitch.lab.worlds.noise import GaussianNoise, Noise, NoisyRewards
from rareswitch.lab.worlds.world import Rounds, within
from rareswitch.rng import normals, uniforms
from rareswitch.validation import FloatArray, IntArray, number, set_size, whole

#: User groups, and the features that each has for itself.
GROUPS, FEATURES = 4, 3


@dataclass(frozen=True, kw_only=True)
class _Groups(NoisyRewards):
    """Four groups; arms are random unit vectors in the three coordinates of the user's group, θ a random direction."""

    rounds: int
    arms: int = 10
    noise: Noise = field(default_factory=GaussianNoise)
    dim: ClassVar[int] = GROUPS * FEATURES

    def __post_init__(self) -> None:
        whole("rounds", self.rounds)
        set_size(self.dim, self.arms)

    @abstractmethod
    def groups(self, count: int, *, seed: int, first: int = 0) -> IntArray:
        """The groups (count,), from 0, of the users of rounds ``first`` and following."""

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,), of norm 1."""
        return direction(seed, self.dim)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        within("the world of groups", self.rounds, first, count)
        z = normals(seed, "items", first, count, self.arms * FEATURES).reshape(count, self.arms, FEATURES)
        blocks = np.zeros((count, self.arms, GROUPS, FEATURES))
        group = self.groups(count, seed=seed, first=first)
        blocks[np.arange(count), :, group] = z / np.linalg.norm(z, axis=2, keepdims=True)
        contexts = blocks.reshape(count, self.arms, self.dim)
        return Rounds(contexts=contexts, means=contexts @ self.theta(seed))


@dataclass(frozen=True, kw_only=True)
class LateGroupsWorld(_Groups):
    """The second, third and fourth group are first seen after 10, 30 and 60 % of the horizon.

    Groups that have appeared are equally frequent.

    >>> groups = LateGroupsWorld(rounds=1000).groups(1000, seed=1)
    >>> [int(groups[part].max()) for part in (slice(100), slice(100, 300), slice(300, 600), slice(600, 1000))]
    [0, 1, 2, 3]
    """

    def starts(self) -> IntArray:
        """The rounds (3,) from which on the second, third and fourth group are seen."""
        return np.array([1, 3, 6], dtype=np.int64) * self.rounds // 10

    def groups(self, count: int, *, seed: int, first: int = 0) -> IntArray:
        seen = np.searchsorted(self.starts(), first + np.arange(count), side="right") + 1
        return (uniforms(seed, "groups", first, count)[:, 0] * seen).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class MixDriftWorld(_Groups):
    """All groups are there from the start, but their shares move from one in which the first has ``most`` of the users
    to one in which the last has, in a straight line over the horizon. The other groups share what is left.

    >>> MixDriftWorld(rounds=1001).shares(3, first=499).round(2).tolist()[1]
    [0.49, 0.01, 0.01, 0.49]
    """

    most: float = 0.97

    def __post_init__(self) -> None:
        super().__post_init__()
        number("most", self.most, low=1.0 / GROUPS, high=1.0)

    def shares(self, count: int, *, first: int = 0) -> FloatArray:
        """The shares (count, 4) of the groups in rounds ``first`` and following."""
        begin = np.full(GROUPS, (1.0 - self.most) / (GROUPS - 1))
        begin[0] = self.most
        gone = (np.arange(first, first + count) / max(1, self.rounds - 1))[:, None]
        return np.asarray((1.0 - gone) * begin + gone * begin[::-1])

    def groups(self, count: int, *, seed: int, first: int = 0) -> IntArray:
        limits = self.shares(count, first=first).cumsum(axis=1)[:, :-1]
        return np.asarray((uniforms(seed, "groups", first, count) >= limits).sum(axis=1), dtype=np.int64)
