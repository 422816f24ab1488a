"""G-optimal designs of context sets, each with a certificate."""

import warnings
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from rareswitch.core import FloatArray, IntArray, SetsLike, context_sets, number, whole
from rareswitch.design.kernels import CERTIFIED, Output, design_outputs, design_sets
from rareswitch.errors import CertificateError, CertificateWarning

SMALLEST_TOL = 1e-8
_OUTPUTS = ("weights", "leverages", "max_leverage", "rank", "residual", "passes")
#: Context entries that are solved in one go: well under a second.
_LARGEST_STEP = 1 << 21


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Design:
    """Sampling weights for one set of arms or for many, and the certificate of each.

    For one set (K, d) the fields lack the leading axis n.

    The certificate holds for every ε > 0 at once: max over the available arms of xᵀ(εI + Σ w x xᵀ)⁻¹x ≤
    ``max_leverage``, where a component of at most ``residual``·‖x‖ outside the span of the set counts as rounding.
    """

    #: (n, K), non-negative, each row sums to one, zero where an arm is not available.
    weights: FloatArray
    #: (n, K) leverage xᵀM⁻¹x of each arm at these weights.
    leverages: FloatArray
    #: (n,) the largest leverage, at most (1 + tol)·rank; where ``passes`` is 0, a bound on it, at most (1 + tol)·d.
    max_leverage: FloatArray
    #: (n,) dimension of the span of the available arms, which is the smallest max leverage any design can have; where
    #: ``passes`` is 0, an upper bound of it.
    rank: IntArray
    #: (n,) largest distance of an arm to that span, relative to the arm's norm, each feature scaled to the same range.
    #: At most 1e-13: what is farther counts as another dimension.
    residual: FloatArray
    #: (n,) factorisations done. Where it is 0 nothing was factored: the set is all zero, or (tol ≥ 1 only) the uniform
    #: design is certified by counting its arms, and leverages, max_leverage and rank are upper bounds.
    passes: IntArray
    #: Indices of the sets whose certificate could not be met; their weights and leverages are NaN.
    failed: IntArray

    def __getitem__(self, index: int) -> Self:
        """The design of one set of many."""
        parts = {name: getattr(self, name)[index] for name in _OUTPUTS}
        return type(self)(**parts, failed=np.flatnonzero(self.failed == index % len(self.weights)))


def g_optimal(contexts: SetsLike, available: ArrayLike | None = None, *, tol: float = 0.05, threads: int = 1) -> Design:
    """Weights w on the arms of each set with max leverage xᵀ(Σ w x xᵀ)⁻¹x at most (1 + tol) times the set's rank.

    With ``tol`` ≥ 1 and at most (1 + tol)·d arms the promise is that of the paper, (1 + tol)·d in place of the rank.

    Leverages are taken inside the span of the set, which is the limit ε → 0 of the paper's εI + Σ w x xᵀ (Section
    4.1) and an upper bound for every ε > 0. Sets may be degenerate in any way: fewer arms than dimensions,
    duplicates, zero vectors, near-collinear ones, norms that differ by many orders.

    Parameters
    ----------
    contexts
        One set (K, d) or many (n, K, d).
    available
        Which arms count, (K,) or (n, K); all by default.
    tol
        Relative slack, at least 1e-8. ``tol=1`` is the paper's factor 2: there a set of at most 2d arms is answered
        with the uniform design without any linear algebra.
    threads
        How many threads share the sets. The result does not depend on it.

    Raises
    ------
    CertificateError
        If the certificate of a single set cannot be met. Of many sets, those that fail are named in a
        :class:`~rareswitch.errors.CertificateWarning` and in ``failed``.

    Examples
    --------
    >>> design = g_optimal([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]])
    >>> design.weights.round(2).tolist(), float(design.max_leverage.round(2)), int(design.rank)
    ([0.5, 0.5, 0.0], 2.01, 2)
    """
    tol = number("tol", tol, low=SMALLEST_TOL)
    threads = whole("threads", threads)
    sets = context_sets(contexts, available)
    outputs = design_outputs(*sets.available.shape)
    weights, leverages, max_leverage, rank, _, _, status = outputs
    parts = in_steps(sets.contexts, sets.available, *outputs, parts=1 if threads == 1 else 6 * threads)

    def solve(part: tuple[Output, ...]) -> None:
        design_sets(part[0], part[1], tol, *part[2:])

    if threads == 1:
        deque(map(solve, parts), maxlen=0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            try:
                list(pool.map(solve, parts))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    failed = np.flatnonzero(status != CERTIFIED)
    if failed.size:
        _refuse_failures(failed, max_leverage, rank, tol, sets.single)
        weights[failed] = leverages[failed] = np.nan
    for array in outputs:
        array.flags.writeable = False
    one = 0 if sets.single else slice(None)
    return Design(**{name: array[one] for name, array in zip(_OUTPUTS, outputs, strict=False)}, failed=failed)


def in_steps(contexts: FloatArray, *arrays: Output, parts: int = 1) -> list[tuple[Output, ...]]:
    """Contexts (n, K, d) and what belongs to them, cut: a kernel cannot be interrupted, and threads differ in speed."""
    if parts == 1 and contexts.size <= _LARGEST_STEP:
        return [(contexts, *arrays)]
    n, arms, dim = contexts.shape
    step = max(1, min(_LARGEST_STEP // (arms * dim), -(-n // parts)))
    return [tuple(a[start : start + step] for a in (contexts, *arrays)) for start in range(0, n, step)]


def _refuse_failures(failed: IntArray, max_leverage: FloatArray, rank: IntArray, tol: float, single: bool) -> None:
    first = failed[0]
    asked = f"(1 + tol)·rank = {(1 + tol) * rank[first]:.6g} was asked for"
    text = f"max leverage {max_leverage[first]:.6g} where {asked}. Ask for a larger tol."
    if single:
        raise CertificateError(f"the design of this set could not be certified: {text}")
    shown = ", ".join(map(str, failed[:10])) + (", …" if failed.size > 10 else "")
    what = f"{failed.size} of {len(rank)} designs could not be certified and are NaN: sets {shown}"
    warnings.warn(f"{what}. Set {first} has {text}", CertificateWarning, stacklevel=3)
