"""Calls that come while one is under way are made together: one commit serves all who wait."""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class _Call(Generic[T, R]):
    """One call, and what came of it."""

    __slots__ = ("done", "error", "given", "result", "woken")

    def __init__(self, given: T) -> None:
        self.given = given
        self.done = False
        self.result: R | None = None
        self.error: BaseException | None = None
        #: Held until the call was made, or is its caller's turn to make.
        self.woken = threading.Lock()
        self.woken.acquire()


class Together(Generic[T, R]):
    """A function of many, called by many threads for one each.

    Whoever finds it free makes all calls that wait by then, and then hands over to one who came meanwhile. Where calls
    fail together each is made alone, so that a wrong one fails alone: the function must bear to be called again with
    what it was given before. Errors of a kind that is nobody's own, ``common``, all of them get at once.

    >>> doubled = Together(lambda many: [2 * one for one in many])
    >>> doubled(4)
    8
    """

    def __init__(self, function: Callable[[Sequence[T]], Sequence[R]], common: type[Exception] | None = None) -> None:
        self._function, self._common = function, common
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: list[_Call[T, R]] = []
        #: Whose caller makes the calls of all; None while nobody calls.
        self._leader: _Call[T, R] | None = None

    def __call__(self, given: T) -> R:
        if os.getpid() != self._process:
            self._begin()  # after a fork: whoever led, or holds the lock, is a thread of the parent
        call, ended = _Call[T, R](given), False
        try:
            with self._lock:
                self._waiting.append(call)
                if self._leader is None:
                    self._leader = call
            if self._leader is not call:
                call.woken.acquire()
            if not call.done:
                self._lead(call)
            ended = True
        finally:
            if not ended or self._leader is call:  # not ended: by Ctrl-C, which may come at any moment
                self._leave(call)
        if call.error is not None:
            raise call.error
        return call.result  # type: ignore[return-value]

    def _lead(self, call: _Call[T, R]) -> None:
        """Make all calls that wait."""
        calls: list[_Call[T, R]] = []
        try:
            with self._lock:
                calls, self._waiting = self._waiting, []
            self._make(calls)
        except BaseException:  # Ctrl-C is meant for the thread that it comes to; the others call for themselves
            with self._lock:
                self._waiting = [one for one in calls if one is not call and not one.done] + self._waiting
            raise
        finally:
            for one in calls:
                if one is not call and one.done:
                    one.woken.release()

    def _leave(self, call: _Call[T, R]) -> None:
        """Wait no longer; who led lets the next one lead, if there is one."""
        with self._lock:
            call.done = True
            if call in self._waiting:
                self._waiting.remove(call)
            if self._leader is call:
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader is not None:
                    self._leader.woken.release()

    def _make(self, calls: list[_Call[T, R]]) -> None:
        try:
            results = self._function([call.given for call in calls])
        except Exception as error:
            shared = self._common is not None and isinstance(error, self._common)
            if len(calls) > 1 and not shared:
                for call in calls:
                    self._make([call])
            else:
                for call in calls:
                    call.error, call.done = (type(error)(*error.args) if shared else error), True
        else:
            for call, result in zip(calls, results, strict=True):
                call.result, call.done = result, True
