"""Which rewards count: those within an attribution window, and what stands for those that did not come."""

from typing import Any, NamedTuple

import numpy as np

from rareswitch.errors import ParameterError
from rareswitch.learner.rows import in_seconds
from rareswitch.validation import LARGEST_SCALE, BoolArray, FloatArray, number


class Attributed(NamedTuple):
    """What counts of some decisions."""

    #: (n,) what each earned; NaN where it does not count.
    rewards: FloatArray
    #: (n,) those that count.
    known: BoolArray
    #: (n,) those whose window is still open, even if their reward is there.
    waiting: BoolArray
    #: (n,) those whose reward came after the window, where no default stands for it.
    expired: BoolArray


def attributed(
    rewards: FloatArray,
    *,
    times: Any = None,
    reward_times: Any = None,
    window: float | None = None,
    now: float | np.datetime64 | None = None,
    default: float | None = None,
) -> Attributed:
    """What counts of rewards (n,), NaN where none came.

    Parameters
    ----------
    times, reward_times
        (n,) when decisions were made and rewards came, in seconds or as datetime64; for a window only.
    window, now, default
        As :meth:`~rareswitch.learner.Learner.summarize` takes them.

    Examples
    --------
    A decision that waits, one whose reward came in time, and one whose reward came late:

    >>> came = np.array([1.0, 1.0, 1.0])
    >>> times, late = np.array([90.0, 0.0, 0.0]), np.array([95.0, 5.0, 80.0])
    >>> attributed(came, times=times, reward_times=late, window=60.0, now=100.0, default=0.0).rewards.tolist()
    [nan, 1.0, 0.0]
    """
    known = ~np.isnan(rewards)
    waiting = expired = np.zeros(len(rewards), dtype=np.bool_)
    if window is None and now is not None:
        raise ParameterError("now says when an attribution window is looked at, and there is none: give window too.")
    if window is not None:
        waiting, expired = _outside(times, reward_times, number("window", window, low=0.0), now)
        expired &= known & ~waiting
        known &= ~waiting & ~expired
    if default is not None:
        absent = ~known & ~waiting
        rewards = np.where(absent, number("default", default, low=-LARGEST_SCALE, high=LARGEST_SCALE), rewards)
        known, expired = known | absent, expired & False
    return Attributed(rewards if known.all() else np.where(known, rewards, np.nan), known, waiting, expired)


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


def _outside(
    times: Any, reward_times: Any, window: float, now: float | np.datetime64 | None
) -> tuple[BoolArray, BoolArray]:
    """Which decisions are younger than the window, and which rewards came after it."""
    if times is None:
        raise ParameterError("an attribution window needs to know when decisions were made: give the rows their times.")
    dated = times.dtype.kind == "M"
    if now is not None and isinstance(now, np.datetime64) != dated:
        raise ParameterError(
            f"now is {now!r:.60} and the times of the rows are {'datetime64' if dated else 'seconds'}: they cannot be "
            "compared. Give both as datetime64, or both in seconds from the same moment."
        )
    made = in_seconds(times)
    given: Any = float(in_seconds(now)) if dated and now is not None else now
    moment = made.max(initial=-np.inf) if now is None else number("now", given, low=-np.inf)
    waiting = np.asarray(moment - made < window)
    if reward_times is None:
        return waiting, np.zeros(len(made), dtype=np.bool_)
    return waiting, np.asarray(in_seconds(reward_times) - made > window)
