"""Updates of an experiment: when one is made, what is frozen of it, and how it is published."""

import json
import math
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rareswitch.errors import FileFormatError, RareswitchError, StoreError, several
from rareswitch.experiment.advance import Advance, advance_of, seen_in
from rareswitch.experiment.counted import OVER, ByHand, Planned
from rareswitch.experiment.description import Description
from rareswitch.experiment.gate import GROWTH, Gate, GateReport, gate_of, judge, linear_model
from rareswitch.experiment.learning import Learned, learn, rewards_seen
from rareswitch.experiment.lift import kept_lift, measured_lift
from rareswitch.experiment.schedule import unlearnable
from rareswitch.experiment.status import progress_of
from rareswitch.experiment.versions import Version, plan_from_text, plan_to_text, version_row
from rareswitch.files import canonical_json
from rareswitch.learner import Forecast, State
from rareswitch.log import DecisionLog, HeldOut, StoredLog
from rareswitch.policy import Key
from rareswitch.store import Marks, Store

Versions = tuple[Version, ...]


@dataclass(frozen=True, eq=False)
class Updating:
    """Makes the updates of one experiment; several processes may."""

    store: Store
    description: Description
    #: A policy that was published, by its number.
    version: Callable[[int], Version]
    #: Digest of the description.
    experiment: str
    #: Signs what is published.
    key: Key | None

    def advance(
        self, known: Versions, *, now: float, forecast: Forecast | None, force: bool, gate: Any, **how: Any
    ) -> Advance:
        """Publish the next policy after those that are known, if it is due and the gate lets it pass."""
        current, gated = known[-1], gate_of(gate, self.description.learner)
        if self.store.head() == current.number:
            schedule = self.description.schedule
            progressed = progress_of(self.description, self.store, known, now)
            due = schedule.due(progressed)
            over = isinstance(schedule, Planned) and progressed.over
            asked = due.now or force or isinstance(schedule, ByHand) or (over and forecast is not None)
            waits = () if asked else due.waits
            if gated is not None and not force and not waits:
                waits = self._again(current, progressed.versions[-1].decisions)
            if waits and not self.store.started(current.number):  # one that was begun is brought to its end
                return self._not_made(current, waits)
            plan = self._plan(now, schedule.forecast(progressed) if forecast is None else forecast, gated)
            started = self._start(current.number, plan)
            if started is not None and gated is not None and "gate" not in started[0]:
                self.store.abandon_update(current.number)  # it was begun without the gate that is asked for
                started = self._start(current.number, plan)
            if started is not None:
                return self._advance(known, *started, **how)
        return self._advanced(current.number + 1, elsewhere=True)

    def _start(self, parent: int, plan: dict[str, Any]) -> tuple[dict[str, Any], Marks] | None:
        """The plan and the marks of the update after policy ``parent``: these, or those of one that was begun.

        A plan that was not frozen so, by who has the key, is discarded: nothing was published by it.
        """
        frozen = plan_to_text(plan, parent, experiment=self.experiment, key=self.key)
        started = self.store.start_update(parent, frozen)
        if started is None:
            return None
        text, marks = started
        try:
            return plan_from_text(text, parent, experiment=self.experiment, key=self.key), marks
        except FileFormatError as error:
            self.store.abandon_update(parent)
            raise FileFormatError(
                f"the plan of the update that was begun after policy {parent} is refused: {error} It was damaged or "
                "edited in the store, and is discarded now. Advance again to plan the update anew."
            ) from error

    def _advance(self, known: Versions, frozen: dict[str, Any], marks: Marks, **how: Any) -> Advance:
        current = known[-1]
        gate, refused = None, 0
        try:
            learned = self._learn(known, marks, frozen, **how)
            if "gate" in frozen and not learned.state.done:
                gate, refused = self._judge(known, marks, frozen, learned.state)
        except StoreError:
            raise  # it goes on with what was frozen when the store is back
        except RareswitchError:
            self.store.abandon_update(current.number)  # so that the next call looks at what has come since
            raise
        if learned.state.done:
            self.store.abandon_update(current.number)
            return self._not_made(current, (OVER,))
        report = learned.report | {"marks": list(marks), "plan": frozen, "seconds": round(learned.seconds, 3)}
        report |= self._lift(known, marks, frozen["now"])
        if gate is not None:
            report["gate"] = gate.to_plain()
            if not gate.promoted:
                self.store.refuse_update(current.number, refused + 1, canonical_json(report).decode())
                if self.store.head() == current.number:
                    return self._refused(current, gate, report)
                return self._advanced(current.number + 1, elsewhere=True)  # who looked again meanwhile let one pass
        report["by"] = secrets.token_hex(8)  # of two that learned the same, it tells who published
        row = version_row(
            current.number + 1,
            learned.state,
            experiment=self.experiment,
            summaries=learned.data,
            report=report,
            time=frozen["now"],
            key=self.key,
        )
        published = self.store.publish(row)
        return self._advanced(row.number, elsewhere=published != row)

    def preview(
        self, known: Versions, *, now: float, forecast: Forecast | None, gate: Any, executor: Executor | None
    ) -> Advance:
        """What an update made now would do; nothing is changed."""
        return replace(self._preview(known, now=now, forecast=forecast, gate=gate, executor=executor), preview=True)

    def _preview(
        self, known: Versions, *, now: float, forecast: Forecast | None, gate: Any, executor: Executor | None
    ) -> Advance:
        current, gated = known[-1], gate_of(gate, self.description.learner)
        progressed = progress_of(self.description, self.store, known, now)
        if not progressed.versions[-1].decisions:
            return self._not_made(current, unlearnable(progressed))
        foreseen = self.description.schedule.forecast(progressed)
        frozen, marks = self._plan(now, foreseen if forecast is None else forecast, gated), self.store.marks()
        learned = self._learn(known, marks, frozen, executor=executor)
        if learned.state.done:
            return self._not_made(current, (OVER,))
        report = learned.report | {"seconds": learned.seconds} | self._lift(known, marks, now)
        if gated is not None:
            found, _ = self._judge(known, marks, frozen, learned.state)
            report["gate"] = found.to_plain()
            if not found.promoted:
                return self._refused(current, found, report)
        return self._told(advance_of(self.description.learner, current.number + 1, learned.state, report), report)

    # what is frozen, and what comes of it

    def _plan(self, moment: float, forecast: Forecast | None, gate: Gate | None) -> dict[str, Any]:
        """What is frozen of an update beside the marks."""
        plan = {"now": moment, "forecast": _plain(forecast), "seen": rewards_seen(self.description, self.store)}
        return plan if gate is None else plan | {"gate": asdict(gate)}

    def _learn(self, known: Versions, marks: Marks, frozen: dict[str, Any], **how: Any) -> Learned:
        return learn(self.description, known, self.store, marks, **frozen, **how)

    def _again(self, current: Version, decisions: int) -> tuple[str, ...]:
        """What the gate waits for after it refused a policy of this batch: each look costs some of its level."""
        refused = self.store.refusals(current.number)
        if not refused:
            return ()
        before = json.loads(refused[-1])["learned"][0]["decided"]
        needed = math.ceil(GROWTH * before)
        if decisions >= needed:
            return ()
        return (
            f"{several(needed - decisions, 'more decision')}: the gate refused a policy after {before:,}, and looks "
            f"again after {needed:,}",
        )

    def _judge(self, known: Versions, marks: Marks, frozen: dict[str, Any], state: State) -> tuple[GateReport, int]:
        """What the decisions that were held out say of the policy that was learned, and how many were refused before.

        While an update is under way nobody adds to these, so that after a crash it is the same look again.
        """
        gate, current = Gate(**frozen["gate"]), known[-1]
        refused = [GateReport.from_plain(json.loads(one)["gate"]) for one in self.store.refusals(current.number)]
        found = judge(
            gate,
            self._held_out(gate.held_out(self.description.context_sample_rate), known, marks, frozen["now"]),
            candidate=state.policy,
            incumbent=current.policy,
            predict=linear_model(self.description.learner, state),
            look=1 + sum(one.answered for one in refused),
        )
        return found, len(refused)

    def _held_out(self, which: HeldOut, known: Versions, marks: Marks, now: float) -> Iterator[DecisionLog]:
        """The decisions of the current policy that were held out."""
        for log in self.logged(known, marks, now, only=known[-1].number).chunks(contexts=True):
            among = which.among(log.ids)
            if among.any():
                yield log.select(among)

    def _lift(self, known: Versions, marks: Marks, now: float) -> dict[str, Any]:
        """For the report: what was earned more than the baseline would have, where requests name one."""
        if self.description.baseline_share is None:
            return {}
        return {"lift": measured_lift(self.logged(known, marks, now), now).to_plain()}

    def logged(self, known: Versions, marks: Marks, now: float, *, only: int | None = None) -> StoredLog:
        """The decisions up to the marks, of all policies or of one, with their rewards as they count then."""
        told, policies = self.description.rewards, [one.policy for one in known]
        return StoredLog(
            self.store,
            policies,
            dim=self.description.learner.dim,
            upto=marks,
            only=only,
            window=told.window,
            now=None if told.window is None else now,
            default=told.default,
            sums=told.sums,
        )

    # what is told

    def _advanced(self, number: int, *, elsewhere: bool) -> Advance:
        made = self.version(number)
        told = advance_of(self.description.learner, number, made.state, made.report, elsewhere=elsewhere)
        return self._told(told, made.report)

    def _refused(self, current: Version, gate: GateReport, report: dict[str, Any]) -> Advance:
        """What is told of an update that a gate refused."""
        outcome = replace(self._not_made(current, ()), gate=gate, **seen_in(report), seconds=report["seconds"])
        return self._told(outcome, report)

    def _not_made(self, current: Version, waits: tuple[str, ...]) -> Advance:
        outcome = Advance(made=False, version=current.number, policy_id=current.policy.id, waits=waits)
        return self._told(outcome, current.report)

    def _told(self, outcome: Advance, report: dict[str, Any]) -> Advance:
        """An outcome with the lift over the baseline, as a report has it."""
        return replace(outcome, lift=kept_lift(report, baseline=self.description.baseline_share is not None))


def _plain(forecast: Forecast | None) -> Any:
    return None if forecast is None else np.asarray(forecast).astype(np.int64).tolist()
