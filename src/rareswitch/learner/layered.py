"""The layered learners of the SupLin family: several linear models, of which each decision teaches at most one."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from rareswitch.confidence import Confidence
from rareswitch.errors import BatchError, UnsuitableError
from rareswitch.learner.clocks import TOLERANCE, furthest
from rareswitch.learner.feedback import Feedback, Summary
from rareswitch.learner.kernels import first_growth
from rareswitch.learner.learner import Learner
from rareswitch.linalg import inverse_root
from rareswitch.policy import Layered, Policy
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, IntArray, Sets


class LayeredLearner(Learner):
    """A policy rests on the frozen statistics of its layers; a layer is frozen anew when its determinant has grown.

    ``growth`` is C, by which the determinant must grow; at 1 each decision that teaches a layer brings a new policy.
    """

    growth: float
    confidence: Confidence
    """Of the layers."""

    def __init__(self, *, dim: int, arms: int, horizon: int) -> None:
        super().__init__(dim=dim, arms=arms, horizon=horizon)
        self._nothing = Stats.zero(self.dim)
        empty = (self._nothing,) * self.layer_count
        self.current: tuple[Stats, ...] = empty
        """By layer, of the decisions before ``start`` that taught it."""
        self.frozen: tuple[Stats, ...] = empty
        """What the policy rests on."""
        self._models: tuple[tuple[Stats, tuple[FloatArray, ...]], ...] = ()
        self.policy = self._make_policy()

    @property
    @abstractmethod
    def layer_count(self) -> int:
        """How many layers there are."""

    @abstractmethod
    def _make_policy(self) -> Policy:
        """The policy of the frozen statistics."""

    @abstractmethod
    def _model(self, layer: int, stats: Stats) -> tuple[FloatArray, ...]:
        """What a policy needs of a layer with these statistics: its estimate (d,), the root (d, d) of its widths."""

    def _frozen_models(self) -> tuple[FloatArray, ...]:
        """The models of all layers, stacked; most are as they were in the policy before, and are not made anew."""
        old = self._models or ((None, ()),) * self.layer_count
        self._models = tuple(
            (stats, model if was is stats else self._model(k, stats))
            for k, (stats, (was, model)) in enumerate(zip(self.frozen, old, strict=True))
        )
        return tuple(np.array(part) for part in zip(*(model for _, model in self._models), strict=True))

    @property
    def fixed_ends(self) -> bool:
        return False

    def _act_together(self, agents: int) -> None:
        """Layers grow at any decision; a policy just stays until the step is over."""

    def precision(self, stats: Stats) -> FloatArray:
        """Λ = ridge·I + Σ xxᵀ, (d, d)."""
        return np.asarray(stats.gram + self.confidence.ridge * np.eye(self.dim))

    def layers(self, sets: Sets) -> IntArray:
        """(n,) the layer that each set's decision teaches, -1 for none."""
        assert isinstance(self.policy.sampler, Layered)
        kept = self.policy.survivors(sets) if self.policy.eliminations else sets.alive
        return self.policy.sampler.layers(Sets(sets.contexts, kept, False))

    def _due(self, sets: Sets, arms: IntArray, summary: Summary | None) -> int | None:
        layers = self.layers(sets)
        if self.growth == 1.0:
            taught = np.flatnonzero(layers >= 0)
            return int(taught[0]) + 1 if len(taught) else None
        now = self._now(summary)
        found: int = first_growth(
            sets.contexts[np.arange(len(arms)), arms],
            layers,
            np.array([inverse_root(self.precision(stats)) for stats in now]),
            self._growths(now),
            self.growth * (1.0 - TOLERANCE),
        )
        return found or None

    def _now(self, summary: Summary | None) -> tuple[Stats, ...]:
        """The statistics of the layers, those of the current policy's decisions included."""
        if summary is None:
            return self.current
        return tuple(a + b if b.count else a for a, b in zip(self.current, summary.stats, strict=True))

    def _growths(self, now: Sequence[Stats]) -> FloatArray:
        """(S,) by what factor each determinant has grown since it was frozen."""
        return np.array(
            [
                np.exp(np.linalg.slogdet(self.precision(a))[1] - np.linalg.slogdet(self.precision(b))[1])
                if a.count > b.count
                else 1.0
                for a, b in zip(now, self.frozen, strict=True)
            ]
        )

    def _grown(self, now: Sequence[Stats]) -> list[bool]:
        if self.growth == 1.0:
            return [a.count > b.count for a, b in zip(now, self.frozen, strict=True)]
        return list(self._growths(now) >= self.growth * (1.0 - 2.0 * TOLERANCE))

    def _check_due(self, summary: Summary) -> None:
        now = self._now(summary)
        if summary.stop < self.horizon and not any(self._grown(now)):
            raise BatchError(
                "no new policy is due: no layer has learned enough. Ask due() how many decisions the current one still "
                "makes."
            )
        if self.growth == 1.0:
            overdue = sum(a.count - b.count for a, b in zip(now, self.frozen, strict=True)) > self.agents
        else:
            overdue = bool(
                (np.log(self._growths(now)) > furthest(self.growth, self.confidence.ridge, self.agents)).any()
            )
        if overdue:
            raise BatchError(
                "the next policy is overdue: a layer has learned more than it may between two. Ask due() after how "
                "many decisions it must come."
            )

    def _stats(self, feedback: Feedback) -> tuple[Stats, ...]:
        return self._by_model(feedback.features, feedback.rewards, self.layers(feedback.sets))

    def _count(self, offsets: IntArray, features: FloatArray, rewards: FloatArray) -> tuple[Stats, ...]:
        raise UnsuitableError(
            f"{self.name} sorts decisions into layers by all arms that were offered, which a log of chosen features "
            "does not have. Use foresight or a batched learner."
        )

    def _by_model(self, features: FloatArray, rewards: FloatArray, layers: IntArray) -> tuple[Stats, ...]:
        taught = [layers == k for k in range(self.layer_count)]
        return tuple(Stats.of(features[at], rewards[at]) if at.any() else self._nothing for at in taught)

    def _learn(self, summary: Summary) -> Policy:
        self.current = self._now(summary)
        grown = self._grown(self.current)
        self.frozen = tuple(
            new if fresh else old for new, old, fresh in zip(self.current, self.frozen, grown, strict=True)
        )
        return self._make_policy()

    def _next_stop(self, summary: Summary) -> int:
        return self.horizon
