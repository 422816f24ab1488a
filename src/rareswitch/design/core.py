"""CoreIdentification and CoreLearning (Algorithms 4 and 3): designs that carry over from a sample to its source.

A direction that is rare in the distribution can be over-represented in a sample, and a policy that relies on it fails
on fresh sets. The core leaves out the sets that the rest of the sample does not explore well. The paper's
counterexample has such a sample; the policy that it misleads is written by hand; Algorithm 2 alone is not misled. At
c = 6 the core is the whole sample, there and at all practical sizes.

The proof of Theorem 5 has a slip: step II concludes Ṽ ≤ O(√(d log d)) from a sum with the slack d. The slack must be
√d, with the root inside the function f of the first concentration lemma. The algorithm does not change.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rareswitch.design.sampling import (
    GOptimal,
    MixedArgmax,
    MixedSoftmax,
    quadratic_forms,
    symmetric_inverse,
    weighted_information,
)
from rareswitch.design.staged import StagedDesign, staged_design
from rareswitch.errors import ParameterError
from rareswitch.validation import IntArray, Sets, context_sets, number, read_only, unit_ball


@dataclass(frozen=True, eq=False, kw_only=True)
class Core:
    """The sets that were kept."""

    #: Where they stand in the sample, increasing.
    indices: IntArray
    #: Times that the condition was looked at; the paper proves O(d log 1/λ).
    iterations: int
    #: d^c: no arm of the core has xᵀ(λI + (1/γ) Σ_core I(π^G))⁻¹x above it. Infinite for d = 1.
    threshold: float


@dataclass(frozen=True, eq=False, kw_only=True)
class CoreDesign:
    """A mixed-softmax policy learned from the core of a sample."""

    core: Core
    staged: StagedDesign

    @property
    def policy(self) -> MixedArgmax | MixedSoftmax:
        """The learned sampling policy."""
        return self.staged.policy


def core_identification(
    contexts: Any,
    available: Any = None,
    *,
    regularization: float,
    power: float = 6.0,
    g_optimal: GOptimal | None = None,
) -> Core:
    """Drop sets until every arm left has leverage at most d^c against the sets left (Algorithm 4).

    Parameters
    ----------
    contexts
        A sample of sets (γ, K, d) of vectors in the unit ball.
    regularization
        λ from 1e-12 to 1.
    power
        c. The paper's 6 is a proof threshold that never prunes at practical sizes; smaller values do. In one dimension
        no direction is rarer than another and d^c = 1 would prune every set, so all are kept.

    Examples
    --------
    >>> from rareswitch.distributions import Gaussian
    >>> sets = Gaussian(dim=3, arms=5).draw(100, seed=1)
    >>> core = core_identification(sets.contexts, regularization=1e-3)
    >>> len(core.indices), core.iterations
    (100, 1)
    """
    lam = number("regularization", regularization, low=1e-12, high=1.0)
    number("power", power, low=0.0)
    sets = context_sets(contexts, available)
    unit_ball(sets)
    size, _, dim = sets.contexts.shape
    threshold = math.inf if dim == 1 else math.exp(min(700.0, power * math.log(dim)))
    play = (g_optimal or GOptimal()).probabilities(sets._replace(single=False))
    inside = np.ones(size, dtype=np.bool_)
    iterations = 0
    while inside.any():
        iterations += 1
        # mean over all γ sets, those outside the core adding nothing
        spread = weighted_information(sets, play * inside[:, None])
        largest = quadratic_forms(sets, symmetric_inverse(lam * np.eye(dim) + spread)).max(axis=1)
        if largest[inside].max() <= threshold:
            return Core(indices=read_only(np.flatnonzero(inside)), iterations=iterations, threshold=threshold)
        inside &= largest <= 0.5 * threshold
    rule = f"power must be large enough for d^power = {threshold:.4g} to be reachable"
    raise ParameterError(f"no set is left in the core: {rule}; got {power}. The paper's value is 6.")


def core_learning(
    contexts: Any,
    available: Any = None,
    *,
    regularization: float,
    power: float = 6.0,
    arms: int | None = None,
    g_optimal: GOptimal | None = None,
) -> CoreDesign:
    """The mixed-softmax policy of the core of a sample (Algorithm 3), with the arguments of
    :func:`core_identification` and K, ``arms``, of :func:`~rareswitch.design.staged_design`.

    Examples
    --------
    >>> from rareswitch.design import variation
    >>> from rareswitch.distributions import Gaussian
    >>> sets = Gaussian(dim=3, arms=5).draw(100, seed=1)
    >>> learned = core_learning(sets.contexts, regularization=1e-3)
    >>> variation(learned.policy, sets.contexts, regularization=1e-3) < 9
    True
    """
    core = core_identification(contexts, available, regularization=regularization, power=power, g_optimal=g_optimal)
    sets = context_sets(contexts, available)
    kept = Sets(read_only(sets.contexts[core.indices]), read_only(sets.available[core.indices]), single=False)
    staged = staged_design(kept, regularization=regularization, arms=arms, g_optimal=g_optimal)
    return CoreDesign(core=core, staged=staged)
