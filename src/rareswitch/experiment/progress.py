"""Where an experiment stands, as schedules see it."""

from dataclasses import dataclass, replace
from typing import Any, Self

from rareswitch.store import Counts


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where an experiment stands: all that schedules look at. Times are seconds since 1970."""

    created: float
    now: float
    #: What came of each policy, the current one last; rewarded are those too that have a default in place of a reward.
    versions: tuple[Counts, ...]
    #: When each policy was published.
    published: tuple[float, ...]
    #: Seconds after which a decision's reward counts, and is known; None where there is no attribution window.
    window: float | None = None
    #: The learner's own plan: decisions of the current batch and of those after it.
    planned: tuple[int, ...] = ()
    #: Whether the learner plans nothing after the current batch.
    last: bool = False
    #: Why the learner asks for an update before the batch was to end, by features alone; '' where it does not.
    early: str = ""

    @classmethod
    def beginning(cls, created: float, **told: Any) -> Self:
        """That of an experiment without decisions."""
        none = Counts(1, 0, 0, created, created)
        return cls(created=created, now=created, versions=(none,), published=(created,), **told)

    @property
    def policies(self) -> int:
        """Policies so far, the first included."""
        return len(self.versions)

    @property
    def total(self) -> int:
        """Decisions so far."""
        return sum(version.decisions for version in self.versions)

    @property
    def before(self) -> int:
        """Decisions of the policies before the current one."""
        return self.total - self.versions[-1].decisions

    @property
    def over(self) -> bool:
        """Whether the last batch that the learner planned is over: it has nothing more to learn for."""
        return self.last and self.versions[-1].decisions >= sum(self.planned)

    @property
    def rate(self) -> float | None:
        """Decisions a second since the first of them; None before there is anything to tell it by."""
        begun = next((version.first_time for version in self.versions if version.decisions), self.now)
        return self.total / (self.now - begun) if self.total > 1 and self.now > begun else None

    def updated(self) -> Self:
        """As it will be when an update has been made now."""
        return replace(
            self,
            versions=(*self.versions, Counts(self.policies + 1, 0, 0, self.now, self.now)),
            published=(*self.published, self.now),
            planned=self.planned[1:],
        )
