"""What comes back from the world, and what a learner keeps of it."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import BatchError, ShapeError
from rareswitch.policy import Decisions
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, IntArray, Sets, context_sets, vector


@dataclass(frozen=True, eq=False, kw_only=True)
class Feedback:
    """Consecutive decisions of one policy with their rewards."""

    sets: Sets
    arms: IntArray
    """(n,)"""
    rewards: FloatArray
    """(n,)"""
    survivors: IntArray
    """(n,) how many arms the policy's eliminations left."""
    policy_id: str
    first: int
    """Number of the first decision, counted from 0 over the whole run."""

    @classmethod
    def of(cls, contexts: Any, decisions: Decisions, rewards: Any, alive: Any = None) -> Self:
        """Join contexts (n, K, d), the decisions made on them and their rewards (n,)."""
        sets = context_sets(contexts, alive)
        arms = np.atleast_1d(np.asarray(decisions.arms))
        if arms.shape != (len(sets.contexts),):
            raise ShapeError(f"{len(sets.contexts)} context sets were given for {len(arms)} decisions.")
        if arms.min() < 0 or arms.max() >= sets.alive.shape[1]:
            raise ShapeError(f"a decision names an arm outside of 0 … {sets.alive.shape[1] - 1}: these are other sets.")
        if not sets.alive[np.arange(len(arms)), arms].all():
            raise ShapeError("a decision names an arm that is not alive: these are not the sets it was made on.")
        return cls(
            sets=sets,
            arms=arms,
            rewards=vector("rewards", np.atleast_1d(np.asarray(rewards)), len(arms)),
            survivors=np.atleast_1d(np.asarray(decisions.survivors)),
            policy_id=decisions.policy_id,
            first=decisions.first,
        )

    @property
    def features(self) -> FloatArray:
        """(n, d) the chosen vectors."""
        return self.sets.contexts[np.arange(len(self.arms)), self.arms]

    def between(self, start: int, stop: int) -> Self:
        """The decisions from number ``start`` to just before ``stop``."""
        at = slice(start - self.first, stop - self.first)
        return replace(
            self,
            sets=Sets(self.sets.contexts[at], self.sets.alive[at], self.sets.single),
            arms=self.arms[at],
            rewards=self.rewards[at],
            survivors=self.survivors[at],
            first=start,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Summary:
    """All that a learner needs of a stretch of feedback; the summaries of neighbouring stretches add up."""

    start: int
    stop: int
    policy_id: str
    stats: tuple[Stats, ...]
    """One for each linear model that the learner keeps: a single one, or one a layer."""
    sample: ContextSets | None
    """Some of the context sets, with the arms that what is learned from them needs; None where none is needed."""

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, Summary):
            return NotImplemented
        if other.policy_id != self.policy_id:
            raise BatchError(
                f"summaries of two policies cannot be added: {self.policy_id[:12]}… and {other.policy_id[:12]}…."
            )
        if other.start != self.stop:
            raise BatchError(
                f"summaries must follow each other: decisions {self.start} to {self.stop} are followed by "
                f"{other.start} to {other.stop}. Add them in order, each once."
            )
        samples = [s for s in (self.sample, other.sample) if s is not None]
        return type(self)(
            start=self.start,
            stop=other.stop,
            policy_id=self.policy_id,
            stats=tuple(a + b if b.count else a for a, b in zip(self.stats, other.stats, strict=True)),
            sample=ContextSets.concatenate(samples) if samples else None,
        )
