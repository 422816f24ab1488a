"""What a learner keeps of decisions (sums, sampled context sets), and where a run stands: a value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np

from rareswitch.core import (
    BoolArray,
    ContextSets,
    FloatArray,
    IntArray,
    KeyArray,
    Stats,
    codec,
    owned,
    sample_order,
    sealed,
)
from rareswitch.errors import BatchError, UnsuitableError, several
from rareswitch.policy import Policy

__all__ = ["Sample", "State", "Summary", "sampled", "state_from_bytes", "state_to_bytes", "summaries_from_bytes"]
__all__ += ["summaries_to_bytes"]

#: What was believed, planned and concluded at an update, by name: numbers, texts and True.
Note = Mapping[str, Any]
#: How many times their spread the level of rewards must be for it to be taken off before they are summed.
HIGH = 1e3
#: The same, for it to leave too few digits to models that cannot take it off.
TOO_HIGH = 1e6
#: Rewards of which a level is refused: fewer may be alike by chance.
FEW = 10
#: Variances of a reward by which a constant must explain more than all features do, for a warning.
NOTICED = 50.0
#: Standard deviations from the mean beyond which a reward is an outlier. Exponential rewards come as far only in
#: batches of 400,000; of a hundred rewards whose largest lies there it holds most of the sum of squares.
FAR = 12.0
#: How large the largest number must be for all to be squared.
SMALLEST = 1e-100
#: How large the largest feature must be for learners in the unit ball, whose ridge and designs count on it.
SHORTEST = 1e-4


def offset_of(rewards: FloatArray) -> float:
    """The level of rewards (n,) where it is many times their spread, else 0.

    Squares of rewards less this level keep the digits that tell their spread. Near the level the subtraction is exact.

    >>> offset_of(np.array([1e9 - 1.0, 1e9 + 1.0])), offset_of(np.array([5.0, 6.0]))
    (1000000000.0, 0.0)
    """
    if not len(rewards):
        return 0.0
    low, high = float(rewards.min()), float(rewards.max())
    middle = low + (high - low) / 2.0
    return middle if abs(middle) > HIGH * (high - low) else 0.0


class RewardRange(NamedTuple):
    """How far the rewards of some rows reach, and the size of the largest feature."""

    low: float
    high: float
    largest: float

    @classmethod
    def of(cls, features: FloatArray, rewards: FloatArray) -> "RewardRange":
        """Of rows, at least one."""
        largest = max(float(features.max()), -float(features.min()))
        return cls(float(rewards.min()), float(rewards.max()), largest)

    def joined(self, other: "RewardRange") -> "RewardRange":
        """Of the rows of both."""
        return RewardRange(min(self.low, other.low), max(self.high, other.high), max(self.largest, other.largest))


def check_scales(extent: RewardRange, count: int, *, intercept: bool, in_unit_ball: bool, remedy: str) -> None:
    """Refuse a batch whose sums lose information: all too small, or a level that fills all digits.

    Where there is an intercept the level is taken off, and rewards that are all the same have no spread to lose.
    """
    if count < FEW:
        return
    for name, largest in (("features", extent.largest), ("rewards", max(extent.high, -extent.low))):
        least, why = SMALLEST, "so that their squares can be summed"
        if name == "features" and in_unit_ball:
            least, why = SHORTEST, "as this learner is for vectors of lengths up to 1 and regularizes accordingly"
        if 0.0 < largest < least:
            raise UnsuitableError(
                f"{name} must not all be below {least:g} in size, {why}; the largest is {largest:g}. Multiply all "
                f"{name} by a constant."
            )
    spread, level = extent.high - extent.low, max(abs(extent.low), abs(extent.high))
    # what differs by rounding alone is the same
    if not intercept and 8.0 * np.finfo(np.float64).eps * level < spread < level / TOO_HIGH:
        raise UnsuitableError(
            f"rewards lie around {extent.low + spread / 2.0:g}, within {spread:.3g} of each other: their level leaves "
            f"no digits for what tells arms apart. {remedy}"
        )


def outlying(extent: RewardRange, stats: Stats) -> float | None:
    """How many standard deviations the farthest reward is from the mean, where that is far; else None.

    Rewards of two values, such as clicks, have no outliers, however rare one of the values is.

    >>> r = np.array([*[1.0, 2.0] * 200, 90.0])
    >>> outlying(RewardRange(1.0, 90.0, 1.0), Stats.of(np.ones((401, 1)), r)).__round__()
    20
    """
    count, total = stats.count, stats.reward_sum
    if total is None or count < 2:
        return None
    low, high, mean = extent.low - stats.shift, extent.high - stats.shift, total / count
    squares = stats.square_sum - count * mean**2
    between = (low + high) * total - stats.square_sum - count * low * high  # Σ (r - low)(high - r)
    if between <= 1e-9 * count * (high - low) ** 2 or squares <= 0.0:
        return None
    distance = max(high - mean, mean - low) / float(np.sqrt(squares / count))
    return distance if distance > FAR else None


def unexplained_level(sums: tuple[Stats, ...]) -> float | None:
    """The mean reward, where a constant explains the rewards better than all features together; else None.

    If rewards are xᵀθ + noise, with features (1, x) or x, the squares that the constant explains exceed those that x
    explains by a few noise variances at the most, whatever θ is: so there is no false alarm, up to a probability of
    10⁻¹¹. A level is not noticed while features tell more than it does, or where they can express it.

    >>> x = np.array([[1.0], [-1.0]] * 50)
    >>> unexplained_level((Stats.of(x, 7.0 + x[:, 0]),)), unexplained_level((Stats.of(x, x[:, 0]),))
    (7.0, None)
    """
    total = reduce(add, sums)
    count = total.count
    if total.reward_sum is None or count < total.dim + 2:
        return None
    values, vectors = np.linalg.eigh(total.gram)
    known = values > 1e-12 * values[-1]
    explained = float((((vectors.T @ total.moment)[known] / np.sqrt(values[known])) ** 2).sum())
    mean = total.reward_sum / count
    by_constant = total.reward_sum * mean
    variance = max(total.square_sum - by_constant, 1e-9 * total.square_sum) / count
    return mean if by_constant - explained > NOTICED * variance > 0.0 else None


def centred(stats: Stats) -> Stats:
    """Statistics of features (x, 1) turned into those of x and the rewards less their means, which cost one count.

    Whatever shift the rewards have gone through, it goes with the means.

    >>> centred(Stats.of([[1.0, 1.0], [3.0, 1.0]], [10.0, 14.0])).gram.tolist()
    [[2.0]]
    """
    n = float(stats.gram[-1, -1])  # the counts of batches that fade are rounded, their weights are not
    mean, level = stats.gram[:-1, -1] / n, stats.moment[-1] / n
    values, vectors = np.linalg.eigh(stats.gram[:-1, :-1] - n * np.outer(mean, mean))
    # what rounding leaves of a feature without spread is not information
    known = np.where(values > 1e-12 * np.trace(stats.gram[:-1, :-1]), values, 0.0)
    moment = vectors @ np.where(known > 0.0, vectors.T @ (stats.moment[:-1] - n * level * mean), 0.0)
    spread = stats.square_sum - n * level**2
    if spread <= 1e-12 * stats.square_sum:  # nor is what it leaves of rewards that are all equal
        spread, moment = 0.0, np.zeros_like(moment)
    return Stats(gram=(vectors * known) @ vectors.T, moment=moment, count=stats.count - 1, square_sum=spread)


#: The counts of a summary, which add up.
COUNTS = ("decided", "rewarded", "waiting", "expired", "clipped")


def sampled(keys: KeyArray, share: float) -> BoolArray:
    """(n,) which decisions belong to the sample that keeps this share of them; larger shares hold smaller ones.

    >>> from rareswitch.core import id_keys
    >>> int(sampled(id_keys(range(1000)), 0.1).sum())
    96
    """
    return np.asarray(sample_order(keys) < share)


@codec.kind("sample")
@dataclass(frozen=True, eq=False, kw_only=True)
class Sample:
    """The context sets of those decisions whose ids have the smallest hashes, at most ``size`` of them.

    Sets are packed: what is learned from them does not depend on how they were padded in memory or in a file.
    """

    size: int
    #: (m, 2), by their hashes.
    keys: KeyArray
    sets: ContextSets

    @classmethod
    def of(cls, size: int, keys: KeyArray, sets: ContextSets, rows: IntArray | None = None) -> Self:
        """The sample of decisions with these keys (m, 2) and sets; ``rows`` (m,) picks theirs out of more sets."""
        chosen = np.lexsort((keys[:, 0], keys[:, 1], sample_order(keys)))[:size]
        at = chosen if rows is None else rows[chosen]
        return cls(size=size, keys=sealed(keys[chosen]), sets=sets[at].packed())

    def __len__(self) -> int:
        return len(self.keys)

    def __add__(self, other: Self) -> Self:
        keys = np.concatenate([self.keys, other.keys])
        if len(np.unique(keys, axis=0)) < len(keys):
            raise BatchError(
                "these summaries have decisions in common, which would count twice. Add each once, or join their rows "
                "with DecisionLog.concatenate and summarize them together."
            )
        return self.of(min(self.size, other.size), keys, ContextSets.concatenate([self.sets, other.sets]))


@codec.kind("summary")
@dataclass(frozen=True, eq=False, kw_only=True)
class Summary:
    """All that a learner needs of some decisions of one policy.

    Summaries of different decisions of a policy add up. Sums of floats depend in their last bits on the order of
    addition: add the parts in the same order where the very same policy shall be learned.
    """

    #: Name of the learner that made it, which alone can learn from it; unknown in files of earlier versions.
    learner: str = ""
    policy_id: str
    #: Decisions.
    decided: int
    #: Those of them whose rewards entered the sums, or may: a learner can leave some to other uses.
    rewarded: int
    #: Those left out because their attribution window was still open.
    waiting: int = 0
    #: Those left out because their reward came after the window.
    expired: int = 0
    #: Those of the rewarded whose reward was clipped.
    clipped: int = 0
    #: One for each linear model that the learner keeps: a single one, or one a layer.
    stats: tuple[Stats, ...]
    #: How far the numbers that were summed reach, if any were.
    extent: RewardRange | None = None
    sample: Sample | None = None

    @property
    def missing(self) -> int:
        """Decisions without a reward that counts, for whatever reason."""
        return self.decided - self.rewarded

    @property
    def expanded(self) -> bool:
        """Whether its rows are clicks, summed around a point, so that they may have to be summed again."""
        return any(stats.expansion is not None for stats in self.stats)

    def __repr__(self) -> str:
        return (
            f"<summary of policy {self.policy_id[:12]}…: {several(self.decided, 'decision')}, "
            f"{self.rewarded:,} rewarded, {self.missing:,} missing>"
        )

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Summary):
            return NotImplemented
        if other.policy_id != self.policy_id:
            raise BatchError(
                f"summaries of two policies cannot be added: {self.policy_id[:12]}… and {other.policy_id[:12]}…. Give "
                "those of earlier policies as late=[…]."
            )
        if self.learner and other.learner and other.learner != self.learner:
            raise BatchError(f"summaries of two learners cannot be added: {self.learner} and {other.learner}.")
        for left, right in zip(self.stats, other.stats, strict=True):
            if left.expansion and right.expansion and not left.expansion.joins(right.expansion):
                raise BatchError(
                    "these summaries of clicks were expanded around different points, and do not add up. Summarize "
                    "parts of a batch with part=True, or join their rows with DecisionLog.concatenate."
                )
        extents = [part.extent for part in (self, other) if part.extent is not None]
        samples = [part.sample for part in (self, other) if part.sample is not None]
        return replace(
            self,
            learner=self.learner or other.learner,
            extent=reduce(RewardRange.joined, extents) if extents else None,
            stats=added(self.stats, other.stats),
            sample=reduce(add, samples) if samples else None,
            **{name: getattr(self, name) + getattr(other, name) for name in COUNTS},
        )


def added(left: tuple[Stats, ...], right: tuple[Stats, ...]) -> tuple[Stats, ...]:
    """The sums of statistics, model by model."""
    return tuple(a + b if b.count else a for a, b in zip(left, right, strict=True))


@codec.kind("batch")
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


@codec.kind("state")
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
    #: The batches that were learned from; none for learners that change at every step.
    past: tuple[Batch, ...] = ()
    #: Decisions of a log that were learned from before the first one, none of this run; they are not counted in it.
    warm: Batch | None = None
    #: What else the rule remembers.
    rule_state: Mapping[str, FloatArray] = field(default_factory=dict)
    #: Of each update.
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        rule_state = MappingProxyType({name: owned(part) for name, part in self.rule_state.items()})
        vars(self).update(rule_state=rule_state, notes=tuple(MappingProxyType(dict(note)) for note in self.notes))

    def __reduce__(self) -> tuple[Callable[[bytes], "State"], tuple[bytes]]:
        """For other processes: its content, as in files."""
        return state_from_bytes, (state_to_bytes(self),)

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


def position(state: State, policy_id: str, *, every_step: bool) -> int:
    """Which of the batches that were learned from is of this policy.

    Parameters
    ----------
    every_step
        Whether the learner has a new policy at every step, and so no batches.
    """
    for place, batch in enumerate(state.past):
        if batch.policy_id == policy_id:
            return place
    raise BatchError(
        f"these decisions are of policy {policy_id[:12]}…, which this run never had; the current one is "
        f"{state.policy.id[:12]}…"
        + (", and the run is over." if state.done else ".")
        + (" A learner that is updated at every step does not tell batches apart." if every_step else "")
    )


def with_late(
    state: State, late: Sequence[Summary], *, pooled: bool, every_step: bool
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
        place = position(state, summary.policy_id, every_step=every_step)
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


def faded(batches: Sequence[Stats], discount: float) -> list[Stats]:
    """Sums of batches, the last in full and each before it at ``discount`` times the weight of the next.

    A batch of n decisions counts as discount^k·n of them when k more have ended, rounded; one that is less than half a
    decision by then is forgotten.

    >>> batch = Stats.of([[2.0]] * 4, [1.0] * 4)
    >>> [(stats.count, stats.gram.item()) for stats in faded([batch, batch, batch], 0.5)]
    [(1, 4.0), (2, 8.0), (4, 16.0)]
    """
    ages = range(len(batches) - 1, -1, -1)
    return [stats.scaled(discount**age) for age, stats in zip(ages, batches, strict=True)]


@codec.kind("summaries")
@dataclass(frozen=True, eq=False)
class Summaries:
    """Several summaries of one learner: that of a batch, and those of earlier ones that were given with it."""

    parts: tuple[Summary, ...]


def summaries_to_bytes(summaries: Sequence[Summary]) -> bytes:
    """The content of a file of summaries; equal ones give equal bytes.

    >>> whole = Summary(policy_id="a", decided=2, rewarded=1, stats=(Stats.of([[1.0]], [2.0]),))
    >>> summaries_from_bytes(summaries_to_bytes([whole]))[0].stats[0].moment.tolist()
    [2.0]
    """
    return codec.to_bytes(Summaries(tuple(summaries)))


def summaries_from_bytes(data: bytes) -> list[Summary]:
    """The summaries in such a content."""
    return list(codec.from_bytes(Summaries, data)[0].parts)


def state_to_bytes(state: State) -> bytes:
    """The content of a state file; equal states give equal bytes."""
    return codec.to_bytes(state)


def state_from_bytes(data: bytes) -> State:
    """The state in such a content. Nothing is learned again.

    >>> from rareswitch.learner import OFUL
    >>> state = OFUL(dim=2, arms=3, horizon=100).begin()
    >>> state_from_bytes(state_to_bytes(state)).policy.id == state.policy.id
    True
    """
    return codec.from_bytes(State, data)[0]
