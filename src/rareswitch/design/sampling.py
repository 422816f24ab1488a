"""Sampling policies: frozen rules that turn a set of living arms into probabilities over them.

They know nothing of rewards. The batched learners draw their exploration from one of them.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from rareswitch.design.forms import normalized_powers, quadratic_forms
from rareswitch.design.goptimal import SMALLEST_TOL, g_optimal
from rareswitch.errors import CertificateError, ShapeError
from rareswitch.validation import (
    FloatArray,
    Sets,
    context_sets,
    number,
    probability_vector,
    read_only,
    symmetric_matrices,
)


class Sampler(Protocol):
    """What every sampling policy offers."""

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        """Probabilities (n, K) for contexts (n, K, d), or (K,) for one set (K, d); zero where an arm is not alive."""
        ...


@dataclass(frozen=True)
class Uniform:
    """Each living arm with the same probability.

    >>> Uniform().probabilities([[1.0], [2.0], [3.0]], [True, True, False]).tolist()
    [0.5, 0.5, 0.0]
    """

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = context_sets(contexts, alive)
        return _shaped(sets, sets.alive / sets.alive.sum(axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class GOptimal:
    """The G-optimal design of the living arms, π^G of the paper; ``tol=1`` is its factor 2.

    >>> GOptimal().probabilities([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]]).round(2).tolist()
    [0.5, 0.5, 0.0]
    """

    tol: float = 0.05

    def __post_init__(self) -> None:
        object.__setattr__(self, "tol", number("tol", self.tol, low=SMALLEST_TOL))

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        design = g_optimal(contexts, alive, tol=self.tol)
        if design.failed.size:
            raise CertificateError(f"no certified design for sets {design.failed[:10].tolist()}; ask for a larger tol.")
        return design.weights


@dataclass(frozen=True, eq=False)
class Argmax:
    """The living arm with the largest xᵀVx, the first of them on a tie (Definition 2).

    >>> Argmax([[1.0, 0.0], [0.0, 2.0]]).probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [0.0, 1.0]
    """

    matrix: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", symmetric_matrices("matrix", np.asarray(self.matrix)[None])[0])

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = context_sets(contexts, alive)
        return _shaped(sets, one_hot(scores(sets, self.matrix)))


@dataclass(frozen=True, eq=False)
class Softmax:
    """A living arm with probability ∝ (xᵀMx)^α (Definition 3).

    ``exponent`` is α; by default log₂ of the number of living arms of the set. Where all xᵀMx are zero the
    probabilities are uniform.

    >>> Softmax([[1.0]], exponent=1.0).probabilities([[1.0], [2.0]]).tolist()
    [0.2, 0.8]
    """

    matrix: FloatArray
    exponent: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", symmetric_matrices("matrix", np.asarray(self.matrix)[None])[0])
        if self.exponent is not None:
            object.__setattr__(self, "exponent", number("exponent", self.exponent, low=0.0))

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = context_sets(contexts, alive)
        return _shaped(sets, powers(scores(sets, self.matrix), sets, self.exponent))


@dataclass(frozen=True, eq=False, kw_only=True)
class MixedArgmax:
    """G-optimal play with probability ``g_optimal_share``, else one of several argmax policies (Definition 2).

    The paper's mixture has a share of ½. The certified mixture of :func:`~rareswitch.design.frank_wolfe` is of this
    form with a share of its own.

    Examples
    --------
    >>> policy = MixedArgmax(weights=[1.0], matrices=[[[1.0, 0.0], [0.0, 4.0]]])
    >>> policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [0.25, 0.75]
    """

    weights: FloatArray
    """(m,) probabilities of the argmax policies, given that one of them plays."""
    matrices: FloatArray
    """(m, d, d)"""
    g_optimal_share: float = 0.5
    g_optimal: GOptimal = field(default_factory=GOptimal)

    def __post_init__(self) -> None:
        _check_mixture(self)

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = context_sets(contexts, alive)
        total = self.g_optimal_share * self.g_optimal.probabilities(Sets(sets.contexts, sets.alive, False))
        for weight, matrix in zip(self.weights, self.matrices, strict=True):
            total += (1.0 - self.g_optimal_share) * weight * one_hot(scores(sets, matrix))
        return _shaped(sets, total)


@dataclass(frozen=True, eq=False, kw_only=True)
class MixedSoftmax:
    """G-optimal play with probability ``g_optimal_share``, else one of several softmax policies (Definition 3).

    Examples
    --------
    >>> policy = MixedSoftmax(weights=[1.0], matrices=[[[1.0, 0.0], [0.0, 3.0]]])
    >>> policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [0.375, 0.625]
    """

    weights: FloatArray
    """(m,) probabilities of the softmax policies, given that one of them plays."""
    matrices: FloatArray
    """(m, d, d)"""
    g_optimal_share: float = 0.5
    g_optimal: GOptimal = field(default_factory=GOptimal)
    exponent: float | None = None

    def __post_init__(self) -> None:
        _check_mixture(self)
        if self.exponent is not None:
            object.__setattr__(self, "exponent", number("exponent", self.exponent, low=0.0))

    def probabilities(self, contexts: Any, alive: Any = None) -> FloatArray:
        sets = context_sets(contexts, alive)
        total = self.g_optimal_share * self.g_optimal.probabilities(Sets(sets.contexts, sets.alive, False))
        for weight, matrix in zip(self.weights, self.matrices, strict=True):
            total += (1.0 - self.g_optimal_share) * weight * powers(scores(sets, matrix), sets, self.exponent)
        return _shaped(sets, total)


def scores(sets: Sets, matrix: FloatArray) -> FloatArray:
    """xᵀ·matrix·x of every arm, (n, K), and minus infinity where an arm is not alive."""
    if matrix.shape[0] != sets.contexts.shape[2]:
        raise ShapeError(
            f"this sampling policy is for {matrix.shape[0]} dimensions; got contexts of {sets.contexts.shape[2]}."
        )
    forms = np.empty(sets.alive.shape)
    quadratic_forms(sets.contexts, read_only(matrix), forms)
    forms[~sets.alive] = -np.inf
    return forms


def one_hot(values: FloatArray) -> FloatArray:
    """1 at the first largest value of each row, 0 elsewhere."""
    hot = np.zeros(values.shape)
    np.put_along_axis(hot, values.argmax(axis=1)[:, None], 1.0, axis=1)
    return hot


def powers(values: FloatArray, sets: Sets, exponent: float | None) -> FloatArray:
    """values^α normalised along rows; uniform over the living arms of a row that is all zero."""
    exponents = np.log2(sets.alive.sum(axis=1)) if exponent is None else np.full(len(values), float(exponent))
    probabilities = np.empty(values.shape)
    normalized_powers(values, sets.alive, exponents, probabilities)
    return probabilities


def _check_mixture(policy: MixedArgmax | MixedSoftmax) -> None:
    share = number("g_optimal_share", policy.g_optimal_share, low=0.0, high=1.0)
    matrices = symmetric_matrices("matrices", policy.matrices)
    weights = probability_vector("weights", policy.weights) if len(matrices) else np.empty(0)
    if len(weights) != len(matrices) or (share < 1.0 and not len(matrices)):
        raise ShapeError(
            f"a mixture needs one weight for each matrix, and at least one unless g_optimal_share is 1; "
            f"got {np.size(policy.weights)} weights, {len(matrices)} matrices and a share of {share}."
        )
    object.__setattr__(policy, "matrices", matrices)
    object.__setattr__(policy, "weights", weights)
    object.__setattr__(policy, "g_optimal_share", share)


def _shaped(sets: Sets, probabilities: FloatArray) -> FloatArray:
    return probabilities[0] if sets.single else probabilities
