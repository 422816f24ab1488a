"""Sampling policies: frozen rules that turn a set of available arms into probabilities over them.

They know nothing of rewards. The batched learners draw their exploration from one of them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from rareswitch.core import (
    FloatArray,
    Sets,
    SetsLike,
    context_sets,
    finite_array,
    first_highest,
    kind,
    number,
    of_type,
    probability_vector,
    read_only,
    sets_of,
    symmetric_matrices,
)
from rareswitch.design.goptimal import SMALLEST_TOL, design_weights, in_steps
from rareswitch.errors import CertificateError, ParameterError, ShapeError
from rareswitch.lanes import add_rows, compiled, lane_zeros, padded_length

__all__ = ["GOptimal", "MixedArgmax", "MixedSoftmax", "Sampler", "SetSampler", "Uniform", "check_sampler"]
__all__ += ["deviation", "information", "largest_forms", "variation"]


def quadratic_forms(sets: Sets, matrix: FloatArray) -> FloatArray:
    """xᵀ·matrix·x of every arm, (n, K), and minus infinity where an arm is not alive."""
    forms = np.empty(sets.available.shape)
    _forms(sets.contexts, read_only(matrix), forms)
    forms[~sets.available] = -np.inf
    return forms


def one_hot(values: FloatArray) -> FloatArray:
    """1 at the first highest value of each row, up to rounding; 0 elsewhere."""
    hot = np.zeros(values.shape)
    np.put_along_axis(hot, first_highest(values)[:, None], 1.0, axis=1)
    return hot


def normalized_powers(values: FloatArray, sets: Sets, exponent: float | None) -> FloatArray:
    """values^α normalised along rows, α by default log₂ of the available arms; uniform where a row is all zero."""
    exponents = np.log2(sets.available.sum(axis=1)) if exponent is None else np.full(len(values), float(exponent))
    probabilities = np.empty(values.shape)
    _normalized_powers(values, sets.available, exponents, probabilities)
    return probabilities


@compiled
def _forms(contexts, matrix, forms):  # type: ignore[no-untyped-def]
    """``forms`` (n, K) becomes xᵀ·matrix·x for every arm of ``contexts`` (n, K, d); ``matrix`` symmetric."""
    n, arm_count, dim = contexts.shape
    length = padded_length(arm_count)
    arms, image, zero = lane_zeros(dim, length), lane_zeros(np.int64(1), length), lane_zeros(np.int64(1), length)
    twice = np.zeros((dim, dim))  # the forms need one triangle of the matrix, off-diagonal entries counted twice
    for j in range(dim):
        for k in range(j):
            twice[j, k] = 2.0 * matrix[j, k]
        twice[j, j] = matrix[j, j]
    for s in range(n):
        for i in range(arm_count):
            forms[s, i] = 0.0
            for j in range(dim):
                arms[j, i] = contexts[s, i, j]
        for j in range(dim):
            add_rows(image, zero, 0, twice, j, arms, j + 1, length)
            for i in range(arm_count):
                forms[s, i] += image[0, i] * arms[j, i]


@compiled
def _normalized_powers(values, available, exponents, probabilities):  # type: ignore[no-untyped-def]
    """``probabilities`` (n, K) become values^exponent normalised along rows, zero where an arm is not alive.

    The softmax is free of scale, so each row is divided by its largest value before it is raised. A row without a
    positive value is uniform over its available arms.
    """
    n, arm_count = values.shape
    for s in range(n):
        largest = 0.0
        for i in range(arm_count):
            if available[s, i] and values[s, i] > largest:
                largest = values[s, i]
        total = 0.0
        for i in range(arm_count):
            share = 0.0
            if available[s, i]:
                if largest == 0.0:
                    share = 1.0
                elif values[s, i] > 0.0:
                    share = (values[s, i] / largest) ** exponents[s]
            probabilities[s, i] = share
            total += share
        for i in range(arm_count):
            probabilities[s, i] /= total


@runtime_checkable
class Sampler(Protocol):
    """What every sampling policy offers."""

    def probabilities(self, contexts: SetsLike, available: ArrayLike | None = None) -> FloatArray:
        """Probabilities (n, K) for contexts (n, K, d), or (K,) for one set (K, d); zero where an arm is not alive."""


def check_sampler(name: str, sampler: Sampler) -> None:
    """Refuse what cannot say with which probabilities it samples."""
    if not isinstance(sampler, Sampler):
        raise ParameterError(f"{name} must be a sampler, with a method probabilities; got {sampler!r:.60}.")


class SetSampler(ABC):
    """Answers one set as the many of which it is the only one."""

    #: The field whose last axis are the features, where there is one.
    fitted: ClassVar[str] = ""

    @cached_property
    def dim(self) -> int | None:
        """Number of features; None where any number will do."""
        held = getattr(self, self.fitted, None)
        return None if held is None else int(held.shape[-1])

    def probabilities(self, contexts: SetsLike, available: ArrayLike | None = None) -> FloatArray:
        sets = context_sets(contexts, available) if self.dim is None else sets_of(self.dim, contexts, available)
        return self.of_sets(sets.part(slice(None)))[0] if sets.single else self.of_sets(sets)

    @abstractmethod
    def of_sets(self, sets: Sets) -> FloatArray:
        """Probabilities (n, K) for checked sets (n, K, d)."""


@kind("uniform")
@dataclass(frozen=True)
class Uniform(SetSampler):
    """Each available arm with the same probability.

    >>> Uniform().probabilities([[1.0], [2.0], [3.0]], [True, True, False]).tolist()
    [0.5, 0.5, 0.0]
    """

    def of_sets(self, sets: Sets) -> FloatArray:
        return np.asarray(sets.available / sets.available.sum(axis=1, keepdims=True))


@kind("g-optimal")
@dataclass(frozen=True, kw_only=True)
class GOptimal(SetSampler):
    """The G-optimal design of the available arms, π^G of the paper; ``tol=1`` is its factor 2.

    >>> GOptimal().probabilities([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]]).round(2).tolist()
    [0.5, 0.5, 0.0]
    """

    tol: float = 0.05

    def __post_init__(self) -> None:
        vars(self).update(tol=number("tol", self.tol, low=SMALLEST_TOL))

    def of_sets(self, sets: Sets) -> FloatArray:
        weights = np.empty(sets.available.shape)
        for contexts, available, part in in_steps(sets.contexts, sets.available, weights):
            failed = design_weights(contexts, available, part, self.tol)
            if failed is not None:
                raise CertificateError(f"no certified design for sets {failed[:10].tolist()}; ask for a larger tol.")
        return weights


@dataclass(frozen=True, eq=False, kw_only=True)
class _Mixture(SetSampler):
    """G-optimal play, or one of several policies that choose by quadratic forms."""

    #: (m,) probabilities of the policies, given that one of them plays.
    weights: FloatArray
    #: (m, d, d)
    matrices: FloatArray
    g_optimal_share: float = 0.5
    g_optimal: GOptimal = field(default_factory=GOptimal)
    fitted: ClassVar[str] = "matrices"

    def __post_init__(self) -> None:
        share = number("g_optimal_share", self.g_optimal_share, low=0.0, high=1.0)
        of_type("g_optimal", self.g_optimal, GOptimal)
        matrices = symmetric_matrices("matrices", self.matrices)
        weights = probability_vector("weights", self.weights) if len(matrices) else np.empty(0)
        if len(weights) != len(matrices) or (share < 1.0 and not len(matrices)):
            rule = "a mixture needs one weight for each matrix, and at least one unless g_optimal_share is 1"
            counts = f"{np.size(self.weights)} weights, {len(matrices)} matrices and a share of {share}"
            raise ShapeError(f"{rule}; got {counts}.")
        vars(self).update(matrices=matrices, weights=weights, g_optimal_share=share)

    def of_sets(self, sets: Sets) -> FloatArray:
        total = np.zeros(sets.available.shape)
        if self.g_optimal_share > 0.0:
            total = self.g_optimal_share * self.g_optimal.probabilities(sets)
        for weight, matrix in zip(self.weights, self.matrices, strict=True):
            total += (1.0 - self.g_optimal_share) * weight * self._choice(sets, quadratic_forms(sets, matrix))
        return total

    def _choice(self, sets: Sets, forms: FloatArray) -> FloatArray:
        """Probabilities (n, K) of the policy with these quadratic forms."""
        return one_hot(forms)


@kind("mixed-argmax")
@dataclass(frozen=True, eq=False, kw_only=True)
class MixedArgmax(_Mixture):
    """G-optimal play with probability ``g_optimal_share``, else one of several argmax policies (Definition 2).

    The paper's mixture has a share of ½. The certified mixture of :func:`~rareswitch.design.frank_wolfe` is of this
    form with a share of its own. One matrix V and a share of 0 are the argmax policy of V alone: the available arm with
    the largest xᵀVx, the first of them on a tie.

    Examples
    --------
    >>> policy = MixedArgmax(weights=[1.0], matrices=[[[1.0, 0.0], [0.0, 4.0]]])
    >>> policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [0.25, 0.75]
    """


@kind("mixed-softmax")
@dataclass(frozen=True, eq=False, kw_only=True)
class MixedSoftmax(_Mixture):
    """G-optimal play with probability ``g_optimal_share``, else one of several softmax policies (Definition 3).

    A softmax policy plays an available arm with probability ∝ (xᵀMx)^α. ``exponent`` is α; by default log₂ of the
    number of available arms of the set. Where all xᵀMx are zero the probabilities are uniform.

    Examples
    --------
    >>> policy = MixedSoftmax(weights=[1.0], matrices=[[[1.0, 0.0], [0.0, 3.0]]])
    >>> policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [0.375, 0.625]
    """

    exponent: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exponent is not None:
            vars(self).update(exponent=number("exponent", self.exponent, low=0.0))

    def _choice(self, sets: Sets, forms: FloatArray) -> FloatArray:
        return normalized_powers(forms, sets, self.exponent)


def information(sampler: Sampler, contexts: SetsLike, available: ArrayLike | None = None) -> FloatArray:
    """Information matrix I(π) = E_X E_{x∼π(X)} xxᵀ, shape (d, d).

    >>> from rareswitch.design import Uniform
    >>> information(Uniform(), [[[1.0, 0.0], [0.0, 1.0]]]).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    sets = context_sets(contexts, available)
    return weighted_information(sets, sampler.probabilities(sets.contexts, sets.available))


def variation(
    sampler: Sampler,
    contexts: SetsLike,
    available: ArrayLike | None = None,
    *,
    regularization: float,
    matrix: ArrayLike | None = None,
) -> float:
    """λ-variation V(π) = E_X max_{x∈X} xᵀ(λI + I(π))⁻¹x.

    Parameters
    ----------
    regularization
        λ > 0.
    matrix
        The information matrix to use in place of I(π) over these sets: that of other sets, for instance.

    Examples
    --------
    >>> from rareswitch.design import Uniform
    >>> round(variation(Uniform(), [[[1.0, 0.0], [0.0, 1.0]]], regularization=1e-9), 3)
    2.0
    """
    return float(largest_forms(sampler, contexts, available, regularization, matrix).mean())


def deviation(
    sampler: Sampler,
    contexts: SetsLike,
    available: ArrayLike | None = None,
    *,
    regularization: float,
    matrix: ArrayLike | None = None,
) -> float:
    """λ-deviation Ṽ(π) = E_X √(max_{x∈X} xᵀ(λI + I(π))⁻¹x), with the arguments of :func:`variation`.

    >>> from rareswitch.design import Uniform
    >>> round(deviation(Uniform(), [[[1.0, 0.0], [0.0, 1.0]]], regularization=1e-9), 3)
    1.414
    """
    return float(np.sqrt(largest_forms(sampler, contexts, available, regularization, matrix)).mean())


def largest_forms(
    sampler: Sampler,
    contexts: SetsLike,
    available: ArrayLike | None,
    regularization: float,
    matrix: ArrayLike | None = None,
) -> FloatArray:
    """max_{x∈X} xᵀ(λI + I(π))⁻¹x of each set, (n,): what V and Ṽ average."""
    sets = context_sets(contexts, available)
    lam = number("regularization", regularization, low=0.0, open_low=True)
    dim = sets.contexts.shape[2]
    information_matrix = information(sampler, sets) if matrix is None else finite_array("matrix", matrix)
    if information_matrix.shape != (dim, dim):
        raise ShapeError(f"matrix must be an information matrix {(dim, dim)}; got {information_matrix.shape}.")
    return np.asarray(quadratic_forms(sets, symmetric_inverse(lam * np.eye(dim) + information_matrix)).max(axis=1))


def weighted_information(sets: Sets, probabilities: FloatArray) -> FloatArray:
    """(1/n) Σ_s Σ_i p_si x_si x_siᵀ."""
    dim = sets.contexts.shape[2]
    flat = sets.contexts.reshape(-1, dim)
    return np.asarray((flat * probabilities.reshape(-1, 1)).T @ flat / len(sets.contexts))


def symmetric_inverse(matrix: FloatArray) -> FloatArray:
    """The inverse of a symmetric matrix, symmetric to the last bit."""
    inverse = np.linalg.inv(matrix)
    return np.asarray((inverse + inverse.T) / 2, dtype=np.float64)
