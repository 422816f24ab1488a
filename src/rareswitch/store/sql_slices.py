"""Decisions and rewards, read apart in ranges of sequence numbers, as one Arrow table."""

from typing import Any, NamedTuple

import numpy as np

from rareswitch.errors import StoreError
from rareswitch.files import pyarrow
from rareswitch.store.checksums import decision_checksums, reward_checksums, words_of
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
    #: Of the experiment, for messages.
    name: str = ""
    #: Decisions that must be there, as an index has them; None where that is not known.
    rows: int | None = None

    def queries(self, hint: str = "") -> tuple[str, str]:
        """For decisions and for rewards; whole numbers only, so nothing to escape."""
        part = f"experiment = {int(self.experiment)} AND version = {int(self.version)}"
        between = f"BETWEEN {int(self.first)} AND {int(self.last)}"
        return (
            f"SELECT seq, key, features, time, propensity, checksum FROM rareswitch_decisions {hint} WHERE {part} "
            f"AND seq {between} ORDER BY seq",
            "SELECT decision, value, time, coalesce(superseded, 0) AS superseded, checksum FROM rareswitch_rewards "
            f"WHERE {part} AND decision {between} AND seq <= {int(self.upto.rewards)}",
        )

    def table(self, decisions: Any, rewards: Any) -> Any:
        """What :meth:`Slice.read` gives, of what the queries gave; a row that is damaged is an error."""
        if self.rows is not None and len(decisions) != self.rows:
            raise damaged(self.name, f"{self.rows} decisions of policy {self.version} and finds {len(decisions)}")
        decisions, rewards = decisions.combine_chunks(), rewards.combine_chunks()
        seq, keys, features = _numbers(decisions["seq"]), *map(fixed_size, (decisions["key"], decisions["features"]))
        numbers = [_numbers(decisions[name]) for name in ("time", "propensity", "checksum")]
        rewarded = [_numbers(rewards[name]) for name in ("decision", "value", "time", "superseded", "checksum")]
        words = _words(keys)
        self._check_decisions(seq, words, _words(features), *numbers)
        place = self._checked_places(seq, words, *rewarded)
        decision, value, time, superseded, _ = rewarded
        in_force = (superseded == 0) | (superseded > self.upto.rewards)
        came = [decision[in_force], value[in_force], time[in_force]]
        if not self.sums and np.bincount(place[in_force], minlength=1).max() > 1:
            raise damaged(self.name, f"one reward of each decision of policy {self.version}, and finds two of one")
        pa, _ = pyarrow()
        if self.sums and self.window is not None:
            came = in_time(seq, numbers[0], *came, window=self.window)
        values, times, missing = joined(seq, *came, sums=self.sums)
        columns = {"key": keys, "features": features, "reward": pa.array(values, mask=missing)}
        if self.propensities or self.window is not None:
            columns["time"] = decisions["time"]
        if self.propensities:
            columns["propensity"] = decisions["propensity"]
        if self.window is not None:
            columns["reward_time"] = pa.array(times, mask=missing)
        return pa.table(columns)

    def unreadable(self, error: Exception) -> StoreError:
        """What is said where columns hold what never was in them."""
        return damaged(self.name, f"numbers and vectors of policy {self.version}, not these ({error})")

    def _check_decisions(self, seq: Any, keys: Any, features: Any, times: Any, propensities: Any, kept: Any) -> None:
        versions = np.full(len(seq), self.version, dtype=np.int64)
        wrong = np.flatnonzero(decision_checksums(keys, features, times, propensities, versions) != kept)
        if len(wrong):
            raise damaged_row(self.name, "decision", int(seq[wrong[0]]))

    def _checked_places(self, seq: Any, keys: Any, decision: Any, value: Any, time: Any, other: Any, kept: Any) -> Any:
        """(r,) where the decisions of rewards stand in the slice."""
        place = np.searchsorted(seq, decision)
        there = place < len(seq)
        there[there] = seq[place[there]] == decision[there]
        if not there.all():
            raise damaged(self.name, f"decision {int(decision[~there][0])}, which has a reward, and does not find it")
        wrong = np.flatnonzero(reward_checksums(keys[place], value, time, other) != kept)
        if len(wrong):
            raise damaged_row(self.name, "reward of decision", int(decision[wrong[0]]))
        return place


def damaged(name: str, text: str) -> StoreError:
    """What is said where a store does not hold what it should."""
    return StoreError(
        f"the store of experiment '{name}' is damaged: it should hold {text}. Nothing was learned from it. Restore a "
        "backup."
    )


def damaged_row(name: str, kind: str, seq: int) -> StoreError:
    """What is said of a row that is not what was kept."""
    return StoreError(
        f"the store of experiment '{name}' is damaged: the {kind} {seq} (by its sequence number) does not match its "
        "checksum. Nothing was learned from it. Restore a backup."
    )


def _words(column: Any) -> Any:
    """(n, w) the 64-bit words of a column of fixed size."""
    data = column.buffers()[1]
    if not len(column):
        return words_of(b"", 0)
    width = column.type.byte_width
    return words_of(memoryview(data)[column.offset * width : (column.offset + len(column)) * width], len(column))


def slice_fault(shown: str, error: Exception) -> tuple[bool, str]:
    """Whether a slice may be read again by ADBC, which tells no more than a sentence, and what to say."""
    from adbc_driver_manager import Error

    if not isinstance(error, Error):
        return False, ""
    said = str(error).splitlines()[0]
    again = any(part in said for part in ("locked", "busy", "onnection", "onnect to", "starting up", "shutting down"))
    damaged = "restore it from a copy" if "malformed" in said else "look whether the database is there"
    return again, f"decisions cannot be read from {shown}: {damaged} ({said})."


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
