"""What is read of an experiment: decisions with their rewards as columns, and their number.

Decisions are read in ranges of sequence numbers, checked and joined with their rewards.

What it holds is counted up to some sequence numbers, and this tally is kept: only what came since is counted again. So
status and schedules cost the same whatever is stored. What was counted then is also compared with what is read by an
update: rows that are missing from a damaged index would go unnoticed otherwise.
"""

import json
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.recfunctions import repack_fields
from numpy.typing import NDArray

from rareswitch.core import BoolArray, FloatArray, IntArray, keys_of_bytes
from rareswitch.decisions import ArmCodes, DecisionLog
from rareswitch.errors import StoreError
from rareswitch.store.connections import Connection
from rareswitch.store.rows import Counts, DecisionRow, Marks, Words, checksums, of_contexts

if TYPE_CHECKING:
    from rareswitch.store.store import Store

__all__ = ["OFFERS", "Slice", "joined_rewards"]

#: Decisions of a slice at the most, without their context sets and with them.
ROWS, OFFERS = 1 << 16, 1 << 11
#: What is read of a decision, in the order in which its checksum counts it.
_DECISION = ("seq", "key", "time", "propensity", "version", "features", "checksum")
#: What is known beside of a decision whose context set was kept.
_OFFER = ("id", "arm", "arm_index", "digest", "rank", "baseline")
_REWARD = np.dtype([("decision", "<i8"), ("value", "<f8"), ("time", "<f8"), ("superseded", "<i8"), ("checksum", "<i8")])


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

    def __repr__(self) -> str:
        return f"<slice of {self.store.name}: decisions {self.first} to {self.last} of policy {self.version}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.store.url == "memory:":
            return ReadSlice, ([*self.read()],)
        fields = {name: value for name, value in vars(self).items() if name != "store"}
        return SentSlice, (type(self.store), self.store.address, self.store.name, fields)

    def read(self) -> Iterator[DecisionLog]:
        """The decisions with the chosen arms alone and the rewards in force; a row that is damaged is an error."""
        yield self._log(*self._arrays(self._decisions(), self._rewards()))

    def read_offers(self, arms: ArmCodes) -> tuple[DecisionLog, IntArray, dict[str, Any]]:
        """The same decisions, those whose context sets were kept, (m,), and columns that tell of their offers."""
        decisions, rewards = self._arrays(self._decisions(offers=True), self._rewards())
        return self._log(decisions, rewards), *self._offers(decisions, arms)

    def _log(self, decisions: NDArray[np.void], rewards: NDArray[np.void]) -> DecisionLog:
        if len(decisions) != self.rows:
            raise self._damaged(f"{self.rows} decisions of policy {self.version} and finds {len(decisions)}")
        words = _words(decisions[[*_DECISION]])
        self._check(checksums(words[:, 1:-1]), decisions["checksum"], "decision", decisions["seq"])
        at = self._positions(words, rewards)
        in_force = (rewards["superseded"] == 0) | (rewards["superseded"] > self.upto.rewards)
        rewards, at = rewards[in_force], at[in_force]
        times = decisions["time"].copy()
        if self.sums and self.window is not None:
            rows = in_time(at, rewards["time"] - times[at], window=self.window)
            rewards, at = rewards[rows], at[rows]
        values, reward_times = joined_rewards(self.rows, at, rewards["value"], rewards["time"], sums=self.sums)
        return DecisionLog.checked(
            ids=keys_of_bytes(decisions["key"].tobytes(), self.rows),
            features=np.frombuffer(decisions["features"].tobytes(), "<f8").reshape(self.rows, -1),
            propensities=decisions["propensity"].copy(),
            times=times,
            rewards=values,
            reward_times=reward_times,
            batch_names=(f"policy {self.version} of {self.store.name}",),
        )

    def _decisions(self, *, offers: bool = False) -> tuple[str, np.dtype[np.void]]:
        columns = [f"d.{name}" for name in _DECISION]
        kinds = [*zip(_DECISION, ("<i8", "V16", "<f8", "<f8", "<i8", f"V{self.width}", "<i8"), strict=True)]
        sets = ""
        if offers:
            columns += [*(f"d.{name}" for name in _OFFER), "c.data", "c.names", "c.checksum"]
            kinds += [(name, "O") for name in (*_OFFER, "contexts", "names", "set_checksum")]
            sets = "LEFT JOIN rareswitch_contexts AS c ON c.seq = d.seq"
        query = (
            f"SELECT {', '.join(columns)} FROM rareswitch_decisions AS d {self.store.scan_hint} {sets} "
            f"WHERE d.experiment = {self.store.number} AND d.version = {int(self.version)} "
            f"AND d.seq BETWEEN {int(self.first)} AND {int(self.last)} ORDER BY d.seq"
        )
        return query, np.dtype(kinds)

    def _rewards(self) -> tuple[str, np.dtype[np.void]]:
        query = (
            "SELECT decision, value, time, coalesce(superseded, 0), checksum FROM rareswitch_rewards "
            f"WHERE experiment = {self.store.number} AND version = {int(self.version)} "
            f"AND decision BETWEEN {int(self.first)} AND {int(self.last)} AND seq <= {int(self.upto.rewards)}"
        )
        return query, _REWARD

    def _arrays(self, *queries: tuple[str, np.dtype[np.void]]) -> list[NDArray[np.void]]:
        """The rows of queries, which hold whole numbers only, so that there is nothing to escape."""
        try:
            arrays = self.store.read_arrays(*queries)
        except (ArithmeticError, TypeError, ValueError) as error:  # of a column with values of several kinds
            raise self._damaged(f"numbers and vectors of policy {self.version}, not these ({error})") from error
        for rows in arrays:
            for name in {"time", "propensity", "value"}.intersection(rows.dtype.names or ()):
                rows[name] += 0.0  # -0 counts as 0, which databases may make of it
        return arrays

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

    def _offers(self, decisions: NDArray[np.void], arms: ArmCodes) -> tuple[IntArray, dict[str, Any]]:
        """What was offered, as far as it was kept, checked with all that is known of these decisions."""
        rows = np.flatnonzero([data is not None for data in decisions["contexts"]])
        if not len(rows):
            return rows, {}
        names, offers = [name for name in DecisionRow._fields if name in (decisions.dtype.names or ())], decisions[rows]
        values = zip(*(offers[name].tolist() for name in names), strict=True)
        known = [DecisionRow(**dict(zip(names, row, strict=True))) for row in values]
        self._check(np.array(of_contexts(known)), offers["set_checksum"], "context set of decision", offers["seq"])
        sizes = np.array([len(row.contexts or b"") for row in known]) // self.width
        available = np.arange(sizes.max()) < sizes[:, None]
        contexts = np.zeros((*available.shape, self.width // 8))
        contexts[available] = np.frombuffer(b"".join(offers["contexts"]), "<f8").reshape(-1, self.width // 8)
        codes = None
        if any(row.names for row in known):
            texts = (row.names or json.dumps([*range(size)]) for row, size in zip(known, sizes.tolist(), strict=True))
            codes = np.full(available.shape, -1)
            codes[available] = np.concatenate(arms.listed([*texts]))
        baselines = np.array([-1 if row.baseline is None else row.baseline for row in known])
        return rows, {
            "available": available,
            "contexts": contexts,
            "arm_indices": offers["arm_index"].astype(np.int64),
            "arms": None if codes is None else arms.names,
            "codes": codes,
            "baselines": baselines if (baselines >= 0).any() else None,
        }

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

    def read(self) -> Iterator[DecisionLog]:
        """The decisions with the rewards in force."""
        with closing(self.kind(self.address, self.name)) as store:
            yield from Slice(store=store, **self.fields).read()


class ReadSlice(NamedTuple):
    """Decisions that were read already: of a store in memory, in another process."""

    logs: list[DecisionLog]

    def read(self) -> Iterator[DecisionLog]:
        """These decisions."""
        return iter(self.logs)


def damaged(name: str, text: str) -> StoreError:
    """The error for a store that does not hold what it should."""
    return StoreError(
        f"the store of experiment '{name}' is damaged: it should hold {text}. Nothing was learned from it. Restore a "
        "backup."
    )


def damaged_row(name: str, kind: str, seq: int) -> StoreError:
    """The error for a row that is not what was stored."""
    return StoreError(
        f"the store of experiment '{name}' is damaged: the {kind} {seq} (by its sequence number) does not match its "
        "checksum. Nothing was learned from it. Restore a backup."
    )


def joined_rewards(
    count: int, at: IntArray, values: FloatArray, times: FloatArray, *, sums: bool
) -> tuple[FloatArray, FloatArray]:
    """(count,) rewards in the order of their decisions, values and times; NaN where there are none.

    Several of one decision are sorted before they are added: the sum does not depend on the order in which they came.

    >>> joined_rewards(3, np.array([2, 0, 2]), np.array([1.0, 5.0, 2.0]), np.zeros(3), sums=True)[0]
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


# how many there are

#: Beyond all sequence numbers.
ALL = Marks(1 << 62, 1 << 62)


class Tally(NamedTuple):
    """What there is up to these marks."""

    marks: Marks = Marks(0, 0)
    #: With those that were superseded, and those whose decision has not come.
    rewards: int = 0
    #: By version, those that have decided.
    versions: dict[int, Counts] = {}  # noqa: RUF012 (never changed)


def kept_tally(connection: Connection, number: int, upto: Marks = ALL) -> Tally:
    """The last one that was kept; an empty one where there is none, or it lies beyond these marks."""
    query = f"SELECT counted FROM rareswitch_tallies WHERE experiment = {number}"
    row = connection.execute(query).fetchone()
    if row is None:
        return Tally()
    checksum, _, text = str(row[0]).partition(" ")
    if checksum != f"{zlib.crc32(text.encode()):08x}":
        raise StoreError(
            f"the counts of experiment number {number} are damaged: they do not match their checksum. Restore a backup."
        )
    marks, rewards, versions = json.loads(text)
    if marks[0] > upto.decisions or marks[1] > upto.rewards:
        return Tally()
    return Tally(Marks(*marks), rewards, {int(version): Counts(*counted) for version, counted in versions.items()})


def keep_tally(connection: Connection, number: int, tally: Tally) -> None:
    """Keep it, in place of the one before."""
    text = json.dumps(tally)
    connection.execute(
        "INSERT INTO rareswitch_tallies (experiment, counted) VALUES (?, ?) "
        "ON CONFLICT (experiment) DO UPDATE SET counted = excluded.counted",
        (number, f"{zlib.crc32(text.encode()):08x} {text}"),
    )


def tallied(connection: Connection, number: int, upto: Marks = ALL) -> Tally:
    """What there is up to marks, by counting what came since the last tally that was kept before them.

    Queries hold whole numbers only, so there is nothing to escape. A sum is in no index, so that a range of sequence
    numbers is taken.
    """
    before = kept_tally(connection, number, upto)
    after, versions, version = before.marks, dict(before.versions), 0
    decisions = f"rareswitch_decisions WHERE experiment = {number}"
    since = f"rareswitch_rewards AS reward WHERE seq > {after.rewards} AND seq <= {upto.rewards}"
    # rewards of decisions that were counted before, and how many of these had none then
    earlier = (
        "SELECT 1 FROM rareswitch_rewards AS other WHERE other.experiment = reward.experiment "
        "AND other.version = reward.version AND other.decision = reward.decision "
        f"AND other.seq <= {after.rewards}"
    )
    late_query = (
        f"SELECT version, count(*), count(DISTINCT CASE WHEN NOT EXISTS ({earlier}) THEN decision END) FROM {since} "
        f"AND experiment + 0 = {number} AND decision + 0 <= {after.decisions} GROUP BY version"
    )
    late = {row[0]: row[1:] for row in connection.execute(late_query)}
    while version := connection.execute(f"SELECT min(version) FROM {decisions} AND version > {version}").fetchone()[0]:
        known = versions.get(version, Counts(version))
        new, first, last = connection.execute(
            f"SELECT count(*), min(time), max(time) FROM {decisions} "
            f"AND version = {version} AND seq > {after.decisions} AND seq <= {upto.decisions}"
        ).fetchone()
        rewards, rewarded = connection.execute(  # of these decisions, whenever they came
            f"SELECT count(*), count(DISTINCT decision) FROM rareswitch_rewards WHERE experiment = {number} "
            f"AND version = {version} AND decision > {after.decisions} AND decision <= {upto.decisions} "
            f"AND seq <= {upto.rewards}"
        ).fetchone()
        late_rewards, late_rewarded = late.get(version, (0, 0))
        if known.decisions + new:
            versions[version] = Counts(
                version,
                known.decisions + new,
                known.rewarded + rewarded + late_rewarded,
                known.first_time if first is None else min(known.first_time, first),
                known.last_time if last is None else max(known.last_time, last),
                known.rewards + rewards + late_rewards,
            )
    (rewards,) = connection.execute(f"SELECT count(*) FROM {since} AND experiment + 0 = {number}").fetchone()
    return Tally(upto, before.rewards + rewards, versions)
