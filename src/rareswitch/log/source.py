"""Where decisions are read from: sources, in chunks, and what their readers share."""

from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Protocol, TypeVar

import numpy as np

from rareswitch.core import IntArray, KeyArray, sample_order
from rareswitch.decisions import DecisionLog
from rareswitch.errors import FileFormatError
from rareswitch.policy import Policy

__all__ = ["Source", "read_all"]

T = TypeVar("T")


class Source(Protocol):
    """Where decisions are read from, as often as needed, some at a time; :class:`DecisionLog` is one itself."""

    @property
    def batch_names(self) -> tuple[str, ...]:
        """The names of all batches, in the order in which they were made."""

    @property
    def policies(self) -> Mapping[str, Policy]:
        """The frozen policies of batches, as far as they are at hand, by the names of these."""

    @property
    def estimated(self) -> str:
        """How propensities were estimated; empty where they are exact."""

    @property
    def cautions(self) -> tuple[str, ...]:
        """What is to be borne in mind of its rewards, in sentences."""

    @property
    def dim(self) -> int | None:
        """Features of an arm; None where there are no vectors."""

    def chunks(self, *, contexts: bool = True) -> Iterator[DecisionLog]:
        """The decisions, some at a time; all chunks have the ``batch_names`` of the source.

        With ``contexts`` those of which all offered arms are known (all, or a sample that was taken by the hash of the
        id alone, so that it is like the rest). Without, all decisions, with the vectors of the chosen arms only:
        ``contexts`` and ``codes`` are None, ``available`` is (n, 1) and ``arm_indices`` 0.
        """


def read_all(source: Source) -> DecisionLog:
    """All decisions of a source in memory, of which all offered arms are known.

    >>> log = DecisionLog(arm_indices=[0], propensities=[1.0], rewards=[0.0])
    >>> read_all(log) is log
    True
    """
    return DecisionLog.concatenate([*source.chunks()])


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
                f"{source}: context sets are missing for decisions that the hash sample would include, so those that "
                "are there are not a random sample (for example only clicks). Keep the contexts of all decisions, "
                "or of those that rareswitch.learner.sampled(ids, share) names."
            )
