"""What every learner is: the only maker of policies, with a clock that says when the next one is due."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import BatchError, ParameterError, ShapeError, UnsuitableError
from rareswitch.learner.feedback import Feedback, Summary
from rareswitch.policy import Decisions, Policy
from rareswitch.stats import Stats
from rareswitch.validation import BoolArray, FloatArray, IntArray, Sets, context_sets, unit_ball, whole


class Learner(ABC):
    """Makes one frozen policy after the other.

    The loop around it is always the same: ``policy`` decides; ``due`` says, from features alone, after how many of
    these decisions the next one is due; ``summarize`` turns their feedback into sums; ``next`` makes the next policy.
    """

    name: ClassVar[str]
    """What it is called on the command line."""
    in_unit_ball: ClassVar[bool] = True
    """Whether its contexts must have a length of at most 1."""

    def __init__(self, *, dim: int, arms: int, horizon: int) -> None:
        self.dim = whole("dim", dim)
        self.arms = whole("arms", arms)
        """The most arms in a set."""
        self.horizon = whole("horizon", horizon, low=2)
        self.policy: Policy
        """The frozen policy that makes the decisions from ``start`` on."""
        self.start: int = 0
        self.stop: int = self.horizon
        """Where the policy retires at the latest."""
        self.updates = 1
        """Policies deployed so far, the first included: the paper's measure of adaptivity."""
        self.done = False
        """Whether the run is over."""
        self.agents = 1
        """How many decisions are made at a time; a policy stays until all of them are."""

    @property
    def fixed_ends(self) -> bool:
        """Whether each policy retires at ``stop``, whatever it sees until then."""
        return True

    @property
    @abstractmethod
    def settings(self) -> str:
        """All that tells this learner's runs from those of another, on one line."""

    def act_together(self, agents: int) -> None:
        """Let so many agents act at each time step, all with the same policy (concurrent learning).

        A policy that is due within a step of ``agents`` decisions comes at the step's end, so each change costs at most
        ``agents`` decisions by an old policy.
        """
        if whole("agents", agents) > self.horizon:
            raise ParameterError(
                f"there are {agents} agents for {self.horizon} decisions, so not even one step is whole. Use at most "
                f"{self.horizon}."
            )
        if self.start or self.done:
            raise BatchError("agents come together before a run begins; this learner is in the middle of one.")
        self._act_together(agents)
        self.agents = agents

    def _act_together(self, agents: int) -> None:
        """Make ready for so many decisions at a time."""
        raise UnsuitableError(
            f"{self.name} learns at the ends of batches, which agents can share: use collaborate(agents={agents}). "
            "Steps of many agents are for learners that change when they have seen enough, such as oful."
        )

    def due(
        self, contexts: Any, decisions: Decisions, summary: Summary | None = None, *, alive: Any = None
    ) -> int | None:
        """After how many of these decisions the next policy is due; None if it is not, or not before ``stop``.

        Parameters
        ----------
        contexts, decisions, alive
            What the current policy decided next, none past ``stop``: contexts (n, K, d) with their mask (n, K).
        summary
            What it decided before, if anything.
        """
        sets = context_sets(contexts, alive)
        arms = np.atleast_1d(np.asarray(decisions.arms))
        if arms.shape != (len(sets.contexts),):
            raise ShapeError(f"{len(sets.contexts)} context sets were given for {len(arms)} decisions.")
        return self._due(sets, arms, summary)

    def check(self, sets: Sets) -> None:
        """Refuse sets that this learner is not made for."""
        if self.in_unit_ball:
            unit_ball(sets)

    def _due(self, sets: Sets, arms: IntArray, summary: Summary | None) -> int | None:
        return None

    def summarize(self, feedback: Feedback) -> Summary:
        """What this learner needs of a stretch of decisions of the current policy. Changes nothing."""
        count = len(feedback.arms)
        if self.done:
            raise BatchError("this run is over: its last batch has been learned from.")
        if feedback.policy_id != self.policy.id:
            raise BatchError(
                f"these decisions are of policy {feedback.policy_id[:12]}…, the current one is {self.policy.id[:12]}…: "
                "they belong to another learner, or to a batch that was learned from already."
            )
        if feedback.first < self.start or feedback.first + count > self.stop:
            raise BatchError(
                f"policy {self.updates} makes the decisions {self.start} to {self.stop - 1}; got {feedback.first} to "
                f"{feedback.first + count - 1}."
            )
        sets = feedback.sets
        if sets.contexts.shape[2] != self.dim:
            raise BatchError(f"this learner is for {self.dim} features; got {sets.contexts.shape[2]}.")
        if sets.contexts.shape[1] > self.arms:
            raise BatchError(f"this learner was made for at most {self.arms} arms; got {sets.contexts.shape[1]}.")
        self.check(sets)
        return Summary(
            start=feedback.first,
            stop=feedback.first + count,
            policy_id=feedback.policy_id,
            stats=self._stats(feedback),
            sample=self._sample(feedback),
        )

    def next(self, summary: Summary) -> Policy:
        """Retire the policy: learn from all its decisions and make the next. At the horizon nothing changes hands."""
        if self.done:
            raise BatchError("this run is over: its last batch has been learned from.")
        if summary.policy_id != self.policy.id:
            raise BatchError(
                f"this summary is of policy {summary.policy_id[:12]}… and the current one is {self.policy.id[:12]}…: "
                "it belongs to another learner, or to a batch that was learned from already."
            )
        if summary.start != self.start:
            raise BatchError(
                f"policy {self.updates} makes the decisions from {self.start} on, all of which are needed; got "
                f"{summary.start} to {summary.stop - 1}."
            )
        self._check_due(summary)
        if summary.stop == self.horizon:
            self.done = True
            return self.policy
        self.policy = self._learn(summary)
        self.updates += 1
        self.start = summary.stop
        self.stop = self._next_stop(summary)
        return self.policy

    def _check_due(self, summary: Summary) -> None:
        """Refuse a summary that ends where the policy does not retire."""
        if summary.stop != self.stop:
            raise BatchError(
                f"policy {self.updates} makes the decisions {self.start} to {self.stop - 1}, all of which are needed; "
                f"got {summary.start} to {summary.stop - 1}."
            )

    def sampled(self, decisions: IntArray) -> BoolArray:
        """Which of the current policy's decisions, by number (n,), the next one needs the context sets of."""
        return np.zeros(len(decisions), dtype=np.bool_)

    def statistics(self, decisions: IntArray, features: FloatArray, rewards: FloatArray) -> tuple[Stats, ...]:
        """What ``summarize`` has as statistics, from a log of any of the current policy's decisions.

        Parameters
        ----------
        decisions, features, rewards
            Their numbers (n,), chosen vectors (n, d) and rewards (n,).
        """
        if len(decisions) and (decisions.min() < self.start or decisions.max() >= self.stop):
            raise BatchError(
                f"policy {self.updates} makes the decisions {self.start} to {self.stop - 1}; got {decisions.min()} to "
                f"{decisions.max()}."
            )
        if self.in_unit_ball and len(features):
            unit_ball(Sets(features[:, None, :], np.ones((len(features), 1), dtype=np.bool_), False))
        return self._count(decisions - self.start, features, rewards)

    def keep(self, sets: ContextSets) -> ContextSets:
        """What ``summarize`` has as a sample, from the sets of the decisions that ``sampled`` names."""
        self.check(Sets(sets.contexts, sets.alive, False))
        return self._kept(sets, self.policy.survivors(sets))

    def _stats(self, feedback: Feedback) -> tuple[Stats, ...]:
        """The statistics of a stretch, one for each linear model that the learner keeps."""
        offsets = feedback.first - self.start + np.arange(len(feedback.arms))
        return self._count(offsets, feedback.features, feedback.rewards)

    def _count(self, offsets: IntArray, features: FloatArray, rewards: FloatArray) -> tuple[Stats, ...]:
        """The statistics of decisions by their place after ``start``."""
        return (Stats.of(features, rewards),)

    def _sample(self, feedback: Feedback) -> ContextSets | None:
        """The context sets of a stretch that are kept for what is learned from them."""
        wanted = np.flatnonzero(self.sampled(feedback.first + np.arange(len(feedback.arms))))
        return self._kept(*self._offered(feedback, wanted)) if len(wanted) else None

    def _kept(self, offered: ContextSets, survivors: BoolArray) -> ContextSets:
        """The sets with the arms that what is learned from them needs."""
        return ContextSets(offered.contexts, survivors)

    def _offered(self, feedback: Feedback, kept: IntArray) -> tuple[ContextSets, BoolArray]:
        """Those sets of a stretch as they were offered, and which of their arms the policy's eliminations leave."""
        offered = ContextSets(feedback.sets.contexts[kept], feedback.sets.alive[kept])
        survivors = self.policy.survivors(offered)
        if (survivors.sum(axis=1) != feedback.survivors[kept]).any():
            raise BatchError(
                "the policy decided between other arms than these contexts offer: was the mask of living arms that "
                "decide was given left out of the feedback?"
            )
        return offered, survivors

    @abstractmethod
    def _learn(self, summary: Summary) -> Policy:
        """The next policy."""

    @abstractmethod
    def _next_stop(self, summary: Summary) -> int:
        """Where the policy just made retires at the latest; called after it and ``updates`` are in place."""
