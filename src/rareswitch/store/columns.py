"""Decisions with their rewards as columns, read in ranges of sequence numbers, checked and joined."""

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.recfunctions import repack_fields
from numpy.typing import NDArray

from rareswitch.core import BoolArray, FloatArray, IntArray, KeyArray, keys_of_bytes
from rareswitch.errors import StoreError
from rareswitch.store.rows import DecisionRow, Marks, Words, checksums, of_contexts

if TYPE_CHECKING:
    from rareswitch.store.store import Store

#: Decisions of a slice at the most, without their context sets and with them.
ROWS, OFFERS = 1 << 16, 1 << 11
#: What is read of a decision, in the order in which its checksum counts it.
_DECISION = ("seq", "key", "time", "propensity", "version", "features", "checksum")
#: What is known beside of a decision whose context set was kept.
_OFFER = ("id", "arm", "arm_index", "digest", "rank", "baseline")
_REWARD = np.dtype([("decision", "<i8"), ("value", "<f8"), ("time", "<f8"), ("superseded", "<i8"), ("checksum", "<i8")])


class Offers(NamedTuple):
    """What was offered in the decisions whose context sets were kept."""

    #: (m,) which decisions these are.
    rows: IntArray
    #: As JSON.
    ids: list[str]
    #: (m,) where the chosen arm stands among those that were offered.
    arm_indices: IntArray
    #: (m,) the arm that the caller would have shown, -1 where none was named.
    baselines: IntArray
    #: The vectors of all offered arms, float64.
    contexts: list[bytes]
    #: Their ids as a JSON list; None where arms have no ids.
    names: list[str | None]


class DecisionColumns(NamedTuple):
    """Decisions of one version, in the order in which they came."""

    #: (n, 2)
    keys: KeyArray
    #: (n, d) vectors of the chosen arms.
    features: FloatArray
    #: (n,)
    propensities: FloatArray
    #: (n,) seconds since 1970.
    times: FloatArray
    #: (n,) in force at the mark: NaN where there is none, the sum where rewards are summed.
    rewards: FloatArray
    #: (n,) when they came, of several the last; NaN where there is none.
    reward_times: FloatArray
    offers: Offers | None


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Decisions of a version between two sequence numbers; small, and can be sent to where it is read."""

    store: "Store"
    version: int
    #: The first and the last sequence number, and how many decisions an index has between them.
    first: int
    last: int
    rows: int
    #: Bytes of the vector of a chosen arm.
    width: int
    upto: Marks
    sums: bool
    window: float | None
    #: Whether to read what was offered too.
    contexts: bool

    def __repr__(self) -> str:
        return f"<slice of {self.store.name}: decisions {self.first} to {self.last} of policy {self.version}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.store.url == "memory:":
            return ReadSlice, (self.read(),)
        fields = {name: value for name, value in vars(self).items() if name != "store"}
        return SentSlice, (type(self.store), self.store.address, self.store.name, fields)

    def read(self) -> DecisionColumns:
        """The decisions with the rewards in force; a row that is damaged is an error."""
        decisions, rewards = self._decisions(), self._rewards()
        if len(decisions) != self.rows:
            raise self._damaged(f"{self.rows} decisions of policy {self.version} and finds {len(decisions)}")
        words = _words(decisions[[*_DECISION]])
        self._check(checksums(words[:, 1:-1]), decisions["checksum"], "decision", decisions["seq"])
        at = self._positions(words, rewards)
        in_force = (rewards["superseded"] == 0) | (rewards["superseded"] > self.upto.rewards)
        rewards, at = rewards[in_force], at[in_force]
        if not self.sums and np.bincount(at, minlength=1).max() > 1:
            raise self._damaged(f"one reward of each decision of policy {self.version}, and finds two of one")
        times = decisions["time"]
        if self.sums and self.window is not None:
            prompt = in_time(at, rewards["time"] - times[at], window=self.window)
            rewards, at = rewards[prompt], at[prompt]
        values, reward_times = joined(self.rows, at, rewards["value"], rewards["time"], sums=self.sums)
        return DecisionColumns(
            keys=keys_of_bytes(decisions["key"].tobytes(), self.rows),
            features=np.frombuffer(decisions["features"].tobytes(), "<f8").reshape(self.rows, -1),
            propensities=decisions["propensity"].copy(),
            times=times.copy(),
            rewards=values,
            reward_times=reward_times,
            offers=self._offers(decisions) if self.contexts else None,
        )

    def _decisions(self) -> NDArray[np.void]:
        columns = [f"d.{name}" for name in _DECISION]
        kinds = [*zip(_DECISION, ("<i8", "V16", "<f8", "<f8", "<i8", f"V{self.width}", "<i8"), strict=True)]
        sets = ""
        if self.contexts:
            columns += [*(f"d.{name}" for name in _OFFER), "c.data", "c.names", "c.checksum"]
            kinds += [(name, "O") for name in (*_OFFER, "contexts", "names", "set_checksum")]
            sets = "LEFT JOIN rareswitch_contexts AS c ON c.seq = d.seq"
        return self._array(
            f"SELECT {', '.join(columns)} FROM rareswitch_decisions AS d {self.store.scan_hint} {sets} "
            f"WHERE d.experiment = {self.store.number} AND d.version = {int(self.version)} "
            f"AND d.seq BETWEEN {int(self.first)} AND {int(self.last)} ORDER BY d.seq",
            np.dtype(kinds),
        )

    def _rewards(self) -> NDArray[np.void]:
        return self._array(
            "SELECT decision, value, time, coalesce(superseded, 0), checksum FROM rareswitch_rewards "
            f"WHERE experiment = {self.store.number} AND version = {int(self.version)} "
            f"AND decision BETWEEN {int(self.first)} AND {int(self.last)} AND seq <= {int(self.upto.rewards)}",
            _REWARD,
        )

    def _array(self, query: str, kinds: np.dtype[np.void]) -> NDArray[np.void]:
        """The rows of a query, which holds whole numbers only, so that there is nothing to escape."""
        try:
            rows: NDArray[np.void] = self.store.read_array(query, kinds)
        except (ArithmeticError, TypeError, ValueError) as error:  # of a column with values of several kinds
            raise self._damaged(f"numbers and vectors of policy {self.version}, not these ({error})") from error
        for name in {"time", "propensity", "value"}.intersection(kinds.names or ()):
            rows[name] += 0.0  # -0 counts as 0, which databases may make of it
        return rows

    def _positions(self, words: Words, rewards: NDArray[np.void]) -> IntArray:
        """(r,) where the decisions of rewards stand in the slice."""
        seq = words[:, 0].view(np.int64)
        at = np.searchsorted(seq, rewards["decision"])
        there = at < len(seq)
        there[there] = seq[at[there]] == rewards["decision"][there]
        if not there.all():
            absent = int(rewards["decision"][~there][0])
            raise self._damaged(f"decision {absent}, which has a reward, and does not find it")
        expected = checksums(np.hstack([words[at, 1:3], _words(rewards)[:, 1:-1]]))
        self._check(expected, rewards["checksum"], "reward of decision", rewards["decision"])
        return at

    def _offers(self, decisions: NDArray[np.void]) -> Offers:
        """What was offered, as far as it was kept, checked with all that is known of these decisions."""
        rows = np.flatnonzero([data is not None for data in decisions["contexts"]])
        columns = (*_DECISION[1:-1], *_OFFER, "contexts", "names")
        offers = decisions[rows]
        for row in offers:
            if of_contexts(DecisionRow(**{name: row[name] for name in columns})) != row["set_checksum"]:
                raise damaged_row(self.store.name, "context set of decision", int(row["seq"]))
        baselines = [-1 if arm_index is None else arm_index for arm_index in offers["baseline"]]
        return Offers(
            rows=rows,
            ids=offers["id"].tolist(),
            arm_indices=offers["arm_index"].astype(np.int64),
            baselines=np.array(baselines, dtype=np.int64),
            contexts=offers["contexts"].tolist(),
            names=offers["names"].tolist(),
        )

    def _check(self, expected: IntArray, stored: IntArray, kind: str, numbers: IntArray) -> None:
        wrong = np.flatnonzero(expected != stored)
        if len(wrong):
            raise damaged_row(self.store.name, kind, int(numbers[wrong[0]]))

    def _damaged(self, text: str) -> StoreError:
        return damaged(self.store.name, text)


@dataclass(frozen=True)
class SentSlice:
    """A slice in another process, which opens the store for it alone."""

    kind: type["Store"]
    address: str
    name: str
    fields: dict[str, Any]

    def read(self) -> DecisionColumns:
        """The decisions with the rewards in force."""
        with closing(self.kind(self.address, self.name)) as store:
            return Slice(store=store, **self.fields).read()


class ReadSlice(NamedTuple):
    """Decisions that were read already: of a store in memory, in another process."""

    columns: DecisionColumns

    def read(self) -> DecisionColumns:
        """These decisions."""
        return self.columns


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
) -> tuple[FloatArray, FloatArray]:
    """(count,) rewards in the order of their decisions, values and times; NaN where there are none.

    Several of one decision are sorted before they are added: the sum does not depend on the order in which they came.

    >>> joined(3, np.array([2, 0, 2]), np.array([1.0, 5.0, 2.0]), np.zeros(3), sums=True)[0]
    array([ 5., nan,  3.])
    """
    order = np.lexsort((values, at)) if sums else np.argsort(at, kind="stable")
    at, values, times = at[order], values[order], times[order]
    first = np.flatnonzero(np.diff(at, prepend=-1))
    totals, latest = np.full(count, np.nan), np.full(count, np.nan)
    if len(first):
        totals[at[first]] = np.add.reduceat(values, first) if sums else values[first]
        latest[at[first]] = np.maximum.reduceat(times, first)
    return totals, latest


def in_time(at: IntArray, waited: FloatArray, *, window: float) -> BoolArray:
    """Rewards without those that came after the window, of decisions of which others came in time.

    >>> in_time(np.array([0, 0, 1]), np.array([10.0, 99.0, 99.0]), window=60.0).tolist()
    [True, False, True]
    """
    prompt, late = np.zeros(int(at.max(initial=-1)) + 1, dtype=np.bool_), waited > window
    prompt[at[~late]] = True
    return ~(late & prompt[at])


def _words(rows: NDArray[np.void]) -> Words:
    """(n, w) the words of structured rows, without gaps between their columns."""
    packed = repack_fields(rows)
    return packed.view("<u8").reshape(len(rows), packed.dtype.itemsize // 8)
