"""What is summed of a batch, and what makes a policy of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rareswitch.core import BoolArray, FloatArray, IntArray, KeyArray, Sets, Stats, uniforms_at
from rareswitch.errors import UnsuitableError
from rareswitch.learner.clocks import ModelGrowth
from rareswitch.learner.state import Batch, State, Summary, added, offset_of, unexplained_level
from rareswitch.policy import Layered, Policy

__all__ = ["BatchEnd", "NewPolicy", "OneModel", "Rule"]


@dataclass(frozen=True, kw_only=True)
class OneModel:
    """One linear model of the chosen features."""

    dim: int
    #: Whether policies rest on all decisions so far, so that late rewards of earlier batches count.
    pooled: bool = True
    #: λ of the precision that clocks look at.
    ridge: float = 1.0
    #: Whether a constant feature 1 comes last.
    intercept: bool = False
    #: Whether the arms that were offered, and not chosen, are needed of every decision.
    needs_offered: ClassVar[bool] = False

    @property
    def dims(self) -> tuple[int, ...]:
        """Features of each model."""
        return (self.dim + self.intercept,)

    def zero(self) -> tuple[Stats, ...]:
        """The sums of nothing."""
        return tuple(map(Stats.zero, self.dims))

    def halves(self, keys: KeyArray, batch: int) -> tuple[BoolArray | None, BoolArray | None]:
        """Which decisions enter the sums, and of which the context sets are sampled; None for all."""
        return None, None

    def of(self, state: State, features: FloatArray, rewards: FloatArray, sets: Sets | None) -> tuple[Stats, ...]:
        """The sums of decisions: chosen features (n, d), rewards (n,), and what was offered if known.

        Parameters
        ----------
        state
            Where the run stands when they are summed.
        """
        if not self.intercept:
            return (Stats.of(features, rewards),)
        features = np.column_stack([features, np.ones(len(features))])
        return (Stats.of(features, rewards, shift=offset_of(rewards)),)

    def unexplained_level(self, sums: tuple[Stats, ...]) -> float | None:
        """The mean reward, where a constant explains rewards better than all features together; else None."""
        return None if self.intercept else unexplained_level(sums)

    def taught(self, policy: Policy, sets: Sets) -> IntArray:
        """(n,) the model that each decision teaches."""
        return np.zeros(len(sets.contexts), dtype=np.int64)

    def precision(self, gram: FloatArray) -> FloatArray:
        """Λ = ridge·I + Σ xxᵀ, (d, d)."""
        return np.asarray(gram + self.ridge * np.eye(self.dim))

    def by_layer(self, features: FloatArray, rewards: FloatArray, taught: IntArray) -> tuple[Stats, ...]:
        """The sums of decisions, by the model that each teaches."""
        return (Stats.of(features, rewards),)

    def progress(
        self, sums: tuple[Stats, ...], rule_state: Mapping[str, FloatArray], since: tuple[Stats, ...] | None
    ) -> ModelGrowth:
        """Where the models stand: ``sums`` when their policy was made, ``since`` of its own decisions."""
        now = sums if since is None else added(sums, since)
        grams, counts = self.frozen(sums, rule_state)
        return ModelGrowth(
            frozen=grams,
            counts=counts,
            grams=self._grams(now),
            taught=np.array([stats.count for stats in now]) - counts,
            ridge=self.ridge,
        )

    def frozen(self, sums: tuple[Stats, ...], rule_state: Mapping[str, FloatArray]) -> tuple[FloatArray, IntArray]:
        """Σ xxᵀ and count of each model when it was last put into a policy."""
        return self._grams(sums), np.array([stats.count for stats in sums])

    def _grams(self, sums: tuple[Stats, ...]) -> FloatArray:
        """Σ xxᵀ of the features alone: a level has no unit of theirs."""
        return np.array([stats.gram[: self.dim, : self.dim] for stats in sums])


@dataclass(frozen=True, kw_only=True)
class HalfModel(OneModel):
    """One model of the half 𝒜 of each batch; the half ℬ gives context sets (Algorithm 5). Ids are halved by a hash.

    In the first ``warm_batches`` all decisions enter the sums.
    """

    pooled: bool = False
    warm_batches: int = 0

    def halves(self, keys: KeyArray, batch: int) -> tuple[BoolArray | None, BoolArray | None]:
        if batch <= self.warm_batches:
            return None, None
        first = first_half(keys)
        return first, ~first


def first_half(keys: KeyArray) -> BoolArray:
    """(n,) which ids are in the half 𝒜."""
    return np.asarray(uniforms_at(0, "half", keys) < 0.5)


@dataclass(frozen=True, kw_only=True)
class LayerModels(OneModel):
    """A model a layer, of which each decision teaches at most one: the one that decided."""

    layers: int
    pooled: bool = False
    needs_offered: ClassVar[bool] = True

    @property
    def dims(self) -> tuple[int, ...]:
        return (self.dim,) * self.layers

    def of(self, state: State, features: FloatArray, rewards: FloatArray, sets: Sets | None) -> tuple[Stats, ...]:
        if sets is None or len(sets.available) != len(features):
            raise UnsuitableError(
                "a layered learner sorts decisions into layers by all arms that were offered: each row must have its "
                "context set. Use foresight or a batched learner where only chosen features are kept."
            )
        return self.by_layer(features, rewards, self.taught(state.policy, sets))

    def by_layer(self, features: FloatArray, rewards: FloatArray, taught: IntArray) -> tuple[Stats, ...]:
        which = [taught == k for k in range(self.layers)]
        return tuple(Stats.of(features[at], rewards[at]) if at.any() else Stats.zero(self.dim) for at in which)

    def taught(self, policy: Policy, sets: Sets) -> IntArray:
        assert isinstance(policy.sampler, Layered)
        survivors = policy.survivors(sets) if policy.eliminations else sets.available
        return policy.sampler.layers(Sets(sets.contexts, survivors, False))

    def frozen(self, sums: tuple[Stats, ...], rule_state: Mapping[str, FloatArray]) -> tuple[FloatArray, IntArray]:
        return rule_state["frozen_gram"], rule_state["frozen_count"].astype(np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchEnd:
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

    @property
    def by_batch(self) -> list[Stats]:
        """The sums of each batch, those before the run first."""
        return [batch.stats[0] for batch in (*self.state.before, *self.past)]


class NewPolicy(NamedTuple):
    """A new policy, and what goes with it."""

    policy: Policy
    #: What the rule must remember.
    rule_state: Mapping[str, FloatArray] = {}
    #: What it believed, planned and concluded: numbers, texts and True.
    note: Mapping[str, Any] = {}
    #: Decisions of each batch to come, where the rule plans them.
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
    def first(self) -> NewPolicy:
        """The policy that knows nothing."""

    @abstractmethod
    def next(self, ended: BatchEnd) -> NewPolicy:
        """The policy after a batch."""

    def fitted(self, state: State, summary: Summary, again: Callable[[State], Summary]) -> Summary:
        """See :meth:`~rareswitch.learner.Learner.fitted`."""
        return summary

    def sample_size(self, number: int, batch_sizes: tuple[int, ...]) -> int:
        """How many context sets of batch ``number`` are needed when it ends; ``batch_sizes`` are those from it on."""
        return 0


class SumsRule(Rule):
    """A rule that looks at the sums of all decisions so far and at nothing else."""

    statistics: OneModel

    @abstractmethod
    def from_sums(self, sums: tuple[Stats, ...], start: int) -> NewPolicy:
        """The policy of these sums of ``start`` decisions."""

    def first(self) -> NewPolicy:
        return self.from_sums(self.statistics.zero(), 0)

    def next(self, ended: BatchEnd) -> NewPolicy:
        return self.from_sums(ended.sums, ended.start)
