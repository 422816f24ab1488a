"""A map whose shards are done in other processes."""

from abc import abstractmethod
from typing import TypeVar

from rareswitch.engine.engine import POLL, Job
from rareswitch.engine.parcels import unpacked
from rareswitch.errors import EngineError

S = TypeVar("S")
R = TypeVar("R")


class RemoteJob(Job[S, R]):
    """Collects what comes back, in whatever order, until it is asked for."""

    def __init__(self, function: bytes, label: str) -> None:
        self.function = function
        self.label = label
        self.outcomes: dict[int, bytes | EngineError] = {}
        """By shard: what its worker packed, or why there is nothing."""

    @abstractmethod
    def _advance(self, timeout: float) -> None:
        """Hand out shards, wait so long for something to happen, and take all that is done."""

    def result(self, number: int) -> R:
        self._advance(timeout=0.0)
        while number not in self.outcomes:
            self._advance(timeout=POLL)
        outcome = self.outcomes.pop(number)
        if isinstance(outcome, EngineError):
            raise outcome
        result: R = unpacked(self._where(number), outcome)
        return result

    def _where(self, number: int) -> str:
        return f"{self.label} {number}"
