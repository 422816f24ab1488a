"""The tables of experiments, their rows, and the checksums by which a damaged one is known.

The tables are the same for SQLite and PostgreSQL; several experiments share one database. What is kept is only added
to. Few columns are filled in later: the decision of a reward that came first, and by which reward another one was
superseded. Sequence numbers (``seq``) order decisions, and rewards, as they came.

A deferred decision has a negative sequence number, which nothing that learns or evaluates looks at, until it is
activated: then it gets the next number, as if it had come then. So the mark of decisions freezes activations too.

The checksum of a row is the sum of its 64-bit words, each times an odd constant of its own, modulo 2^64. One word that
changes always changes it, several but for one case in 2^64; and a million rows are checked by a few passes over memory.
It is meant for accidents: who changes rows on purpose can change checksums too.
"""

import json
import secrets
import struct
import zlib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareswitch.core import IntArray
from rareswitch.errors import StoreError
from rareswitch.lanes import compiled
from rareswitch.version import __version__

__all__ = ["EARLIEST", "Counts", "DecisionRow", "Marks", "RewardRow", "Totals", "VersionRow"]

Words = NDArray[np.uint64]
#: The checksum of a row of which all words are 0.
_NOTHING = np.uint64(0x243F6A8885A308D3)
#: The version of the schema that this release reads and writes.
SCHEMA = 1

#: Columns by table; those that may be empty have a question mark, those of the primary key an asterisk.
_TABLES = {
    "schema": "*version:number",
    # ended: when it was, in seconds since 1970
    "experiments": "*number:counter name:text description:text ?ended:real",
    "versions": "*experiment:number *number:number policy:data state:data summaries:data report:text signature:text "
    "time:real",
    # a version that waits for approval
    "proposals": "*experiment:number number:number policy:data state:data summaries:data report:text signature:text "
    "time:real",
    "updates": "*experiment:number *parent:number plan:text decisions:large rewards:large",
    "refusals": "*experiment:number *parent:number *number:number report:text",
    # deferred: 1 of those that count only when they are activated, and activated: when they were
    "decisions": "*seq:sequence experiment:number key:data id:text version:number arm:text arm_index:number "
    "propensity:real features:data digest:data time:real rank:real ?baseline:number checksum:large "
    "?cohort:text ?deferred:number ?activated:real",
    "contexts": "*seq:large experiment:number version:number rank:real data:data ?names:text checksum:large",
    # the record of a request as it came, which may be personal: apart, so that it can be deleted
    "records": "*seq:large experiment:number record:text",
    "rewards": "*seq:sequence experiment:number key:data id:text event:text value:real time:real ?decision:large "
    "?version:number ?superseded:large checksum:large",
    "counters": "*experiment:number *name:text count:large",
    "tallies": "*experiment:number counted:text",
}
#: Indices by name, which begins with that of the table: columns, and which rows are in it.
_INDICES = {
    "UNIQUE experiments_name": ("name", ""),
    "UNIQUE decisions_key": ("experiment, key", ""),
    "decisions_version": ("experiment, version, seq, time", ""),
    "decisions_time": ("experiment, time", ""),
    "contexts_rank": ("experiment, version, rank, seq", ""),
    "UNIQUE rewards_key": ("experiment, key, event", "superseded IS NULL"),
    "rewards_unmatched": ("experiment, key", "decision IS NULL"),
    "rewards_decision": ("experiment, version, decision, seq, superseded, value, time, checksum", ""),
}


class DecisionRow(NamedTuple):
    """A decision as it is kept."""

    #: Of its id, 16 bytes: :func:`rareswitch.core.rng.key_bytes`.
    key: bytes
    #: The id as JSON: ``"request-41c9"`` with its quotes, or ``17``.
    id: str
    #: Number of the policy that decided, from 1.
    version: int
    #: The id of the arm that was chosen; its place as text where arms have no ids.
    arm: str
    #: Where it stands among the available arms, from 0.
    arm_index: int
    propensity: float
    #: The vector of the chosen arm, float64, little-endian.
    features: bytes
    #: 16 bytes over arm ids, vectors and baseline: two requests are the same if these are.
    digest: bytes
    #: Seconds since 1970.
    time: float
    #: By which samples of context sets are taken, :func:`rareswitch.core.rng.sample_order`.
    rank: float
    #: The place of the arm that the caller would have shown, if it was said.
    baseline: int | None = None
    #: Where there is a holdout, "holdout" or "policy": whether it keeps the baseline.
    cohort: str | None = None
    #: 1 of a decision that counts only when it is activated, and when it was, in seconds since 1970.
    deferred: int | None = None
    activated: float | None = None
    #: The vectors of all available arms, one after the other, float64; None where they are not kept.
    contexts: bytes | None = None
    #: The ids of these arms as a JSON list; None where they are not kept, or arms have no ids.
    names: str | None = None
    #: The record of the request and its arms, as JSON; None where records are not kept.
    record: str | None = None
    #: What was not as described in its records, a JSON list of [field, what]; None where all was. Stores count it, and
    #: databases keep no more than the counts.
    cautions: str | None = None

    @property
    def waits(self) -> bool:
        """Whether it is still to be activated."""
        return self.deferred is not None and self.activated is None


class RewardRow(NamedTuple):
    """A reward as it is kept; several of a decision differ by their events."""

    #: Of its decision, which may come later.
    key: bytes
    #: Of its decision, as JSON.
    id: str
    #: '' where a decision has one reward; where rewards are summed, the caller's name of this one.
    event: str
    value: float
    #: Seconds since 1970.
    time: float


class Marks(NamedTuple):
    """Up to where an update looks: sequence numbers of decisions and of rewards."""

    decisions: int
    rewards: int


class VersionRow(NamedTuple):
    """A policy that was published, with all that the next one needs."""

    #: From 1.
    number: int
    #: The content of its policy file.
    policy: bytes
    #: That of the learner's state.
    state: bytes
    #: What it was learned from; empty for the first.
    summaries: bytes
    #: JSON: what was frozen when its update started, and its result.
    report: str
    #: JSON; of an experiment that is not signed, a hash.
    signature: str
    #: Seconds since 1970.
    time: float


class Counts(NamedTuple):
    """What a store holds of the decisions of one policy."""

    version: int
    decisions: int = 0
    #: Decisions with a reward at least.
    rewarded: int = 0
    #: Seconds since 1970, of the first and of the last decision.
    first_time: float = float("inf")
    last_time: float = float("-inf")
    #: Rewards of its decisions, with those that were superseded.
    rewards: int = 0


class Totals(NamedTuple):
    """What a store has seen besides."""

    #: Rewards in force.
    rewards: int
    #: Those whose decision has not come.
    unmatched: int
    #: Rewards that came again with the same value.
    repeated_rewards: int
    #: Rewards that took the place of others.
    overwritten: int
    #: Decisions that were asked for again.
    repeated_decisions: int
    #: Deferred decisions that were not activated yet.
    deferred: int = 0


@lru_cache(maxsize=4096)
def counter_names(cautions: str | None) -> tuple[str, ...]:
    """Under which the cautions of a decision are counted; other counters have no brackets.

    >>> counter_names('[["devce", "extra"]]')
    ('["devce", "extra"]',)
    """
    return () if cautions is None else tuple(json.dumps(caution) for caution in json.loads(cautions))


# tables

#: Those that hold rows of experiments, told apart by the column of that name.
EXPERIMENT_TABLES = tuple(table for table, columns in _TABLES.items() if "experiment:" in columns)


def statements(kinds: Mapping[str, str]) -> list[str]:
    """What makes all tables, by what a database calls the kinds of columns.

    >>> statements(dict.fromkeys(("number", "counter", "sequence", "large", "real", "text", "data"), "INTEGER"))[0]
    'CREATE TABLE rareswitch_schema (version INTEGER NOT NULL, PRIMARY KEY (version))'
    """
    texts = []
    for table, text in _TABLES.items():
        columns = [column.partition(":") for column in text.split()]
        lines = [
            f"{name.lstrip('*?')} {kinds[kind]}{'' if name.startswith('?') else ' NOT NULL'}"
            for name, _, kind in columns
        ]
        key = [(name[1:], kind) for name, _, kind in columns if name.startswith("*")]
        if not any("PRIMARY KEY" in kinds[kind] for _, kind in key):
            lines.append(f"PRIMARY KEY ({', '.join(name for name, _ in key)})")
        texts.append(f"CREATE TABLE rareswitch_{table} ({', '.join(lines)})")
    for title, (index, where) in _INDICES.items():
        unique, _, name = title.rpartition(" ")
        on = f"rareswitch_{name.partition('_')[0]} ({index}){where and f' WHERE {where}'}"
        texts.append(f"CREATE {unique} INDEX rareswitch_{name} ON {on}".replace("  ", " "))
    return [*texts, f"INSERT INTO rareswitch_schema (version) VALUES ({SCHEMA})"]


def check_schema(version: int, shown: str) -> None:
    """Refuse a database of another release."""
    if version != SCHEMA:
        raise StoreError(
            f"{shown} has schema version {version}; rareswitch {__version__} reads and writes version {SCHEMA}. Open "
            "it with the release of rareswitch that made it, or with a newer one."
        )


# checksums


@cache
def _constants(count: int) -> Words:
    """(count,) odd numbers, as a counter scrambled by the finalizer of SplitMix64."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) | np.uint64(1)


def checksums(words: Words) -> IntArray:
    """(n,) of rows of words (n, w).

    Those of a decision are its key, time, propensity, version and vector: what an update learns from, and under which
    policy. Those of a reward are the key of its decision, value, time, and the sequence number of the reward that
    superseded it, 0 where none did.
    """
    sums = np.full(len(words), _NOTHING)
    _add_words(words, _constants(words.shape[1]), sums)
    return sums.view(np.int64)


@compiled
def _add_words(words, constants, sums):  # type: ignore[no-untyped-def]
    """Add to ``sums`` (n,) the words (n, w) of each row, each times its constant (w,), modulo 2^64."""
    for s in range(words.shape[0]):
        for j in range(words.shape[1]):
            sums[s] += words[s, j] * constants[j]


_PACK = struct.Struct("<ddq").pack


def of_decisions(rows: Sequence[DecisionRow]) -> list[int]:
    """The checksums of decisions that are about to be kept."""
    if len(rows) > 1 and len({len(row.features) for row in rows}) > 1:
        return [of_decisions([row])[0] for row in rows]
    parts = [part for r in rows for part in (r.key, _PACK(r.time + 0.0, r.propensity + 0.0, r.version), r.features)]
    return _of_bytes(parts, len(rows))


def of_rewards(rows: Sequence[RewardRow], superseded: Sequence[int] | None = None) -> list[int]:
    """The checksums of rewards that are about to be kept, or superseded by those with these sequence numbers."""
    others = superseded or [0] * len(rows)
    parts = [row.key + _PACK(row.value + 0.0, row.time + 0.0, by) for row, by in zip(rows, others, strict=True)]
    return _of_bytes(parts, len(rows))


def _of_bytes(parts: Sequence[bytes], count: int) -> list[int]:
    """The checksums of rows of one length, which lie one after the other."""
    if not count:
        return []
    numbers: list[int] = checksums(np.frombuffer(b"".join(parts), dtype="<u8").reshape(count, -1)).tolist()
    return numbers


def of_contexts(rows: Sequence[DecisionRow]) -> list[int | None]:
    """The checksums of context sets that are kept, with what else is known of their decisions, and evaluated."""
    sums: list[int | None] = []
    for row in rows:
        if row.contexts is None:
            sums.append(None)
            continue
        more = f"{row.id} {row.arm} {row.arm_index} {row.baseline} {row.rank + 0.0!r} {row.names}"
        sums.append(zlib.crc32(row.contexts, zlib.crc32(row.digest, zlib.crc32(more.encode()))))
    return sums


#: Before all sequence numbers, also those of deferred decisions that were not activated.
EARLIEST = -(1 << 63)


def waiting_seq() -> int:
    """A sequence number of a decision that waits: negative, and drawn, so that none is given out twice."""
    return -1 - secrets.randbits(62)
