"""Connections to databases; what fails because one is locked or gone for a while is tried again, for some seconds."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from rareswitch.errors import StoreError, UnreachableError

T = TypeVar("T")
#: Connections for reading, at the most.
READERS = 8
#: Seconds for which a database may be gone, or locked by others.
PATIENCE = 10.0


class Cursor(Protocol):
    """What came of a statement."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What drivers of databases have in common; parameters stand for question marks."""

    def execute(self, query: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...

    def close(self) -> None: ...


C = TypeVar("C", bound=Connection)


class Pool(Generic[C]):
    """Connections that are used one after the other, and kept for the next who needs one."""

    def __init__(self, connect: Callable[[], C], shown: str) -> None:
        self._connect, self._shown = connect, shown
        self._room = threading.Semaphore(READERS)
        self._idle: list[C] = []
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[C]:
        """One that nobody else uses; after an error it is not used again."""
        if not self._room.acquire(timeout=PATIENCE):
            raise StoreError(f"{self._shown} is busy: all connections are in use. Try again.")
        try:
            connection = self._idle.pop() if self._idle else self._connect()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)
            if self._closed:
                self.close()
        finally:
            self._room.release()

    def close(self) -> None:
        """Close those that nobody uses; the others when they come back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()


def attempt(call: Callable[[], T], judged: Callable[[Exception], tuple[bool, str]]) -> T:
    """Carry something out, again and again while it is worth it.

    Parameters
    ----------
    call
        May be carried out again although it failed, or although its end was not seen.
    judged
        Says of an error whether trying again may help; and what to tell, '' where it is raised as it is.

    Examples
    --------
    >>> results = iter([OSError("gone"), 7])
    >>> def call():
    ...     if isinstance(result := next(results), OSError):
    ...         raise result
    ...     return result
    >>> attempt(call, lambda error: (True, "the server is gone."))
    7
    """
    end, pause = time.monotonic() + PATIENCE, 0.001
    while True:
        try:
            return call()
        except StoreError:
            raise
        except Exception as error:
            again, told = judged(error)
            if not told:
                raise
            if not again or time.monotonic() > end:
                if again:
                    raise UnreachableError(f"{told} It was tried for {PATIENCE:.0f} s.") from error
                raise StoreError(told) from error
        time.sleep(random.uniform(0.5, 1.5) * pause)
        pause = min(1.5 * pause, 0.02)
