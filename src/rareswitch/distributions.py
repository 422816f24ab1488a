"""Distributions of context sets, ready made: benign ones and the paper's hard ones.

``draw(count, seed, first)`` gives sets number ``first`` … ``first + count - 1``; a set depends on its number and the
seed alone. All vectors lie in the unit ball.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.rng import normals, uniforms
from rareswitch.validation import FloatArray, number, whole


class ContextDistribution(Protocol):
    """A source of context sets."""

    @property
    def dim(self) -> int:
        """Number of features of an arm."""
        ...

    @property
    def arms(self) -> int:
        """Most arms in a set."""
        ...

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        """``count`` sets, beginning with set number ``first`` of the stream of ``seed``."""
        ...


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """Every arm uniform on the unit sphere: the direction of a standard Gaussian vector.

    >>> Gaussian(dim=3, arms=5).draw(10, seed=1).contexts.shape
    (10, 5, 3)
    """

    dim: int
    arms: int

    def __post_init__(self) -> None:
        whole("dim", self.dim)
        whole("arms", self.arms)

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        x = _directions(seed, "gaussian", first, count, self.arms, self.dim)
        return _full(x)


@dataclass(frozen=True, kw_only=True)
class OneBig:
    """One unit vector among short ones, in random directions.

    G-optimal play of each set gives every direction the same share, so the long vector is played 1/d of the time and
    V(G-optimal) ≈ d², where a policy that looks at the distribution reaches d.

    With ``rare`` > 0 the long vector of that share of the sets is the first basis vector, and that direction is
    otherwise avoided by long vectors.

    >>> OneBig(dim=3, arms=5).draw(10, seed=1).contexts.shape
    (10, 5, 3)
    """

    dim: int
    arms: int
    short: float = 0.01
    """Norm of the short vectors."""
    rare: float = 0.0

    def __post_init__(self) -> None:
        whole("dim", self.dim, low=2)
        whole("arms", self.arms, low=2)
        number("short", self.short, low=0.0, high=1.0)
        number("rare", self.rare, low=0.0, high=1.0)

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        x = _directions(seed, "one-big", first, count, self.arms, self.dim)
        big = x[:, 0].copy()
        if self.rare > 0.0:
            big[:, 0] = 0.0
            big /= np.linalg.norm(big, axis=1, keepdims=True)
            big[uniforms(seed, "one-big/rare", first, count)[:, 0] < self.rare] = np.eye(self.dim)[0]
        x *= self.short
        x[:, 0] = big
        return _full(x)


@dataclass(frozen=True, kw_only=True)
class Anisotropic:
    """Gaussian arms whose variance falls geometrically over the axes, and a share of sets that shows a rare direction.

    The k-th axis has standard deviation ``decay``^k. In a share ``rare`` of the sets the first arm is the last basis
    vector, the direction that all others hardly touch. Vectors are scaled to norm at most 1.

    >>> Anisotropic(dim=3, arms=5).draw(10, seed=1).contexts.shape
    (10, 5, 3)
    """

    dim: int
    arms: int
    decay: float = 0.7
    rare: float = 0.02

    def __post_init__(self) -> None:
        whole("dim", self.dim)
        whole("arms", self.arms)
        number("decay", self.decay, low=0.0, high=1.0, open_low=True)
        number("rare", self.rare, low=0.0, high=1.0)

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        deviations = self.decay ** np.arange(self.dim)
        x = normals(seed, "anisotropic", first, count, self.arms * self.dim).reshape(count, self.arms, self.dim)
        x = x * deviations / (2.0 * math.sqrt(float((deviations**2).sum())))
        x /= np.maximum(1.0, np.linalg.norm(x, axis=2, keepdims=True))
        x[uniforms(seed, "anisotropic/rare", first, count)[:, 0] < self.rare, 0] = np.eye(self.dim)[-1]
        return _full(x)


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """The paper's counterexample (Section 6): a sample of γ sets misleads whoever learns a design from all of it.

    Y_1 = {e_1} has mass 1/(dγ); Y_i = {√(1-ε²)·e_i + ε·e_1, e_i} share the rest, ε = √(d/γ). A sample of γ sets
    contains Y_1 with probability about 1/d, and then shows it d times too often.

    >>> sets = Counterexample(dim=4, sample=1000).draw(5, seed=1)
    >>> sets.contexts.shape, bool(sets.alive[:, 1].all())
    ((5, 2, 4), True)
    """

    dim: int
    sample: int
    """γ; at least d, so that ε ≤ 1."""

    def __post_init__(self) -> None:
        whole("dim", self.dim, low=2)
        whole("sample", self.sample, low=self.dim)

    @property
    def arms(self) -> int:
        """Most arms in a set."""
        return 2

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
        which = np.minimum(np.searchsorted(np.cumsum(self.masses), u), self.dim - 1)
        return self.support[which]


@dataclass(frozen=True, kw_only=True)
class Segments:
    """Users of several segments, each with features of its own; every segment is rarer than the last.

    Segment k has probability ∝ ``rarity``^k and arms that are random directions in its own block of coordinates, so
    what is learned in one segment says nothing about another.

    >>> Segments(dim=6, arms=5, segments=3).draw(10, seed=1).contexts.shape
    (10, 5, 6)
    """

    dim: int
    arms: int
    segments: int = 5
    rarity: float = 0.3

    def __post_init__(self) -> None:
        whole("dim", self.dim)
        whole("arms", self.arms)
        whole("segments", self.segments)
        if self.segments > self.dim:
            object.__setattr__(self, "segments", self.dim)
        number("rarity", self.rarity, low=0.0, high=1.0, open_low=True)

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        masses = self.rarity ** np.arange(self.segments)
        u = uniforms(seed, "segments/which", first, count)[:, 0]
        which = np.minimum(np.searchsorted(np.cumsum(masses / masses.sum()), u), self.segments - 1)
        block = np.arange(self.dim) % self.segments == which[:, None]
        x = normals(seed, "segments", first, count, self.arms * self.dim).reshape(count, self.arms, self.dim)
        x = x * block[:, None, :]
        return _full(x / np.linalg.norm(x, axis=2, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class Zipf:
    """Every arm points mostly along one axis; axis k is drawn with probability ∝ 1/(k + 1)^``exponent``.

    >>> Zipf(dim=6, arms=5).draw(10, seed=1).contexts.shape
    (10, 5, 6)
    """

    dim: int
    arms: int
    exponent: float = 2.0
    blur: float = 0.1
    """Norm of the random part beside the axis."""

    def __post_init__(self) -> None:
        whole("dim", self.dim)
        whole("arms", self.arms)
        number("exponent", self.exponent, low=0.0)
        number("blur", self.blur, low=0.0, high=1.0)

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        masses = (1.0 + np.arange(self.dim)) ** -self.exponent
        u = uniforms(seed, "zipf/axis", first, count, self.arms)
        axis = np.minimum(np.searchsorted(np.cumsum(masses / masses.sum()), u), self.dim - 1)
        x = self.blur * _directions(seed, "zipf", first, count, self.arms, self.dim)
        x += math.sqrt(1.0 - self.blur**2) * np.eye(self.dim)[axis]
        return _full(x / np.maximum(1.0, np.linalg.norm(x, axis=2, keepdims=True)))


@dataclass(frozen=True, kw_only=True)
class FixedActions:
    """The same set of random unit vectors in every round; which set, the seed tells.

    >>> sets = FixedActions(dim=3, arms=5).draw(2, seed=1)
    >>> bool((sets.contexts[0] == sets.contexts[1]).all())
    True
    """

    dim: int
    arms: int

    def __post_init__(self) -> None:
        whole("dim", self.dim)
        whole("arms", self.arms)

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        x = _directions(seed, "fixed", 0, 1, self.arms, self.dim)
        return _full(np.repeat(x, count, axis=0))


@dataclass(frozen=True, kw_only=True)
class PlainArms:
    """Arms without features, as basis vectors: what one of them pays says nothing about another.

    >>> PlainArms(arms=2).draw(1, seed=1).contexts.tolist()
    [[[1.0, 0.0], [0.0, 1.0]]]
    """

    arms: int

    def __post_init__(self) -> None:
        whole("arms", self.arms)

    @property
    def dim(self) -> int:
        """As many as there are arms."""
        return self.arms

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        return _full(np.repeat(np.eye(self.arms)[None], whole("count", count, low=0), axis=0))


@dataclass(frozen=True, kw_only=True)
class VaryingArms:
    """Another distribution whose sets lose some of their arms: between ``least`` and all of them are left, at random.

    >>> sets = VaryingArms(source=Gaussian(dim=2, arms=4), least=2).draw(50, seed=1)
    >>> int(sets.alive.sum(axis=1).min()), int(sets.alive.sum(axis=1).max())
    (2, 4)
    """

    source: ContextDistribution
    least: int = 1

    def __post_init__(self) -> None:
        whole("least", self.least, high=self.source.arms)

    @property
    def dim(self) -> int:
        """Number of features of an arm."""
        return self.source.dim

    @property
    def arms(self) -> int:
        """Most arms in a set."""
        return self.source.arms

    def draw(self, count: int, *, seed: int, first: int = 0) -> ContextSets:
        sets = self.source.draw(count, seed=seed, first=first)
        u = uniforms(seed, "varying", first, count, 1 + self.arms)
        left = self.least + np.floor(u[:, 0] * (self.arms - self.least + 1)).astype(int)
        rank = np.argsort(np.argsort(u[:, 1:] + 2.0 * ~sets.alive, axis=1), axis=1)
        alive = sets.alive & (rank < left[:, None])
        return ContextSets(sets.contexts, alive)


def _directions(seed: int, stream: str, first: int, count: int, arms: int, dim: int) -> FloatArray:
    x = normals(seed, stream, first, count, arms * dim).reshape(count, arms, dim)
    x /= np.sqrt(np.vecdot(x, x))[:, :, None]
    return x


def _full(contexts: FloatArray) -> ContextSets:
    return ContextSets(contexts, np.ones(contexts.shape[:2], dtype=np.bool_))
