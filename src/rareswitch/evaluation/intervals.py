"""Values of batches pooled into one, with an interval that holds though each policy was made of what came before.

Given the past, a batch is a sample of n decisions of one frozen policy. Its estimate Ψ has the mean θ and the standard
error e, from its own rows alone. Its weight is c = √(n / spread), spread = E Σ π²/μ: what the policies and the contexts
say of its precision, without a look at a reward. So Σ c·(Ψ − θ) is a sum of martingale differences whose variances c²e²
are about alike, whatever the policies became, and

    Σ c·(Ψ − θ) / √(Σ c²e²)

is about standard normal: Zhan, Hadad, Hirshberg and Athey (2021) have this weight, for variances to settle, and Zhang,
Janson and Murphy (2020) the idea that each batch brings its own error.

Why not c = 1/e, which makes every term standard normal by itself? Where scores are skewed, as those of clicks are, a
batch that was unlucky has a low estimate *and* a low error, and is trusted more than a lucky one. Inverse
variances, n / spread, are somewhat narrower; but variances then hang on the luck of the first batches, and sums of such
terms need not become normal.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rareswitch.core import FloatArray, number
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.evaluation.results import Interval

#: Values are taken to be skewed so much at the most.
SKEWEST = 1.0
#: A number for each batch.
Column = Sequence[float] | FloatArray


class Batches(NamedTuple):
    """Estimates of the batches that have one; all (B,)."""

    values: FloatArray
    #: Standard errors.
    errors: FloatArray
    #: c, of mean 1.
    weights: FloatArray
    #: Degrees of freedom of the errors; infinite where counts are not known.
    freedom: FloatArray


class Pool(NamedTuple):
    """A pooled value."""

    value: float
    #: Infinite where there is none to go by.
    error: float
    #: Degrees of freedom of the error, Welch's and Satterthwaite's: (Σ c²e²)² / Σ (c²e²)²/ν.
    freedom: float
    #: γ, the skewness of the value: its third central moment over the cube of its error.
    skewness: float = 0.0


def usable(values: Column, errors: Column, counts: Column | None = None, spreads: Column | None = None) -> Batches:
    """The batches that can be pooled, with their weights.

    Batches without an estimate (NaN) or without an error (NaN, or infinite: a single decision) are left out; whether
    there are these does not hang on rewards.

    A batch whose scores are nearly all alike, such as one without a click, has an error near 0: it knows too little,
    not everything. Per effective decision its variance is taken to be at least half of what all batches have together.

    Degrees of freedom are those of n / spread decisions, as many as there are effective ones: large weights rest on few
    rows. Without counts, errors are taken for certain.

    >>> usable([0.3, 0.0, float("nan")], [0.1, 0.0, float("nan")], [101, 51, 9]).errors.round(3).tolist()
    [0.1, 0.081]
    """
    value, error, count, spread = _columns(values=values, errors=errors, counts=counts, spreads=spreads)
    if (error < 0.0).any() or not (count > 0.0).all() or (spread <= 0.0).any():
        raise ParameterError("errors must be at least 0, and counts and spreads above 0, in every batch.")
    there = np.isfinite(value) & np.isfinite(error) & np.isfinite(spread)
    value, error, effective = value[there], error[there], (count / spread)[there]
    freedom = np.maximum(effective - 1.0, 1.0)
    if counts is not None and len(value):
        unit = error**2 * effective
        error = np.sqrt(np.maximum(unit, (freedom @ unit) / freedom.sum() / 2.0) / effective)
    weights = np.sqrt(effective)
    weights /= weights.mean() if len(weights) else 1.0
    return Batches(value, error, weights, np.full(len(value), np.inf) if counts is None else freedom)


def pool(
    values: Column, errors: Column, counts: Column, spreads: Column | None = None, thirds: Column | None = None
) -> Pool:
    """The pooled value with its error; parameters as for :func:`pooled`.

    >>> pool([1.0, 2.0], [0.3, 0.3], [101, 101])
    Pool(value=1.5, error=0.21213203435596426, freedom=200.0, skewness=0.0)
    """
    value, error, weight, freedom = usable(values, errors, counts, spreads)
    if not len(value):
        return Pool(math.nan, math.inf, math.inf)
    mean, variances = float(weight @ value / weight.sum()), (weight * error) ** 2
    total = float(variances.sum())
    if total == 0.0:
        return Pool(mean, math.inf, math.inf)
    slack = float(((variances / total) ** 2 / freedom).sum())
    skewness = 0.0
    if thirds is not None:
        third = np.asarray(thirds, dtype=np.float64)[np.isfinite(values) & np.isfinite(errors)]
        skewness = float(weight**3 @ third) / total**1.5
    error_of_all = math.sqrt(total) / float(weight.sum())
    return Pool(mean, error_of_all, 1.0 / slack if slack > 0.0 else math.inf, skewness)


def pooled(
    values: Column,
    errors: Column,
    *,
    counts: Column,
    spreads: Column | None = None,
    thirds: Column | None = None,
    level: float = 0.95,
) -> Interval:
    """The value, from its estimates batch by batch, with an interval that holds for batches that depend on the past.

    Parameters
    ----------
    values, errors
        (B,) estimates and their standard errors, each from the rows of its own batch; see :func:`usable` for those
        that are 0 or missing.
    counts
        (B,) decisions of each.
    spreads
        (B,) E Σ π²/μ, of the policies and contexts alone, or where values are differences of two candidates,
        E Σ (π − π')²/μ; all alike by default.
    thirds
        (B,) third central moments of the estimates; 0, as if none were skewed, by default.
    level
        The probability with which the interval is to hold the value.

    Returns
    -------
    Interval
        From -inf to inf where there is no error to go by: no batch, or scores that were all alike.

    Examples
    --------
    >>> print(pooled([0.52, 0.47, 0.55], [0.05, 0.03, 0.02], counts=[100, 300, 600], spreads=[1.0, 1.2, 1.5]))
    0.5158 (0.4817 to 0.55)
    """
    level = probability(level)
    return skewed(pool(values, errors, counts, spreads, thirds), level=level, kind="batch-studentised")


def iid(values: Column, errors: Column, counts: Column, *, level: float = 0.95) -> Interval:
    """What one would say of all rows as one sample, as if they were independent and alike: for comparison.

    >>> print(iid([0.52, 0.47, 0.55], [0.05, 0.03, 0.02], [100, 300, 600]))
    0.523 (0.492 to 0.554)
    """
    level = probability(level)
    value, error, count, _ = _columns(values=values, errors=errors, counts=counts, spreads=None)
    error = np.where(count == 1.0, 0.0, error)
    there = np.isfinite(value) & np.isfinite(error)
    value, error, count = value[there], error[there], count[there]
    rows = float(count.sum())
    if rows < 2.0:
        return around(float(value.sum()) if len(value) else math.nan, math.inf, level=level, kind="i.i.d.")
    mean = float(count @ value) / rows
    squares = float(((count - 1.0) * count * error**2 + count * (value - mean) ** 2).sum())
    half = quantile(0.5 + level / 2.0, math.inf) * math.sqrt(squares / (rows - 1.0) / rows)
    return around(mean, half or math.inf, level=level, kind="i.i.d.")


def moved(values: Column, errors: Column, *, counts: Column | None = None, spreads: Column | None = None) -> float:
    """The p-value of all batches having the same value; 1 where fewer than two have an estimate with an error.

    Cochran's Q = Σ (Ψ − Ψ̄)²/e², Ψ̄ weighted by 1/e², has the χ² distribution; with counts, Welch's correction for errors
    that are estimated from few decisions.

    >>> round(moved([0.52, 0.47, 0.55], [0.05, 0.03, 0.02]), 3)
    0.085
    >>> moved([0.52, 0.47, 0.90], [0.05, 0.03, 0.02], counts=[100, 300, 600]) < 1e-9
    True
    """
    from scipy import special

    value, error, _, freedom = usable(values, errors, counts, spreads)
    value, error, freedom = (column[error > 0.0] for column in (value, error, freedom))
    if len(value) < 2:
        return 1.0
    precision = error**-2.0
    share, many = precision / precision.sum(), float(len(value))
    statistic = float(precision @ (value - share @ value) ** 2)
    slack = float(((1.0 - share) ** 2 / freedom).sum())
    if slack == 0.0:
        return float(special.chdtrc(many - 1.0, statistic))
    ratio = statistic / (many - 1.0) / (1.0 + 2.0 * (many - 2.0) / (many**2 - 1.0) * slack)
    return float(special.fdtrc(many - 1.0, (many**2 - 1.0) / (3.0 * slack), ratio))


def probability(level: float) -> float:
    """A level, above 0 and below 1."""
    level = number("level", level, low=0.0, high=1.0, open_low=True)
    if level == 1.0:
        raise ParameterError("level must be below 1: what holds for certain is everything. Give 0.95, for example.")
    return level


def quantile(level: float, freedom: float) -> float:
    """Of Student's t distribution, the normal one where there are infinitely many degrees of freedom."""
    from scipy import special

    return float(special.ndtri(level) if math.isinf(freedom) else special.stdtrit(freedom, level))


def skewed(found: Pool, *, level: float, kind: str) -> Interval:
    """A pooled value with its interval, longer on the side to which the value is skewed.

    Where a few decisions with large weights and rare rewards carry an estimate, most often none of them came and the
    estimate is too low: its long tail lies above, and so does the truth. Student's quantile t becomes
    t + |γ|(2t² + 1)/6 on that side (Johnson 1978), |γ| at most 1, beyond which the expansion says nothing; the other
    side is not shortened for it. The case few-decisions of benchmarks/inference.py measures what that comes to.

    >>> print(skewed(Pool(0.5, 0.1, math.inf, 0.2), level=0.95, kind="example"))
    0.5 (0.304 to 0.7249)
    """
    student = quantile(0.5 + level / 2.0, found.freedom)
    if not math.isfinite(found.error):
        return around(found.value, math.inf, level=level, kind=kind)
    more = min(abs(found.skewness), SKEWEST) * (2.0 * student**2 + 1.0) / 6.0
    below, above = (student, student + more) if found.skewness > 0.0 else (student + more, student)
    low, high = found.value - below * found.error, found.value + above * found.error
    return Interval(value=found.value, low=low, high=high, level=level, kind=kind)


def around(value: float, half: float, *, level: float, kind: str) -> Interval:
    """Both sides of a value; everything, where the half-width is infinite."""
    low, high = (value - half, value + half) if math.isfinite(half) else (-math.inf, math.inf)
    return Interval(value=value, low=low, high=high, level=level, kind=kind)


def _columns(**given: Column | None) -> list[FloatArray]:
    """As arrays of one length, 1 everywhere in those that are None."""
    found: dict[str, Any] = {}
    for name, column in given.items():
        try:
            found[name] = None if column is None else np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"{name} must be numbers, one for each batch; got {column!r:.60}.") from None
    shape = found["values"].shape
    if len(shape) != 1 or any(column is not None and column.shape != shape for column in found.values()):
        shown = ", ".join(f"{name} {column.shape}" for name, column in found.items() if column is not None)
        raise ShapeError(f"one number for each batch must be given; got the shapes {shown}.")
    return [np.ones(shape) if column is None else column for column in found.values()]
