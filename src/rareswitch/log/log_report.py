"""What was read of a log, what is learned from and what not: every row under exactly one name."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """Rows of an earlier batch of the run."""

    #: Its number.
    batch: int
    rows: int
    #: Rewards that were not known when the batch was learned from.
    new: int
    #: Decisions of it whose rows contradict each other: left out.
    conflicting: int
    #: Whether the batch, as the log has it now, took the place of what was counted before.
    used: bool


@dataclass(frozen=True, kw_only=True)
class LogReport:
    """What was read, what was used and what was not.

    ``rows`` is the sum of ``used``, ``unrewarded``, ``waiting``, ``expired``, ``copies``, ``conflicting_rows``,
    ``late_used``, ``late_unused`` and the rows of ``foreign`` policies; ``decided`` that of the first four.
    """

    #: The id of the policy that made the batch.
    policy: str
    #: Decisions that were planned for the batch.
    planned: int
    #: Decisions that came, but for those whose rows contradict each other.
    decided: int
    #: Files that were read.
    parts: int
    #: Those of them without a row.
    empty_parts: int
    rows: int
    #: Bytes of the files.
    size: int
    #: Decisions whose rewards were learned from.
    used: int
    #: Decisions whose reward is not known.
    unrewarded: int
    #: Decisions whose attribution window is still open.
    waiting: int
    #: Decisions whose reward came after the window.
    expired: int
    #: Those of the used whose reward was clipped.
    clipped: int
    #: Further rows of decisions that are counted already.
    copies: int
    #: Decisions whose rows contradict each other: left out.
    conflicting: int
    #: The rows of these.
    conflicting_rows: int
    #: Rows of earlier batches that took the place of what was counted before.
    late_used: int
    #: Other rows of earlier batches.
    late_unused: int
    #: By the id of an earlier policy of the run, what came of its batch.
    earlier: dict[str, Earlier]
    #: Rows by policy, of those that this run never had. All beyond the 100th are under ''.
    foreign: dict[str, int]
    #: Context sets that the learner asks for.
    wanted_sets: int
    #: Those that it got.
    sets: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self)
