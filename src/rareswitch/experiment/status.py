"""Where an experiment stands."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import several
from rareswitch.experiment.choice import caution_text
from rareswitch.experiment.description import Description
from rareswitch.experiment.early import early_update
from rareswitch.experiment.gate import GateReport
from rareswitch.experiment.lift import Lift, kept_lift
from rareswitch.experiment.min_propensity_price import min_propensity_price
from rareswitch.experiment.moments import minute_text
from rareswitch.experiment.novelty import novelty
from rareswitch.experiment.progress import Progress
from rareswitch.experiment.schedule import DAY
from rareswitch.experiment.versions import Version
from rareswitch.store import Counts, Store
from rareswitch.validation import FloatArray

#: Context sets by which novelty is measured.
LOOKED_AT = 200
#: Fields that were not as described, of which the text tells.
MOST_FIELDS = 20


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The decisions of one policy."""

    version: int
    policy_id: str
    #: Seconds since 1970.
    published: float
    decisions: int
    #: Those with a reward.
    rewarded: int


@dataclass(frozen=True, kw_only=True)
class Status:
    """What was decided and earned, what is missing, and what the next update waits for. Prints as text."""

    name: str
    url: str
    learner: str
    schedule: str
    rewards: str
    #: By policy, the current one last.
    batches: tuple[Batch, ...]
    #: What the schedule costs by the model of the regret, in words; '' where the model cannot tell.
    price: str
    #: What the least probability of arms costs, in words; '' where there is none.
    min_propensity: str
    #: The log that the first policy was learned from, in words; '' where there is none.
    start: str
    #: What the next update waits for; none: it is due.
    waits: tuple[str, ...]
    #: Whether an update was begun and not finished; it goes on where it was.
    started: bool
    #: Decisions of the current policy whose attribution window is open.
    waiting: int
    #: Rewards whose decision has not come.
    unmatched: int
    #: Rewards that came again with the same value.
    repeated_rewards: int
    #: Rewards that took the place of others.
    overwritten: int
    #: Rewards that were clipped by updates.
    clipped: int
    #: Decisions that were asked for again.
    repeated_decisions: int
    #: How unlike the contexts are to those that the policy was learned from, in words; '' while nothing is known.
    novelty: str = ""
    #: Why the learner asks for an update before the batch was to end, in words; '' where it does not.
    early: str = ""
    #: Decisions whose records were not as described, by field and by what was not: missing, extra, unknown, clipped,
    #: or of the arms spare or shared.
    fields: dict[str, dict[str, int]] = field(default_factory=dict)
    #: What was earned more than the baseline would have, as of the last update.
    lift: Lift | None = None
    #: What the gate said of the policies that it refused in this batch.
    refused: tuple[GateReport, ...] = ()

    @property
    def due(self) -> bool:
        """Whether the next update can be made."""
        return not self.waits

    @property
    def decisions(self) -> int:
        """Of all policies."""
        return sum(batch.decisions for batch in self.batches)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self) | {"due": self.due, "decisions": self.decisions}

    def __str__(self) -> str:
        lines = [
            *([] if self.lift is None else [str(self.lift), ""]),
            f"{self.name}: {self.learner}, updated {self.schedule}",
            *([f"These times cost {self.price}."] if self.price else []),
            *([f"{self.min_propensity[0].upper()}{self.min_propensity[1:]}."] if self.min_propensity else []),
            *([f"The first policy was learned from {self.start}."] if self.start else []),
            f"rewards: {self.rewards}",
            "",
            "policy  published (UTC)   decisions  rewarded",
        ]
        lines += [
            f"{one.version:6}  {minute_text(one.published):16}  {one.decisions:9,}  {one.rewarded:8,}"
            + ("  decides now" if one is self.batches[-1] else "")
            for one in self.batches
        ]
        lines.append("")
        for count, noun, what in (
            (self.waiting, "decision", "whose attribution window is open"),
            (self.unmatched, "reward", "whose decision has not come"),
            (self.repeated_rewards, "reward", "sent again, and counted once"),
            (self.overwritten, "reward", "in place of another"),
            (self.clipped, "reward", "clipped by updates"),
            (self.repeated_decisions, "decision", "asked for again, and answered as before"),
        ):
            if count:
                lines.append(f"{several(count, noun)} {what}")
        lines += self._fields()
        if self.novelty:
            lines.append(self.novelty)
        if self.early:
            hand = "" if self.due else " (advance with force=True)"
            lines.append(f"The learner asks for an update before its time{hand}: {self.early}.")
        lines += [f"The gate refused an update. It was {one}" for one in self.refused]
        if self.started:
            lines.append("An update was begun and did not end; the next one goes on with what it had frozen.")
        if self.due:
            return "\n".join([*lines, "The next update is due."])
        return "\n".join([*lines, *(f"The next update waits for {what}." for what in self.waits)])

    def _fields(self) -> list[str]:
        """Fields that were not as described, those of most decisions first."""
        counts = [(count, name, what) for name, kinds in self.fields.items() for what, count in kinds.items()]
        lines = [
            f"{several(count, 'decision')} {caution_text(name, what)}"
            for count, name, what in sorted(counts, key=lambda one: (-one[0], one[1:]))[:MOST_FIELDS]
        ]
        more = len(counts) - len(lines)
        return [*lines, *([f"{several(more, 'more field')} not as described"] if more else [])]


def progress_of(told: Description, store: Store, versions: Sequence[Version], now: float) -> Progress:
    """What schedules look at."""
    return _progress(told, store, _counts(store, versions), versions, now)


def _progress(
    told: Description, store: Store, counts: Sequence[Counts], versions: Sequence[Version], now: float
) -> Progress:
    if told.rewards.default is not None:
        counts = [one._replace(rewarded=one.decisions) for one in counts]
    state = versions[-1].state
    start = state.start + max(1, counts[-1].decisions)
    return Progress(
        created=told.created,
        now=now,
        versions=tuple(counts),
        published=tuple(one.row.time for one in versions),
        window=told.rewards.window,
        planned=state.batch_sizes,
        last=not told.learner.clock.batch_sizes(
            state.batch_sizes[1:], batch=state.policies + 1, start=start, width=1.0
        ),
        early=early_update(told, store, versions[-1], now=now),
    )


def status_of(told: Description, store: Store, versions: Sequence[Version], *, now: float) -> Status:
    """Where an experiment stands."""
    counts, totals, window = _counts(store, versions), store.totals(), told.rewards.window
    progress = _progress(told, store, counts, versions, now)
    due, daily = told.schedule.due(progress), None if progress.rate is None else DAY * progress.rate
    daily = getattr(told.schedule, "rate", None) if daily is None else daily
    delay = (window or 0.0) if daily is not None else 0.0
    price = told.schedule.price(dim=told.learner.dim, rate=daily, delay=delay, created=told.created)
    return Status(
        name=told.name,
        url=store.url,
        learner=told.learner.name,
        schedule=str(told.schedule),
        price="" if price is None else str(price),
        min_propensity=_floor(told, store, versions[-1], progress),
        start="" if told.warm is None else str(told.warm),
        rewards=str(told.rewards),
        batches=tuple(
            Batch(
                version=one.number,
                policy_id=one.policy.id,
                published=one.row.time,
                decisions=count.decisions,
                rewarded=count.rewarded,
            )
            for one, count in zip(versions, counts, strict=True)
        ),
        waits=() if due.now else due.waits,
        started=store.started(versions[-1].number),
        waiting=0 if window is None else store.younger(now - window),
        unmatched=totals.unmatched,
        repeated_rewards=totals.repeated_rewards,
        overwritten=totals.overwritten,
        clipped=0 if told.rewards.clip is None else _clipped(versions),
        repeated_decisions=totals.repeated_decisions,
        novelty=_novelty(told, store, versions[-1]),
        early=progress.early,
        fields=_by_field(store.cautions()),
        lift=kept_lift(versions[-1].report, baseline=told.baseline_share is not None),
        refused=tuple(GateReport.from_plain(json.loads(one)["gate"]) for one in store.refusals(versions[-1].number)),
    )


def _by_field(cautions: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    fields: dict[str, dict[str, int]] = {}
    for (name, what), count in sorted(cautions.items()):
        fields.setdefault(name, {})[what] = count
    return fields


def _clipped(versions: Sequence[Version]) -> int:
    """Rewards that were clipped, by what each batch came to when it was learned from last."""
    entries = (entry for version in versions[1:] for entry in version.report["learned"])
    return sum({entry["policy"]: int(entry["clipped"]) for entry in entries}.values())


def _counts(store: Store, versions: Sequence[Version]) -> list[Counts]:
    """Of each version, also of those that have not decided anything."""
    told = {one.version: one for one in store.counts()}
    return [told.get(one.number, Counts(one.number, 0, 0, one.row.time, one.row.time)) for one in versions]


def _floor(told: Description, store: Store, current: Version, progress: Progress) -> str:
    """The minimum propensity and its price, in words."""
    if told.min_propensity is None:
        return ""
    if told.min_propensity.arms is not None:
        arms: float | None = len(told.min_propensity.arms)
    else:
        sizes = [len(vectors) for vectors in _sample(told, store, current.number)]
        fixed = None if told.features is None or told.features.arms is None else len(told.features.arms.ids)
        arms = sum(sizes) / len(sizes) if sizes else told.learner.arms or fixed
    if arms is None or told.min_propensity.least * arms > 1.0:
        return f"minimum propensity of {told.min_propensity}"
    ends = [end.decisions for end in told.schedule.ends(progress)]
    known = [end for end in ends if end is not None]
    whole = known if len(known) == len(ends) else None
    dim, before, now = told.learner.dim, progress.before, progress.total
    return str(min_propensity_price(told.min_propensity, arms=arms, ends=whole, dim=dim, before=before, now=now))


def _sample(told: Description, store: Store, version: int) -> list[FloatArray]:
    """Some context sets (K, d) that a policy met."""
    kept = islice(store.sample(version, store.marks()), LOOKED_AT)
    return [np.frombuffer(data, dtype="<f8").reshape(-1, told.learner.dim) for _, data in kept]


def _novelty(told: Description, store: Store, current: Version) -> str:
    """Whether contexts are unlike those that the policy was learned from, in words."""
    if current.number == 1:
        return ""
    vectors = _sample(told, store, current.number)
    return str(novelty(current.state, ContextSets.from_ragged(vectors))) if vectors else ""
