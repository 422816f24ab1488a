"""What every learner is: settings, from which it is composed of a rule, a clock and statistics."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from rareswitch.core import ContextSets, FloatArray, Sets, SetsLike, Stats, context_sets, number, unit_ball
from rareswitch.decisions import DecisionLog, chosen_arms, clipped, key_order
from rareswitch.design import GOptimal
from rareswitch.errors import BatchError, LevelWarning, OutlierWarning, ParameterError
from rareswitch.features import Features
from rareswitch.learner.clocks import Clock, ModelGrowth, Novelty
from rareswitch.learner.grids import Forecast, batch_sizes_of
from rareswitch.learner.rule import BatchEnd, NewPolicy, OneModel, Rule, SumsRule
from rareswitch.learner.settings import check_settings, count, features, setting, setting_metadata
from rareswitch.learner.state import (
    Note,
    RewardRange,
    Sample,
    State,
    Summary,
    added,
    check_scales,
    outlying,
    position,
    remembered,
    with_late,
)
from rareswitch.policy import Baseline, Blend, Decisions, MinPropensity, Policy

__all__ = ["Learner", "Parts"]


class Parts(NamedTuple):
    """What a learner is made of."""

    #: Makes a policy of sums.
    rule: Rule
    #: Says when.
    clock: Clock
    #: Says what is summed.
    statistics: OneModel


@dataclass(frozen=True, kw_only=True)
class Learner(ABC):
    """The only maker of policies. A learner is its settings; what it has learned is a :class:`State`.

    The loop is always the same: ``state.policy`` decides; ``due`` says, from features alone, after how many of these
    decisions the next one is due; ``summarize`` turns what came into sums; ``next`` makes the next state.
    """

    #: What it is called on the command line.
    name: ClassVar[str]
    #: What it does, on one line.
    text: ClassVar[str]
    #: How many policies it deploys.
    adaptivity: ClassVar[str]
    #: Its bound, up to logarithmic factors, and for which contexts.
    regret: ClassVar[str]
    #: Whether its contexts must have a length of at most 1.
    in_unit_ball: ClassVar[bool] = True

    dim: int = field(metadata=setting_metadata("features of an arm, d", features))
    arms: int | None = setting(None, "most arms in a set, K; any number by default", count())
    horizon: int | None = setting(None, "decisions in all, T; not known by default", count(low=2))

    def __post_init__(self) -> None:
        check_settings(self)
        object.__setattr__(self, "parts", self.compose())
        ends = self.clock.horizon
        if self.horizon is not None and ends is not None and ends != self.horizon:
            raise ParameterError(f"the grid ends at {ends} where the horizon is {self.horizon}.")

    parts: Parts = field(init=False, repr=False, compare=False)

    @abstractmethod
    def compose(self) -> Parts:
        """Rule, clock and statistics, of checked settings."""

    @property
    def clock(self) -> Clock:
        """When the next policy is due."""
        return self.parts.clock

    def begin(
        self,
        *,
        features: Features | None = None,
        baseline: float | None = None,
        min_propensity: MinPropensity | None = None,
        holdout: float | None = None,
        warm: Summary | None = None,
    ) -> State:
        """The state before the first decision.

        Parameters
        ----------
        features
            How records become contexts: every policy of the run carries them, and decides about records.
        baseline
            The first policy then plays the arm that the caller names with each request, but for this share of the
            decisions, which explore by the G-optimal design. The policies after it do not need it. By default the
            first policy is the learner's own, which knows nothing.
        min_propensity
            The least probability of arms: every policy of the run has it. What is proved of the learner then is for
            the decisions that it leaves to it.
        holdout
            The share of ids that keeps the arm that the caller names with each request, in every policy of the run.
        warm
            Decisions of a log, whoever made them, from which the first policy is learned: a summary of rows that are
            given as those of the learner's own first policy, ``begin().policy.id``; or what
            :func:`rareswitch.log.summarize_source` makes of a log. They are in all sums from then on; decisions,
            policies and horizon are counted from the beginning of the run.

        Examples
        --------
        >>> from rareswitch.learner import Foresight
        >>> first = Foresight(dim=2).begin(baseline=0.2).policy
        >>> first.probabilities([[1.0, 0.0], [0.0, 1.0]], baseline=1).round(6).tolist()
        [0.1, 0.9]
        """
        first = self.parts.rule.first()
        policy = first.policy
        if baseline is not None:
            share = number(
                "baseline, the share of the first policy's decisions that explore,", baseline, low=0.0, high=1.0
            )
            if not self.parts.rule.any_first or self.clock.every_step:
                raise ParameterError(
                    f"baseline: the first policy of {self.name} cannot be another one, because what follows rests on "
                    "it or comes after a single decision. Use foresight, or begin without a baseline."
                )
            if warm is not None:
                raise ParameterError(
                    "baseline: the first policy is learned from a log, and plays what that says is best. Leave out one "
                    "or the other."
                )
            policy = replace(policy, sampler=Blend(main=Baseline(), explorer=GOptimal(tol=1.0), share=share))
        if min_propensity is not None and (self.clock.every_step or self.parts.statistics.needs_offered):
            raise ParameterError(
                f"min_propensity: {self.name} rests on what its own policies chose, or has a new one after each "
                "decision, and cannot play other arms. Use foresight or a batched learner, or begin without one."
            )
        if holdout is not None and (self.clock.every_step or not self.parts.rule.any_first):
            raise ParameterError(
                f"holdout: {self.name} rests on what its own policies chose, or has a new one after each decision, and "
                "cannot leave decisions to a baseline. Use foresight, or begin without one."
            )
        state = State(
            learner=self.name,
            policy=replace(policy, features=features, min_propensity=min_propensity, holdout=holdout),
            batch_sizes=self.clock.begin(),
            sums=self.parts.statistics.zero(),
            rule_state=first.rule_state,
        )
        return state if warm is None else self._warmed(state, warm, first.policy.id)

    @property
    def begins_with_logs(self) -> bool:
        """Whether its first policy may be learned from decisions of others."""
        return self.parts.rule.any_past and not self.clock.every_step

    def _warmed(self, state: State, warm: Summary, blind: str) -> State:
        """The state before the first decision, with what a log teaches."""
        if not self.begins_with_logs:
            raise ParameterError(
                f"warm: {self.name} concludes from batches of its own policies, or after each single decision, and "
                "cannot begin with decisions of others. Use foresight without a noise_bound, or begin without a log."
            )
        self._check_learnable(warm)
        if warm.policy_id != blind:
            raise BatchError(
                f"warm must be a summary of rows that are given as those of the learner's own first policy, "
                f"{blind[:12]}…; this one is of {warm.policy_id[:12]}…. Make it with rareswitch.log.summarize_source, "
                "or of DecisionLog(batch_names=[learner.begin().policy.id], …)."
            )
        before = replace(state, policies=0, warm=remembered(warm, pooled=self.parts.statistics.pooled))
        return self._learned(
            BatchEnd(state=before, start=warm.decided, batch=warm, sums=warm.stats, batch_sizes=state.batch_sizes)
        )

    def _learned(self, ended: BatchEnd, *, forecast: bool = False) -> State:
        """The state with the next policy; with a forecast the rule does not plan the lengths of batches."""
        new, state = self.parts.rule.next(ended), ended.state
        policy = _carrying(new.policy, state.policy)
        if policy.id in {state.policy.id, *(batch.policy_id for batch in ended.past)}:
            policy = replace(policy, edition=state.policies)  # so that the rows of the two batches can be distinguished
        note = self._note(new, ended)
        return replace(
            state,
            policy=policy,
            policies=state.policies + 1,
            batch_sizes=ended.batch_sizes if forecast else new.batch_sizes or ended.batch_sizes,
            sums=ended.sums,
            rule_state=new.rule_state,
            notes=(*state.notes, note) if note else state.notes,
        )

    def check(self, sets: Sets) -> None:
        """Refuse sets that this learner is not made for."""
        if sets.contexts.shape[2] != self.dim:
            raise BatchError(f"this learner is for {self.dim} features; got {sets.contexts.shape[2]}.")
        if self.arms is not None and sets.contexts.shape[1] > self.arms:
            raise BatchError(f"this learner was made for at most {self.arms} arms; got {sets.contexts.shape[1]}.")
        if self.in_unit_ball:
            unit_ball(sets)

    def check_chosen(self, features: FloatArray) -> None:
        """Refuse chosen vectors (n, d) that this learner is not made for, where their sets are not there."""
        Learner.check(self, Sets(features[:, None, :], np.ones((len(features), 1), dtype=np.bool_), False))

    def sample_size(self, state: State) -> int:
        """How many context sets of the current batch the next policy needs; the rest need not be kept."""
        return self.parts.rule.sample_size(state.policies, state.batch_sizes)

    def due(
        self,
        state: State,
        contexts: SetsLike,
        decisions: Decisions,
        summary: Summary | None = None,
        *,
        available: npt.ArrayLike | None = None,
    ) -> int | None:
        """After how many of these decisions the next policy is due; None if it is not, or not before ``state.stop``.

        Parameters
        ----------
        contexts, decisions, available
            What the current policy decided next: contexts (n, K, d) with their mask (n, K).
        summary
            What it decided before, if anything.
        """
        self._check_state(state)
        sets = context_sets(contexts, available)
        arms = chosen_arms(sets, decisions)
        if not self.clock.uses_features:
            return None
        features = sets.contexts[np.arange(len(arms)), arms]
        taught = self.parts.statistics.taught(state.policy, sets)
        return self.clock.due(self._progress(state, summary), features, taught)

    def early(self, state: State, summary: Summary) -> Novelty | None:
        """How unlike the features of these decisions are, if they call for a policy before the batch was to end."""
        return self.clock.early(self._progress(state, summary)) if self.clock.uses_features else None

    def _progress(self, state: State, summary: Summary | None) -> ModelGrowth:
        """How far the models have come by the decisions of the current policy."""
        since = None if summary is None else summary.stats
        progress = self.parts.statistics.progress(state.sums, state.rule_state, since)
        return replace(progress, start=state.start, batch_sizes=state.batch_sizes)

    def summarize(
        self,
        state: State,
        log: DecisionLog,
        *,
        window: float | None = None,
        now: float | np.datetime64 | None = None,
        default: float | None = None,
        clip: tuple[float, float] | None = None,
        part: bool = False,
    ) -> Summary:
        """What this learner needs of some decisions of one policy of the run. Changes nothing.

        Decisions may come in any order. Those of an earlier policy, given again with the rewards that came late, make a
        summary for ``next(…, late=[…])``: all decisions of that batch, the old ones too.

        Parameters
        ----------
        window
            An attribution window in seconds; the log then needs ``times``. A decision younger than this waits,
            even if its reward is known, and a reward that came later does not count (where ``reward_times`` tell): so
            all decisions wait equally long, and fast rewards are not over-represented.
        now
            When the update is made, in seconds or as a datetime64; the latest time of the log by default.
        default
            The reward of decisions whose own is not known, or came after the window, once their window has passed;
            at once where there is none. By default they do not count.
        clip
            The least and the largest reward: others are summed as if they were these, and counted as ``clipped``.
        part
            Whether these are some of the decisions of a batch, whose summaries shall be added up. Clicks are then
            summed at one point, in a single pass; :meth:`fitted` makes those that follow, over all parts.
        """
        self._check_state(state)
        if not isinstance(log, DecisionLog):
            raise BatchError(f"summarize takes a DecisionLog; got {type(log).__name__}. Make one with DecisionLog.of.")
        features = log.features
        if features is None:
            raise BatchError(f"{self.name} learns from the vectors of arms, and this log has none. Give it features.")
        policy_id, sets = log.policy_id, None
        current = policy_id == state.policy.id and not state.done
        place = state.policies - 1 if current else position(state, policy_id, every_step=self.clock.every_step)
        if log.contexts is not None:
            sets = Sets(log.contexts, log.available, False)
            self.check(sets)
        elif len(log):
            self.check_chosen(features)
        log = log.attributed(window=window, now=now, default=default)
        order, statistics = key_order(log.ids), self.parts.statistics
        rewards, outside = clipped(log.rewards[order], clip)
        known = ~np.isnan(rewards)
        counted, shown = statistics.halves(log.ids[order], place + 1)
        stats, extent = None, None
        if current or statistics.pooled:
            used = known if counted is None else known & counted
            at = slice(None) if used.all() else used
            x, r = features[order][at], rewards[at]
            extent = RewardRange.of(x, r) if len(r) else None
            offered = None if sets is None else sets.part(order).part(at)
            stats = statistics.of(state, x, r, offered)
        size = self.sample_size(state) if current else 0
        sample = None
        if size and sets is not None:
            picked = np.arange(len(log))[order] if shown is None else np.arange(len(log))[order][shown]
            if len(picked):
                sample = Sample.of(size, log.ids[picked], ContextSets.checked(sets), picked)
        flags = {"waiting": log.waiting, "expired": log.expired, "rewarded": known, "clipped": outside}
        counts = {name: 0 if flag is None else int(np.count_nonzero(flag)) for name, flag in flags.items()}
        counts["decided"] = len(log)
        summary = Summary(
            learner=self.name,
            policy_id=policy_id,
            stats=statistics.zero() if stats is None else stats,
            extent=extent,
            sample=sample,
            **counts,
        )
        if part or not current or not counts["rewarded"]:
            return summary
        return self.fitted(state, summary, lambda finer: replace(summary, stats=statistics.of(finer, x, r, offered)))

    def fitted(self, state: State, summary: Summary, again: Callable[[State], Summary]) -> Summary:
        """The summary of the current batch after the passes over its rows that it needs, at most six.

        Clicks are expanded around a point, and Newton's method moves it: see :mod:`rareswitch.belief.posterior`. A
        summary of one pass can be learned from as well; the policy is then that of a single Newton step.

        Parameters
        ----------
        summary
            Of all rows, summed at ``state``.
        again
            Sums all rows at another state. What it samples is not looked at.
        """
        return replace(self.parts.rule.fitted(state, summary, again), sample=summary.sample)

    def next(
        self, state: State, summary: Summary, *, late: Sequence[Summary] = (), forecast: Forecast | None = None
    ) -> State:
        """The state after the current batch, which ends now, as it is. Nothing is changed; the old state stays valid.

        Parameters
        ----------
        summary
            Of all decisions of the current policy, fewer or more than were planned.
        late
            Summaries of earlier batches, each of all its rows: they replace what was counted of these batches where
            policies rest on all decisions so far, and are only counted where a proof needs fresh batches.
        forecast
            Decisions to come in all, or of each batch to come; 0 ends the run. By default as planned.
        """
        self._check_state(state)
        if not isinstance(late, Sequence):
            raise BatchError(f"late must be a list of summaries; got a {type(late).__name__}. Give it as late=[…].")
        for part in (summary, *late):
            self._check_own(part)
        if state.done:
            raise BatchError("this run is over: its last batch has been learned from. Begin a new one.")
        if summary.policy_id != state.policy.id:
            raise BatchError(
                f"this summary is of policy {summary.policy_id[:12]}… and the current one is {state.policy.id[:12]}…: "
                "it belongs to another run, or to a batch that was learned from already (give that as late=[…])."
            )
        self._check_sums(state.sums)
        self._check_learnable(summary)
        pooled = self.parts.statistics.pooled
        past, sums = with_late(state, late, pooled=pooled, every_step=self.clock.every_step)
        moved = sum(new.decided - old.decided for new, old in zip(past, state.past, strict=True))
        start, policies = state.start + moved + summary.decided, state.policies
        if not self.clock.every_step:
            past = (*past, remembered(summary, pooled=pooled))
        sums = added(sums, summary.stats)
        planned = state.batch_sizes[1:]
        if forecast is None:
            coming = self.clock.batch_sizes(planned, batch=policies + 1, start=start)
        else:
            spread = partial(self.clock.policies_for, planned=planned, start=start)
            coming = batch_sizes_of(forecast, start=start, policies=spread)
        if not coming:
            return replace(state, start=start, batch_sizes=(), past=past, sums=sums)
        ended = BatchEnd(state=state, start=start, batch=summary, sums=sums, batch_sizes=coming, past=past)
        return replace(self._learned(ended, forecast=forecast is not None), start=start, past=past)

    def _check_learnable(self, summary: Summary) -> None:
        """Refuse what nothing can be learned from, or not by this learner."""
        self._check_own(summary)
        self._check_sums(summary.stats)
        if not summary.rewarded:
            open_ones = f" The window of {summary.waiting} of them is still open." if summary.waiting else ""
            raise BatchError(
                f"none of the {summary.decided} decisions of this batch has a reward: there is nothing to learn from."
                f"{open_ones} Wait until rewards are there; the current policy can go on."
            )
        if summary.extent is not None:
            kinds = {"intercept": self.parts.statistics.intercept, "in_unit_ball": self.in_unit_ball}
            check_scales(summary.extent, summary.rewarded, **kinds, remedy=self._level_remedy())

    def _check_own(self, summary: Summary) -> None:
        if not isinstance(summary, Summary):
            raise BatchError(f"next takes summaries, as summarize makes them of rows; got {type(summary).__name__}.")
        if summary.learner not in ("", self.name):
            raise BatchError(
                f"this summary was made by {summary.learner}, which counts other things than {self.name} although the "
                "policy is the same. Summarize the rows with the learner that shall learn from them."
            )

    def _check_sums(self, sums: tuple[Stats, ...]) -> None:
        if tuple(stats.dim for stats in sums) != self.parts.statistics.dims:
            raise BatchError(f"these sums were made by a learner with other features than {self!r:.200}.")

    def _note(self, new: NewPolicy, ended: BatchEnd) -> Note:
        """What was believed, planned and concluded at an update; what the user should know of the rewards."""
        note, state, batch = dict(new.note), ended.state, ended.batch
        if not self.clock.every_step:
            level = self.parts.statistics.unexplained_level(ended.sums)
            if level is not None:
                text = (
                    f"rewards lie around {level:.6g}, which the features do not explain: {self.name} takes it for "
                    f"noise, or for differences between arms. {self._level_remedy()}"
                )
                note |= _noticed(state, "level", level, LevelWarning(text))
            distance = None if batch.extent is None else outlying(batch.extent, reduce(add, batch.stats))
            if distance is not None:
                text = (
                    f"a reward of this batch lies {distance:.0f} standard deviations from the mean: a few rewards "
                    "decide what is learned, and all learners here lose by it. Clip them at a value that most stay "
                    "below: Rewards(clip=…) of an experiment, or clip=… where rows are summarized."
                )
                note |= _noticed(state, "outlier", distance, OutlierWarning(text))
        if state.policy.min_propensity is not None and {"certificate", "lost"} & note.keys():
            note["min_propensity"] = state.policy.min_propensity.least
        return note

    def _level_remedy(self) -> str:
        either = "Set intercept=True, or subtract" if hasattr(self, "intercept") else "Subtract"
        return f"{either} a constant from all rewards, the same one in every batch."

    def after_steps(self, state: State, *, sums: tuple[Stats, ...], decided: int, changes: int) -> State:
        """The state after steps that were compiled: ``changes`` policies retired within ``decided`` decisions.

        For learners that change at every step, whose policies are a function of their sums.
        """
        start, policies = state.start + decided, state.policies + changes
        batch_sizes = self.clock.batch_sizes((), batch=policies, start=start)
        if not batch_sizes:
            return replace(state, policies=policies - 1, start=start, batch_sizes=batch_sizes, sums=sums)
        assert isinstance(self.parts.rule, SumsRule)
        new = self.parts.rule.from_sums(sums, start)
        return replace(
            state,
            policy=_carrying(new.policy, state.policy),
            policies=policies,
            start=start,
            batch_sizes=batch_sizes,
            sums=sums,
            rule_state=new.rule_state,
        )

    def _check_state(self, state: State) -> None:
        if not isinstance(state, State):
            raise BatchError(f"a state is what begin, next and state_from_bytes return; got {type(state).__name__}.")
        if state.learner != self.name:
            raise BatchError(f"this state is of {state.learner}, and the learner is {self.name}.")
        if state.policy.dim != self.dim:
            raise BatchError(f"this state is of {state.policy.dim} features, and the learner is for {self.dim}.")


def _noticed(state: State, name: str, value: float, warning: UserWarning) -> Note:
    """A part of a note, said as a warning too the first time in a run."""
    if not any(name in note for note in state.notes):
        warnings.warn(warning, stacklevel=5)
    return {"update": state.policies, name: value}


def _carrying(policy: Policy, before: Policy) -> Policy:
    """A policy with the features, the minimum propensity and the holdout of the one before it."""
    carried = {name: getattr(before, name) for name in ("features", "min_propensity", "holdout")}
    return replace(policy, **carried) if any(part is not None for part in carried.values()) else policy
