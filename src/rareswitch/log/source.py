"""Where logged decisions are read from."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from rareswitch.log.logged import DecisionLog
from rareswitch.policy import Policy


class Source(Protocol):
    """Where logged decisions are read from, as often as needed, some at a time; :class:`DecisionLog` is one itself."""

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
    def dim(self) -> int | None:
        """Features of an arm; None where there are no vectors."""

    def chunks(self, *, contexts: bool = True) -> Iterator[DecisionLog]:
        """The decisions, some at a time; all chunks have the ``batch_names`` of the source.

        With ``contexts`` those of which all offered arms are known (all, or a sample that was taken by the hash of the
        id alone, so that it is like the rest). Without, all decisions, with the vectors of the chosen arms only:
        ``contexts`` and ``codes`` are None, ``available`` is (n, 1) and ``arm_indices`` 0.
        """
