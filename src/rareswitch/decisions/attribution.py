"""Which rows and rewards count: copies of a decision, windows, defaults, bounds."""

from typing import Any, NamedTuple

import numpy as np

from rareswitch.core import (
    EXACT,
    LARGEST_SCALE,
    BoolArray,
    FloatArray,
    IntArray,
    KeyArray,
    number,
    owned,
    sealed,
    summable,
    unmasked,
)
from rareswitch.errors import NonFiniteError, ParameterError, ShapeError

__all__ = ["clip_bounds", "clipped", "deduplicate", "row_hashes"]

#: Times are at most this far from 1970, in seconds, where years have four digits.
LATEST = 6e10


class Copies(NamedTuple):
    """Rows of decisions that may occur several times; decisions are in the order of their keys."""

    #: (m,) the row of each decision that counts: the first that has its context set.
    rows: IntArray
    #: (m,) the row that has its reward; of several the one that came first.
    paid: IntArray
    #: (n,) which decision each row is of.
    decisions: IntArray
    #: (m,) those whose rows contradict each other.
    wrong: BoolArray


def deduplicate(
    keys: KeyArray, content: KeyArray, sets: KeyArray, rewards: FloatArray, reward_times: FloatArray
) -> Copies:
    """Find rows of one decision: a row without a reward and the same row with one are such, and so are copies.

    Parameters
    ----------
    keys
        (n, 2) of ids, or more columns by which decisions are told apart.
    content, sets
        (n,) hashes of what was decided and of its context set, 0 where that is missing; see :func:`row_hashes`.
    rewards, reward_times
        (n,) NaN where they are not known.

    Examples
    --------
    >>> keys, same = np.array([[4, 0], [5, 0], [4, 0]], dtype=np.uint64), np.zeros(3, dtype=np.uint64)
    >>> copies = deduplicate(keys, same, same, np.array([np.nan, 0.5, 1.0]), np.zeros(3))
    >>> copies.rows.tolist(), copies.paid.tolist(), copies.wrong.tolist()
    ([0, 1], [2, 1], [False, False])
    """
    known = ~np.isnan(rewards)
    order = np.lexsort((sets == 0, *keys.T))
    paying = np.lexsort((reward_times, ~known, *keys.T))
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    begins, decisions = np.flatnonzero(first), np.empty(len(keys), dtype=np.int64)
    decisions[order] = np.cumsum(first) - 1
    rows, paid = order[begins], paying[begins]
    odd = (content != content[rows][decisions]) | (known & (rewards != rewards[paid][decisions]))
    odd |= (sets != 0) & (sets != sets[rows][decisions])
    wrong = np.zeros(len(begins), dtype=np.bool_)
    wrong[decisions[odd]] = True
    return Copies(rows, paid, decisions, wrong)


def row_hashes(rows: FloatArray) -> KeyArray:
    """(n,) hashes of rows (n, d) of numbers, of 64 bits; zeros at their ends change nothing.

    >>> first, other, again = row_hashes(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(first == again), bool(first == other)
    (True, False)
    """
    words = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # 0 for -0
    words = words ^ (words >> np.uint64(32))  # the last digits of round numbers are all zero
    factors = (2 * np.arange(words.shape[1]) + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    return np.asarray((words * factors).sum(axis=1, dtype=np.uint64))


def known_rewards(rewards: Any, count: int) -> FloatArray:
    """Rewards (n,) as numbers, NaN where they are not known; booleans and None are understood."""
    if isinstance(rewards, np.ma.MaskedArray):
        rewards = np.where(np.ma.getmaskarray(rewards), np.array(None), rewards.data)
    elif isinstance(rewards, (list, tuple)):
        rewards = [None if reward is np.ma.masked else reward for reward in rewards]
    try:
        values = np.asarray(rewards)
    except ValueError:
        raise ShapeError(f"rewards must have shape ({count},), one for each decision; got rows of several.") from None
    if values.dtype == object:
        kinds = {type(reward) for reward in values.reshape(-1)}
        if not all(kind is type(None) or issubclass(kind, (bool, int, float, np.generic)) for kind in kinds):
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ShapeError(f"rewards must be numbers, booleans, or None where they are not known; got {names}.")
        _check_digits([r for r in values.reshape(-1) if isinstance(r, (int, np.integer))])
        values = np.array([np.nan if reward is None else reward for reward in values.reshape(-1)]).reshape(values.shape)
    if values.dtype.kind in "iu" and values.size:
        _check_digits([values.min(), values.max()])
    if values.dtype.kind not in "fiub":
        raise ShapeError(f"rewards must be numbers or booleans, NaN or None where unknown; got dtype {values.dtype}.")
    if values.shape != (count,):
        raise ShapeError(f"rewards must have shape ({count},), one for each decision; got {values.shape}.")
    floats = sealed(np.array(values, dtype=np.float64))
    if np.isinf(floats).any():
        at = int(np.flatnonzero(np.isinf(floats))[0])
        raise NonFiniteError(
            f"rewards must be finite, or NaN where they are not known; the one at index {at} is {floats[at]}."
        )
    return summable("rewards", floats)


def _check_digits(numbers: list[Any]) -> None:
    """Refuse whole numbers that are no floats."""
    for value in numbers:
        if abs(int(value)) > EXACT:
            raise NonFiniteError(
                f"rewards must keep their digits, and beyond 2^53 whole numbers lose some; got {value}. Subtract a "
                "constant from all rewards, or use other units."
            )


def in_seconds(name: str, times: Any, count: int) -> FloatArray:
    """Times (n,) of datetime64, or of seconds since 1970, as seconds; NaN where they are not known."""
    unmasked(name, times, "Fill it: .filled(np.nan), or .filled('NaT') for datetime64.")
    try:
        values = np.asarray(times)
        values = values.astype(np.float64) if values.dtype == object else values  # None is NaN
    except (TypeError, ValueError):
        values = np.zeros(0, dtype=object)
    if values.dtype.kind not in "fiuM" or values.shape != (count,):
        raise ShapeError(
            f"{name} must be seconds or datetime64 of shape ({count},), one for each decision; got {times!r:.60}."
        )
    if values.dtype.kind == "M":
        micros = values.astype("datetime64[us]").astype(np.int64)
        values = np.where(np.isnat(values), np.nan, micros / 1e6)
    seconds = owned(np.asarray(values, dtype=np.float64))
    if (np.abs(seconds) > LATEST).any():
        at = int(np.flatnonzero(np.abs(seconds) > LATEST)[0])
        raise ParameterError(
            f"{name} must be seconds since 1970; row {at} (the first is 0) has {seconds[at]:g}. Divide milliseconds by "
            "1000, and give NaN where a time is not known."
        )
    return seconds


def clipped(rewards: FloatArray, clip: tuple[float, float] | None) -> tuple[FloatArray, BoolArray]:
    """Rewards (n,), NaN where none counts, held between two bounds, and which of them lay outside (n,).

    >>> clipped(np.array([0.5, 90.0, np.nan]), (-5.0, 5.0))[0].tolist()
    [0.5, 5.0, nan]
    """
    if clip is None:
        return rewards, np.zeros(len(rewards), dtype=np.bool_)
    low, high = clip_bounds(clip)
    return np.clip(rewards, low, high), (rewards < low) | (rewards > high)


def clip_bounds(value: Any) -> tuple[float, float]:
    """Two bounds, the lower one first; a single number c stands for (-c, c).

    >>> clip_bounds(5), clip_bounds((0, 200))
    ((-5.0, 5.0), (0.0, 200.0))
    """
    pair = value if isinstance(value, (tuple, list)) else (None, value)
    if len(pair) != 2:
        raise ParameterError(f"clip must be a number, or two bounds such as (0, 200); got {value!r:.60}.")
    limits: Any = {"low": -LARGEST_SCALE, "high": LARGEST_SCALE}
    high = number("clip, the upper bound,", pair[1], **limits)
    low = -high if pair[0] is None else number("clip, the lower bound,", pair[0], **limits)
    if low >= high:
        raise ParameterError(
            f"clip must have a lower bound below the upper one; got {low:g} and {high:g}. A single number must be "
            "positive: 5 stands for (-5, 5)."
        )
    return low, high


def outside(
    times: FloatArray | None, reward_times: FloatArray | None, window: float, now: float | np.datetime64 | None
) -> tuple[BoolArray, BoolArray]:
    """Which decisions are younger than the window, and which rewards came after it."""
    if times is None:
        raise ParameterError("an attribution window needs to know when decisions were made: give the log its times.")
    if not np.isfinite(times).all():
        at = int(np.flatnonzero(~np.isfinite(times))[0])
        raise NonFiniteError(f"a window needs the time of every decision; the one at index {at} is {times[at]}.")
    if isinstance(now, np.datetime64):
        now = float(in_seconds("now", [now], 1)[0])
    moment = times.max(initial=-np.inf) if now is None else number("now", now, low=-np.inf)
    waiting = np.asarray(moment - times < window)
    if reward_times is None:
        return waiting, np.zeros(len(times), dtype=np.bool_)
    return waiting, np.asarray(reward_times - times > window)
