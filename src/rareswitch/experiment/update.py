"""The update of an experiment: when it is made, what is frozen of it, what is learned, and how it is published."""

import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import islice

import msgspec
import numpy as np

from rareswitch.core import BoolArray, FloatArray
from rareswitch.decisions import DecisionLog
from rareswitch.errors import BatchError, ConflictError, FileFormatError, ParameterError, RareswitchError, StoreError
from rareswitch.evaluation import labels_of, lift_of
from rareswitch.experiment.description import Description
from rareswitch.experiment.gate import GROWTH, Gate, GateReport, gate_of, judge, linear_model
from rareswitch.experiment.requests import Requests
from rareswitch.experiment.results import (
    Advance,
    Coefficient,
    GroupChange,
    LearnedBatch,
    LearnerNote,
    Lift,
    PolicyChanges,
    RewardsSeen,
    UpdatePlan,
    UpdateReport,
)
from rareswitch.experiment.versions import Version, Versions, sign_json, verified_json
from rareswitch.features import Features
from rareswitch.learner import Forecast, Learner, State, Summary, summaries_to_bytes
from rareswitch.log import HeldOut, StoredLog, check_newest, summarize
from rareswitch.planning import LearnerSchedule, Manual, Progress, Wait, known_regret, unlearnable
from rareswitch.store import Counts, Marks, Store

Bar = Callable[[int, int], None]
#: Requests on which policies are compared at the most.
SAMPLED = 1000
#: Coefficients that are named, and groups of a field, at the most.
MOST_COEFFICIENTS, MOST_GROUPS = 20, 12


@dataclass(frozen=True, eq=False)
class Update:
    """One update: the policies before it, what was frozen when it started, and how rows are read."""

    description: Description
    store: Store
    #: The current policy is the last.
    versions: tuple[Version, ...]
    plan: UpdatePlan
    marks: Marks
    executor: Executor | None = None
    progress: Bar | None = None

    @property
    def current(self) -> Version:
        """The version whose batch ends."""
        return self.versions[-1]

    def log(self, only: int | None = None, held_out: HeldOut | None = None) -> StoredLog:
        """The decisions and rewards up to the marks, of all policies or of one, or those of it that are held out."""
        known = self.store, self.versions, self.marks, self.plan.now
        return log_of(self.description, *known, only=only, held_out=held_out)

    @property
    def held_out(self) -> HeldOut | None:
        """The decisions that a gate holds out."""
        return None if self.plan.gate is None else self.plan.gate.held_out(self.description.context_sample_rate)

    def summary(self, version: Version, leave_out: HeldOut | None = None) -> Summary:
        """What a batch teaches the current learner, of the decisions and rewards up to the marks."""
        return summarize(
            self.description.learner,
            self.current.state,
            self.log(version.number),
            policy_id=version.policy.id,
            executor=self.executor,
            clip=self.description.rewards.clip,
            leave_out=leave_out,
            progress=self.progress,
        )

    def learn(self) -> tuple[State, list[Summary], UpdateReport]:
        """The state after the current batch, less what a gate holds out; what it was learned from; and the report."""
        began = time.perf_counter()
        learner, current, plan = self.description.learner, self.current, self.plan
        counts = {count.version: count for count in self.store.counts(self.marks)}
        check_newest(self.store, max(counts, default=0), current.number)
        if current.number not in counts:
            raise BatchError(
                f"policy {current.number} has not decided anything yet: there is nothing to learn from. It can go on."
            )
        batch = self.summary(current, self.held_out)
        decided = counts[current.number].decisions
        held_out, batch = decided - batch.decided, replace(batch, decided=decided)  # what is held out is not known yet
        wanted = learner.sample_size(current.state)
        if wanted and batch.sample is None and plan.forecast != 0:
            raise BatchError(
                f"{learner.name} plans with the context sets of {min(wanted, batch.decided)} of these decisions, and "
                f"none were kept: context_sample_rate={self.description.context_sample_rate:g}. Let the policy go on "
                "until some are, or create the experiment with a larger share."
            )
        late = [self.summary(version) for version in _changed(self.versions, counts, plan.seen)]
        state = learner.next(current.state, batch, late=late, forecast=plan.forecast)
        learned, *rest = (_learned_batch(entry) for entry in (batch, *late))
        note = state.notes[-1] if len(state.notes) > len(current.state.notes) else {}
        report = UpdateReport(
            batches=tuple(counts.values()),
            learned=(msgspec.structs.replace(learned, held_out=held_out), *rest),
            sets=0 if batch.sample is None else len(batch.sample),
            note=msgspec.convert(
                {name: float(value) if isinstance(value, float) else value for name, value in note.items()}, LearnerNote
            ),
            marks=self.marks,
            plan=plan,
            seconds=round(time.perf_counter() - began, 3),
            lift=None if self.description.baseline_share is None else self._lift(),
        )
        return state, [batch, *late], report

    def _lift(self) -> Lift:
        """What the decisions so far earned beside the baseline; where it is not identifiable, the reason."""
        try:
            parts = lift_of(self.log())
        except StoreError:
            raise
        except RareswitchError as error:
            return Lift(reason=str(error), at=self.plan.now)
        return Lift(parts=parts, reason="" if parts else "no decision names a baseline", at=self.plan.now)

    def changes(self, state: State) -> PolicyChanges | None:
        """What the policy of a state would decide otherwise than the current one did, on a sample of its requests."""
        policy, learner = state.policy, self.description.learner
        keys = [key for key, _ in islice(self.store.sample(self.current.number, self.marks), SAMPLED)]
        rows = [stored[0] for stored in self.store.find(keys) if stored is not None]
        if not rows:
            return None
        requests = Requests.of_rows(rows, learner.dim)
        if requests.names is None and policy.min_propensity is not None and policy.min_propensity.arms:
            return None
        contexts, decided = requests.sets.contexts, requests.decide(policy, self.description.seed)
        at = np.array([row.arm_index for row in rows])
        before, after = (
            Counter(str(requests.arm(k, arm)) for k, arm in enumerate(arms.tolist())) for arms in (at, decided.arms)
        )
        shares = {arm: (before[arm] / len(rows), after[arm] / len(rows)) for arm in {*before, *after}}
        moved = at != decided.arms
        gain: float | None = None
        coefficients: tuple[Coefficient, ...] = ()
        if learner.begins_with_logs and len(state.sums) == 1 and state.sums[0].count:
            model = linear_model(learner, state)(contexts)
            gain = float(np.mean(model[np.arange(len(rows)), decided.arms] - model[np.arange(len(rows)), at]))
            coefficients = coefficients_moved(learner, self.current.state, state, policy.features)
        return PolicyChanges(
            requests=len(rows),
            share=float(moved.mean()),
            arms=dict(sorted(shares.items(), key=lambda item: (-abs(item[1][1] - item[1][0]), item[0]))),
            gain=gain,
            groups=groups_moved(policy.features, contexts[np.arange(len(rows)), at], moved),
            coefficients=coefficients,
        )

    def judge(self, gate: Gate, state: State, rejected: Sequence[UpdateReport]) -> GateReport:
        """What the decisions that were held out say of the policy that was learned, after those that were rejected."""
        return judge(
            gate,
            self.log(self.current.number, self.held_out),
            candidate=state.policy,
            incumbent=self.current.policy,
            predict=linear_model(self.description.learner, state),
            look=1 + sum(report.gate is not None and report.gate.answered for report in rejected),
        )


def groups_moved(features: Features | None, chosen: FloatArray, moved: BoolArray) -> tuple[GroupChange, ...]:
    """The shares of requests that would see another arm, by the fields that can be read off vectors (n, d)."""
    fields = [] if features is None else [field.name for field in features.fields if field.of == "context"]
    log = DecisionLog(propensities=np.ones(len(moved)), features=chosen, rewards=np.zeros(len(moved)))
    changes: list[GroupChange] = []
    for field in fields:
        try:
            groups = labels_of(field, features, log)
        except ParameterError:
            continue  # it is only multiplied with other numbers
        names, of = np.unique(groups, return_inverse=True)
        if 1 < len(names) <= MOST_GROUPS:
            counts = np.bincount(of)
            shares = np.bincount(of, weights=moved) / counts
            rows = zip(names.tolist(), counts.tolist(), shares.tolist(), strict=True)
            changes += [GroupChange(field=field, group=name, requests=n, share=share) for name, n, share in rows]
    return tuple(changes)


def coefficients_moved(
    learner: Learner, before: State, after: State, features: Features | None
) -> tuple[Coefficient, ...]:
    """What columns add to the reward, by the linear models of two states."""
    unit = np.eye(learner.dim)[None] / (1.0 if features is None else math.sqrt(len(features.terms)))
    zero = np.zeros((1, 1, learner.dim))

    def of(state: State) -> FloatArray:
        if not any(stats.count for stats in state.sums):
            return np.zeros(learner.dim)
        model = linear_model(learner, state)
        return np.asarray((model(unit) - model(zero))[0])

    old, new = of(before), of(after)
    names = [f"x{k + 1}" for k in range(learner.dim)] if features is None else features.columns
    order = np.argsort(-np.abs(new - old), kind="stable")[:MOST_COEFFICIENTS].tolist()
    moved = [at for at in order if new[at] != old[at]]
    return tuple(Coefficient(name=names[at], before=float(old[at]), after=float(new[at])) for at in moved)


@dataclass(frozen=True, eq=False)
class Updates:
    """Makes the updates of one experiment; several processes may."""

    description: Description
    versions: Versions

    @property
    def store(self) -> Store:
        """Where the experiment is kept."""
        return self.versions.store

    def advance(
        self,
        *,
        now: float,
        forecast: Forecast | None,
        force: bool,
        gate: Gate | bool | None,
        executor: Executor | None,
        progress: Bar | None,
    ) -> Advance:
        """Publish the next policy after those that are known, if it is due and the gate lets it pass."""
        gate, known = gate_of(gate, self.description.learner) if gate else None, self.versions.known
        current = known[-1]
        if self.store.head() != current.number:
            return self._made_elsewhere(current.number + 1)
        standing = progress_of(self.description, self.store, known, now)
        waits = () if force else self._waits(standing, forecast, gate)
        if waits and not self.store.started(current.number):  # one that was begun is brought to its end
            return self._not_made(waits)
        started = self._start(current.number, plan := self._plan(standing, forecast, gate))
        if started is not None and gate is not None and started[0].gate is None:
            self.store.abandon_update(current.number)  # it was begun without the gate that is asked for
            started = self._start(current.number, plan)
        if started is None:
            return self._made_elsewhere(current.number + 1)
        plan, marks = started
        return self._carry_out(Update(self.description, self.store, known, plan, marks, executor, progress))

    def preview(
        self, *, now: float, forecast: Forecast | None, gate: Gate | bool | None, executor: Executor | None
    ) -> Advance:
        """What an update made now would do; nothing is changed."""
        gate, known = gate_of(gate, self.description.learner) if gate else None, self.versions.refresh()
        standing = progress_of(self.description, self.store, known, now)
        if waits := unlearnable(standing):
            return self._not_made(waits, preview=True)
        plan = self._plan(standing, forecast, gate)
        update = Update(self.description, self.store, known, plan, self.store.marks(), executor)
        state, _, report = update.learn()
        if state.done:
            return self._not_made((Wait(kind="done"),), preview=True)
        if gate is not None:
            verdict = update.judge(gate, state, rejections(self.store, known[-1].number))
            report = msgspec.structs.replace(report, gate=verdict)
            if not verdict.promoted:
                return self._not_made((), report, preview=True)
        waits = self._waits(standing, forecast, gate)
        report = msgspec.structs.replace(report, changes=update.changes(state))
        return self._outcome(known[-1].number + 1, state.policy.id, report, state=state, waits=waits, preview=True)

    def proposed(self) -> Advance | None:
        """The update whose policy waits for approval."""
        version = self.versions.proposal()
        if version is None:
            return None
        return self._outcome(version.number, version.policy.id, version.report, state=version.state, proposed=True)

    def approve(self, policy_id: str | None, now: float) -> Advance:
        """Publish the policy that waits for approval."""
        version = self.versions.proposal()
        if version is None:
            raise ParameterError(
                f"policy_id: no policy of experiment '{self.description.name}' waits for approval. Advance when an "
                "update is due (rareswitch experiment advance)."
            )
        if policy_id not in (None, version.policy.id):
            raise ConflictError(
                f"the policy {policy_id!s:.64} does not wait for approval: another one, {version.policy.id}, took its "
                "place. Look at it, and approve that one."
            )
        summaries, state, report = version.row.summaries, version.state, version.report
        if self.versions.publish(version.number, state, summaries, report, now) is None:
            return self._made_elsewhere(version.number)
        return self._outcome(version.number, version.policy.id, report, state=state)

    # the steps of an update

    def _waits(self, standing: Progress, forecast: Forecast | None, gate: Gate | None) -> tuple[Wait, ...]:
        """What the next update waits for; nothing where it is due, or asked for by hand."""
        schedule = self.description.schedule
        over = isinstance(schedule, LearnerSchedule) and standing.over
        if not isinstance(schedule, Manual) and not (over and forecast is not None):
            due = schedule.due(standing)
            if not due.now:
                return due.waits
        if gate is None:
            return ()
        # each look costs the gate some of its level: after a rejection it waits for a larger batch
        rejected = rejections(self.store, standing.policies)
        before = rejected[-1].learned[0].decided if rejected else 0
        needed, decisions = math.ceil(GROWTH * before), standing.versions[-1].decisions
        if decisions >= needed:
            return ()
        return (Wait(kind="gate", decisions=before, needed=needed, more=needed - decisions),)

    def _plan(self, standing: Progress, forecast: Forecast | None, gate: Gate | None) -> UpdatePlan:
        if forecast is None:
            forecast = self.description.schedule.forecast(standing)
        try:
            sizes = None if forecast is None else np.asarray(forecast).astype(np.int64).tolist()
        except OverflowError:
            text = f"forecast must be decisions to come, below 2^63; got {forecast!r:.60}."
            raise ParameterError(text, parameter="forecast") from None
        totals = self.store.totals()  # taken before the marks: what comes between is looked at again by the next update
        summed = totals.rewards if self.description.rewards.sums else 0
        return UpdatePlan(
            now=standing.now,
            forecast=tuple(sizes) if isinstance(sizes, list) else sizes,
            seen=RewardsSeen(rewards=summed, overwritten=totals.overwritten),
            gate=gate,
        )

    def _start(self, parent: int, plan: UpdatePlan) -> tuple[UpdatePlan, Marks] | None:
        """The plan and the marks of the update after policy ``parent``: these, or those of one that was begun.

        A plan that was not frozen so, by who has the key, is discarded: nothing was published by it.
        """
        about, key = f"plan/{self.versions.experiment}/{parent}", self.versions.key
        frozen = sign_json(msgspec.json.encode(plan).decode(), about, key)
        started = self.store.start_update(parent, frozen)
        if started is None:
            return None
        text, marks = started
        if text == frozen:
            return plan, marks
        try:
            return msgspec.json.decode(verified_json(text, about, key)[0], type=UpdatePlan), marks
        except (FileFormatError, msgspec.MsgspecError) as error:
            self.store.abandon_update(parent)
            raise FileFormatError(
                f"the plan of the update that was begun after policy {parent} is refused: {error} It was damaged or "
                "edited in the store, and is discarded now. Advance again to plan the update anew."
            ) from error

    def _carry_out(self, update: Update) -> Advance:
        """Learn, judge and publish."""
        parent, gate = update.current.number, update.plan.gate
        # while an update is under way nobody adds to these: after a crash it is the same look again
        rejected = [] if gate is None else rejections(self.store, parent)
        try:
            state, summaries, report = update.learn()
            if gate is not None and not state.done:
                report = msgspec.structs.replace(report, gate=update.judge(gate, state, rejected))
        except StoreError:
            raise  # it goes on with what was frozen when the store is back
        except RareswitchError:
            self.store.abandon_update(parent)  # so that the next call looks at what has come since
            raise
        if state.done:
            self.store.abandon_update(parent)
            return self._not_made((Wait(kind="done"),))
        if report.gate is not None and not report.gate.promoted:
            self.store.refuse_update(parent, len(rejected) + 1, msgspec.json.encode(report).decode())
            if self.store.head() == parent:
                return self._not_made((), report)
            return self._made_elsewhere(parent + 1)  # who looked again let one pass
        report = msgspec.structs.replace(report, by=secrets.token_hex(8))
        learned_from = summaries_to_bytes(summaries)
        if self.description.approval:
            report = msgspec.structs.replace(report, changes=update.changes(state))
            if not self.store.propose(self.versions.row(parent + 1, state, learned_from, report, update.plan.now)):
                return self._made_elsewhere(parent + 1)
            return self._outcome(parent + 1, state.policy.id, report, state=state, proposed=True)
        version = self.versions.publish(parent + 1, state, learned_from, report, update.plan.now)
        if version is None:
            return self._made_elsewhere(parent + 1)
        return self._outcome(version.number, version.policy.id, report, state=state)

    # outcomes

    def _made_elsewhere(self, number: int) -> Advance:
        version = self.versions.numbered(number)
        return self._outcome(number, version.policy.id, version.report, state=version.state, elsewhere=True)

    def _not_made(
        self, waits: tuple[Wait, ...], rejected: UpdateReport | None = None, *, preview: bool = False
    ) -> Advance:
        """Of an update that was not due, or that a gate rejected."""
        current = self.versions.known[-1]
        report = UpdateReport(lift=current.report.lift) if rejected is None else rejected
        return self._outcome(current.number, current.policy.id, report, waits=waits, preview=preview)

    def _outcome(
        self,
        number: int,
        policy_id: str,
        report: UpdateReport,
        *,
        state: State | None = None,
        waits: tuple[Wait, ...] = (),
        elsewhere: bool = False,
        preview: bool = False,
        proposed: bool = False,
    ) -> Advance:
        """The result of an update; there is no state where no policy was made."""
        batch, *late = report.learned or (LearnedBatch(policy_id="", decided=0, learned=0),)
        past = () if state is None else state.past
        numbers = {entry.policy_id: position for position, entry in enumerate(past, 1)}
        rewarded = {count.version: count.rewarded for count in report.batches}
        regret = None if state is None else known_regret(self.description.learner, state)
        return Advance(
            **msgspec.structs.asdict(batch) | {"policy_id": policy_id},
            made=state is not None and not elsewhere and not proposed,
            proposed=proposed,
            changes=report.changes,
            elsewhere=elsewhere,
            preview=preview,
            version=number,
            waits=waits,
            rewarded=rewarded.get(number - (state is not None), 0),
            late={at: rewarded[at] for entry in late if (at := numbers.get(entry.policy_id)) is not None},
            sets=report.sets,
            note=report.note,
            batch_sizes=() if state is None else state.batch_sizes,
            regret=None if regret is None or regret.batches == regret.planned else regret,
            seconds=report.seconds,
            gate=report.gate,
            lift=kept_lift(self.description, report),
        )


def _learned_batch(summary: Summary) -> LearnedBatch:
    """What is kept of what was learned from the decisions of a policy."""
    return LearnedBatch(
        policy_id=summary.policy_id,
        decided=summary.decided,
        learned=summary.rewarded,
        waiting=summary.waiting,
        expired=summary.expired,
        clipped=summary.clipped,
    )


def kept_lift(description: Description, report: UpdateReport) -> Lift | None:
    """The lift as an update has measured it; None where there is no baseline."""
    return None if description.baseline_share is None else report.lift or Lift(reason="no update has measured it yet")


def log_of(
    description: Description,
    store: Store,
    versions: Sequence[Version],
    marks: Marks,
    now: float | None,
    *,
    only: int | None = None,
    held_out: HeldOut | None = None,
) -> StoredLog:
    """The decisions up to the marks, of all policies or of one, with their rewards as they count then."""
    rewards = description.rewards
    return StoredLog(
        store,
        [version.policy for version in versions],
        dim=description.learner.dim,
        upto=marks,
        only=only,
        held_out=held_out,
        window=rewards.window,
        now=now,
        default=rewards.default,
        sums=rewards.sums,
        keeps_records=description.keep_records,
    )


def rejections(store: Store, parent: int) -> list[UpdateReport]:
    """The reports of updates of a version that a gate rejected, the first first."""
    return [msgspec.json.decode(text, type=UpdateReport) for text in store.refusals(parent)]


def progress_of(description: Description, store: Store, versions: tuple[Version, ...], now: float) -> Progress:
    """What schedules look at; batches of policies that have not decided anything are empty."""
    stored, current, state = {count.version: count for count in store.counts()}, versions[-1], versions[-1].state
    none = (Counts(version.number, 0, 0, version.row.time, version.row.time) for version in versions)
    counts = tuple(stored.get(count.version, count) for count in none)
    clock, start = description.learner.clock, state.start + max(1, counts[-1].decisions)
    early = None
    if clock.uses_features and not state.done:  # the decisions that an update would learn from are read
        plan = UpdatePlan(now=now, forecast=None, seen=RewardsSeen(rewards=0, overwritten=0))
        summary = Update(description, store, versions, plan, store.marks()).summary(current)
        early = description.learner.early(state, summary)
    return Progress(
        created=description.created,
        now=now,
        versions=counts,
        published=tuple(version.row.time for version in versions),
        window=description.rewards.window,
        has_default=description.rewards.default is not None,
        planned=state.batch_sizes,
        last=not clock.batch_sizes(state.batch_sizes[1:], batch=state.policies + 1, start=start),
        early=early,
    )


def _changed(versions: Sequence[Version], counts: dict[int, Counts], seen: RewardsSeen) -> list[Version]:
    """Earlier versions of which more is known than when they were learned from last."""
    if len(versions) < 2:
        return []
    last = versions[-1].report
    before = {entry.version: entry for entry in last.batches}
    waiting = {
        entry.policy_id: entry.waiting or entry.held_out for version in versions[1:] for entry in version.report.learned
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
