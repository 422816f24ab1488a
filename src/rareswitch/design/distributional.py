"""Distributional designs: Algorithms 2, 3 and 4 of the paper.

Algorithm 2 makes a mixed-argmax or mixed-softmax policy for a sample of context sets. The paper presents the sets in N
blocks and adds one outer product a step. Within a stage the matrix W is fixed, hence so are the choices, and U grows by
the same matrix each block: the stage's end follows from generalised eigenvalues and a bisection. The stages, weights
and matrices are those of the literal loop. Algorithms 3 and 4 learn such a policy from the core of the sample.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rareswitch.core import (
    FloatArray,
    IntArray,
    Sets,
    SetsLike,
    context_sets,
    first_highest,
    frozen,
    number,
    one_of,
    read_only,
    unit_ball,
    whole,
)
from rareswitch.design.sampling import (
    GOptimal,
    MixedArgmax,
    MixedSoftmax,
    information,
    normalized_powers,
    quadratic_forms,
    symmetric_inverse,
    weighted_information,
)
from rareswitch.errors import ParameterError

__all__ = ["Core", "Form", "StagedDesign", "core_identification", "core_learning", "staged_design"]

Form = Literal["argmax", "softmax"]


@dataclass(frozen=True, eq=False, kw_only=True)
class StagedDesign:
    """What Algorithm 2 found, and the run that led to it."""

    policy: MixedArgmax | MixedSoftmax
    #: (n,) steps of every stage, the dropped ones included.
    stage_lengths: IntArray
    #: (n, d, d) the matrix W of every stage.
    stage_matrices: FloatArray
    #: N, the number of times that the sets are presented.
    blocks: int
    #: Γ, the number of sets, virtual copies included; stages shorter than this are dropped.
    block_length: int
    #: The sets that it was learned from, where some of the sample were left out.
    core: "Core | None" = None

    @property
    def atom_stages(self) -> IntArray:
        """Indices of the stages that became atoms of the policy."""
        return np.flatnonzero(self.stage_lengths >= self.block_length)


def staged_design(
    contexts: SetsLike,
    available: ArrayLike | None = None,
    *,
    regularization: float,
    form: Form = "softmax",
    arms: int | None = None,
    g_optimal: GOptimal | None = None,
) -> StagedDesign:
    """Run Algorithm 2 on sets (Γ, K, d) of vectors in the unit ball.

    Parameters
    ----------
    regularization
        λ from 1e-12 to 1. The paper assumes Γ > 1/λ "by duplicating sets"; here they are duplicated virtually.
    form
        ``"argmax"`` for Theorem 3, ``"softmax"`` (α = log₂ K) for Theorem 4.
    arms
        K, the most arms that a set offers; by default those of the largest of these sets. Padding does not count.
    g_optimal
        The G-optimal policy that plays half of the time.

    Notes
    -----
    N = max(1, ⌈2 d² log₂ d⌉). In one dimension no stage is as long as a block; the policy is then G-optimal play alone.

    Examples
    --------
    >>> from rareswitch.lab.distributions import Gaussian
    >>> sets = Gaussian(dim=3, arms=6).draw(200, seed=1)
    >>> design = staged_design(sets.contexts, regularization=1e-3)
    >>> len(design.policy.weights) == len(design.atom_stages) <= len(design.stage_lengths)
    True
    """
    lam = number("regularization", regularization, low=1e-12, high=1.0)
    one_of("form", form, ("argmax", "softmax"))
    sets = context_sets(contexts, available)
    unit_ball(sets)
    optimal = g_optimal or GOptimal()
    size, _, dim = sets.contexts.shape
    blocks = max(1, math.ceil(2 * dim**2 * math.log2(dim)))
    copies = math.floor(1.0 / (lam * size)) + 1
    total = blocks * copies * size

    # frozen here: the policy must depend neither on how these sets are padded nor on how later ones are
    exponent = math.log2(int(sets.available.sum(axis=1).max()) if arms is None else whole("arms", arms))
    current = total * (lam * np.eye(dim) + 0.5 * information(optimal, sets))
    lengths: list[int] = []
    matrices: list[FloatArray] = []
    while (step := sum(lengths)) < total:
        matrices.append(current)
        points, mass = (np.roll(part, -(step % size), axis=0) for part in _choices(sets, current, form, exponent))
        length, growth = _stage(points, mass, current, total - step)
        lengths.append(length)
        current = current + growth

    stage_lengths, stage_matrices = np.asarray(lengths, dtype=np.int64), np.asarray(matrices)
    long = stage_lengths >= copies * size
    atoms = [total * symmetric_inverse(matrix) for matrix in stage_matrices[long]]
    weights = stage_lengths[long] / max(1, stage_lengths[long].sum())
    mixture: dict[str, Any] = {"g_optimal_share": 0.5 if atoms else 1.0, "g_optimal": optimal}
    mixture |= {"weights": weights, "matrices": np.reshape(atoms, (-1, dim, dim))}
    policy = MixedArgmax(**mixture) if form == "argmax" else MixedSoftmax(**mixture, exponent=exponent)
    stages: dict[str, Any] = {"stage_lengths": read_only(stage_lengths), "stage_matrices": frozen(stage_matrices)}
    return StagedDesign(policy=policy, blocks=blocks, block_length=copies * size, **stages)


def _choices(sets: Sets, matrix: FloatArray, form: Form, exponent: float) -> tuple[FloatArray, FloatArray]:
    """The vectors that may be played in each set at W = ``matrix``, (Γ, m, d), and their probabilities, (Γ, m)."""
    values = quadratic_forms(sets, symmetric_inverse(matrix))
    if form == "softmax":
        return sets.contexts, normalized_powers(values, sets, exponent)
    best = first_highest(values)[:, None, None]
    return np.take_along_axis(sets.contexts, best, axis=1), np.ones((len(best), 1))


def _stage(points: FloatArray, mass: FloatArray, start: FloatArray, limit: int) -> tuple[int, FloatArray]:
    """Length of the stage that begins at W = ``start``, and how much U grows in it.

    ``points`` and ``mass`` are the choices at W, in the order of presentation. The stage ends with the first step at
    which det U > 2 det W, or after ``limit`` steps.
    """
    size, choices, dim = points.shape
    root = np.linalg.cholesky(start)
    white = (points @ np.linalg.inv(root).T).reshape(-1, dim)  # coordinates in which W = I; a step has ``choices`` rows
    weighted = (white * mass.reshape(-1, 1)).T
    block = weighted @ white
    growths = np.maximum(np.linalg.eigvalsh(block), 0.0)
    whole_blocks, beyond = 0, limit // size + 2  # the most blocks m < beyond with Σ ln(1 + m μ) ≤ ln 2
    while beyond - whole_blocks > 1:
        middle = (whole_blocks + beyond) // 2
        if np.log1p(middle * growths).sum() > math.log(2.0):
            beyond = middle
        else:
            whole_blocks = middle
    base = np.eye(dim) + whole_blocks * block
    first, last = 0, size  # the crossing step of the next block lies in (first, last]
    while last - first > 1:
        middle = (first + last) // 2
        rows = slice(first * choices, middle * choices)
        nearer = base + weighted[:, rows] @ white[rows]
        if np.linalg.slogdet(nearer)[1] > math.log(2.0):
            last = middle
        else:
            base, first = nearer, middle
    rows = slice(first * choices, last * choices)
    length, growth = whole_blocks * size + last, base - np.eye(dim) + weighted[:, rows] @ white[rows]
    if length > limit:
        length, (whole_blocks, rest) = limit, divmod(limit, size)
        rows = slice(rest * choices)
        growth = whole_blocks * block + weighted[:, rows] @ white[rows]
    return length, root @ growth @ root.T


@dataclass(frozen=True, eq=False, kw_only=True)
class Core:
    """The sets that were kept."""

    #: Where they stand in the sample, increasing.
    indices: IntArray
    #: Times that the condition was looked at; the paper proves O(d log 1/λ).
    iterations: int
    #: d^c: no arm of the core has xᵀ(λI + (1/γ) Σ_core I(π^G))⁻¹x above it. Infinite for d = 1.
    threshold: float


def core_identification(
    contexts: SetsLike,
    available: ArrayLike | None = None,
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
    >>> from rareswitch.lab.distributions import Gaussian
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
    contexts: SetsLike,
    available: ArrayLike | None = None,
    *,
    regularization: float,
    power: float = 6.0,
    arms: int | None = None,
    g_optimal: GOptimal | None = None,
) -> StagedDesign:
    """The mixed-softmax policy of the core of a sample (Algorithm 3), with the arguments of
    :func:`core_identification` and K, ``arms``, of :func:`~rareswitch.design.staged_design`.

    Examples
    --------
    >>> from rareswitch.design import variation
    >>> from rareswitch.lab.distributions import Gaussian
    >>> sets = Gaussian(dim=3, arms=5).draw(100, seed=1)
    >>> learned = core_learning(sets.contexts, regularization=1e-3)
    >>> variation(learned.policy, sets.contexts, regularization=1e-3) < 9
    True
    """
    core = core_identification(contexts, available, regularization=regularization, power=power, g_optimal=g_optimal)
    sets = context_sets(contexts, available)
    inside = Sets(read_only(sets.contexts[core.indices]), read_only(sets.available[core.indices]), single=False)
    return replace(staged_design(inside, regularization=regularization, arms=arms, g_optimal=g_optimal), core=core)
