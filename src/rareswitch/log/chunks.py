"""Blocks of rows, of a part of a log or of a store, as chunks of a decision log."""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rareswitch.core import BoolArray, FloatArray, IntArray, KeyArray, read_only, sealed
from rareswitch.errors import FileFormatError
from rareswitch.learner import attributed, sample_order
from rareswitch.log.blocks import Block, bounds
from rareswitch.log.decision_log import DecisionLog
from rareswitch.policy import Policy

T = TypeVar("T")
#: Columns that are read of chosen arms alone, and those that tell of all that were offered.
CHOSEN = ("id", "key", "policy", "features", "propensity", "reward", "time", "reward_time")
OFFERED = (*CHOSEN, "contexts", "arm_index", "arm", "names", "baseline", "behavior_probs")
#: Lists of arms that are remembered.
MOST_LISTS = 1 << 16
_RULE = "All columns of a row must be of the arms that were offered, in one order."


def prefetched(items: Generator[T]) -> Iterator[T]:
    """The same items, each made in another thread while the one before it is looked at.

    >>> [*prefetched(number**2 for number in range(3))]
    [0, 1, 4]
    """
    with closing(items), ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


@dataclass(frozen=True, eq=False, kw_only=True)
class About:
    """What holds for all rows of a source."""

    batch_names: tuple[str, ...]
    policies: Mapping[str, Policy]
    dim: int | None
    estimated: str = ""
    #: As :func:`~rareswitch.learner.attributed` takes them.
    counting: Mapping[str, Any] = field(default_factory=dict)

    def chunks(self, blocks: Generator[Block], *, contexts: bool) -> Iterator[DecisionLog]:
        """One pass over a source: all rows with the chosen arms alone, or those of which all arms are known."""
        arms, sample = ArmCodes(), KeyedSample(len(self.batch_names))
        for block in prefetched(blocks):
            columns = self._columns(block)
            if not contexts:
                count = len(block.numbers)
                one, zeros = sealed(np.ones((count, 1), dtype=np.bool_)), sealed(np.zeros(count, dtype=np.int64))
                yield self._log(available=one, arm_indices=zeros, **columns)
                continue
            rows = _rows_with_sets(block, self.dim)
            sample.check(block.source, columns["batches"], columns["ids"], rows)
            if not len(rows):
                continue
            if len(rows) < len(block.numbers):
                block = block.take(rows)
                columns = {name: None if column is None else sealed(column[rows]) for name, column in columns.items()}
            yield self._log(**columns, **_offered(block, columns["features"], columns["propensities"], arms))

    def _columns(self, block: Block) -> dict[str, Any]:
        decided = block.decided(self.dim)
        rewards = decided.rewards
        if self.counting:
            when: dict[str, Any] = {}
            if self.counting.get("window") is not None:
                when = {"times": block.times("time", needed=True), "reward_times": block.times("reward_time")}
            rewards = read_only(attributed(rewards, **when, **self.counting).rewards)
        numbers = {name: number for number, name in enumerate(self.batch_names)}
        return {
            "batches": sealed(block.policy_numbers(numbers)),
            "propensities": decided.propensities,
            "rewards": rewards,
            "features": None if self.dim is None else read_only(decided.features),
            "ids": decided.keys,
            "times": block.times("time") if block.has("time") else None,
        }

    def _log(self, **columns: Any) -> DecisionLog:
        about = {"batch_names": self.batch_names, "policies": self.policies, "estimated": self.estimated}
        return DecisionLog.checked(**columns, **about)


class KeyedSample:
    """Checks that the rows with context sets are those of each batch whose ids have the smallest hashes."""

    def __init__(self, batches: int) -> None:
        #: By batch, the largest hash of a row with a set, and the smallest of one without.
        self.last, self.missing = np.full(batches, -np.inf), np.full(batches, np.inf)

    def check(self, source: str, batches: IntArray, keys: KeyArray, rows: IntArray) -> None:
        """Take the next rows, of which ``rows`` (m,) have sets."""
        ranks, has = sample_order(keys), np.zeros(len(keys), dtype=np.bool_)
        has[rows] = True
        np.maximum.at(self.last, batches[has], ranks[has])
        np.minimum.at(self.missing, batches[~has], ranks[~has])
        if (self.last > self.missing).any():
            raise FileFormatError(
                f"{source}: some decisions have no contexts, and not those that a share of all would leave out: "
                "sets were kept by something else than the hash of the id, so that values estimated from them could be "
                "of other decisions than the rest. Keep the contexts of all decisions, or of those that "
                "rareswitch.learner.sampled(ids, share) names."
            )


class ArmCodes:
    """Numbers the ids of arms as they come; each list of them, a JSON text, is read once."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._lists: dict[str, IntArray] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All that came so far."""
        return tuple(self._codes)

    def codes(self, names: Iterable[str]) -> IntArray:
        """The numbers of arms."""
        return np.array([self._codes.setdefault(name, len(self._codes)) for name in names], dtype=np.int64)

    def listed(self, text: str) -> IntArray:
        """The numbers of the arms of a list; what is wrong with it is raised as the rule alone."""
        if text not in self._lists:
            try:
                given = json.loads(text)
            except (ValueError, RecursionError):
                given = None
            if not isinstance(given, list) or not given or not all(type(arm) in (str, int) for arm in given):
                raise FileFormatError("Write the ids of the offered arms as a JSON list.")
            if len({*map(str, given)}) < len(given):
                raise FileFormatError("Arms that are offered together must have different ids.")
            if len(self._lists) >= MOST_LISTS:
                self._lists.clear()
            self._lists[text] = self.codes(map(str, given))
        return self._lists[text]


class _Chosen(NamedTuple):
    """(n,) the indices of chosen arms, and where they are known."""

    indices: IntArray
    known: BoolArray


def _rows_with_sets(block: Block, dim: int | None) -> IntArray:
    """(m,) the rows of which all offered arms are known."""
    if block.has("contexts"):
        if dim is None:
            raise FileFormatError(f"{block.source}: a log with contexts needs the column 'features' too. Write it.")
        return block.with_sets(dim)
    told = next((name for name in ("names", "behavior_probs") if block.has(name)), None)
    return np.zeros(0, dtype=np.int64) if told is None else np.flatnonzero(block.batch.column(told).is_valid())


def _offered(block: Block, features: FloatArray | None, propensities: FloatArray, arms: ArmCodes) -> dict[str, Any]:
    """What was offered in rows of which all arms are known, one at least; features (n, d), propensities (n,)."""
    count = len(block.numbers)
    has = {name for name in block.batch.schema.names if block.batch.column(name).null_count < count}
    named = _Named(block, arms) if "names" in has else None
    dim = features.shape[1] if features is not None and "contexts" in has else 0
    if dim:
        sizes = np.diff(bounds(block.batch.column("contexts"))) // dim
    else:
        sizes = np.diff(bounds(block.batch.column("behavior_probs"))) if named is None else named.sizes
    block.refuse(sizes < 1, "offers no arm", "A decision has one arm at least.")
    available = sealed(np.arange(sizes.max()) < sizes[:, None])
    contexts = block.lists("contexts", available, dim) if dim else None
    codes = None if named is None else named.codes(available)
    indices = chosen_indices(block, available, features, contexts, None if codes is None else named.chosen(codes))  # type: ignore[union-attr]
    probabilities = block.lists("behavior_probs", available)[:, :, 0] if "behavior_probs" in has else None
    if probabilities is not None:
        own = probabilities[np.arange(count), indices]
        odd = (probabilities < 0.0).any(axis=1) | ~np.isclose(own, propensities, rtol=1e-6, atol=1e-12)
        block.refuse(odd, lambda at: f"has the propensity {propensities[at]:g} and behavior_probs {own[at]:g}", _RULE)
    return {
        "available": available,
        "arm_indices": indices,
        "contexts": contexts,
        "codes": codes,
        "arms": None if codes is None else arms.names,
        "behavior_probs": probabilities,
        "baselines": _index_column(block, "baseline", sizes).indices if "baseline" in has else None,
    }


class _Named:
    """The ids of the offered arms, of which each list is read once however many rows have it."""

    def __init__(self, block: Block, arms: ArmCodes) -> None:
        self.block, self.arms = block, arms
        column = block.batch.column("names").dictionary_encode()
        #: (n,) which list each row has; -1 where arms have no ids.
        self.which = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self.lists = [self._read(at, text) for at, text in enumerate(column.dictionary.to_pylist())]
        #: (n,) their lengths; 0 where arms have no ids.
        self.sizes: IntArray = np.array([*map(len, self.lists), 0], dtype=np.int64)[self.which]

    def _read(self, at: int, text: str) -> IntArray:
        try:
            return self.arms.listed(text)
        except FileFormatError as error:
            row = int(np.flatnonzero(self.which == at)[0])
            raise self.block.wrong(row, f"has the names {text!r:.60}", str(error)) from None

    def codes(self, available: BoolArray) -> IntArray:
        """(n, K) the numbers of the arms; those without ids are called by their indices."""
        named, sizes, width = self.which >= 0, available.sum(axis=1), available.shape[1]
        odd = named & (self.sizes != sizes)
        self.block.refuse(odd, lambda at: f"has {self.sizes[at]} names, for {sizes[at]} arms", _RULE)
        table = np.full((len(self.lists) + 1, width), -1)
        for at, numbers in enumerate(self.lists):
            table[at, : len(numbers)] = numbers[:width]
        if not named.all():
            table[-1] = self.arms.codes(map(str, range(width)))
        return sealed(np.where(available, table[self.which], -1))

    def chosen(self, codes: IntArray) -> _Chosen | None:
        """The arms of the column ``arm``; None without such a column."""
        if not self.block.has("arm"):
            return None
        column = self.block.batch.column("arm").dictionary_encode()
        numbers = np.append(self.arms.codes(column.dictionary.to_pylist()), -2)
        same = codes == numbers[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)][:, None]
        known = (self.which >= 0) & np.asarray(column.is_valid())
        self.block.refuse(known & ~same.any(axis=1), "has an arm that is none of its names", _RULE)
        return _Chosen(same.argmax(axis=1), known)


def _index_column(block: Block, name: str, sizes: IntArray) -> _Chosen:
    """A column of indices of arms; -1 where there is a null."""
    column = block.batch.column(name)
    known, indices = np.asarray(column.is_valid()), np.array(column.fill_null(-1).to_numpy(zero_copy_only=False))
    odd = known & ((indices < 0) | (indices >= sizes))
    block.refuse(odd, lambda at: f"has the {name} {indices[at]}, of {sizes[at]} arms", _RULE)
    return _Chosen(sealed(indices.astype(np.int64)), known)


def chosen_indices(
    block: Block,
    available: BoolArray,
    features: FloatArray | None,
    contexts: FloatArray | None,
    named: _Chosen | None,
) -> IntArray:
    """(n,) where the chosen arms stand: by the column ``arm_index``, by their ids, or by their vectors."""
    count = len(available)
    found, known = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    if block.has("arm_index"):
        given = _index_column(block, "arm_index", available.sum(axis=1))
        found, known = np.where(given.known, given.indices, 0), given.known
    if named is not None:
        odd = known & named.known & (found != named.indices)
        block.refuse(odd, lambda at: f"has an arm that is not the one at its arm_index, {found[at]}", _RULE)
        found, known = np.where(known | ~named.known, found, named.indices), known | named.known
    if contexts is None or features is None:
        rule = "Write its index, from 0, in the column 'arm_index'."
        block.refuse(~known, "does not say which arm was chosen", rule)
        return sealed(found)
    left = np.flatnonzero(~known)
    if len(left):
        found[left] = _alike(block.take(left), available[left], features[left], contexts[left])
    chosen = contexts.reshape(-1, features.shape[1]).take(np.arange(count) * available.shape[1] + found, axis=0)
    if not np.array_equal(chosen, features):
        rule = "Write as arm_index, from 0, and as features those of the arm that was chosen."
        odd = (chosen != features).any(axis=1)
        block.refuse(odd, lambda at: f"has other features than the arm at its arm_index, {found[at]}", rule)
    return sealed(found)


def _alike(block: Block, available: BoolArray, features: FloatArray, contexts: FloatArray) -> IntArray:
    """(n,) the first arm that has these features; a feature is looked at only where those before it leave several."""
    same = available.copy()
    for k in range(features.shape[1]):
        same &= contexts[:, :, k] == features[:, k, None]
        if same.sum() <= len(same):
            break
    rule = "Write those of the arm that was chosen."
    block.refuse(~same.any(axis=1), "has features that are none of its contexts", rule)
    return np.asarray(same.argmax(axis=1))
