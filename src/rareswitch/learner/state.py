"""Where a run stands: a value, from which the next one is made; and the batches that it was learned from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType
from typing import Any

from rareswitch.errors import BatchError
from rareswitch.learner.summary import Summary, added
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
    policies: int = 1
    #: Decisions of the policies before it.
    start: int = 0
    #: Planned decisions of the current batch and of those after it, as far as they are planned; none: it is over.
    batch_sizes: tuple[int, ...]
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
        """For processes, to which it is pickled: read-only views of dictionaries cannot be."""
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
        return not self.batch_sizes

    @property
    def stop(self) -> int:
        """After how many decisions in all the current batch should end, as far as is planned."""
        return self.start + (self.batch_sizes[0] if self.batch_sizes else 0)

    @property
    def horizon(self) -> int:
        """Decisions in all, as far as is planned."""
        return self.start + sum(self.batch_sizes)

    def __repr__(self) -> str:
        if self.done:
            return f"<state of {self.learner}: over after {self.policies} policies and {self.start:,} decisions>"
        more, rest = len(self.batch_sizes) - 1, sum(self.batch_sizes[1:])
        then = f", then {more} more for {rest:,}" if more else ""
        return (
            f"<state of {self.learner}: policy {self.policies}, planned for decisions {self.start:,} to "
            f"{self.stop - 1:,}{then}>"
        )


def remembered(summary: Summary, *, pooled: bool) -> Batch:
    """What is kept of a batch: its own sums only where policies rest on all batches, so that they may be replaced."""
    return Batch(
        policy_id=summary.policy_id,
        decided=summary.decided,
        rewarded=summary.rewarded,
        stats=summary.stats if pooled else (),
    )


def position(state: State, policy_id: str, *, steps: bool) -> int:
    """Which of the batches that were learned from is of this policy.

    Parameters
    ----------
    steps
        Whether the learner has a new policy at every step, and so no batches.
    """
    for place, batch in enumerate(state.past):
        if batch.policy_id == policy_id:
            return place
    raise BatchError(
        f"these decisions are of policy {policy_id[:12]}…, which this run never had; the current one is "
        f"{state.policy.id[:12]}…"
        + (", and the run is over." if state.done else ".")
        + (" A learner that is updated at every step does not tell batches apart." if steps else "")
    )


def with_late(
    state: State, late: Sequence[Summary], *, pooled: bool, steps: bool
) -> tuple[tuple[Batch, ...], tuple[Stats, ...]]:
    """The past and the sums of the run, with earlier batches as they are known now.

    Parameters
    ----------
    pooled
        Whether policies rest on all batches; where they do not, late rewards are only counted.
    """
    past = list(state.past)
    for summary in late:
        if summary.policy_id == state.policy.id:
            raise BatchError("late is for earlier batches, and this is the current one: give it as the summary.")
        place = position(state, summary.policy_id, steps=steps)
        if past[place] is not state.past[place]:
            raise BatchError(f"late has batch {place + 1} twice. Add the parts of a batch first: late=[a + b].")
        old = past[place]
        if summary.decided < old.decided or summary.rewarded < old.rewarded:
            raise BatchError(
                f"batch {place + 1} was learned from with {old.decided} decisions, {old.rewarded} of them "
                f"rewarded; these rows have {summary.decided} and {summary.rewarded}. A batch's rows, given again, "
                "replace what was counted: give all of them, the old and the late ones."
            )
        unused = replace(old, late=summary.rewarded - old.rewarded)
        past[place] = remembered(summary, pooled=True) if pooled else unused
    if not late or not pooled:
        return tuple(past), state.sums
    return tuple(past), reduce(added, (batch.stats for batch in (*state.before, *past)))


def faded(batches: Sequence[Batch], discount: float) -> list[Stats]:
    """The sums of each batch, the last one in full and each before it at ``discount`` times the weight of the next.

    A batch of n decisions counts as forget^k·n of them when k more have ended, rounded; one that is less than half a
    decision by then is forgotten.

    >>> batch = Batch(policy_id="a", decided=4, rewarded=4, stats=(Stats.of([[2.0]] * 4, [1.0] * 4),))
    >>> [(stats.count, stats.gram.item()) for stats in faded([batch, batch, batch], 0.5)]
    [(1, 4.0), (2, 8.0), (4, 16.0)]
    """
    return [
        _weighed(batch.stats[0], discount**age) for age, batch in zip(range(len(batches))[::-1], batches, strict=True)
    ]


def _weighed(stats: Stats, weight: float) -> Stats:
    if weight == 1.0:
        return stats
    count = round(weight * stats.count)
    if not count:
        return Stats.zero(stats.dim)
    return replace(
        stats,
        gram=weight * stats.gram,
        moment=weight * stats.moment,
        count=count,
        square_sum=weight * stats.square_sum,
        reward_sum=None if stats.reward_sum is None else weight * stats.reward_sum,
        expansion=None if stats.expansion is None else stats.expansion.scaled(weight),
    )
