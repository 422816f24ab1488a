"""What makes a policy of what was summed."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from rareswitch.confidence import SelfNormalized
from rareswitch.learner.state import Batch, State
from rareswitch.learner.statistics import OneModel
from rareswitch.learner.summary import Summary
from rareswitch.policy import Policy
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Ended:
    """A batch has ended: all that a rule may look at."""

    #: As it was, with the policy that retires, its number and what the rule remembered at the update before.
    state: State
    #: Decisions so far, those of the batch included.
    start: int
    batch: Summary
    #: Of all decisions so far.
    sums: tuple[Stats, ...]
    #: Planned decisions of each batch to come, at least one.
    batch_sizes: tuple[int, ...]
    #: The batches so far as they are known now, this one the last; none where they are not told apart.
    past: tuple[Batch, ...] = ()


class Made(NamedTuple):
    """A new policy, and what goes with it."""

    policy: Policy
    #: Mean widest interval of surviving arms, for clocks that follow it.
    width: float = 1.0
    #: What the rule must remember.
    kept: Mapping[str, FloatArray] = {}
    #: What it believed, planned and concluded: numbers, texts and True.
    note: Mapping[str, Any] = {}
    #: Decisions of each batch to come, where the rule plans them (:attr:`Clock.told`).
    batch_sizes: tuple[int, ...] = ()


class Rule(ABC):
    """Makes policies of sums. It is frozen, and remembers nothing by itself."""

    #: Whether another policy may take the place of its first one: later ones rest on sums, whoever chose the arms.
    any_first: ClassVar[bool] = False

    @property
    def any_past(self) -> bool:
        """Whether it may learn from decisions of others: what it concludes does not rest on how arms were chosen."""
        return False

    @abstractmethod
    def first(self) -> Made:
        """The policy that knows nothing."""

    @abstractmethod
    def next(self, ended: Ended) -> Made:
        """The policy after a batch."""

    def refine(self, state: State, summary: Summary) -> State | None:
        """See :meth:`~rareswitch.learner.Learner.refine`."""
        return None

    def sample_size(self, number: int, batch_sizes: tuple[int, ...]) -> int:
        """How many context sets of batch ``number`` are needed when it ends; ``batch_sizes`` are those from it on."""
        return 0


class SumsRule(Rule):
    """A rule that looks at the sums of all decisions so far and at nothing else."""

    statistics: OneModel

    @abstractmethod
    def resumed(self, sums: tuple[Stats, ...], start: int) -> Made:
        """The policy of these sums of ``start`` decisions."""

    def first(self) -> Made:
        return self.resumed(self.statistics.zero(), 0)

    def next(self, ended: Ended) -> Made:
        return self.resumed(ended.sums, ended.start)


@dataclass(frozen=True, kw_only=True)
class OneModelRule(SumsRule):
    """A rule with one model of all decisions and its intervals."""

    any_first: ClassVar[bool] = True
    statistics: OneModel
    level: SelfNormalized

    @property
    def any_past(self) -> bool:
        return self.statistics.pooled
