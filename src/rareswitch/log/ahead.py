"""Reading ahead."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Generator[T]) -> Iterator[T]:
    """The same items, each made in another thread while the one before it is looked at.

    >>> [*ahead(number**2 for number in range(3))]
    [0, 1, 4]
    """
    with closing(items), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, items, None)
        while (one := waiting.result()) is not None:
            waiting = pool.submit(next, items, None)
            yield one
