"""G-optimal designs of context sets, each with a certificate, and the kernels that find them.

One context set at a time, its arms laid out along the vector lanes: ``arms[j, i]`` is coordinate j of arm i, padded
with zero arms. A set is solved in its own coordinates where these are well conditioned, and otherwise in coordinates
of its span found by Gram-Schmidt in doubled precision, so that a certificate is right to about 1e-10 either way. (Where
arms lie around the rank tolerance itself, what counts as the span is a matter of rounding, and digits are lost.)

Rows are written in loops: an assignment to a slice takes Numba ten times as long to compile.
"""

import math
import warnings
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareswitch.core import BoolArray, FloatArray, IntArray, SetsLike, context_sets, number, whole
from rareswitch.errors import CertificateError, CertificateWarning
from rareswitch.lanes import (
    add_row,
    add_rows,
    add_squares,
    compiled,
    dot_four,
    fma,
    lane_zeros,
    multiply_row,
    padded_length,
)

__all__ = ["Design", "g_optimal"]

RANK_TOLERANCE = 1e-13  # an arm this close to a span, relative to its own norm and with features scaled, lies in it
NEGLIGIBLE = 1e-100  # an arm with no feature above this, relative to that feature's largest, counts as zero
TRUSTED_CONDITION = 1e5  # double precision certifies M when the inverse of its correlation matrix has this trace
WORST_CONDITION = 1e7  # the same in span coordinates, where it stays near the square of the rank
MULTIPLICATIVE_PASSES = 8  # then vertex exchange, whose convergence is linear
EXCHANGE_ROUNDS = 300

CERTIFIED, NOT_MET, ILL_CONDITIONED = 0, 1, 2
#: An array of numbers that a kernel fills in, each of a type of its own.
OutputArray: TypeAlias = NDArray[Any]
SMALLEST_TOL = 1e-8
_OUTPUTS = ("weights", "leverages", "max_leverage", "rank", "residual", "passes")
#: Context entries that are solved in one go: well under a second.
_LARGEST_STEP = 1 << 21


@compiled
def _factor(arms, weights, scaled, matrix, lower, pivots, diagonal, dim, smallest):  # type: ignore[no-untyped-def]
    """Factor M = Σ w x xᵀ = L·D·Lᵀ, L unit lower triangular; False where a pivot falls below ``smallest`` of M_jj.

    ``lower`` becomes -L below its diagonal, the multiples that a forward substitution adds; ``pivots`` 1/D and
    ``diagonal`` that of M.
    """
    length = arms.shape[1]
    width = matrix.shape[1]
    for j in range(dim):
        multiply_row(scaled, j, arms, j, weights, 0, length)
        for k in range(0, j + 1, 4):
            dot_four(matrix, scaled, j, arms, k, length)
        diagonal[j] = matrix[j, j]
    for j in range(dim):
        # a diagonal near the ends of the range of numbers has lost digits, or would
        if not (1e-280 < diagonal[j] < 1e280 and matrix[j, j] > smallest * diagonal[j]):
            return False
        pivots[j] = 1.0 / matrix[j, j]
        for k in range(j + 1, dim):
            lower[k, j] = -matrix[j, k] * pivots[j]
            add_row(matrix, k, matrix, j, lower[k, j], k // 8 * 8, width)
    return True


@compiled
def _whiten(arms, scaled, lower, pivots, leverage, dim):  # type: ignore[no-untyped-def]
    """``scaled`` becomes L⁻¹·arms and ``leverage`` xᵀM⁻¹x, the sum over its rows of squares divided by D."""
    length = arms.shape[1]
    for i in range(length):
        leverage[0, i] = 0.0
    for j in range(dim):
        add_rows(scaled, arms, j, lower, j, scaled, j, length)
        add_squares(leverage, 0, scaled, j, pivots[j], length)


@compiled
def _condition(lower, pivots, diagonal, inverse, dim, enough):  # type: ignore[no-untyped-def]
    """Trace of the inverse of the correlation matrix C of M, Σ_j M_jj (M⁻¹)_jj: how much rounding is amplified.

    Where an upper bound of it is already below ``enough``, that bound. The eigenvalues of C sum to dim, so its smallest
    is at least det C/(1 + 1/(dim - 1))^(dim - 1) ≥ det C/e, and the trace at most e·dim/det C.
    """
    bound = math.e * dim
    for j in range(dim):
        bound *= diagonal[j] * pivots[j]
    if bound <= enough:
        return bound
    trace = 0.0
    for j in range(dim):
        for k in range(inverse.shape[1]):
            inverse[j, k] = 0.0
        inverse[j, j] = 1.0
        add_rows(inverse, inverse, j, lower, j, inverse, j, (j // 8 + 1) * 8)
        for k in range(j + 1):
            trace += diagonal[k] * inverse[j, k] * inverse[j, k] * pivots[j]
    return trace


@compiled
def _prune(weights, leverage, largest, dim, count):  # type: ignore[no-untyped-def]
    """Take all weight from arms that no optimal design uses (the bound of Harman and Pronzato 2007).

    Returns how many lost their weight and how many keep it.
    """
    excess = largest / dim - 1.0
    bound = dim * (1.0 + 0.5 * excess - 0.5 * math.sqrt(excess * (4.0 + excess - 4.0 / dim)))
    pruned, support = 0, 0
    for i in range(count):
        if weights[0, i] > 0.0:
            if leverage[0, i] < bound:
                weights[0, i] = 0.0
                pruned += 1
            else:
                support += 1
    return pruned, support


@compiled
def _exchange(scaled, pivots, weights, leverage, inverse, gains, dim, count, tol, steps):  # type: ignore[no-untyped-def]
    """Move weight towards the arm of largest leverage or away from that of the smallest (Todd and Yıldırım 2007).

    ``scaled`` is L⁻¹·arms at the incoming weights; ``inverse`` tracks M⁻¹ in those coordinates, where it starts as D⁻¹.
    """
    length = scaled.shape[1]
    for j in range(dim):
        for k in range(inverse.shape[1]):
            inverse[j, k] = 0.0
        inverse[j, j] = pivots[j]
    direction = np.empty(dim)
    for _ in range(steps):
        high, low = 0, -1
        for i in range(count):
            if leverage[0, i] > leverage[0, high]:
                high = i
            if weights[0, i] > 0.0 and (low < 0 or leverage[0, i] < leverage[0, low]):
                low = i
        if leverage[0, high] <= (1.0 + 0.5 * tol) * dim:
            return
        towards = leverage[0, high] - dim >= dim - leverage[0, low] or weights[0, low] >= 1.0
        arm = high if towards else low
        step = (leverage[0, arm] / dim - 1.0) / (leverage[0, arm] - 1.0)
        all_of_it = -weights[0, arm] / (1.0 - weights[0, arm])
        dropped = not (towards or (leverage[0, arm] > 1.0 and step > all_of_it))
        step = all_of_it if dropped else step
        for j in range(dim):
            total = 0.0
            for k in range(dim):
                total += inverse[j, k] * scaled[k, arm]
            direction[j] = total
        for i in range(length):
            gains[0, i] = 0.0
        for j in range(dim):
            add_row(gains, 0, scaled, j, direction[j], 0, length)
        shrink = step / (1.0 - step + step * leverage[0, arm])
        keep = 1.0 - step
        for i in range(count):
            leverage[0, i] = (leverage[0, i] - shrink * gains[0, i] * gains[0, i]) / keep
            weights[0, i] *= keep
        weights[0, arm] = 0.0 if dropped else weights[0, arm] + step
        for j in range(dim):
            for k in range(dim):
                inverse[j, k] = (inverse[j, k] - shrink * direction[j] * direction[k]) / keep


@compiled
def _optimize(  # type: ignore[no-untyped-def]
    arms, scaled, matrix, lower, pivots, inverse, diagonal, gains, weights, leverage, dim, count, tol, condition_limit
):
    """Weights with max leverage ≤ (1 + tol)·dim for arms that span their ``dim`` coordinates.

    Each pass factors M afresh, so the leverages at return are those of the returned weights: the certificate.
    Returns the status, the largest leverage and the number of passes.
    """
    # a pivot below this is beyond the limit for sure; in span coordinates weights on their way may be worse than that
    pivot_floor = 1.0 / condition_limit if condition_limit == TRUSTED_CONDITION else 1e-14
    longest = 0
    for i in range(weights.shape[1]):
        weights[0, i] = 1.0 / count if i < count and dim > 1 else 0.0
        if abs(arms[0, i]) > abs(arms[0, longest]):
            longest = i
    if dim == 1:  # the longest arm takes all; an exchange of weight would have no interior optimum
        weights[0, longest] = 1.0
    for passes in range(1, MULTIPLICATIVE_PASSES + EXCHANGE_ROUNDS + 1):
        if not _factor(arms, weights, scaled, matrix, lower, pivots, diagonal, dim, pivot_floor):
            return ILL_CONDITIONED, 0.0, passes
        _whiten(arms, scaled, lower, pivots, leverage, dim)
        largest, smallest = 0.0, np.inf
        for i in range(count):
            largest = max(largest, leverage[0, i])
            smallest = min(smallest, leverage[0, i])
        if largest <= (1.0 + tol) * dim:
            if not _condition(lower, pivots, diagonal, inverse, dim, condition_limit) <= condition_limit:
                return ILL_CONDITIONED, largest, passes
            return CERTIFIED, largest, passes
        if passes <= MULTIPLICATIVE_PASSES:
            # w ← w (g - ½ min g), Dette, Pepelyshev and Zhigljavsky (2008)
            for i in range(count):
                weights[0, i] *= leverage[0, i] - 0.5 * smallest
        else:
            pruned, support = _prune(weights, leverage, largest, dim, count)
            if pruned == 0:
                _exchange(scaled, pivots, weights, leverage, inverse, gains, dim, count, tol, 8 * dim + support)
        total = 0.0
        for i in range(count):
            total += weights[0, i]
        for i in range(count):
            weights[0, i] *= 1.0 / total
    return NOT_MET, largest, passes


@compiled
def _two_sum(a, b):  # type: ignore[no-untyped-def]
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@compiled
def _product_sum(high, low, a_high, a_low, b_high, b_low):  # type: ignore[no-untyped-def]
    """(high, low) + a·b in doubled precision."""
    product = a_high * b_high
    error = fma(a_high, b_high, -product) + (a_high * b_low + a_low * b_high)
    total, rest = _two_sum(high, product)
    rest += low + error
    return _two_sum(total, rest)


@compiled
def _span_coordinates(arms, residual, dim, count):  # type: ignore[no-untyped-def]
    """Replace ``arms`` by coordinates in the basis of their own Gram-Schmidt pivots.

    The longest residual is the pivot, so coordinates are at most 1 in size and their M is well conditioned whenever
    the design is near optimal, however ill-conditioned the arms. ``residual`` is scratch of the shape of ``arms``.
    Returns the rank and the largest distance of an arm from the span of the pivots, relative to the arm's norm.
    """
    low = np.zeros((dim, count))
    norms, lengths, ratio_high, ratio_low = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count)
    for i in range(count):
        for j in range(dim):
            residual[j, i] = arms[j, i]
            norms[i] += arms[j, i] * arms[j, i]
    for rank in range(min(dim, count) + 1):
        pivot, farthest = -1, 0.0
        for i in range(count):
            lengths[i] = 0.0
            for j in range(dim):
                lengths[i] += residual[j, i] * residual[j, i]
            farthest = max(farthest, lengths[i] / norms[i])
            outside = lengths[i] > RANK_TOLERANCE * RANK_TOLERANCE * norms[i]
            if outside and (pivot < 0 or lengths[i] > lengths[pivot]):
                pivot = i
        if pivot < 0 or rank == dim:
            break
        square_high, square_low = 0.0, 0.0
        for i in range(count):
            ratio_high[i] = ratio_low[i] = 0.0
        for j in range(dim):
            x, y = residual[j, pivot], low[j, pivot]
            square_high, square_low = _product_sum(square_high, square_low, x, y, x, y)
            for i in range(count):
                ratio_high[i], ratio_low[i] = _product_sum(ratio_high[i], ratio_low[i], residual[j, i], low[j, i], x, y)
        for i in range(count):
            first = ratio_high[i] / square_high
            high, rest = _product_sum(ratio_high[i], ratio_low[i], -first, 0.0, square_high, square_low)
            ratio_high[i], ratio_low[i] = _two_sum(first, (high + rest) / square_high)
        for j in range(dim):
            x, y = residual[j, pivot], low[j, pivot]
            for i in range(count):
                residual[j, i], low[j, i] = _product_sum(residual[j, i], low[j, i], -ratio_high[i], -ratio_low[i], x, y)
            residual[j, pivot] = low[j, pivot] = 0.0
        for i in range(count):
            arms[rank, i] = ratio_high[i]
        arms[rank, pivot] = 1.0
    return rank, math.sqrt(farthest)


@compiled
def _gather(contexts, available, s, scales, negligible, arms, chosen):  # type: ignore[no-untyped-def]
    """Lay the available arms of set s that are not zero out along the lanes, features scaled; returns how many."""
    dim, count = contexts.shape[2], 0
    for i in range(contexts.shape[1]):
        if available[s, i]:
            size = 0.0
            for j in range(dim):
                value = contexts[s, i, j] * scales[j]
                arms[j, count] = value
                size = max(size, abs(value))
            if size > negligible:
                chosen[count] = i
                count += 1
    for j in range(dim):
        for i in range(count, arms.shape[1]):
            arms[j, i] = 0.0
    return count


@compiled
def _equalize(contexts, available, s, scales):  # type: ignore[no-untyped-def]
    """``scales`` become the powers of two that bring the largest entry of each feature of set s into [1, 2)."""
    for j in range(scales.shape[0]):
        scales[j] = 0.0
    for i in range(contexts.shape[1]):
        if available[s, i]:
            for j in range(scales.shape[0]):
                scales[j] = max(scales[j], abs(contexts[s, i, j]))
    for j in range(scales.shape[0]):
        scales[j] = math.ldexp(1.0, min(1 - math.frexp(scales[j])[1], 1000))


@compiled
def _workspace(arm_count, dim):  # type: ignore[no-untyped-def]
    """Room to solve a set in: ``scales``, ``chosen``, and what :func:`_optimize` takes, in its order."""
    length, width = padded_length(arm_count), padded_length(dim)
    unit = np.int64(1)  # the literal would have machine code of its own
    arms = lane_zeros(width, length)  # padded in both directions, because rows are multiplied four at a time
    scaled, matrix = lane_zeros(dim, length), lane_zeros(width, width)
    lower, inverse = lane_zeros(dim, width), lane_zeros(dim, width)
    pivots, diagonal, scales = np.zeros(dim), np.zeros(dim), np.ones(dim)
    gains, weights, leverage = lane_zeros(unit, length), lane_zeros(unit, length), lane_zeros(unit, length)
    chosen = np.zeros(arm_count, dtype=np.int64)
    return scales, chosen, (arms, scaled, matrix, lower, pivots, inverse, diagonal, gains, weights, leverage)


@compiled
def _scatter(s, row_weights, row_leverages, chosen, count, weights, leverages):  # type: ignore[no-untyped-def]
    """Write what was found of the chosen arms into the rows of set s."""
    for i in range(count):
        weights[s, chosen[i]] = row_weights[0, i]
        leverages[s, chosen[i]] = row_leverages[0, i]


@compiled
def count_sets(available, dim, tol, weights, status):  # type: ignore[no-untyped-def]
    """``weights`` (n, K) become uniform in the sets that are certified by counting alone; how many are not.

    w·leverage ≤ 1 for every arm and w = 1/arms: no leverage exceeds the number of available arms.
    """
    asked = 0
    for s in range(available.shape[0]):
        choices = 0
        for i in range(available.shape[1]):
            choices += available[s, i]
        uniform = tol >= 1.0 and choices <= (1.0 + tol) * dim
        asked += not uniform
        status[s] = CERTIFIED if uniform else NOT_MET
        for i in range(available.shape[1]):
            weights[s, i] = 1.0 / choices if uniform and available[s, i] else 0.0
    return asked


@compiled
def _solve_sets(  # type: ignore[no-untyped-def]
    contexts, available, tol, weights, leverages, max_leverage, rank, residual, passes, status
):
    """Solve the sets that :func:`count_sets` leaves, as they are given; how many need coordinates of their span."""
    n, arm_count, dim = contexts.shape
    scales, chosen, room = _workspace(arm_count, dim)
    left = 0
    for s in range(n):
        choices = 0
        for i in range(arm_count):
            choices += available[s, i]
        uniform = status[s] == CERTIFIED
        passes[s], residual[s], rank[s], max_leverage[s] = 0, 0.0, min(choices, dim), choices
        for i in range(arm_count):
            leverages[s, i] = choices if uniform and available[s, i] else 0.0
        if not uniform:
            count = _gather(contexts, available, s, scales, 0.0, room[0], chosen)
            if count >= dim:  # a factorisation does not mind the scale of features
                status[s], max_leverage[s], passes[s] = _optimize(*room, dim, count, tol, TRUSTED_CONDITION)
                rank[s] = dim
                _scatter(s, room[-2], room[-1], chosen, count, weights, leverages)
            left += status[s] != CERTIFIED
    return left


@compiled
def _solve_spans(  # type: ignore[no-untyped-def]
    contexts, available, tol, weights, leverages, max_leverage, rank, residual, passes, status
):
    """Solve the sets that :func:`_solve_sets` leaves, in coordinates of their span."""
    n, arm_count, dim = contexts.shape
    scales, chosen, room = _workspace(arm_count, dim)
    for s in range(n):
        if status[s] == CERTIFIED:
            continue
        for i in range(arm_count):
            weights[s, i] = leverages[s, i] = 0.0
        _equalize(contexts, available, s, scales)
        count = _gather(contexts, available, s, scales, NEGLIGIBLE, room[0], chosen)
        if count > 0:
            rank[s], residual[s] = _span_coordinates(room[0], room[1], dim, count)
            status[s], max_leverage[s], tries = _optimize(*room, rank[s], count, tol, WORST_CONDITION)
            passes[s] += tries
            _scatter(s, room[-2], room[-1], chosen, count, weights, leverages)
            continue
        choices = 0
        for i in range(arm_count):
            choices += available[s, i]
        for i in range(arm_count):
            weights[s, i] = available[s, i] / choices
        status[s], rank[s], max_leverage[s] = CERTIFIED, 0, 0.0


def design_outputs(n: int, arm_count: int) -> tuple[OutputArray, ...]:
    """The arrays into which :func:`design_sets` writes, in the order in which it takes them."""
    weights, leverages = np.empty((n, arm_count)), np.empty((n, arm_count))
    max_leverage, residual = np.empty(n), np.empty(n)
    rank, passes, status = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    return weights, leverages, max_leverage, rank, residual, passes, status


def design_sets(contexts: FloatArray, available: BoolArray, tol: float, *outputs: OutputArray) -> None:
    """G-optimal designs of ``contexts`` (n, K, d) among ``available`` (n, K), into the arrays of ``design_outputs``.

    ``passes`` is 0 where the uniform design was certified by counting alone, with no linear algebra. Coordinates of a
    span have a kernel of their own, which is compiled when a set first needs them.
    """
    weights, *_, status = outputs
    count_sets(available, contexts.shape[2], tol, weights, status)
    if _solve_sets(contexts, available, tol, *outputs):
        _solve_spans(contexts, available, tol, *outputs)


def design_weights(contexts: FloatArray, available: BoolArray, weights: FloatArray, tol: float) -> IntArray | None:
    """``weights`` (n, K) become those of :func:`design_sets`; the sets that are not certified, None where all are."""
    status = np.empty(len(weights), np.int64)
    if not count_sets(available, contexts.shape[2], tol, weights, status):
        return None
    design_sets(contexts, available, tol, weights, *design_outputs(*weights.shape)[1:-1], status)
    return np.flatnonzero(status) if status.any() else None


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

    def solve(part: tuple[OutputArray, ...]) -> None:
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
    at = 0 if sets.single else slice(None)
    return Design(**{name: array[at] for name, array in zip(_OUTPUTS, outputs, strict=False)}, failed=failed)


def in_steps(contexts: FloatArray, *arrays: OutputArray, parts: int = 1) -> list[tuple[OutputArray, ...]]:
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
