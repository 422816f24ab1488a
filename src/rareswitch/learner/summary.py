"""What a learner keeps of decisions: sums, a sample of context sets, and what they cover."""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Self

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import BatchError, several
from rareswitch.ids import KeyArray
from rareswitch.learner.levels import Extent
from rareswitch.rng import uniforms_at
from rareswitch.stats import Stats
from rareswitch.validation import BoolArray, FloatArray, IntArray, sealed

#: The counts of a summary, which add up.
COUNTS = ("decided", "rewarded", "waiting", "expired", "clipped")


def sample_order(keys: KeyArray) -> FloatArray:
    """(n,) a hash of each id in (0, 1), by which samples are taken: the decisions with the k smallest.

    It depends on the id alone, so no decision need be counted beforehand, and samples of parts merge.
    """
    return uniforms_at(0, "sample", keys)


def sampled(keys: KeyArray, share: float) -> BoolArray:
    """(n,) which decisions belong to the sample that keeps this share of them; larger shares hold smaller ones.

    >>> from rareswitch.ids import id_keys
    >>> int(sampled(id_keys(range(1000)), 0.1).sum())
    96
    """
    return np.asarray(sample_order(keys) < share)


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
    def of(cls, size: int, keys: KeyArray, sets: ContextSets, places: IntArray | None = None) -> Self:
        """The sample of decisions with these keys (m, 2) and sets; ``places`` (m,) picks theirs out of more sets."""
        chosen = np.lexsort((keys[:, 0], keys[:, 1], sample_order(keys)))[:size]
        at = chosen if places is None else places[chosen]
        return cls(size=size, keys=sealed(keys[chosen]), sets=sets[at].packed())

    def __len__(self) -> int:
        return len(self.keys)

    def __add__(self, other: Self) -> Self:
        keys = np.concatenate([self.keys, other.keys])
        if len(np.unique(keys, axis=0)) < len(keys):
            raise BatchError(
                "these summaries have decisions in common, which would count twice. Add each once, or join their rows "
                "with Rows.concatenate and summarize them together."
            )
        return self.of(
            min(self.size, other.size),
            keys,
            ContextSets.concatenate([self.sets, other.sets]),
        )


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
    extent: Extent | None = None
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
                    "parts of a batch with part=True, or join their rows with Rows.concatenate."
                )
        extents = [one for one in (self.extent, other.extent) if one is not None]
        samples = [one for one in (self.sample, other.sample) if one is not None]
        return replace(
            self,
            learner=self.learner or other.learner,
            extent=reduce(Extent.joined, extents) if extents else None,
            stats=added(self.stats, other.stats),
            sample=samples[0] + samples[1] if len(samples) == 2 else samples[0] if samples else None,
            **{name: getattr(self, name) + getattr(other, name) for name in COUNTS},
        )


def added(left: tuple[Stats, ...], right: tuple[Stats, ...]) -> tuple[Stats, ...]:
    """The sums of statistics, model by model."""
    return tuple(a + b if b.count else a for a, b in zip(left, right, strict=True))
