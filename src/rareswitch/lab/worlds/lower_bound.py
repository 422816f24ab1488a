"""The paper's hard instances for learners that switch rarely (Section 8), and the regret that they force."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from rareswitch.core import FloatArray, IntArray, finite_array, number, read_only, uniforms, whole
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.lab.worlds.world import GaussianNoise, Noise, NoisyRewards, Rounds, check_ended

__all__ = ["LowerBoundWorld", "every_instance", "switch_lower_bound", "theorem_range"]

#: ``proof``: υ ≤ 1/10, what the paper's constants need. ``wide``: υ < 1/2, what positive gaps need.
Regime = Literal["proof", "wide"]

_MOST_INSTANCES = 1 << 12
_LONGEST = 1 << 53
_NOISE = GaussianNoise(1.0)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LowerBoundWorld(NoisyRewards):
    """Two arms that cannot be distinguished until the last moment, stage after stage: an update is needed in each.

    Every pair of dimensions owns an interval of T' = 2T/d rounds, cut into L stages of equal length. With
    υ = √T'^(-1/(L+1)), z_j = υ^(-(j+1))/√T' and ψ_j(u) = ½ + Σ_{i≤j} u_i·υ^i, the pair's θ is (ψ_L(u), ⅔), and the
    arms of stage j are (z_j, 0) and (0, 3/2·z_j·ψ_{j-1}(u)): the better one is decided by u_j, of which all earlier
    rewards tell next to nothing. Instances whose signs agree up to j have the same contexts up to stage j + 1.

    The printed vectors leave the unit ball for larger υ and d. By default contexts and θ are scaled into it, each
    by one factor that is the same for all signs, and the gaps shrink by both.

    Parameters
    ----------
    horizon
        T; the number of rounds of the world.
    stages
        L, for each pair of dimensions, such that υ < ½: at most :func:`most_stages`.
    dim
        d, even.
    signs
        u, (d/2, L) of ±1; by default the seed tells them.
    scaled
        False for the vectors as printed: θ may then be longer than 1, and so may contexts, which learners that
        check the unit ball refuse.
    noise
        The paper's is Gaussian with σ = 1.

    Examples
    --------
    >>> world = LowerBoundWorld(horizon=10_000, stages=2, signs=[[1, -1]])
    >>> print(world.describe())
    T = 10000, d = 2, L = 2 stages for each pair of dimensions (2 in all), υ = 0.2154: gaps are positive (wide).
    Contexts are scaled by 0.9318 and θ by 0.9878; the worse arm costs at least 0.03352 a round.
    >>> world.draw(1, seed=1, first=9999).means.round(4).tolist()
    [[0.6158, 0.6585]]
    """

    horizon: int
    stages: int
    dim: int = 2
    signs: IntArray | None = None
    scaled: bool = True
    noise: Noise = _NOISE
    arms: ClassVar[int] = 2

    def __post_init__(self) -> None:
        whole("stages", self.stages)
        most = most_stages(horizon=self.horizon, dim=self.dim)
        if self.stages > most:
            fewer = f"Use at most {most}." if most else f"Even one needs a horizon of at least {8 * self.dim + 1}."
            sizes = f"{self.stages} stages with horizon {self.horizon} and dim {self.dim} give {self.upsilon:.4g}"
            raise ParameterError(f"upsilon must be below 1/2, or gaps need not be positive; {sizes}. {fewer}")
        if self.signs is not None:
            vars(self).update(signs=self._checked(self.signs))

    def _checked(self, value: IntArray) -> IntArray:
        signs, shape = finite_array("signs", value), (self.dim // 2, self.stages)
        if signs.shape != shape:
            raise ShapeError(f"signs must have shape (dim/2, stages) = {shape}; got {signs.shape}.")
        if not (np.abs(signs) == 1.0).all():
            raise ParameterError(f"signs must be 1 or -1; got {signs[np.abs(signs) != 1.0][0]:g}.")
        return read_only(signs.astype(np.int64))

    def __repr__(self) -> str:
        rows = () if self.signs is None else self.signs
        u = " ".join("".join("+" if sign > 0 else "-" for sign in row) for row in rows) or "of the seed"
        printed = "" if self.scaled else ", as printed"
        return f"LowerBoundWorld(T = {self.horizon}, d = {self.dim}, L = {self.stages}, signs {u}{printed})"

    @property
    def rounds(self) -> int:
        """T."""
        return self.horizon

    @property
    def upsilon(self) -> float:
        """υ, the factor between the digits that the signs write into θ."""
        return float((2.0 * self.horizon / self.dim) ** (-0.5 / (self.stages + 1)))

    @property
    def regime(self) -> Regime:
        """Which of the paper's steps hold (see :data:`Regime`); all of the theorem also needs L ≥ 160."""
        return "proof" if self.stages <= most_stages(horizon=self.horizon, dim=self.dim, inverse=10) else "wide"

    @property
    def context_scale(self) -> float:
        """The factor of all contexts: the largest, up to 1, that keeps those of all signs in the unit ball."""
        return 1.0 / max(1.0, 1.5 * (0.5 + self._powers[:-1].sum())) if self.scaled else 1.0

    @property
    def theta_scale(self) -> float:
        """The factor of θ: the largest, up to 1, that keeps those of all signs in the unit ball; about √(2/d)."""
        pair = math.hypot(0.5 + self._powers.sum(), 2.0 / 3.0)
        return 1.0 / max(1.0, math.sqrt(self.dim / 2) * pair) if self.scaled else 1.0

    @property
    def gaps(self) -> FloatArray:
        """(L,) what the worse arm of each stage costs at least, for any signs: z_j·(υ^j - Σ_{i>j} υ^i), scaled.

        Attained by signs that all oppose u_j from stage j + 1 on. It is at least υ^(-1)/(2√T'), scaled, if υ ≤ 1/3.
        """
        tail = np.cumsum(self._powers[::-1])[::-1] - self._powers
        return np.asarray(self.context_scale * self.theta_scale * self._lengths * (self._powers - tail))

    @cached_property
    def stage_ends(self) -> IntArray:
        """(d/2·L,) the round before which each stage ends, in the order of time, the last T."""
        pairs = self.dim // 2
        cuts = itertools.pairwise(-(-pair * self.horizon // pairs) for pair in range(pairs + 1))
        steps = range(1, self.stages + 1)
        return read_only(np.array([a - (-j * (b - a) // self.stages) for a, b in cuts for j in steps]))

    def stage_of(self, rounds: IntArray) -> IntArray:
        """The number (n,) of the stage of each round, from 0: number s is stage s % L + 1 of pair s // L + 1."""
        return np.searchsorted(self.stage_ends, rounds, side="right")

    def signs_of(self, seed: int) -> IntArray:
        """The signs (d/2, L)."""
        if self.signs is not None:
            return self.signs
        return np.where(uniforms(seed, "lower-bound/signs", 0, self.dim // 2, self.stages) < 0.5, -1, 1)

    def theta(self, seed: int) -> FloatArray:
        """The hidden parameter (d,)."""
        last = self._psi(seed)[:, -1]
        return self.theta_scale * np.column_stack([last, np.full(len(last), 2.0 / 3.0)]).ravel()

    def draw(self, count: int, *, seed: int, first: int = 0) -> Rounds:
        check_ended("the lower-bound world", self.horizon, first, count)
        pair, stage = np.divmod(self.stage_of(np.arange(first, first + count)), self.stages)
        row, z = np.arange(count), self.context_scale * self._lengths[stage]
        contexts = np.zeros((count, 2, self.dim))
        contexts[row, 0, 2 * pair] = z
        contexts[row, 1, 2 * pair + 1] = 1.5 * z * self._psi(seed)[pair, stage]
        return Rounds(contexts=contexts, means=contexts @ self.theta(seed))

    def describe(self) -> str:
        """The instance in two lines."""
        what = "the paper's constants hold" if self.regime == "proof" else "gaps are positive"
        stages = f"{self.stages} stages for each pair of dimensions ({len(self.stage_ends)} in all)"
        size = f"T = {self.horizon}, d = {self.dim}, L = {stages}, υ = {self.upsilon:.4g}"
        scales = f"Contexts are scaled by {self.context_scale:.4g} and θ by {self.theta_scale:.4g}"
        cost = f"the worse arm costs at least {self.gaps.min():.4g} a round"
        return f"{size}: {what} ({self.regime}).\n{scales if self.scaled else 'Vectors are as printed'}; {cost}."

    @property
    def _powers(self) -> FloatArray:
        """(L,) υ^j."""
        return np.asarray(self.upsilon ** np.arange(1.0, self.stages + 1))

    @property
    def _lengths(self) -> FloatArray:
        """(L,) z_j, which is υ^(L-j)."""
        return np.asarray(self.upsilon ** np.arange(self.stages - 1.0, -1.0, -1.0))

    def _psi(self, seed: int) -> FloatArray:
        """(d/2, L + 1) ψ_0 … ψ_L of each pair."""
        return 0.5 + np.pad(np.cumsum(self.signs_of(seed) * self._powers, axis=1), ((0, 0), (1, 0)))


def most_stages(*, horizon: int, dim: int = 2, inverse: int = 2) -> int:
    """The largest L with υ ≤ 1/``inverse``, or with υ < 1/2 for the default; 0 if there is none.

    >>> most_stages(horizon=10**6), most_stages(horizon=10**6, inverse=10)
    (8, 2)
    """
    whole("horizon", horizon, high=_LONGEST)
    whole("inverse", inverse, low=2)
    if whole("dim", dim, low=2) % 2:
        raise ParameterError(f"dim must be even, made of pairs; got {dim}. Use {dim - 1} or {dim + 1}.")
    twice = 2 * horizon - (inverse == 2)  # υ ≤ 1/b where 2T ≥ d·b^(2(L+1)), in whole numbers
    stages = 0
    while twice >= dim * inverse ** (2 * (stages + 2)):
        stages += 1
    return stages


def every_sign(pairs: int, stages: int) -> Iterator[IntArray]:
    """All arrays (pairs, stages) of ±1.

    >>> [signs.tolist() for signs in every_sign(1, 2)]
    [[[-1, -1]], [[-1, 1]], [[1, -1]], [[1, 1]]]
    """
    length = whole("pairs", pairs) * whole("stages", stages)
    if 1 << length > _MOST_INSTANCES:
        what = f"{pairs} pairs of {stages} stages have 2^{length} signs; at most {_MOST_INSTANCES} are listed"
        raise ParameterError(f"{what}. Take random ones: a LowerBoundWorld without signs has those of its seed.")
    return (np.array(u).reshape(pairs, stages) for u in itertools.product((-1, 1), repeat=length))


def every_instance(
    *, horizon: int, stages: int, dim: int = 2, scaled: bool = True, noise: Noise | None = None
) -> Iterator[LowerBoundWorld]:
    """All 2^(L·d/2) instances, over which the paper averages the regret.

    >>> len(list(every_instance(horizon=10_000, stages=2, dim=4)))
    16
    """
    world = LowerBoundWorld(horizon=horizon, stages=stages, dim=dim, scaled=scaled, noise=noise or _NOISE)
    return (replace(world, signs=signs) for signs in every_sign(dim // 2, stages))


def switch_lower_bound(*, horizon: int, dim: int, switches: float) -> float:
    """√(dT)/(32d)·(2T/d)^(1/(16M/d + 2)): regret that M expected switches force on some instance, with σ = 1.

    It is a theorem (Theorem 8) for M in :func:`theorem_range` and large T, and elsewhere no more than its formula. It
    is about the printed instances with L = 8M/d stages a pair. The last line of its proof puts L = 4M; with 8M/d
    the bound is d/√2 times larger. On the scaled instances that larger one holds times ``context_scale * theta_scale``,
    as gaps shrink by that much and rewards tell no more than they did. In the theorem's range this is no less than the
    printed formula.

    >>> round(switch_lower_bound(horizon=10**6, dim=2, switches=10), 1)
    26.2
    """
    whole("horizon", horizon, high=None)
    whole("dim", dim)
    number("switches", switches, low=0.0, open_low=True)
    log = math.log(horizon)  # of a whole number of any size
    total = 0.5 * (math.log(dim) + log) - math.log(32 * dim)
    total += (math.log(2) + log - math.log(dim)) / (16 * switches / dim + 2)
    return math.exp(total) if total < 709.0 else math.inf


def theorem_range(*, horizon: int, dim: int) -> tuple[float, float] | None:
    """The least and the most switches M for which the bound is proved, 20d ≤ M ≤ d·ln T/48; None if there are none.

    There are none unless ln T ≥ 960, whatever d is: at practical horizons the bound is a guide, not a theorem.

    >>> theorem_range(horizon=10**6, dim=2)
    >>> theorem_range(horizon=10**420, dim=2)
    (40.0, 40.29...)
    """
    most = whole("dim", dim) * math.log(whole("horizon", horizon, high=None)) / 48
    return (20.0 * dim, most) if most >= 20 * dim else None
