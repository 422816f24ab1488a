"""Which decisions of a batch were seen: one bit each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rareswitch.lanes import compiled
from rareswitch.validation import BoolArray, IntArray, read_only

BLOCKS = 1024
"""Into how many blocks a batch is cut to tell roughly where a part's decisions lie."""
PAGE = 1 << 13
"""Bytes in which bits are counted at a time."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Marks without the zeros around them, and between them where they are few: what travels."""

    where: slice | IntArray
    """Which bytes."""
    bits: NDArray[np.uint8]


class Marks:
    """A set of decisions out of those from ``start`` to ``stop``.

    >>> seen = Marks(100, 200)
    >>> seen.add(np.array([101, 105, 101])).tolist()
    [False, False, True]
    >>> seen.count, seen.holds(np.array([101, 102])).tolist(), seen.absent(3)
    (2, [True, False], [100, 102, 103])
    """

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop
        self.bits: NDArray[np.uint8] = np.zeros(-(-(stop - start) // 8), dtype=np.uint8)
        self._low, self._high = len(self.bits), 0
        """Bytes outside of which no bit is set by :meth:`add`."""

    def add(self, decisions: IntArray) -> BoolArray:
        """Mark decisions (n,), all within the batch; which of them, (n,), were marked already or come again."""
        again = np.zeros(len(decisions), dtype=np.bool_)
        low, high = _mark(self.bits, read_only(decisions), self.start, again)
        self._low, self._high = min(self._low, low), max(self._high, high + 1)
        return again

    def holds(self, decisions: IntArray) -> BoolArray:
        """Which of these decisions (n,), all within the batch, are marked."""
        offsets = decisions - self.start
        return np.asarray(self.bits[offsets >> 3] >> (offsets & 7).astype(np.uint8) & 1, dtype=np.bool_)

    def merge(self, stretch: Stretch) -> Stretch:
        """Mark what another set has; what both have."""
        both = self.bits[stretch.where] & stretch.bits
        self.bits[stretch.where] |= stretch.bits
        return Stretch(stretch.where, both)

    def stretch(self) -> Stretch:
        """What was added, in little."""
        near = slice(min(self._low, self._high), self._high)
        bits = self.bits[near]
        few = np.count_nonzero(bits)
        if 9 * few >= len(bits):
            return Stretch(near, bits.copy())
        at = np.flatnonzero(bits)
        return Stretch(at + near.start, bits[at])

    def everything(self) -> Stretch:
        """All of it, what was merged included, as it is."""
        return Stretch(slice(0, len(self.bits)), self.bits)

    @property
    def count(self) -> int:
        """How many decisions are marked."""
        return int(self.pages.sum())

    @property
    def pages(self) -> IntArray:
        """How many of each 65,536 decisions are marked."""
        pages = [np.bitwise_count(self.bits[at : at + PAGE]).sum() for at in range(0, len(self.bits), PAGE)]
        return np.array(pages, dtype=np.int64)

    def absent(self, most: int) -> list[int]:
        """The first few decisions that are not marked."""
        found: list[int] = []
        for at in range(0, len(self.bits), PAGE):
            page = self.bits[at : at + PAGE]
            if len(found) < most and not (page == 255).all():
                missing = np.flatnonzero(np.unpackbits(page, bitorder="little") == 0)
                found += (self.start + 8 * at + missing).tolist()
        return [decision for decision in found if decision < self.stop][:most]

    def blocks(self, stretch: Stretch) -> BoolArray:
        """(BLOCKS,) in which parts of the batch a stretch has marks."""
        size = -(-len(self.bits) // BLOCKS)
        found = np.zeros(BLOCKS, dtype=np.bool_)
        if isinstance(stretch.where, slice):
            first = stretch.where.start
            for block in range(first // size, -(-stretch.where.stop // size)):
                found[block] = stretch.bits[max(0, block * size - first) : (block + 1) * size - first].any()
        else:
            found[stretch.where[stretch.bits != 0] // size] = True
        return found


@compiled
def _mark(bits, decisions, start, again):  # type: ignore[no-untyped-def]
    """Set the bits of decisions; the first and the last byte that were touched."""
    low, high = bits.shape[0], -1
    for i in range(decisions.shape[0]):
        offset = decisions[i] - start
        place = offset >> 3
        bit = np.uint8(1 << (offset & 7))
        again[i] = (bits[place] & bit) != 0
        bits[place] |= bit
        low, high = min(low, place), max(high, place)
    return low, high
