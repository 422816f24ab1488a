"""The update of an experiment: when it is made, what is frozen of it, what is learned, and how it is published."""

import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from rareswitch.errors import BatchError, FileFormatError, RareswitchError, StoreError
from rareswitch.evaluation import lift_of
from rareswitch.experiment.description import Description
from rareswitch.experiment.gate import GROWTH, Gate, GateReport, gate_of, judge, linear_model
from rareswitch.experiment.results import (
    Advance,
    BatchCounts,
    LearnedBatch,
    LearnerNote,
    Lift,
    RewardsSeen,
    UpdatePlan,
    UpdateReport,
)
from rareswitch.experiment.versions import Version, plan_from_text, plan_to_text, version_row
from rareswitch.learner import Forecast, State, Summary, summaries_to_bytes
from rareswitch.log import DecisionLog, HeldOut, StoredBatch, StoredLog, check_newest, summarize
from rareswitch.plan import LearnerSchedule, Manual, Progress, Wait, unlearnable
from rareswitch.policy import Key
from rareswitch.store import Counts, Marks, Store

Versions = tuple[Version, ...]
Bar = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Updates:
    """Makes the updates of one experiment; several processes may."""

    store: Store
    description: Description
    #: A policy that was published, by its number.
    version: Callable[[int], Version]
    #: Takes the version that this process has published: it is not read again.
    published: Callable[[Version], None]
    #: Digest of the description.
    experiment: str
    #: Signs what is published.
    key: Key | None

    def advance(
        self,
        known: Versions,
        *,
        now: float,
        forecast: Forecast | None,
        force: bool,
        gate: Gate | bool | None,
        executor: Executor | None,
        progress: Bar | None,
    ) -> Advance:
        """Publish the next policy after those that are known, if it is due and the gate lets it pass."""
        current, gated = known[-1], gate_of(gate, self.description.learner)
        if self.store.head() == current.number:
            schedule = self.description.schedule
            standing = progress_of(self.description, self.store, known, now)
            due = schedule.due(standing)
            over = isinstance(schedule, LearnerSchedule) and standing.over
            asked = due.now or force or isinstance(schedule, Manual) or (over and forecast is not None)
            waits = () if asked else due.waits
            if gated is not None and not force and not waits:
                waits = self._looks_again(current, standing.versions[-1].decisions)
            if waits and not self.store.started(current.number):  # one that was begun is brought to its end
                return self._not_made(current, waits)
            plan = self._plan(now, schedule.forecast(standing) if forecast is None else forecast, gated)
            started = self._start(current.number, plan)
            if started is not None and gated is not None and started[0].gate is None:
                self.store.abandon_update(current.number)  # it was begun without the gate that is asked for
                started = self._start(current.number, plan)
            if started is not None:
                return self._update(known, *started, executor=executor, progress=progress)
        return self._made(self.version(current.number + 1), elsewhere=True)

    def preview(
        self,
        known: Versions,
        *,
        now: float,
        forecast: Forecast | None,
        gate: Gate | bool | None,
        executor: Executor | None,
    ) -> Advance:
        """What an update made now would do; nothing is changed."""
        current, gated = known[-1], gate_of(gate, self.description.learner)
        standing = progress_of(self.description, self.store, known, now)
        if not standing.versions[-1].decisions:
            return self._not_made(current, unlearnable(standing), preview=True)
        foreseen = self.description.schedule.forecast(standing) if forecast is None else forecast
        plan, marks = self._plan(now, foreseen, gated), self.store.marks()
        state, _, report = self._learn(known, plan, marks, executor=executor)
        if state.done:
            return self._not_made(current, (Wait(kind="done"),), preview=True)
        if plan.gate is not None:
            verdict, _ = self._judge(known, plan, marks, state)
            report = msgspec.structs.replace(report, gate=verdict)
            if not verdict.promoted:
                return self._not_made(current, (), report, preview=True)
        return self._outcome(current.number + 1, state, report, preview=True)

    def logged(self, known: Versions, marks: Marks, now: float, *, only: int | None = None) -> StoredLog:
        """The decisions up to the marks, of all policies or of one, with their rewards as they count then."""
        rewards, policies = self.description.rewards, [version.policy for version in known]
        return StoredLog(
            self.store,
            policies,
            dim=self.description.learner.dim,
            upto=marks,
            only=only,
            window=rewards.window,
            now=None if rewards.window is None else now,
            default=rewards.default,
            sums=rewards.sums,
        )

    # the steps of an update

    def _plan(self, now: float, forecast: Forecast | None, gate: Gate | None) -> UpdatePlan:
        sizes = None if forecast is None else np.asarray(forecast).astype(np.int64).tolist()
        totals = self.store.totals()  # taken before the marks: what comes between is looked at again by the next update
        summed = totals.rewards if self.description.rewards.sums else 0
        return UpdatePlan(
            now=now,
            forecast=tuple(sizes) if isinstance(sizes, list) else sizes,
            seen=RewardsSeen(rewards=summed, overwritten=totals.overwritten),
            gate=gate,
        )

    def _start(self, parent: int, plan: UpdatePlan) -> tuple[UpdatePlan, Marks] | None:
        """The plan and the marks of the update after policy ``parent``: these, or those of one that was begun.

        A plan that was not frozen so, by who has the key, is discarded: nothing was published by it.
        """
        frozen = plan_to_text(plan, parent, experiment=self.experiment, key=self.key)
        started = self.store.start_update(parent, frozen)
        if started is None:
            return None
        text, marks = started
        if text == frozen:
            return plan, marks
        try:
            return plan_from_text(text, parent, experiment=self.experiment, key=self.key), marks
        except FileFormatError as error:
            self.store.abandon_update(parent)
            raise FileFormatError(
                f"the plan of the update that was begun after policy {parent} is refused: {error} It was damaged or "
                "edited in the store, and is discarded now. Advance again to plan the update anew."
            ) from error

    def _update(
        self, known: Versions, plan: UpdatePlan, marks: Marks, *, executor: Executor | None, progress: Bar | None
    ) -> Advance:
        """Learn, judge and publish."""
        current, verdict, rejected = known[-1], None, 0
        try:
            state, summaries, report = self._learn(known, plan, marks, executor=executor, progress=progress)
            if plan.gate is not None and not state.done:
                verdict, rejected = self._judge(known, plan, marks, state)
        except StoreError:
            raise  # it goes on with what was frozen when the store is back
        except RareswitchError:
            self.store.abandon_update(current.number)  # so that the next call looks at what has come since
            raise
        if state.done:
            self.store.abandon_update(current.number)
            return self._not_made(current, (Wait(kind="done"),))
        report = msgspec.structs.replace(report, marks=marks, plan=plan, gate=verdict)
        if verdict is not None and not verdict.promoted:
            self.store.refuse_update(current.number, rejected + 1, msgspec.json.encode(report).decode())
            if self.store.head() == current.number:
                return self._not_made(current, (), report)
            return self._made(self.version(current.number + 1), elsewhere=True)  # who looked again let one pass
        report = msgspec.structs.replace(report, by=secrets.token_hex(8))
        row = version_row(
            current.number + 1,
            state,
            experiment=self.experiment,
            summaries=summaries_to_bytes(list(summaries)),
            report=msgspec.json.encode(report).decode(),
            time=plan.now,
            key=self.key,
        )
        if self.store.publish(row) != row:
            return self._made(self.version(row.number), elsewhere=True)
        made = Version(row, self.experiment, self.key)
        vars(made).update(policy=state.policy, state=state, report=report)
        self.published(made)
        return self._made(made)

    def _learn(
        self,
        known: Versions,
        plan: UpdatePlan,
        marks: Marks,
        *,
        executor: Executor | None = None,
        progress: Bar | None = None,
    ) -> tuple[State, tuple[Summary, ...], UpdateReport]:
        state, summaries, report = learn(
            self.description, known, self.store, plan, marks, executor=executor, progress=progress
        )
        if self.description.baseline_share is not None:
            report = msgspec.structs.replace(report, lift=_lift(self.logged(known, marks, plan.now), plan.now))
        return state, summaries, report

    def _looks_again(self, current: Version, decisions: int) -> tuple[Wait, ...]:
        """What the gate waits for after it rejected a policy of this batch: each look costs some of its level."""
        rejected = rejections(self.store, current.number)
        before = rejected[-1].learned[0].decided if rejected else 0
        needed = math.ceil(GROWTH * before)
        if decisions >= needed:
            return ()
        return (Wait(kind="gate", decisions=before, needed=needed, more=needed - decisions),)

    def _judge(self, known: Versions, plan: UpdatePlan, marks: Marks, state: State) -> tuple[GateReport, int]:
        """What the decisions that were held out say of the policy that was learned, and how many were rejected before.

        While an update is under way nobody adds to these, so that after a crash it is the same look again.
        """
        gate, current = plan.gate, known[-1]
        assert gate is not None
        rejected = [report.gate for report in rejections(self.store, current.number)]
        verdict = judge(
            gate,
            self._held_out(gate.held_out(self.description.context_sample_rate), known, marks, plan.now),
            candidate=state.policy,
            incumbent=current.policy,
            predict=linear_model(self.description.learner, state),
            look=1 + sum(report is not None and report.answered for report in rejected),
        )
        return verdict, len(rejected)

    def _held_out(self, which: HeldOut, known: Versions, marks: Marks, now: float) -> Iterator[DecisionLog]:
        """The decisions of the current policy that were held out."""
        for log in self.logged(known, marks, now, only=known[-1].number).chunks(contexts=True):
            among = which.among(log.ids)
            if among.any():
                yield log.select(among)

    # outcomes

    def _made(self, version: Version, *, elsewhere: bool = False) -> Advance:
        return self._outcome(version.number, version.state, version.report, elsewhere=elsewhere)

    def _outcome(
        self, number: int, state: State, report: UpdateReport, *, elsewhere: bool = False, preview: bool = False
    ) -> Advance:
        numbers = {batch.policy_id: position for position, batch in enumerate(state.past, 1)}
        batch, *late = report.learned
        holds = self.description.learner.holds(state)
        return Advance(
            made=not elsewhere,
            elsewhere=elsewhere,
            preview=preview,
            version=number,
            policy_id=state.policy.id,
            decided=batch.decided,
            rewarded=batch.rewarded,
            waiting=batch.waiting,
            expired=batch.expired,
            clipped=batch.clipped,
            held_out=batch.held_out,
            late={numbers[entry.policy]: entry.rewarded for entry in late},
            sets=report.sets,
            note=report.note,
            batch_sizes=state.batch_sizes,
            holds=holds if holds.startswith("The batches were not") else "",
            seconds=report.seconds,
            gate=report.gate,
            lift=self._kept_lift(report),
        )

    def _not_made(
        self, current: Version, waits: tuple[Wait, ...], rejected: UpdateReport | None = None, *, preview: bool = False
    ) -> Advance:
        """Of an update that was not due, or that a gate rejected."""
        batch = LearnedBatch(policy="", decided=0, rewarded=0) if rejected is None else rejected.learned[0]
        return Advance(
            made=False,
            preview=preview,
            version=current.number,
            policy_id=current.policy.id,
            waits=waits,
            decided=batch.decided,
            rewarded=batch.rewarded,
            waiting=batch.waiting,
            expired=batch.expired,
            clipped=batch.clipped,
            held_out=batch.held_out,
            seconds=0.0 if rejected is None else rejected.seconds,
            gate=None if rejected is None else rejected.gate,
            lift=self._kept_lift(current.report if rejected is None else rejected),
        )

    def _kept_lift(self, report: UpdateReport) -> Lift | None:
        return kept_lift(report, baseline=self.description.baseline_share is not None)


def kept_lift(report: UpdateReport, *, baseline: bool) -> Lift | None:
    """The lift as an update has measured it; None where there is no baseline."""
    return (report.lift or Lift(reason="no update has measured it yet")) if baseline else None


def _lift(log: StoredLog, at: float) -> Lift:
    """The lift in a log; where it cannot be told, why not."""
    try:
        parts = lift_of(log)
    except StoreError:
        raise
    except RareswitchError as error:
        return Lift(reason=str(error), at=at)
    return Lift(parts=parts, reason="" if parts else "no decision names a baseline", at=at)


def rejections(store: Store, parent: int) -> list[UpdateReport]:
    """The reports of updates of a version that a gate rejected, the first first."""
    return [msgspec.json.decode(text, type=UpdateReport) for text in store.refusals(parent)]


def counts_of(store: Store, versions: Sequence[Version]) -> list[Counts]:
    """Of each version, also of those that have not decided anything."""
    counts = {count.version: count for count in store.counts()}
    return [
        counts.get(version.number, Counts(version.number, 0, 0, version.row.time, version.row.time))
        for version in versions
    ]


def progress_of(
    description: Description, store: Store, versions: Sequence[Version], now: float, counts: Sequence[Counts] = ()
) -> Progress:
    """What schedules look at."""
    counts = counts or counts_of(store, versions)
    if description.rewards.default is not None:
        counts = [count._replace(rewarded=count.decisions) for count in counts]
    state = versions[-1].state
    start = state.start + max(1, counts[-1].decisions)
    return Progress(
        created=description.created,
        now=now,
        versions=tuple(counts),
        published=tuple(version.row.time for version in versions),
        window=description.rewards.window,
        planned=state.batch_sizes,
        last=not description.learner.clock.batch_sizes(
            state.batch_sizes[1:], batch=state.policies + 1, start=start, width=1.0
        ),
        early=_early(description, store, versions[-1], now),
    )


def _early(description: Description, store: Store, current: Version, now: float) -> str:
    """Why an update should be made before the batch was to end; '' where it need not.

    It reads the decisions of the current policy that an update would learn from, and only where the learner holds
    policies in reserve. Which rewards they have plays no part.
    """
    learner, state = description.learner, current.state
    if not learner.clock.uses_features or state.done:
        return ""
    return learner.early(state, _summary(description, store, current, state, store.marks(), now)) or ""


def _summary(
    description: Description,
    store: Store,
    version: Version,
    state: State,
    marks: Marks,
    now: float,
    *,
    leave_out: HeldOut | None = None,
    executor: Executor | None = None,
    progress: Bar | None = None,
) -> Summary:
    """Of the decisions of a version up to the marks, for the state of the current one."""
    rewards = description.rewards
    return summarize(
        description.learner,
        state,
        StoredBatch(store=store, version=version.number, upto=marks, sums=rewards.sums, window=rewards.window),
        policy_id=version.policy.id,
        executor=executor,
        window=rewards.window,
        now=now,
        default=rewards.default,
        clip=rewards.clip,
        leave_out=leave_out,
        progress=progress,
    )


def learn(
    description: Description,
    versions: Sequence[Version],
    store: Store,
    plan: UpdatePlan,
    marks: Marks,
    *,
    executor: Executor | None = None,
    progress: Bar | None = None,
) -> tuple[State, tuple[Summary, ...], UpdateReport]:
    """The state after the current batch, of the decisions and rewards up to the marks, less what a gate holds out."""
    began = time.perf_counter()
    learner, current = description.learner, versions[-1]
    counts = {count.version: count for count in store.counts(marks)}
    check_newest(store, max(counts, default=0), current.number)
    if current.number not in counts:
        raise BatchError(
            f"policy {current.number} has not decided anything yet: there is nothing to learn from. It can go on."
        )

    def summary(version: Version, leave_out: HeldOut | None = None) -> Summary:
        return _summary(
            description,
            store,
            version,
            current.state,
            marks,
            plan.now,
            leave_out=leave_out,
            executor=executor,
            progress=progress,
        )

    batch = summary(current, None if plan.gate is None else plan.gate.held_out(description.context_sample_rate))
    decided = counts[current.number].decisions
    held_out, batch = decided - batch.decided, replace(batch, decided=decided)  # what is held out is not known yet
    wanted = learner.sample_size(current.state)
    if wanted and batch.sample is None and plan.forecast != 0:
        raise BatchError(
            f"{learner.name} plans with the context sets of {min(wanted, batch.decided)} of these decisions, and none "
            f"were kept: context_sample_rate={description.context_sample_rate:g}. Let the policy go on until "
            "some are, or create the experiment with a larger share."
        )
    late = [summary(version) for version in _changed(versions, counts, plan.seen)]
    state = learner.next(current.state, batch, late=late, forecast=plan.forecast)
    summaries = (batch, *late)
    note = state.notes[-1] if len(state.notes) > len(current.state.notes) else {}
    report = UpdateReport(
        batches=tuple(
            BatchCounts(version=number, decisions=count.decisions, rewarded=count.rewarded)
            for number, count in counts.items()
        ),
        learned=tuple(
            LearnedBatch(
                policy=part.policy_id,
                decided=part.decided,
                rewarded=part.rewarded,
                waiting=part.waiting,
                expired=part.expired,
                clipped=part.clipped,
                held_out=held_out if part is batch else 0,
            )
            for part in summaries
        ),
        sets=0 if batch.sample is None else len(batch.sample),
        note=msgspec.convert(
            {name: float(value) if isinstance(value, float) else value for name, value in note.items()}, LearnerNote
        ),
        seconds=round(time.perf_counter() - began, 3),
    )
    return state, summaries, report


def _changed(versions: Sequence[Version], counts: dict[int, Counts], seen: RewardsSeen) -> list[Version]:
    """Earlier versions of which more is known than when they were learned from last."""
    if len(versions) < 2:
        return []
    last = versions[-1].report
    before = {entry.version: entry for entry in last.batches}
    waiting = {
        entry.policy: entry.waiting or entry.held_out for version in versions[1:] for entry in version.report.learned
    }  # as of the last time that each was learned from
    same_rewards = last.plan is not None and seen == last.plan.seen
    changed = []
    for version in versions[:-1]:
        now, then = counts.get(version.number), before.get(version.number)
        if now is None or then is None:
            continue
        same = (now.decisions, now.rewarded) == (then.decisions, then.rewarded) and same_rewards
        if not same or waiting.get(version.policy.id):
            changed.append(version)
    return changed
