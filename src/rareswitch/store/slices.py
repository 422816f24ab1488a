"""Decisions and rewards, read apart in ranges of sequence numbers, checked, and joined into one Arrow table."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rareswitch.errors import StoreError
from rareswitch.files import pyarrow
from rareswitch.store.rows import Marks, Words, decision_checksums, reward_checksums
from rareswitch.validation import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: Decisions of a slice at the most.
ROWS = 1 << 16


class Slice(Protocol):
    """Some decisions of one version, in the order in which they came; small, and can be sent to where it is read."""

    def read(self) -> "pa.Table":
        """An Arrow table, a row a decision.

        Columns: ``key`` (fixed_size_binary[16]), ``features`` (fixed_size_binary[8d]), ``reward`` (double, null where
        none came up to the mark; a sum where rewards are summed), and where there is a window ``time`` and
        ``reward_time`` (double, seconds; of several rewards the last). Where it was asked for, ``propensity`` and
        ``time`` (double).
        """


class DecisionColumns(NamedTuple):
    """(n,) of decisions, and the words of their keys (n, 2) and vectors (n, d)."""

    seq: IntArray
    keys: Words
    features: Words
    times: FloatArray
    propensities: FloatArray
    checksums: IntArray


class RewardColumns(NamedTuple):
    """(r,) of rewards: the sequence number of the decision of each, and of the reward that superseded it, or 0."""

    decisions: IntArray
    values: FloatArray
    times: FloatArray
    superseded: IntArray
    checksums: IntArray

    def picked(self, which: BoolArray | IntArray) -> "RewardColumns":
        """Some of them."""
        numbers = self.decisions[which], self.values[which], self.times[which]
        return RewardColumns(*numbers, self.superseded[which], self.checksums[which])


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
            "SELECT decision, value, time, coalesce(superseded, 0), checksum FROM rareswitch_rewards "
            f"WHERE {part} AND decision {between} AND seq <= {int(self.upto.rewards)}",
        )

    def table(self, decisions: DecisionColumns, rewards: RewardColumns) -> "pa.Table":
        """What :meth:`Slice.read` gives, of what the queries gave; a row that is damaged is an error."""
        if self.rows is not None and len(decisions.seq) != self.rows:
            text = f"{self.rows} decisions of policy {self.version} and finds {len(decisions.seq)}"
            raise damaged(self.name, text)
        self._check_decisions(decisions)
        at = self._positions(decisions, rewards)
        in_force = (rewards.superseded == 0) | (rewards.superseded > self.upto.rewards)
        rewards, at = rewards.picked(in_force), at[in_force]
        if not self.sums and np.bincount(at, minlength=1).max() > 1:
            raise damaged(self.name, f"one reward of each decision of policy {self.version}, and finds two of one")
        if self.sums and self.window is not None:
            prompt = in_time(at, rewards.times - decisions.times[at], window=self.window)
            rewards, at = rewards.picked(prompt), at[prompt]
        values, times, missing = joined(len(decisions.seq), at, rewards.values, rewards.times, sums=self.sums)
        pa, _ = pyarrow()
        columns = {"key": _binary(decisions.keys), "features": _binary(decisions.features)}
        columns["reward"] = pa.array(values, mask=missing)
        if self.propensities or self.window is not None:
            columns["time"] = pa.array(decisions.times)
        if self.propensities:
            columns["propensity"] = pa.array(decisions.propensities)
        if self.window is not None:
            columns["reward_time"] = pa.array(times, mask=missing)
        return pa.table(columns)

    def unreadable(self, error: Exception) -> StoreError:
        """What is said where columns hold what never was in them."""
        return damaged(self.name, f"numbers and vectors of policy {self.version}, not these ({error})")

    def _check_decisions(self, rows: DecisionColumns) -> None:
        versions = np.full(len(rows.seq), self.version, dtype=np.int64)
        expected = decision_checksums(rows.keys, rows.times, rows.propensities, versions, rows.features)
        wrong = np.flatnonzero(expected != rows.checksums)
        if len(wrong):
            raise damaged_row(self.name, "decision", int(rows.seq[wrong[0]]))

    def _positions(self, decisions: DecisionColumns, rewards: RewardColumns) -> IntArray:
        """(r,) where the decisions of rewards stand in the slice."""
        at = np.searchsorted(decisions.seq, rewards.decisions)
        there = at < len(decisions.seq)
        there[there] = decisions.seq[at[there]] == rewards.decisions[there]
        if not there.all():
            absent = int(rewards.decisions[~there][0])
            raise damaged(self.name, f"decision {absent}, which has a reward, and does not find it")
        expected = reward_checksums(decisions.keys[at], rewards.values, rewards.times, rewards.superseded)
        wrong = np.flatnonzero(expected != rewards.checksums)
        if len(wrong):
            raise damaged_row(self.name, "reward of decision", int(rewards.decisions[wrong[0]]))
        return at


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


def joined(
    count: int, at: IntArray, values: FloatArray, times: FloatArray, *, sums: bool
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """(count,) rewards in the order of their decisions: values, times, and where there are none.

    Several of one decision are sorted before they are added: the sum does not depend on the order in which they came.

    >>> joined(3, np.array([2, 0, 2]), np.array([1.0, 5.0, 2.0]), np.zeros(3), sums=True)[0]
    array([5., 0., 3.])
    """
    order = np.lexsort((values, at)) if sums else np.argsort(at, kind="stable")
    at, values, times = at[order], values[order], times[order]
    first = np.flatnonzero(np.diff(at, prepend=-1))
    summed, latest, missing = np.zeros(count), np.zeros(count), np.ones(count, dtype=np.bool_)
    if len(first):
        summed[at[first]] = np.add.reduceat(values, first) if sums else values[first]
        latest[at[first]] = np.maximum.reduceat(times, first)
        missing[at[first]] = False
    return summed, latest, missing


def in_time(at: IntArray, waited: FloatArray, *, window: float) -> BoolArray:
    """Rewards without those that came after the window, of decisions of which others came in time.

    >>> in_time(np.array([0, 0, 1]), np.array([10.0, 99.0, 99.0]), window=60.0).tolist()
    [True, False, True]
    """
    prompt, late = np.zeros(int(at.max(initial=-1)) + 1, dtype=np.bool_), waited > window
    prompt[at[~late]] = True
    return ~(late & prompt[at])


def _binary(words: Words) -> "pa.Array":
    """Words (n, w) as a column of bytes of fixed size, without a copy."""
    pa, _ = pyarrow()
    data: NDArray[np.uint64] = np.ascontiguousarray(words)
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8 * words.shape[1]), len(words), [None, pa.py_buffer(data)])
