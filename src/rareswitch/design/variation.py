"""How well a sampling policy explores a distribution of context sets (Definition 1 and Theorem 5).

All expectations are means over a sample of sets, (n, K, d) with an optional mask.
"""

from typing import Any

import numpy as np

from rareswitch.design.quadratic_forms import quadratic_forms
from rareswitch.design.sampling import Sampler
from rareswitch.errors import ShapeError
from rareswitch.validation import FloatArray, Sets, context_sets, finite_array, number


def information(sampler: Sampler, contexts: Any, alive: Any = None) -> FloatArray:
    """Information matrix I(π) = E_X E_{x∼π(X)} xxᵀ, shape (d, d).

    >>> from rareswitch.design import Uniform
    >>> information(Uniform(), [[[1.0, 0.0], [0.0, 1.0]]]).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    sets = context_sets(contexts, alive)
    return weighted_information(sets, sampler.probabilities(sets.contexts, sets.alive))


def variation(sampler: Sampler, contexts: Any, alive: Any = None, *, regularization: float, given: Any = None) -> float:
    """λ-variation V(π) = E_X max_{x∈X} xᵀ(λI + I(π))⁻¹x.

    Parameters
    ----------
    regularization
        λ > 0.
    given
        The information matrix to use in place of I(π) over these sets: that of other sets, for instance.

    Examples
    --------
    >>> from rareswitch.design import Uniform
    >>> round(variation(Uniform(), [[[1.0, 0.0], [0.0, 1.0]]], regularization=1e-9), 3)
    2.0
    """
    return float(largest_forms(sampler, contexts, alive, regularization, given).mean())


def deviation(sampler: Sampler, contexts: Any, alive: Any = None, *, regularization: float, given: Any = None) -> float:
    """λ-deviation Ṽ(π) = E_X √(max_{x∈X} xᵀ(λI + I(π))⁻¹x), with the arguments of :func:`variation`.

    >>> from rareswitch.design import Uniform
    >>> round(deviation(Uniform(), [[[1.0, 0.0], [0.0, 1.0]]], regularization=1e-9), 3)
    1.414
    """
    return float(np.sqrt(largest_forms(sampler, contexts, alive, regularization, given)).mean())


def largest_forms(sampler: Sampler, contexts: Any, alive: Any, regularization: float, given: Any = None) -> FloatArray:
    """max_{x∈X} xᵀ(λI + I(π))⁻¹x of each set, (n,): what V and Ṽ average."""
    sets = context_sets(contexts, alive)
    lam = number("regularization", regularization, low=0.0, open_low=True)
    dim = sets.contexts.shape[2]
    if given is None:
        matrix = information(sampler, sets)
    else:
        matrix = finite_array("given", given)
        if matrix.shape != (dim, dim):
            raise ShapeError(f"given must be an information matrix {(dim, dim)}; got {matrix.shape}.")
    return np.asarray(quadratic_forms(sets, symmetric_inverse(lam * np.eye(dim) + matrix)).max(axis=1))


def weighted_information(sets: Sets, probabilities: FloatArray) -> FloatArray:
    """(1/n) Σ_s Σ_i p_si x_si x_siᵀ."""
    dim = sets.contexts.shape[2]
    flat = sets.contexts.reshape(-1, dim)
    return np.asarray((flat * probabilities.reshape(-1, 1)).T @ flat / len(sets.contexts))


def symmetric_inverse(matrix: FloatArray) -> FloatArray:
    """The inverse of a symmetric matrix, symmetric to the last bit."""
    inverse = np.linalg.inv(matrix)
    return np.asarray((inverse + inverse.T) / 2, dtype=np.float64)
