"""Worlds with linear rewards, some of which change over the horizon, and clicks of a linear rate."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from rareswitch.core import (
    BoolArray,
    FloatArray,
    IntArray,
    finite_array,
    frozen,
    normals,
    number,
    set_size,
    uniforms,
    vector,
    whole,
)
from rareswitch.errors import ShapeError
from rareswitch.lab.distributions import Sourced, in_blocks, into_ball, normal_vectors, unit_vectors
from rareswitch.lab.worlds.world import ClickRewards, GaussianNoise, Noise, NoisyRewards, Rounds, check_ended

__all__ = ["ActionsWorld", "AdaptiveTrialWorld", "ClickWorld", "LinearWorld"]

#: Lengths of users are about 3; one above 10 comes once in 10^11 decisions.
UNIT = 10.0


@dataclass(frozen=True, kw_only=True)
class AdaptiveTrialWorld(NoisyRewards):
    """Ten treatments, each with parameters of its own over five features of the user (AExGym).

    Features are N(1, I_5), the parameters of each treatment N(0, I_5/1000), and rewards have the variance 0.2: 500
    decisions tell little. Learners see features divided by 10, in the block of their arm, so that they lie in the unit
    ball, and θ is 10 times as long: the prior is N(0, :attr:`prior_scale`²·I_50), and expected rewards are the same.

    AExGym (Wang, Che, Jiang and Namkoong, arXiv:2408.04570) has batches of 100 users, and reports the regret of a
    decision: its mean over all users of the trial (``cumul_regret`` of its results), or, of the greedy policy on the
    final posterior mean, over fresh users (``simple_regret``).

    >>> world = AdaptiveTrialWorld()
    >>> world.draw(2, seed=1).contexts.shape, round(world.noise_scale**2, 3)
    ((2, 10, 50), 0.2)
    """

    noise: Noise = field(default_factory=lambda: GaussianNoise(math.sqrt(0.2)))
    arms: ClassVar[int] = 10
    #: Of a user.
    features: ClassVar[int] = 5
    dim: ClassVar[int] = 50
    #: Standard deviation of each entry of θ.
    prior_scale: ClassVar[float] = UNIT / math.sqrt(1000.0)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (50,), five entries for each arm."""
        return np.asarray(self.prior_scale * normals(seed, "theta", 0, 1, self.dim)[0])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        users = (1.0 + normals(seed, "trial", first, whole("count", count, low=0), self.features)) / UNIT
        means = users @ self.theta(seed).reshape(self.arms, self.features).T
        return Rounds(contexts=in_blocks(users, self.arms), means=means)


@dataclass(frozen=True, kw_only=True)
class PlainWorld(NoisyRewards):
    """Arms that are basis vectors, with expected rewards that the seed draws uniformly from [0, 1].

    >>> rounds = PlainWorld(arms=2).draw(1, seed=1)
    >>> rounds.contexts.tolist(), rounds.means.round(2).tolist()
    ([[[1.0, 0.0], [0.0, 1.0]]], [[0.22, 0.33]])
    """

    arms: int = 20

    def __post_init__(self) -> None:
        set_size(self.arms, self.arms)

    @property
    def dim(self) -> int:
        """The number of arms."""
        return self.arms

    def theta(self, seed: int) -> FloatArray:
        """The expected rewards (K,)."""
        return np.asarray(uniforms(seed, "theta", 0, 1, self.arms)[0])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        contexts = np.repeat(np.eye(self.arms)[None], whole("count", count, low=0), axis=0)
        return Rounds(contexts=contexts, means=contexts @ self.theta(seed))


@dataclass(frozen=True, kw_only=True)
class EquicorrelatedWorld(NoisyRewards):
    """Arms x = (0.5·z + 0.85·c)/√d, where all arms of a set share c; z and c are standard normal.

    θ is a random direction of the first ``nonzero`` coordinates. Arms longer than 1 are shortened to that before
    anything is paid.

    >>> rounds = EquicorrelatedWorld().draw(500, seed=1)
    >>> round(float(np.corrcoef(rounds.contexts[:, 0, 0], rounds.contexts[:, 1, 0])[0, 1]), 1)  # 0.85²/(0.5² + 0.85²)
    0.7
    """

    arms: int = 4
    dim: int = 40
    nonzero: int = 6

    def __post_init__(self) -> None:
        set_size(self.dim, self.arms)
        whole("nonzero", self.nonzero, high=self.dim)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,), of norm 1."""
        return np.pad(direction(seed, self.nonzero), (0, self.dim - self.nonzero))

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        z = normal_vectors(seed, "items", first, (count, self.arms, self.dim))
        common = normals(seed, "common", first, count, self.dim)
        x = into_ball((0.5 * z + 0.85 * common[:, None, :]) / math.sqrt(self.dim))
        return Rounds(contexts=x, means=x @ self.theta(seed))


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


@dataclass(frozen=True, kw_only=True)
class HeavyTailsWorld:
    """Unit vectors, unit θ, and noise like a Student t with three degrees of freedom, times ``width``.

    >>> world = HeavyTailsWorld()
    >>> noise = world.rewards(np.zeros(10_000), seed=1)
    >>> bool(abs(np.median(noise)) < 0.02), bool(np.abs(noise).max() > 5.0)
    (True, True)
    """

    arms: int = 10
    dim: int = 8
    width: float = 0.35
    #: σ as learners take it: at the width of 0.35 about the standard deviation, which is √3 times the width.
    noise_scale: ClassVar[float] = 0.6

    def __post_init__(self) -> None:
        set_size(self.dim, self.arms)
        number("width", self.width, low=0.0)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,), of norm 1."""
        return direction(seed, self.dim)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        x = unit_vectors(seed, "items", first, (count, self.arms, self.dim))
        return Rounds(contexts=x, means=x @ self.theta(seed))

    def rewards(self, means: FloatArray, *, seed: int, first: int = 0) -> FloatArray:
        z = normals(seed, "noise", first, len(means), 4)
        return np.asarray(means + self.width * z[:, 0] / np.sqrt(np.square(z[:, 1:]).mean(axis=1)))


@dataclass(frozen=True, kw_only=True)
class EndOfOptimismWorld(NoisyRewards):
    """Three fixed arms in the plane, of which the worst teaches most (Lattimore & Szepesvári 2017).

    The arms are e_1, e_2 and (1 - gap, 2·gap), θ is e_1, and all are turned by an angle that the seed tells. The
    second tells fastest whether the third beats the first, and optimism soon gives it up.

    >>> world = EndOfOptimismWorld(gap=0.1)
    >>> np.abs(world.draw(1, seed=1).means.round(9)).tolist()
    [[1.0, 0.0, 0.9]]
    """

    #: How much worse the third arm is than the first; at most 0.4, where its norm is 1.
    gap: float = 0.05
    dim: ClassVar[int] = 2
    arms: ClassVar[int] = 3

    def __post_init__(self) -> None:
        number("gap", self.gap, low=0.0, high=0.4, open_low=True)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (2,), of norm 1."""
        angle = 2.0 * math.pi * float(uniforms(seed, "theta", 0, 1)[0, 0])
        return np.array([math.cos(angle), math.sin(angle)])

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        theta = self.theta(seed)
        x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0 - self.gap, 2.0 * self.gap]])
        turned = np.outer(x[:, 0], theta) + np.outer(x[:, 1], [-theta[1], theta[0]])
        contexts = np.repeat(turned[None], whole("count", count, low=0), axis=0)
        return Rounds(contexts=contexts, means=contexts @ theta)


#: The seed of the published random instances (Ren, Jin and Xu 2024).
PUBLISHED_SEED = 1


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ActionsWorld(NoisyRewards):
    """The same actions in every round, with expected rewards xᵀθ; seeds differ in the noise alone.

    Actions longer than 1 are all divided by the longest length and θ is multiplied by it, so that they lie in the unit
    ball and pay what they paid.

    Parameters
    ----------
    actions
        (K, d)
    hidden
        θ (d,), of any length.

    Examples
    --------
    >>> world = ActionsWorld(actions=[[2.0, 0.0], [0.0, 1.0]], hidden=[0.5, 0.2])
    >>> rounds = world.draw(1, seed=1)
    >>> rounds.contexts.tolist(), rounds.means.tolist()
    ([[[1.0, 0.0], [0.0, 0.5]]], [[1.0, 0.2]])
    """

    actions: FloatArray
    hidden: FloatArray
    noise: Noise = field(default_factory=lambda: GaussianNoise(1.0))

    def __post_init__(self) -> None:
        actions = finite_array("actions", self.actions)
        if actions.ndim != 2 or not actions.size:
            raise ShapeError(f"actions must be (arms, dim), at least one of each; got {actions.shape}.")
        hidden = vector("hidden", self.hidden, actions.shape[1])
        longest = max(1.0, float(np.linalg.norm(actions, axis=1).max()))
        vars(self).update(actions=frozen(actions / longest), hidden=frozen(hidden * longest))

    def __repr__(self) -> str:
        return f"ActionsWorld({self.arms} actions, d = {self.dim}, {self.noise})"

    @classmethod
    def end_of_optimism(cls, dim: int, *, gap: float = 0.2, noise: Noise | None = None) -> Self:
        """e_1 … e_d and (1 - gap)·e_1 + 2·gap·e_j for each j > 1, θ = e_1 (Lattimore and Szepesvári 2017, in d).

        With d = 2, 3 and 5 and a gap of 0.2 these are instances on which E4 was published.

        >>> ActionsWorld.end_of_optimism(3).draw(1, seed=1).means.tolist()
        [[1.0, 0.0, 0.0, 0.8, 0.8]]
        """
        gap = number("gap", gap, low=0.0, high=0.4, open_low=True)
        set_size(whole("dim", dim, low=2), 2 * dim - 1)
        axes = np.eye(dim)
        return cls._of(np.concatenate([axes, (1.0 - gap) * axes[0] + 2.0 * gap * axes[1:]]), noise)

    @classmethod
    def random(cls, arms: int, dim: int, *, noise: Noise | None = None) -> Self:
        """Actions uniform in [0, 1]^d, of which e_1 takes the place of the first, θ = e_1: the best by little or much.

        One instance for each size: the one on which E4 was published.

        >>> ActionsWorld.random(9, 5).draw(1, seed=1).means[0, :3].round(4).tolist()
        [1.0, 0.7203, 0.0001]
        """
        set_size(whole("dim", dim), whole("arms", arms, low=2))
        # numpy promises to keep this old stream as it is, and the published instances are made by it
        actions = np.random.RandomState(PUBLISHED_SEED).uniform(0.0, 1.0, (dim, arms)).T
        actions[0] = np.eye(dim)[0]
        return cls._of(actions, noise)

    @classmethod
    def _of(cls, actions: FloatArray, noise: Noise | None) -> Self:
        hidden = np.eye(actions.shape[1])[0]
        return cls(actions=actions, hidden=hidden, noise=GaussianNoise(1.0) if noise is None else noise)

    @property
    def arms(self) -> int:
        """Number of actions, K."""
        return len(self.actions)

    @property
    def dim(self) -> int:
        """Number of features of an action, d."""
        return int(self.actions.shape[1])

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,), the same for every seed."""
        return self.hidden

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        contexts = np.repeat(self.actions[None], whole("count", count, low=0), axis=0)
        return Rounds(contexts=contexts, means=np.repeat((self.actions @ self.hidden)[None], count, axis=0))


@dataclass(frozen=True, kw_only=True)
class LinearWorld(Sourced, NoisyRewards):
    """Rewards xᵀθ + noise; θ is a random direction of length ``norm`` that the seed tells.

    Examples
    --------
    >>> from rareswitch.lab.distributions import Gaussian
    >>> world = LinearWorld(source=Gaussian(dim=3, arms=4))
    >>> rounds = world.draw(5, seed=1)
    >>> rounds.contexts.shape, rounds.means.shape
    ((5, 4, 3), (5, 4))
    """

    norm: float = 1.0

    def __post_init__(self) -> None:
        number("norm", self.norm, low=0.0)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,)."""
        return self.norm * direction(seed, self.dim)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        sets = self.source.draw(count, seed=seed, first=first)
        return Rounds(contexts=sets.contexts, means=sets.contexts @ self.theta(seed), available=sets.available)


@dataclass(frozen=True, kw_only=True)
class ClickWorld(Sourced, ClickRewards):
    """Rewards are 1 with probability (1 + xᵀθ)/2 and otherwise 0: linear in (1, x)/√2, which is what learners see.

    >>> from rareswitch.lab.distributions import Gaussian
    >>> world = ClickWorld(source=Gaussian(dim=3, arms=4))
    >>> world.dim, sorted(set(world.rewards(world.draw(50, seed=1).means[:, 0], seed=1).tolist()))
    (4, [0.0, 1.0])
    """

    @property
    def dim(self) -> int:
        """Number of features of an arm, the constant one included."""
        return self.source.dim + 1

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,), of norm 1."""
        return np.append(1.0, direction(seed, self.source.dim)) / math.sqrt(2.0)

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        sets = self.source.draw(count, seed=seed, first=first)
        contexts = np.pad(sets.contexts, ((0, 0), (0, 0), (1, 0)), constant_values=1.0) / math.sqrt(2.0)
        return Rounds(contexts=contexts, means=contexts @ self.theta(seed), available=sets.available)


def direction(seed: int, dim: int) -> FloatArray:
    """A random unit vector (d,) that the seed tells."""
    z = normals(seed, "theta", 0, 1, dim)[0]
    return np.asarray(z / np.linalg.norm(z))


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
        g = normal_vectors(seed, stream, first, (len(along), self.arms, self.dim)) * seen[:, None, :]
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
        x = unit_vectors(seed, "items", first, (count, self.arms, self.dim))
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
        blocks = np.zeros((count, self.arms, GROUPS, FEATURES))
        group = self.groups(count, seed=seed, first=first)
        blocks[np.arange(count), :, group] = unit_vectors(seed, "items", first, (count, self.arms, FEATURES))
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
