"""Rows of a log that tell of one decision several times: which one counts, and which reward is its."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.files import pyarrow
from rareswitch.log.block import Block, Span
from rareswitch.log.reading import id_hashes
from rareswitch.validation import FloatArray, IntArray

#: Hashes that are compared at a time.
SWEEP = 1 << 24
#: Odd numbers by which the words of a row are told apart.
_FACTOR = 0x9E3779B97F4A7C15

#: Gives the blocks of a log with these columns, each with the number of its file.
Read = Callable[[Sequence[str]], Iterator[tuple[int, Block]]]


class Repeats(NamedTuple):
    """What is done with rows of ids that occur several times, by the number of their file."""

    #: Rows that do not count.
    dropped: dict[int, IntArray]
    #: Rows that take their reward from a copy, that reward, and when it came.
    changed: dict[int, tuple[IntArray, FloatArray, FloatArray]]

    @property
    def copies(self) -> int:
        """Rows that are left out since their decision is counted already."""
        return sum(map(len, self.dropped.values()))

    def settled(self, file: int, block: Block) -> Block:
        """A block without the rows that do not count, and with the rewards that copies of others know."""
        pa, _ = pyarrow()
        batch, numbers = block.batch, block.numbers
        if file in self.changed:
            rows, *values = self.changed[file]
            here = (rows >= numbers[0]) & (rows <= numbers[-1])
            at = rows[here] - numbers[0]
            for name, new, old in zip(("reward", "reward_time"), values, _earned(block), strict=True):
                if name in batch.schema.names:
                    column = np.array(old)
                    column[at] = new[here]
                    arm_index = batch.schema.get_field_index(name)
                    batch = batch.set_column(arm_index, name, pa.array(column, from_pandas=True))
        left = Block(block.source, numbers, batch)
        kept = ~np.isin(numbers, self.dropped.get(file, ()))
        return left if kept.all() else left.take(np.flatnonzero(kept))


class Seen:
    """Where the ids of a batch lie, block by block."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self.rows = 0

    def add(self, block: Block) -> None:
        """The next rows; only numbers have places."""
        self.rows += len(block.numbers)
        self._spans.append(block.span())

    @property
    def once(self) -> bool:
        """Whether it is sure that no id occurs twice: they rise in each block, and blocks lie apart."""
        spans = sorted(self._spans)
        return all(span.rise for span in spans) and all(a.high < b.low for a, b in pairwise(spans))


def find_repeats(read: Read, numbers: dict[str, int], rows: int, columns: list[str]) -> Repeats:
    """Which rows to leave out of a log of so many, whose policies have these numbers; ``columns`` are all it has."""
    twice, sweeps, own = [np.zeros(0)], -(-rows // SWEEP), [name for name in ("id", "key", "policy") if name in columns]
    for sweep in range(sweeps):
        low, high = sweep / sweeps, (sweep + 1) / sweeps
        found = [np.zeros(0)]
        for _, block in read(own):
            hashes = np.concatenate([id_hashes(numbers[name], mine.keys()) for name, mine in block.by_policy(numbers)])
            found.append(hashes[(hashes >= low) & (hashes < high)])
        every = np.sort(np.concatenate(found))
        twice.append(np.unique(every[1:][every[1:] == every[:-1]]))
    repeated = np.concatenate(twice)  # sorted, as the sweeps are
    return _compared(read, numbers, repeated, columns) if len(repeated) else Repeats({}, {})


def _compared(read: Read, numbers: dict[str, int], repeated: FloatArray, columns: list[str]) -> Repeats:
    """Look at all rows with such hashes."""
    parts: list[list[Any]] = []
    wanted = [
        name for name in columns if name not in ("time", "arm", "names", "baseline", "behavior_probs", "arm_index")
    ]
    sources: dict[int, str] = {}
    for file, block in read(wanted):
        sources[file] = block.source
        for name, mine in block.by_policy(numbers):
            hashes = id_hashes(numbers[name], mine.keys())
            at = np.flatnonzero(repeated[np.minimum(np.searchsorted(repeated, hashes), len(repeated) - 1)] == hashes)
            if len(at):
                parts.append([np.full(len(at), numbers[name]), np.full(len(at), file), *_told(mine.take(at))])
    batch, files, rows, low, high, said, has, rewards, times = map(np.concatenate, zip(*parts, strict=True))
    # of the rows of a decision the first that has its set
    order = np.lexsort((rows, files, ~has, low, high, batch))
    keys = np.stack([batch.astype(np.uint64), high, low])[:, order]
    first = np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    begins = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    kept = order[begins]
    # the reward of the first row that knows it
    known = np.flatnonzero(~np.isnan(rewards[order]))
    source = np.full(len(begins), len(order))
    np.minimum.at(source, group[known], known)
    told = source < len(order)
    paying = np.where(told, order[np.minimum(source, len(order) - 1)], kept)
    odd = (said[order] != said[kept][group]) | (~np.isnan(rewards[order]) & (rewards[order] != rewards[paying][group]))
    if odd.any():
        at = order[np.flatnonzero(odd)[0]]
        other = kept[group[np.flatnonzero(odd)[0]]]
        raise FileFormatError(
            f"{sources[int(files[at])]}: row {int(rows[at])} (the first is 0) contradicts row {int(rows[other])} of "
            f"{sources[int(files[other])]}, which has the same id under the same policy: other features, another "
            "propensity or another reward. Rows of one decision must agree: keep the right one, or give each decision "
            "an id of its own."
        )
    left = order[~first]
    moved = np.flatnonzero(told & (paying != kept))
    dropped, changed = {}, {}
    for file in sources:
        mine = left[files[left] == file]
        if len(mine):
            dropped[file] = np.sort(rows[mine])
        at = moved[files[kept[moved]] == file]
        if len(at):
            at = at[np.argsort(rows[kept[at]])]
            changed[file] = rows[kept[at]], rewards[paying[at]], times[paying[at]]
    return Repeats(dropped, changed)


def _told(block: Block) -> list[Any]:
    """Of each row its number, the words of its key, a hash of what was decided, whether it has a set, its reward."""
    names, keys = block.batch.schema.names, block.keys()
    said = block.batch.column("propensity").to_numpy().view(np.uint64).copy()
    if "features" in names:
        column = block.batch.column("features")
        vectors = column.flatten().to_numpy(zero_copy_only=False).reshape(len(keys), -1) + 0.0  # 0 for -0
        words = np.ascontiguousarray(vectors).view(np.uint64)
        words = words ^ (words >> np.uint64(32))  # the last digits of round numbers are all zero
        factors = (np.arange(1, 2 * words.shape[1], 2, dtype=np.uint64) * np.uint64(_FACTOR)) | np.uint64(1)
        said += (words * factors).sum(axis=1, dtype=np.uint64)
    has = np.ones(len(keys), dtype=np.bool_)
    if "contexts" in names:
        has = np.asarray(block.batch.column("contexts").is_valid())
    return [block.numbers, keys[:, 0], keys[:, 1], said, has, *_earned(block)]


def _earned(block: Block) -> tuple[FloatArray, FloatArray]:
    """(n,) rewards, and when they came."""
    return block.rewards(), block.times("reward_time")
