"""The ids of arms, numbered as they come."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError
from rareswitch.validation import IntArray

#: Lists that are remembered.
MOST = 1 << 16


class Vocabulary:
    """Numbers the ids of arms; each list of them, a JSON text, is read once.

    Examples
    --------
    >>> words = Vocabulary()
    >>> words.numbers('["red", "blue"]').tolist(), words.numbers('["blue"]').tolist()
    ([0, 1], [1])
    >>> words.arms
    ('red', 'blue')
    """

    def __init__(self, arms: Iterable[str] = ()) -> None:
        self._codes = {arm: code for code, arm in enumerate(arms)}
        self._lists: dict[str, IntArray] = {}

    @property
    def arms(self) -> tuple[str, ...]:
        """All that came so far."""
        return tuple(self._codes)

    def code(self, arm: str) -> int:
        """The number of an arm."""
        return self._codes.setdefault(arm, len(self._codes))

    def numbers(self, text: str) -> IntArray:
        """The numbers of the arms of a list; what is wrong with it is raised as the rule alone."""
        return self._lists[text] if text in self._lists else self._read(text)

    def arm_indices(self, count: int) -> IntArray:
        """The numbers of arms that have no ids, and are called by their places."""
        return np.array([self.code(str(arm_index)) for arm_index in range(count)], dtype=np.int64)

    def _read(self, text: str) -> IntArray:
        try:
            given: Any = json.loads(text)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, list) or not given or not all(type(arm) in (str, int) for arm in given):
            raise FileFormatError("Write the ids of the offered arms as a JSON list.")
        arms = [str(arm) for arm in given]
        if len(set(arms)) < len(arms):
            raise FileFormatError("Arms that are offered together must have different ids.")
        found = np.array([self.code(arm) for arm in arms], dtype=np.int64)
        if len(self._lists) >= MOST:
            self._lists.clear()
        self._lists[text] = found
        return found
