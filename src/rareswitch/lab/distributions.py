"""Distributions of context sets, ready made: benign ones and the paper's hard ones.

``draw(count, seed, first)`` gives sets number ``first`` … ``first + count - 1``; a set depends on its number and the
seed alone. All vectors lie in the unit ball.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from rareswitch.core import ContextSets, FloatArray, IntArray, normals, number, set_size, uniforms, whole


class ContextDistribution(Protocol):
    """A source of context sets."""

    @property
    def dim(self) -> int:
        """Number of features of an arm."""

    @property
    def arms(self) -> int:
        """Most arms in a set."""

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        """``count`` sets, beginning with set number ``first`` of the stream of ``seed``."""


@dataclass(frozen=True, kw_only=True)
class _Sized:
    """Sets of equally many arms, with checked sizes."""

    dim: int
    arms: int
    _least: ClassVar[int] = 1

    def __post_init__(self) -> None:
        set_size(self.dim, self.arms, low=self._least)

    def _normals(self, seed: int, stream: str, first: int, count: int) -> FloatArray:
        return normal_vectors(seed, stream, first, (count, self.arms, self.dim))

    def _directions(self, seed: int, stream: str, first: int, count: int) -> FloatArray:
        return unit_vectors(seed, stream, first, (count, self.arms, self.dim))


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """Arms and features are those of another distribution."""

    source: ContextDistribution

    @property
    def dim(self) -> int:
        """Number of features of an arm."""
        return self.source.dim

    @property
    def arms(self) -> int:
        """Most arms in a set."""
        return self.source.arms


@dataclass(frozen=True, kw_only=True)
class Gaussian(_Sized):
    """Every arm uniform on the unit sphere: the direction of a standard Gaussian vector.

    >>> Gaussian(dim=3, arms=5).draw(10, seed=1).contexts.shape
    (10, 5, 3)
    """

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        return _full(self._directions(seed, "gaussian", first, count))


@dataclass(frozen=True, kw_only=True)
class OneBig(_Sized):
    """One unit vector among short ones, in random directions.

    G-optimal play of each set gives every direction the same share, so the long vector is played 1/d of the time and
    V(G-optimal) ≈ d², where a policy that looks at the distribution reaches d.

    With ``rare`` > 0 the long vector of that share of the sets is the first basis vector, and that direction is
    otherwise avoided by long vectors.

    >>> OneBig(dim=3, arms=5).draw(10, seed=1).contexts.shape
    (10, 5, 3)
    """

    #: Norm of the short vectors.
    short: float = 0.01
    rare: float = 0.0
    _least: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        number("short", self.short, low=0.0, high=1.0)
        number("rare", self.rare, low=0.0, high=1.0)

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        x = self._directions(seed, "one-big", first, count)
        big = x[:, 0].copy()
        if self.rare > 0.0:
            big[:, 0] = 0.0
            big /= np.linalg.norm(big, axis=1, keepdims=True)
            big[uniforms(seed, "one-big/rare", first, count)[:, 0] < self.rare] = np.eye(self.dim)[0]
        x *= self.short
        x[:, 0] = big
        return _full(x)


@dataclass(frozen=True, kw_only=True)
class Anisotropic(_Sized):
    """Gaussian arms whose variance falls geometrically over the axes, and a share of sets that shows a rare direction.

    The k-th axis has standard deviation ``decay``^k. In a share ``rare`` of the sets the first arm is the last basis
    vector, the direction that all others hardly touch. Vectors are scaled to norm at most 1.

    >>> Anisotropic(dim=3, arms=5).draw(10, seed=1).contexts.shape
    (10, 5, 3)
    """

    decay: float = 0.7
    rare: float = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        number("decay", self.decay, low=0.0, high=1.0, open_low=True)
        number("rare", self.rare, low=0.0, high=1.0)

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        deviations = self.decay ** np.arange(self.dim)
        x = self._normals(seed, "anisotropic", first, count) * deviations
        x /= 2.0 * math.sqrt(float((deviations**2).sum()))
        x /= np.maximum(1.0, np.linalg.norm(x, axis=2, keepdims=True))
        x[uniforms(seed, "anisotropic/rare", first, count)[:, 0] < self.rare, 0] = np.eye(self.dim)[-1]
        return _full(x)


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """The paper's counterexample (Section 6): a policy that looks good on a sample of γ sets need not be so on others.

    Y_1 = {e_1} has mass 1/(dγ); Y_i = {√(1-ε²)·e_i + ε·e_1, e_i} share the rest, ε = √(d/γ). A sample of γ sets
    contains Y_1 with probability about 1/d, and then shows it d times too often. The policy of the paper's argument,
    which plays e_i in Y_i, has V = 2d on such a sample and d² + d - 1 on the distribution (80 and 1,639 at d = 40). It
    is written by hand: Algorithm 2 is not misled, as it plays either arm of Y_i in some of its stages.

    >>> sets = Counterexample(dim=4, sample=1000).draw(5, seed=1)
    >>> sets.contexts.shape, bool(sets.available[:, 1].all())
    ((5, 2, 4), True)
    """

    dim: int
    #: γ; at least d, so that ε ≤ 1.
    sample: int
    arms: ClassVar[int] = 2

    def __post_init__(self) -> None:
        set_size(whole("dim", self.dim, low=2), self.dim)  # the number of sets of two arms
        whole("sample", self.sample, low=self.dim)

    @property
    def support(self) -> ContextSets:
        """The d sets Y_1 … Y_d."""
        epsilon = math.sqrt(self.dim / self.sample)
        basis = np.eye(self.dim)
        tilted = math.sqrt(1.0 - epsilon**2) * basis[1:] + epsilon * basis[0]
        return ContextSets.from_ragged([basis[:1], *(np.stack([t, e]) for t, e in zip(tilted, basis[1:], strict=True))])

    @property
    def masses(self) -> FloatArray:
        """(d,) probabilities of the sets of ``support``."""
        rare = 1.0 / (self.dim * self.sample)
        return np.array([rare] + [(1.0 - rare) / (self.dim - 1)] * (self.dim - 1))

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        u = uniforms(seed, "counterexample", first, count)[:, 0]
        return self.support[_choice(self.masses, u)]


@dataclass(frozen=True, kw_only=True)
class Segments(_Sized):
    """Users of several segments, each with features of its own; every segment is rarer than the last.

    Segment k has probability ∝ 0.3^k and arms that are random directions in its own block of coordinates, so
    what is learned in one segment says nothing about another.

    >>> Segments(dim=6, arms=5, segments=3).draw(10, seed=1).contexts.shape
    (10, 5, 6)
    """

    segments: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self).update(segments=min(whole("segments", self.segments), self.dim))

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        masses = 0.3 ** np.arange(self.segments)
        which = _choice(masses / masses.sum(), uniforms(seed, "segments/which", first, count)[:, 0])
        block = np.arange(self.dim) % self.segments == which[:, None]
        x = self._normals(seed, "segments", first, count) * block[:, None, :]
        return _full(x / np.linalg.norm(x, axis=2, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class Zipf(_Sized):
    """Every arm points mostly along one axis; axis k is drawn with probability ∝ 1/(k + 1)².

    >>> Zipf(dim=6, arms=5).draw(10, seed=1).contexts.shape
    (10, 5, 6)
    """

    #: Norm of the random part beside the axis.
    blur: ClassVar[float] = 0.1

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        masses = (1.0 + np.arange(self.dim)) ** -2.0
        axis = _choice(masses / masses.sum(), uniforms(seed, "zipf/axis", first, count, self.arms))
        x = self.blur * self._directions(seed, "zipf", first, count)
        x += math.sqrt(1.0 - self.blur**2) * np.eye(self.dim)[axis]
        return _full(x / np.maximum(1.0, np.linalg.norm(x, axis=2, keepdims=True)))


@dataclass(frozen=True, kw_only=True)
class FixedActions(_Sized):
    """The same set of random unit vectors in every round; which set, the seed tells.

    >>> sets = FixedActions(dim=3, arms=5).draw(2, seed=1)
    >>> bool((sets.contexts[0] == sets.contexts[1]).all())
    True
    """

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        return _full(np.repeat(self._directions(seed, "fixed", 0, 1), count, axis=0))


@dataclass(frozen=True, kw_only=True)
class PlainArms:
    """Arms without features, as basis vectors: what one of them pays says nothing about another.

    >>> PlainArms(arms=2).draw(1, seed=1).contexts.tolist()
    [[[1.0, 0.0], [0.0, 1.0]]]
    """

    arms: int

    def __post_init__(self) -> None:
        set_size(whole("arms", self.arms), self.arms)

    @property
    def dim(self) -> int:
        """The number of arms."""
        return self.arms

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        return _full(np.repeat(np.eye(self.arms)[None], whole("count", count, low=0), axis=0))


@dataclass(frozen=True, kw_only=True)
class VaryingArms(Sourced):
    """Another distribution whose sets lose some of their arms: between ``least`` and all of them are left, at random.

    >>> sets = VaryingArms(source=Gaussian(dim=2, arms=4), least=2).draw(50, seed=1)
    >>> int(sets.available.sum(axis=1).min()), int(sets.available.sum(axis=1).max())
    (2, 4)
    """

    least: int = 1

    def __post_init__(self) -> None:
        whole("least", self.least, high=self.source.arms)

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        sets = self.source.draw(count, seed=seed, first=first)
        u = uniforms(seed, "varying", first, count, 1 + self.arms)
        left = self.least + np.floor(u[:, 0] * (self.arms - self.least + 1)).astype(int)
        rank = np.argsort(np.argsort(u[:, 1:] + 2.0 * ~sets.available, axis=1), axis=1)
        return ContextSets(sets.contexts, sets.available & (rank < left[:, None]))


def normal_vectors(seed: int, stream: str, first: int, shape: tuple[int, int, int]) -> FloatArray:
    """Standard normal vectors (n, K, d)."""
    count, arms, dim = shape
    return normals(seed, stream, first, count, arms * dim).reshape(shape)


def unit_vectors(seed: int, stream: str, first: int, shape: tuple[int, int, int]) -> FloatArray:
    """Random directions (n, K, d), vectors of length 1."""
    x = normal_vectors(seed, stream, first, shape)
    # not vecdot, whose sums depend on where in memory a vector lies under some kernels of BLAS
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    return x


def into_ball(x: FloatArray) -> FloatArray:
    """Vectors (…, d), scaled to length 1 where they are longer.

    >>> into_ball(np.array([[0.3, 0.4], [3.0, 4.0]])).tolist()
    [[0.3, 0.4], [0.6, 0.8]]
    """
    return np.asarray(x / np.maximum(1.0, np.linalg.norm(x, axis=-1, keepdims=True)))


def in_blocks(users: FloatArray, arms: int) -> FloatArray:
    """(n, K, K·p) users (n, p) in a block for each of K arms: each has parameters of its own.

    >>> in_blocks(np.array([[2.0, 3.0]]), 2).tolist()
    [[[2.0, 3.0, 0.0, 0.0], [0.0, 0.0, 2.0, 3.0]]]
    """
    count, features = users.shape
    blocks = np.zeros((count, arms, arms, features))
    every = np.arange(arms)
    blocks[:, every, every] = users[:, None, :]
    return blocks.reshape(count, arms, arms * features)


def _choice(masses: FloatArray, u: FloatArray) -> IntArray:
    """The outcome that each uniform number tells, given the probabilities of the outcomes."""
    return np.asarray(np.minimum(np.searchsorted(np.cumsum(masses), u), len(masses) - 1))


def _full(contexts: FloatArray) -> ContextSets:
    return ContextSets(contexts, np.ones(contexts.shape[:2], dtype=np.bool_))
