"""Ready-made adversaries: sequences of random sets that keep what matters for later."""

from dataclasses import dataclass, field

import numpy as np

from rareswitch.lab.worlds.linear import direction
from rareswitch.lab.worlds.noise import GaussianNoise, Noise, NoisyRewards
from rareswitch.lab.worlds.world import Rounds, within
from rareswitch.rng import normals, uniforms
from rareswitch.validation import BoolArray, FloatArray, number, set_size, whole


@dataclass(frozen=True, kw_only=True)
class _Adversary(NoisyRewards):
    """Random sets in a fixed number of rounds."""

    rounds: int
    dim: int
    arms: int
    #: Length of the random part of an arm.
    blur: float = 0.2
    noise: Noise = field(default_factory=GaussianNoise)

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
        within("the drifting world", self.rounds, first, count)
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
        within("the starving world", self.rounds, first, count)
        phase = np.arange(first, first + count) * self.dim // self.rounds
        seen = np.arange(self.dim) <= phase[:, None]
        x = self._arms("starving", seed, first, np.eye(self.dim)[phase], seen)
        x[:, 0] = np.eye(self.dim)[0] / 4.0
        return Rounds(contexts=x, means=x @ self.theta(seed))
