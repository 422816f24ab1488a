"""The update of an experiment: what is read up to the frozen marks, and what is learned from it."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from rareswitch.errors import BatchError
from rareswitch.experiment.description import Description
from rareswitch.experiment.gate import Gate
from rareswitch.experiment.versions import Version
from rareswitch.learner import Forecast, State, Summary, summaries_to_bytes
from rareswitch.log import HeldOut, StoredBatch, check_newest, summarize
from rareswitch.store import Counts, Marks, Store

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Learned:
    """What an update comes to."""

    state: State
    #: Of the batch that ended, then of earlier ones with rewards that came late.
    summaries: tuple[Summary, ...]
    #: For the report that is kept.
    report: dict[str, Any]
    seconds: float

    @property
    def data(self) -> bytes:
        """The summaries as they are kept."""
        return summaries_to_bytes(list(self.summaries))


def rewards_seen(description: Description, store: Store) -> dict[str, int]:
    """What tells that rewards of decisions that had some have changed; taken before an update freezes its marks.

    What comes between the two is looked at again by the next update; if it came after them, it would be missed.
    """
    totals = store.totals()
    return {"rewards": totals.rewards if description.rewards.sums else 0, "overwritten": totals.overwritten}


def learn(
    description: Description,
    versions: Sequence[Version],
    store: Store,
    marks: Marks,
    *,
    now: float,
    forecast: Forecast | None,
    seen: dict[str, int],
    gate: dict[str, Any] | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Learned:
    """The state after the current batch, of the decisions and rewards up to the marks, less what a gate holds out."""
    began = time.perf_counter()
    learner, rewards, current = description.learner, description.rewards, versions[-1]
    counts = {one.version: one for one in store.counts(marks)}
    check_newest(store, max(counts, default=0), current.number)

    def summary(version: Version, leave_out: HeldOut | None = None) -> Summary:
        return summarize(
            learner,
            current.state,
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

    if current.number not in counts:
        raise BatchError(
            f"policy {current.number} has not decided anything yet: there is nothing to learn from. It can go on."
        )
    batch = summary(current, None if gate is None else Gate(**gate).held_out(description.context_sample_rate))
    decided = counts[current.number].decisions
    held_out, batch = decided - batch.decided, replace(batch, decided=decided)  # what is held out is not known yet
    wanted = learner.sample_size(current.state)
    if wanted and batch.sample is None and forecast != 0:
        raise BatchError(
            f"{learner.name} plans with the context sets of {min(wanted, batch.decided)} of these decisions, and none "
            f"were kept: context_sample_rate={description.context_sample_rate:g}. Let the policy go on until "
            "some are, or create the experiment with a larger share."
        )
    late = [summary(version) for version in _changed(versions, counts, seen)]
    state = learner.next(current.state, batch, late=late, forecast=forecast)
    summaries = (batch, *late)
    report: dict[str, Any] = {
        "batches": [
            {"version": number, "decisions": one.decisions, "rewarded": one.rewarded} for number, one in counts.items()
        ],
        "seen": seen,
        "learned": [
            {
                "policy": one.policy_id,
                "decided": one.decided,
                "rewarded": one.rewarded,
                "waiting": one.waiting,
                "expired": one.expired,
                "clipped": one.clipped,
            }
            for one in summaries
        ],
        "sets": 0 if batch.sample is None else len(batch.sample),
        "note": dict(state.notes[-1]) if len(state.notes) > len(current.state.notes) else {},
    }
    if gate is not None:
        report["learned"][0]["held_out"] = held_out
    return Learned(state=state, summaries=summaries, report=report, seconds=time.perf_counter() - began)


def _changed(versions: Sequence[Version], counts: dict[int, Counts], seen: dict[str, int]) -> list[Version]:
    """Earlier versions of which more is known than when they were learned from last."""
    if len(versions) < 2:
        return []
    last = versions[-1].report
    before = {entry["version"]: entry for entry in last["batches"]}
    waiting = {
        entry["policy"]: entry["waiting"] or entry.get("held_out")
        for version in versions[1:]
        for entry in version.report["learned"]
    }  # as of the last time that each was learned from
    found = []
    for version in versions[:-1]:
        now, then = counts.get(version.number), before.get(version.number)
        if now is None or then is None:
            continue
        same = (now.decisions, now.rewarded) == (then["decisions"], then["rewarded"]) and seen == last["seen"]
        if not same or waiting.get(version.policy.id):
            found.append(version)
    return found
