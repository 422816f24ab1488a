"""Worlds that change: adversaries, turning parameters, groups that come and go."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rareswitch.core import BoolArray, FloatArray, IntArray, normals, number, set_size, uniforms, whole
from rareswitch.lab.worlds.linear import direction
from rareswitch.lab.worlds.world import NoisyRewards, Rounds, check_ended


@dataclass(frozen=True, kw_only=True)
class _Adversary(NoisyRewards):
    """Random sets in a fixed number of rounds."""

    rounds: int
    dim: int
    arms: int
    #: Length of the random part of an arm.
    blur: float = 0.2

    def __post_init__(self) -> None:
        whole("rounds", self.rounds)
        set_size(self.dim, self.arms, low=2)
        number("blur", self.blur, low=0.0, high=1.0)

    def _arms(self, stream: str, seed: int, first: int, along: FloatArray, seen: BoolArray) -> FloatArray:
        """Arms (n, K, d): random multiples of ``along`` (n, d) plus short vectors with coordinates ``seen`` (n, d)."""
        c = 2.0 * uniforms(seed, f"{stream}/length", first, len(along), self.arms) - 1.0
        g = normals(seed, stream, first, len(along), self.arms * self.dim).reshape(len(along), self.arms, self.dim)
        g *= seen[:, None, :]
        g /= np.linalg.norm(g, axis=2, keepdims=True)
        return np.asarray((1.0 - self.blur) * c[:, :, None] * along[:, None, :] + self.blur * g)


@dataclass(frozen=True, kw_only=True)
class DriftingWorld(_Adversary):
    """Arms along one direction, which turns from e_1 over e_2 … to e_d in the course of the horizon.

    It punishes policies that rest on early data: the direction f_t of the round is orthogonal to those of 2T/(d-1)
    rounds ago and before, and what was learned there does not tell which arm is good now. An arm is
    (1 - blur)·c·f_t + blur·g, with c uniform in [-1, 1] and g a random unit vector.

    >>> x = DriftingWorld(rounds=1000, dim=3, arms=4, blur=0.0).draw(1000, seed=1).contexts
    >>> [int(np.abs(x[t, 0]).argmax()) for t in (0, 500, 999)]
    [0, 1, 2]
    """

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,), a random direction."""
        return direction(seed, self.dim)

    def directions(self, count: int, *, first: int = 0) -> FloatArray:
        """The direction f_t (count, d) of each round."""
        turn = np.arange(first, first + count) / self.rounds * (self.dim - 1)
        axis = np.minimum(turn.astype(np.int64), self.dim - 2)
        angle = (turn - axis)[:, None] * (np.pi / 2)
        basis = np.eye(self.dim)
        return np.asarray(np.cos(angle) * basis[axis] + np.sin(angle) * basis[axis + 1])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        check_ended("the drifting world", self.rounds, first, count)
        along = self.directions(count, first=first)
        x = self._arms("drifting", seed, first, along, np.ones_like(along, dtype=np.bool_))
        return Rounds(contexts=x, means=x @ self.theta(seed))


@dataclass(frozen=True, kw_only=True)
class StarvingWorld(_Adversary):
    """The horizon in d equal phases; the j-th coordinate is zero in all arms until phase j, and then decides.

    It punishes policies that stop learning: nothing seen before phase j tells the sign of θ_j, and as entries
    of θ are all ±1/√d, every phase is worth the same. The first arm is always e_1/4, known since the first phase;
    the others are (1 - blur)·c·e_j + blur·g, c uniform in [-1, 1] and g a random unit vector of coordinates 1 … j.

    >>> x = StarvingWorld(rounds=300, dim=3, arms=4).draw(300, seed=1).contexts
    >>> [int((x[:, :, j] != 0).any(axis=1).argmax()) for j in range(3)]
    [0, 100, 200]
    """

    def __post_init__(self) -> None:
        whole("rounds", self.rounds, low=whole("dim", self.dim, low=2))
        super().__post_init__()

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,), entries ±1/√d."""
        signs = np.where(uniforms(seed, "theta", 0, 1, self.dim)[0] < 0.5, -1.0, 1.0)
        return np.asarray(signs / np.sqrt(self.dim))

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        check_ended("the starving world", self.rounds, first, count)
        phase = np.arange(first, first + count) * self.dim // self.rounds
        seen = np.arange(self.dim) <= phase[:, None]
        x = self._arms("starving", seed, first, np.eye(self.dim)[phase], seen)
        x[:, 0] = np.eye(self.dim)[0] / 4.0
        return Rounds(contexts=x, means=x @ self.theta(seed))


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
        check_ended("the turning world", self.rounds, first, count)
        z = normals(seed, "items", first, count, self.arms * self.dim).reshape(count, self.arms, self.dim)
        x = z / np.linalg.norm(z, axis=2, keepdims=True)
        return Rounds(contexts=x, means=np.vecdot(x, self.thetas(count, seed=seed, first=first)[:, None, :]))


#: User groups, and the features that each has for itself.
GROUPS, FEATURES = 4, 3


@dataclass(frozen=True, kw_only=True)
class _Groups(NoisyRewards):
    """Four groups; arms are random unit vectors in the three coordinates of the user's group, θ a random direction."""

    rounds: int
    arms: int = 10
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
        check_ended("the world of groups", self.rounds, first, count)
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
