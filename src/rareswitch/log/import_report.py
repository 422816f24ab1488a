"""What an import found: every row under exactly one name."""

from dataclasses import asdict, dataclass
from typing import Any

from rareswitch.errors import several


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """What was read, and what became of it. Prints as text.

    ``rows`` is the sum of ``new``, ``rewarded``, ``copies``, ``conflicting`` and the rows of ``foreign`` policies.
    """

    #: Files that were read.
    parts: int
    rows: int
    #: Rows whose decision was not there before, with its reward or without.
    new: int
    #: Rows whose decision was there without this reward.
    rewarded: int
    #: Rows that say nothing new.
    copies: int
    #: Rows that contradict what was there, which stays.
    conflicting: int
    #: Rows by policy, of those that the experiment never had; nothing of them was kept. All beyond the 100th are
    #: under ''.
    foreign: dict[str, int]
    #: Rewards that were not there before.
    rewards: int

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        counts = {
            "of decisions that are new": self.new,
            "with a reward that is new, of decisions known before": self.rewarded,
            "that say nothing new": self.copies,
            "that contradict what was there, left out": self.conflicting,
        }
        counts |= {
            f"of policy {f'{name[:12]}…' if name else '(all others)'}, which this experiment never had, left out": rows
            for name, rows in self.foreign.items()
        }
        lines = [f"  {count:>12,} {what}" for what, count in counts.items() if count]
        return "\n".join([f"{several(self.rows, 'row')} in {several(self.parts, 'part')}:", *lines])
