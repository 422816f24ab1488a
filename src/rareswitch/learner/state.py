"""Where a run stands: a value, from which the next one is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from rareswitch.policy import Policy
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, owned


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """A policy's decisions that were learned from."""

    policy_id: str
    decided: int
    rewarded: int
    #: Its own sums, which late rows replace; none where policies do not rest on earlier batches.
    stats: tuple[Stats, ...] = ()
    #: Rewards that came after the batch was learned from, and are not used: the learner's proof needs fresh batches.
    late: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """A learner's memory. It is never changed; :meth:`~rareswitch.learner.Learner.next` makes the next one.

    >>> from rareswitch.learner import Foresight
    >>> Foresight(dim=10, horizon=100_000).begin()
    <state of foresight: policy 1, planned for decisions 0 to 44, then 7 more for 99,955>
    """

    #: Name of the learner.
    learner: str
    #: The frozen policy that decides now.
    policy: Policy
    #: Policies deployed so far, the first included: the paper's measure of adaptivity.
    updates: int = 1
    #: Decisions of the policies before it.
    start: int = 0
    #: Planned decisions of the current batch and of those after it, as far as they are planned; none: it is over.
    ahead: tuple[int, ...]
    #: Of all decisions that were learned from, one for each linear model.
    sums: tuple[Stats, ...]
    #: The batches that were learned from; none are told apart by learners that change at every step.
    past: tuple[Batch, ...] = ()
    #: Decisions of a log that were learned from before the first one, none of this run; they are not counted in it.
    warm: Batch | None = None
    #: What else the rule remembers.
    kept: Mapping[str, FloatArray] = field(default_factory=dict)
    #: What was believed, planned and concluded at each update, by name: numbers, texts and True.
    notes: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        kept = MappingProxyType({name: owned(part) for name, part in self.kept.items()})
        vars(self).update(kept=kept, notes=tuple(MappingProxyType(dict(note)) for note in self.notes))

    def __getstate__(self) -> dict[str, Any]:
        """For engines, which pickle it: read-only views of dictionaries cannot be."""
        return vars(self) | {"kept": dict(self.kept), "notes": tuple(map(dict, self.notes))}

    def __setstate__(self, told: dict[str, Any]) -> None:
        vars(self).update(told)
        self.__post_init__()

    @property
    def before(self) -> tuple[Batch, ...]:
        """What was learned from before the run, as batches: one or none."""
        return () if self.warm is None else (self.warm,)

    @property
    def done(self) -> bool:
        """Whether the run is over: its last batch has been learned from."""
        return not self.ahead

    @property
    def stop(self) -> int:
        """After how many decisions in all the current batch should end, as far as is planned."""
        return self.start + (self.ahead[0] if self.ahead else 0)

    @property
    def horizon(self) -> int:
        """Decisions in all, as far as is planned."""
        return self.start + sum(self.ahead)

    def __repr__(self) -> str:
        if self.done:
            return f"<state of {self.learner}: over after {self.updates} policies and {self.start:,} decisions>"
        more, rest = len(self.ahead) - 1, sum(self.ahead[1:])
        then = f", then {more} more for {rest:,}" if more else ""
        return (
            f"<state of {self.learner}: policy {self.updates}, planned for decisions {self.start:,} to "
            f"{self.stop - 1:,}{then}>"
        )
