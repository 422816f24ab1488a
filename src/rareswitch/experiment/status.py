"""Where an experiment stands."""

from dataclasses import asdict, dataclass, field
from typing import Any

from rareswitch.experiment.clock import shown


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The decisions of one policy."""

    version: int
    policy_id: str
    #: Seconds since 1970.
    published: float
    decisions: int
    #: Those with a reward.
    rewarded: int


@dataclass(frozen=True, kw_only=True)
class Status:
    """What was decided and earned, what is missing, and what the next update waits for. Prints as text."""

    name: str
    url: str
    learner: str
    schedule: str
    rewards: str
    #: By policy, the current one last.
    batches: tuple[Batch, ...]
    #: What the next update waits for; none: it is due.
    waits: tuple[str, ...]
    #: Whether an update was begun and not finished; it goes on where it was.
    started: bool
    #: Decisions of the current policy whose attribution window is open.
    waiting: int
    #: Rewards whose decision has not come.
    unmatched: int
    #: Rewards that came again with the same value.
    repeated_rewards: int
    #: Rewards that took the place of others.
    overwritten: int
    #: Decisions that were asked for again.
    repeated_decisions: int
    #: How unlike the contexts are to those that the policy was learned from, in words; '' while nothing is known.
    novelty: str = ""
    #: What this process clipped, or found missing or unknown in records.
    records: dict[str, int] = field(default_factory=dict)

    @property
    def due(self) -> bool:
        """Whether the next update can be made."""
        return not self.waits

    @property
    def decisions(self) -> int:
        """Of all policies."""
        return sum(batch.decisions for batch in self.batches)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self) | {"due": self.due, "decisions": self.decisions}

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.learner}, {self.schedule}",
            f"rewards: {self.rewards}",
            "",
            "policy  published (UTC)   decisions  rewarded",
        ]
        lines += [
            f"{one.version:6}  {shown(one.published):16}  {one.decisions:9,}  {one.rewarded:8,}"
            + ("  decides now" if one is self.batches[-1] else "")
            for one in self.batches
        ]
        lines.append("")
        for count, what in (
            (self.waiting, "decisions whose attribution window is open"),
            (self.unmatched, "rewards whose decision has not come"),
            (self.repeated_rewards, "rewards that came again, and were counted once"),
            (self.overwritten, "rewards that took the place of others"),
            (self.repeated_decisions, "decisions that were asked for again, and answered as before"),
            *((count, f"values in records: {what}") for what, count in self.records.items()),
        ):
            if count:
                lines.append(f"{count:,} {what}")
        if self.novelty:
            lines.append(self.novelty)
        if self.started:
            lines.append("An update was begun and did not end; the next one goes on with what it had frozen.")
        if self.due:
            return "\n".join([*lines, "The next update is due."])
        return "\n".join([*lines, *(f"The next update waits for {what}." for what in self.waits)])
