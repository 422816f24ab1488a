"""Checksums of the rows that are learned from, so that a damaged file gives an error and not other numbers.

A checksum is the sum of a row's 64-bit words, each times an odd constant of its own, modulo 2^64. One word that changes
always changes it, several but for one case in 2^64; and a million rows are checked by a few passes over memory. It is
meant for accidents: who changes rows on purpose can change checksums too.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareswitch.store.store import DecisionRow, RewardRow
from rareswitch.validation import FloatArray, IntArray

Words = NDArray[np.uint64]
#: Of a row of which all words are 0.
_NOTHING = 0x243F6A8885A308D3


def _constants(count: int) -> Words:
    """(count,) odd numbers, as a counter scrambled by the finalizer of SplitMix64."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) | np.uint64(1)


def _sums(*columns: Words) -> IntArray:
    """(n,) checksums of rows whose words stand in columns, (n,) or (n, w)."""
    widths = [1 if column.ndim == 1 else column.shape[1] for column in columns]
    parts = np.split(_constants(sum(widths)), np.cumsum(widths)[:-1])
    total = np.full(len(columns[0]), _NOTHING, dtype=np.uint64)
    for column, factors in zip(columns, parts, strict=True):
        total += column * factors[0] if column.ndim == 1 else column @ factors
    return total.view(np.int64)


def words_of(data: bytes | Any, rows: int) -> Words:
    """(rows, w) words of values of one length, one after the other, as bytes or as a buffer."""
    return np.frombuffer(data, dtype="<u8").reshape(rows, -1) if rows else np.empty((0, 1), dtype=np.uint64)


def _bits(values: Any) -> Words:
    """(n,) the bits of numbers; -0 counts as 0, which databases may make of it."""
    return (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)


def decision_checksums(
    keys: Words, features: Words, times: FloatArray, propensities: FloatArray, versions: IntArray
) -> IntArray:
    """(n,) of decisions: what an update learns from, and under which policy.

    Parameters
    ----------
    keys
        (n, 2)
    features
        (n, d)
    times, propensities, versions
        (n,)
    """
    return _sums(keys, _bits(times), _bits(propensities), versions.astype(np.uint64), features)


def reward_checksums(keys: Words, values: FloatArray, times: FloatArray, superseded: IntArray) -> IntArray:
    """(n,) of rewards: those of which decision, and by which other they were superseded, 0 by none."""
    return _sums(keys, _bits(values), _bits(times), superseded.astype(np.uint64))


def of_decisions(rows: Sequence[DecisionRow]) -> list[int]:
    """The checksums of decisions that are about to be kept."""
    if len({len(row.features) for row in rows}) > 1:
        return [of_decisions([row])[0] for row in rows]
    keys, features = (words_of(b"".join(row[at] for row in rows), len(rows)) for at in (0, 6))  # type: ignore[misc]
    times, propensities = (np.array([row[at] for row in rows], dtype=np.float64) for at in (8, 5))
    versions = np.array([row.version for row in rows], dtype=np.int64)
    checksums: list[int] = decision_checksums(keys, features, times, propensities, versions).tolist()
    return checksums


def of_rewards(rows: Sequence[RewardRow], superseded: Sequence[int] | None = None) -> list[int]:
    """The checksums of rewards that are about to be kept, or superseded by those with these sequence numbers."""
    keys = words_of(b"".join(row.key for row in rows), len(rows))
    values, times = (np.array([row[at] for row in rows], dtype=np.float64) for at in (3, 4))
    others = np.zeros(len(rows), dtype=np.int64) if superseded is None else np.array(superseded, dtype=np.int64)
    checksums: list[int] = reward_checksums(keys, values, times, others).tolist()
    return checksums


def of_contexts(row: DecisionRow) -> int:
    """The checksum of a context set that is kept, with what else is known of its decision, and evaluated."""
    assert row.contexts is not None  # as it is kept
    more = f"{row.id} {row.arm} {row.place} {row.baseline} {row.rank + 0.0!r} {row.names}"
    return zlib.crc32(row.contexts, zlib.crc32(row.digest, zlib.crc32(more.encode())))
