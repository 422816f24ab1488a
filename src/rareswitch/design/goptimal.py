"""G-optimal designs of context sets, each with a certificate."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rareswitch.design.kernels import CERTIFIED, design_sets
from rareswitch.errors import CertificateError, CertificateWarning
from rareswitch.validation import FloatArray, IntArray, Sets, context_sets, number, whole

SMALLEST_TOL = 1e-8
_NONE = np.empty(0, dtype=np.int64)
_LARGEST_STEP = 1 << 21
"""Context entries that are solved in one go: well under a second."""


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Design:
    """Sampling weights for one set of arms or for many, and the certificate of each.

    For one set (K, d) the fields lack the leading axis n.

    The certificate holds for every ε > 0 at once: max over the living arms of xᵀ(εI + Σ w x xᵀ)⁻¹x ≤
    ``max_leverage``, where a component of at most ``residual``·‖x‖ outside the span of the set counts as rounding.
    """

    weights: FloatArray
    """(n, K), non-negative, each row sums to one, zero where an arm is not alive."""
    leverages: FloatArray
    """(n, K) leverage xᵀM⁻¹x of each arm at these weights."""
    max_leverage: FloatArray
    """(n,) the largest leverage, at most (1 + tol)·rank; where ``passes`` is 0, a bound on it, at most (1 + tol)·d."""
    rank: IntArray
    """(n,) dimension of the span of the living arms, which is the smallest max leverage any design can have; where
    ``passes`` is 0, an upper bound of it."""
    residual: FloatArray
    """(n,) largest distance of an arm to that span, relative to the arm's norm, each feature scaled to the same range.
    At most 1e-13: what is farther counts as another dimension."""
    passes: IntArray
    """(n,) factorisations done. Where it is 0 nothing was factored: the set is all zero, or (tol ≥ 1 only) the uniform
    design is certified by counting its arms, and leverages, max_leverage and rank are upper bounds."""
    failed: IntArray
    """Indices of the sets whose certificate could not be met; their weights and leverages are NaN."""

    def __getitem__(self, index: int) -> Self:
        """The design of one set of many."""
        return type(self)(
            weights=self.weights[index],
            leverages=self.leverages[index],
            max_leverage=self.max_leverage[index],
            rank=self.rank[index],
            residual=self.residual[index],
            passes=self.passes[index],
            failed=np.flatnonzero(self.failed == index % len(self.weights)),
        )


def g_optimal(contexts: Any, alive: Any = None, *, tol: float = 0.05, threads: int = 1) -> Design:
    """Weights w on the arms of each set with max leverage xᵀ(Σ w x xᵀ)⁻¹x at most (1 + tol) times the set's rank.

    With ``tol`` ≥ 1 and at most (1 + tol)·d arms the promise is that of the paper, (1 + tol)·d in place of the rank.

    Leverages are taken inside the span of the set, which is the limit ε → 0 of the paper's εI + Σ w x xᵀ (Section
    4.1) and an upper bound for every ε > 0. Sets may be degenerate in any way: fewer arms than dimensions,
    duplicates, zero vectors, near-collinear ones, norms that differ by many orders.

    Parameters
    ----------
    contexts
        One set (K, d) or many (n, K, d).
    alive
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
    sets = context_sets(contexts, alive)
    n, arms, dim = sets.contexts.shape
    weights = np.empty((n, arms))
    leverages = np.empty((n, arms))
    max_leverage = np.empty(n)
    rank = np.empty(n, dtype=np.int64)
    residual = np.empty(n)
    passes = np.empty(n, dtype=np.int64)
    status = np.empty(n, dtype=np.int64)

    outputs = (weights, leverages, max_leverage, rank, residual, passes, status)

    # in steps, because a kernel cannot be interrupted and because threads are not equally fast
    step = max(1, min(_LARGEST_STEP // (arms * dim), n if threads == 1 else -(-n // (6 * threads))))
    if n <= step:
        design_sets(sets.contexts, sets.alive, tol, *outputs)
    else:
        _in_steps(sets, tol, outputs, step, threads)
    failed = _NONE
    if status.any():
        failed = _refuse_failures(status, max_leverage, rank, tol, sets.single)
        weights[failed] = leverages[failed] = np.nan
    for array in outputs:
        array.flags.writeable = False
    one: Any = 0 if sets.single else slice(None)
    return Design(
        weights=weights[one],
        leverages=leverages[one],
        max_leverage=max_leverage[one],
        rank=rank[one],
        residual=residual[one],
        passes=passes[one],
        failed=failed,
    )


def _in_steps(sets: Sets, tol: float, outputs: tuple[Any, ...], step: int, threads: int) -> None:
    def solve(start: int) -> None:
        rows = slice(start, start + step)
        design_sets(sets.contexts[rows], sets.alive[rows], tol, *(array[rows] for array in outputs))

    starts = range(0, len(sets.contexts), step)
    if threads == 1:
        for start in starts:
            solve(start)
        return
    with ThreadPoolExecutor(threads) as pool:
        try:
            list(pool.map(solve, starts))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _refuse_failures(status: IntArray, max_leverage: FloatArray, rank: IntArray, tol: float, single: bool) -> IntArray:
    failed = np.flatnonzero(status != CERTIFIED)
    first = failed[0]
    text = (
        f"max leverage {max_leverage[first]:.6g} where (1 + tol)·rank = {(1 + tol) * rank[first]:.6g} was asked for. "
        "Ask for a larger tol."
    )
    if single:
        raise CertificateError(f"the design of this set could not be certified: {text}")
    shown = ", ".join(map(str, failed[:10])) + (", …" if failed.size > 10 else "")
    warnings.warn(
        f"{failed.size} of {len(status)} designs could not be certified and are NaN: sets {shown}. "
        f"Set {first} has {text}",
        CertificateWarning,
        stacklevel=3,
    )
    return failed
