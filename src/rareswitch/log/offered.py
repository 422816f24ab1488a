"""What was offered in rows of a log: vectors, ids and probabilities of all arms."""

from typing import Any, NamedTuple

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.log.block import Block, bounds, sound
from rareswitch.log.vocabulary import Vocabulary
from rareswitch.validation import BoolArray, FloatArray, IntArray, sealed

_RULE = "All columns of a row must be of the arms that were offered, in one order."


class Offered(NamedTuple):
    """The arms of some rows."""

    #: (m, K)
    available: BoolArray
    #: (m,) where the chosen arms stand.
    arm_indices: IntArray
    #: (m, K, d), where there are vectors.
    contexts: FloatArray | None
    #: (m, K) their numbers in the vocabulary, -1 where none was offered; None where they have no ids.
    codes: IntArray | None
    #: (m, K) probabilities, where they are kept.
    behavior_probs: FloatArray | None
    #: (m,) -1 where none was named.
    baselines: IntArray | None


def rows_with_sets(block: Block, dim: int | None) -> IntArray:
    """(m,) the rows of which all offered arms are known."""
    names = block.batch.schema.names
    if "contexts" in names:
        if dim is None:
            raise FileFormatError(f"{block.source}: a log with contexts needs the column 'features' too. Write it.")
        return block.with_sets(dim)
    told = next((name for name in ("available", "names", "behavior_probs") if name in names), None)
    return np.zeros(0, dtype=np.int64) if told is None else np.flatnonzero(block.batch.column(told).is_valid())


def read_offered(block: Block, *, features: FloatArray | None, propensities: FloatArray, words: Vocabulary) -> Offered:
    """What was offered in rows of which all arms are known, one at least; features (n, d), propensities (n,)."""
    has = {name for name in block.batch.schema.names if block.batch.column(name).null_count < len(block.numbers)}
    named = _Named(block, words) if "names" in has else None
    mask = _mask(block) if "available" in has else None
    if "contexts" in has and features is not None:
        sizes = np.diff(bounds(block.batch.column("contexts"))) // features.shape[1]
    elif mask is not None:
        sizes = mask.sum(axis=1)
    else:
        sizes = np.diff(bounds(block.batch.column("behavior_probs"))) if named is None else named.sizes
    block.refuse(sizes < 1, "offers no arm", "A decision has one arm at least.")
    offered = sealed(np.arange(sizes.max()) < sizes[:, None])  # columns tell of these arms alone
    contexts = None
    if "contexts" in has and features is not None:
        contexts = _lists(block, "contexts", offered, features.shape[1])
    behavior_probs = _lists(block, "behavior_probs", offered)[:, :, 0] if "behavior_probs" in has else None
    codes = None if named is None else named.codes(offered)
    arm_indices = _places(block, offered, features, contexts, None if named is None else named.chosen(codes))
    if behavior_probs is not None:
        own = behavior_probs[np.arange(len(arm_indices)), arm_indices]
        odd = (behavior_probs < 0.0).any(axis=1) | ~np.isclose(own, propensities, rtol=1e-6, atol=1e-12)
        block.refuse(odd, lambda at: f"has the propensity {propensities[at]:g} and behavior_probs {own[at]:g}", _RULE)
    found = Offered(
        offered, arm_indices, contexts, codes, behavior_probs, _baselines(block, sizes) if "baseline" in has else None
    )
    if mask is None:
        return found
    block.refuse(
        mask.sum(axis=1) != sizes, lambda at: f"has {sizes[at]} arms, and available says {mask[at].sum()}", _RULE
    )
    return _spread(found, mask)


def _lists(block: Block, name: str, offered: BoolArray, width: int = 1) -> FloatArray:
    """(n, K, width) the numbers of each arm, zero where none was offered; without a copy where all rows have K."""
    column = block.batch.column(name)
    sizes, wanted = np.diff(bounds(column)), width * offered.sum(axis=1)
    block.refuse(sizes != wanted, lambda at: f"has {sizes[at]} numbers of {name}, not {wanted[at]}", _RULE)
    flat = np.ascontiguousarray(column.flatten().to_numpy(zero_copy_only=False), dtype=np.float64).reshape(-1, width)
    if not sound(flat):
        here = Block(block.source, np.repeat(block.numbers, sizes // width), None)
        here.check_numbers(flat, np.zeros(len(flat)), name)
    if offered.all():
        return sealed(flat.reshape(*offered.shape, width))
    found = np.zeros((*offered.shape, width))
    found[offered] = flat
    return sealed(found)


class _Named:
    """The ids of the offered arms, of which each list is read once however many rows have it."""

    def __init__(self, block: Block, words: Vocabulary) -> None:
        self.block, self.words = block, words
        column = block.batch.column("names").dictionary_encode()
        #: (n,) which list each row has; -1 where arms have no ids.
        self.which = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self.lists = [self._read(at, text) for at, text in enumerate(column.dictionary.to_pylist())]
        #: (n,) their lengths; 0 where arms have no ids.
        self.sizes: IntArray = np.array([*map(len, self.lists), 0], dtype=np.int64)[self.which]

    def _read(self, at: int, text: str) -> IntArray:
        try:
            return self.words.numbers(text)
        except FileFormatError as error:
            row = int(np.flatnonzero(self.which == at)[0])
            raise self.block.wrong(row, f"has the names {text!r:.60}", str(error)) from None

    def codes(self, offered: BoolArray) -> IntArray:
        """(n, K) the numbers of the arms."""
        named, sizes = self.which >= 0, offered.sum(axis=1)
        odd = named & (self.sizes != sizes)
        self.block.refuse(odd, lambda at: f"has {self.sizes[at]} names, for {sizes[at]} arms", _RULE)
        width = offered.shape[1]
        arm_indices = self.words.arm_indices(width) if not named.all() else np.zeros(width, dtype=np.int64)
        table = np.full((len(self.lists) + 1, width), -1)
        for at, numbers in enumerate(self.lists):
            table[at, : len(numbers)] = numbers[:width]
        table[-1] = arm_indices  # arms without ids are called by these
        return sealed(np.where(offered, table[self.which], -1))

    def chosen(self, codes: IntArray | None) -> tuple[IntArray, BoolArray] | None:
        """(n,) the place of the arm in the column ``arm``, and where it is known; None without such a column."""
        if "arm" not in self.block.batch.schema.names or codes is None:
            return None
        column = self.block.batch.column("arm").dictionary_encode()
        numbers = np.array([*map(self.words.code, column.dictionary.to_pylist()), -2], dtype=np.int64)
        arms = numbers[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        same = codes == arms[:, None]
        known = (self.which >= 0) & (arms >= 0)
        odd = known & ~same.any(axis=1)
        self.block.refuse(odd, "has an arm that is none of its names", _RULE)
        return same.argmax(axis=1), known


def _mask(block: Block) -> BoolArray:
    """(n, K) the column ``available``."""
    column = block.batch.column("available")
    sizes = np.diff(bounds(column))
    mask = np.zeros((len(sizes), max(1, int(sizes.max()))), dtype=np.bool_)
    mask[np.arange(mask.shape[1]) < sizes[:, None]] = column.flatten().fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _places(
    block: Block,
    offered: BoolArray,
    features: FloatArray | None,
    contexts: FloatArray | None,
    named: tuple[IntArray, BoolArray] | None,
) -> IntArray:
    """(n,) where the chosen arms stand: by the column ``place``, by their ids, or by their vectors."""
    count = len(offered)
    found, known = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    if "arm_index" in block.batch.schema.names:
        column = block.batch.column("arm_index")
        known = np.asarray(column.is_valid())
        found = np.array(column.fill_null(0).to_numpy(zero_copy_only=False))
        odd = (found < 0) | (found >= offered.sum(axis=1))
        block.refuse(odd, lambda at: f"has the place {found[at]}, of {offered[at].sum()} arms", _RULE)
    if named is not None:
        odd = known & named[1] & (found != named[0])
        block.refuse(odd, lambda at: f"has an arm that is not the one at its place, {found[at]}", _RULE)
        found, known = np.where(known | ~named[1], found, named[0]), known | named[1]
    if contexts is not None and features is not None:
        left = np.flatnonzero(~known)
        if len(left):
            found[left] = _alike(block.take(left), offered[left], features[left], contexts[left])
        chosen = contexts.reshape(-1, features.shape[1]).take(np.arange(count) * offered.shape[1] + found, axis=0)
        if not np.array_equal(chosen, features):
            odd = (chosen != features).any(axis=1)
            rule = "Write as place, from 0, and as features those of the arm that was chosen."
            block.refuse(odd, lambda at: f"has other features than the arm at its place, {found[at]}", rule)
    else:
        block.refuse(~known, "does not say which arm was chosen", "Write its place, from 0, in the column 'place'.")
    return sealed(found)


def _alike(block: Block, offered: BoolArray, features: FloatArray, contexts: FloatArray) -> IntArray:
    """(n,) the first arm that has these features; a feature is looked at only where those before it leave several."""
    same = offered.copy()
    for k in range(features.shape[1]):
        same &= contexts[:, :, k] == features[:, k, None]
        if same.sum() <= len(same):
            break
    rule = "Write those of the arm that was chosen."
    block.refuse(~same.any(axis=1), "has features that are none of its contexts", rule)
    return np.asarray(same.argmax(axis=1))


def _baselines(block: Block, sizes: IntArray) -> IntArray:
    column = block.batch.column("baseline")
    found = np.array(column.fill_null(-1).to_numpy(zero_copy_only=False))
    odd = (found < -1) | (found >= sizes)
    block.refuse(odd, lambda at: f"has the baseline {found[at]}, of {sizes[at]} arms", _RULE)
    return sealed(found)


def _spread(found: Offered, available: BoolArray) -> Offered:
    """The same arms, where they stood."""

    def spread(array: Any, fill: float) -> Any:
        if array is None:
            return None
        moved = np.full((*available.shape, *array.shape[2:]), fill, dtype=array.dtype)
        moved[available] = array[found.available]
        return sealed(moved)

    rows, order = np.arange(len(available)), np.argsort(~available, axis=1, kind="stable")
    named = found.baselines
    return Offered(
        available=sealed(available),
        arm_indices=sealed(order[rows, found.arm_indices]),
        contexts=spread(found.contexts, 0.0),
        codes=spread(found.codes, -1),
        behavior_probs=spread(found.behavior_probs, 0.0),
        baselines=None if named is None else sealed(np.where(named < 0, -1, order[rows, named])),
    )
