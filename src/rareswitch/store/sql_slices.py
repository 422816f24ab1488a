"""Decisions and rewards, read apart in ranges of sequence numbers, as one Arrow table."""

from typing import Any, NamedTuple

import numpy as np

from rareswitch.files import pyarrow
from rareswitch.store.store import Marks

#: Decisions of a slice at the most.
ROWS = 1 << 16


class Stretch(NamedTuple):
    """Decisions of a version between two sequence numbers, and the rewards in force at a mark."""

    experiment: int
    version: int
    first: int
    last: int
    upto: Marks
    sums: bool
    window: float | None
    propensities: bool = False

    def queries(self, hint: str = "") -> tuple[str, str]:
        """For decisions and for rewards; whole numbers only, so nothing to escape."""
        part = f"experiment = {int(self.experiment)} AND version = {int(self.version)}"
        between = f"BETWEEN {int(self.first)} AND {int(self.last)}"
        mark, times = int(self.upto.rewards), ", time" if self.window is not None else ""
        more = ", time, propensity" if self.propensities else times
        return (
            f"SELECT seq, key, features{more} FROM rareswitch_decisions {hint} WHERE {part} "
            f"AND seq {between} ORDER BY seq",
            f"SELECT decision, value{times} FROM rareswitch_rewards WHERE {part} "
            f"AND decision {between} AND seq <= {mark} AND (superseded IS NULL OR superseded > {mark})",
        )

    def table(self, decisions: Any, rewards: Any) -> Any:
        """What :meth:`Slice.read` gives, of what the queries gave."""
        return slice_table(decisions, rewards, sums=self.sums, window=self.window)


def slice_fault(shown: str, error: Exception) -> tuple[bool, str]:
    """Whether a slice may be read again by ADBC, which tells no more than a sentence, and what to say."""
    from adbc_driver_manager import Error

    if not isinstance(error, Error):
        return False, ""
    said = str(error).splitlines()[0]
    again = any(part in said for part in ("locked", "busy", "onnection", "onnect to", "starting up", "shutting down"))
    damaged = "restore it from a copy" if "malformed" in said else "look whether the database is there"
    return again, f"decisions cannot be read from {shown}: {damaged} ({said})."


def slice_table(decisions: Any, rewards: Any, *, sums: bool, window: float | None) -> Any:
    """What :meth:`Slice.read` gives, of two Arrow tables as the queries of a slice give them."""
    pa, _ = pyarrow()
    decisions, rewards = decisions.combine_chunks(), rewards.combine_chunks()
    seq, came = _numbers(decisions["seq"]), [_numbers(rewards[name]) for name in rewards.column_names]
    if sums and window is not None:
        came = in_time(seq, _numbers(decisions["time"]), *came, window=window)
    values, times, missing = joined(seq, *came, sums=sums)
    columns = {
        "key": fixed_size(decisions["key"]),
        "features": fixed_size(decisions["features"]),
        "reward": pa.array(values, mask=missing),
    }
    columns |= {name: decisions[name] for name in ("time", "propensity") if name in decisions.column_names}
    if window is not None:
        columns["reward_time"] = pa.array(times, mask=missing)
    return pa.table(columns)


def joined(seq: Any, decision: Any, value: Any, time: Any = None, *, sums: bool) -> tuple[Any, Any, Any]:
    """Rewards in the order of their decisions: values, times where they are given, and where there are none.

    Several of one decision are sorted before they are added: the sum does not depend on the order in which they came.

    >>> joined(np.array([3, 4, 9]), np.array([9, 3, 9]), np.array([1.0, 5.0, 2.0]), sums=True)[0]
    array([5., 0., 3.])
    """
    order = np.lexsort((value, decision)) if sums else np.argsort(decision, kind="stable")
    decision, value = decision[order], value[order]
    first = np.flatnonzero(np.diff(decision, prepend=-1))
    place = np.searchsorted(seq, decision[first])
    values, times, missing = np.zeros(len(seq)), np.zeros(len(seq)), np.ones(len(seq), dtype=bool)
    if len(first):
        values[place] = np.add.reduceat(value, first) if sums else value[first]
        if time is not None:
            times[place] = np.maximum.reduceat(time[order], first)
        missing[place] = False
    return values, times, missing


def in_time(seq: Any, made: Any, decision: Any, value: Any, time: Any, *, window: float) -> list[Any]:
    """Rewards without those that came after the window, of decisions of which others came in time.

    >>> came = np.array([3, 3, 4]), np.array([1.0, 2.0, 5.0]), np.array([10.0, 99.0, 99.0])
    >>> in_time(np.array([3, 4]), np.zeros(2), *came, window=60.0)[1].tolist()
    [1.0, 5.0]
    """
    place, prompt = np.searchsorted(seq, decision), np.zeros(len(seq), dtype=bool)
    late = time - made[place] > window
    prompt[place[~late]] = True
    kept = ~(late & prompt[place])
    return [decision[kept], value[kept], time[kept]]


def fixed_size(column: Any) -> Any:
    """Binary values of one length as such a column, without a copy."""
    pa, _ = pyarrow()
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    wide = np.int64 if array.type in (pa.large_binary(), pa.large_string()) else np.int32
    _, ends, data = array.buffers()
    ends = np.frombuffer(ends, dtype=wide)[array.offset : array.offset + len(array) + 1]
    width = int(ends[1] - ends[0])
    if (np.diff(ends) != width).any():
        raise ValueError("vectors of different lengths in one slice")
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(array), [None, data.slice(int(ends[0]), width * len(array))]
    )


def _numbers(column: Any) -> Any:
    return column.to_numpy(zero_copy_only=False)
