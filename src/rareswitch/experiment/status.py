"""Where an experiment stands."""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from rareswitch.core import ContextSets, FloatArray
from rareswitch.experiment.description import Description
from rareswitch.experiment.results import BatchStatus, Status
from rareswitch.experiment.update import kept_lift, progress_of, rejections
from rareswitch.experiment.versions import Version
from rareswitch.learner import novelty
from rareswitch.planning import DAY, MinPropensityPrice, Progress, min_propensity_price
from rareswitch.store import Store

#: Context sets by which novelty is measured.
LOOKED_AT = 200


def status_of(description: Description, store: Store, versions: tuple[Version, ...], *, now: float) -> Status:
    """Where an experiment stands."""
    totals, rewards, schedule, current = store.totals(), description.rewards, description.schedule, versions[-1]
    progress = progress_of(description, store, versions, now)
    due, daily = schedule.due(progress), None if progress.rate is None else DAY * progress.rate
    sample = _sample(description, store, current.number)
    fields: dict[str, dict[str, int]] = {}
    for (name, what), count in sorted(store.cautions().items()):
        fields.setdefault(name, {})[what] = count
    return Status(
        name=description.name,
        url=store.url,
        learner=description.learner.name,
        schedule=str(schedule),
        rewards=rewards,
        batches=tuple(
            BatchStatus(
                version=version.number,
                policy_id=version.policy.id,
                published=version.row.time,
                decisions=count.decisions,
                rewarded=count.rewarded,
            )
            for version, count in zip(versions, progress.versions, strict=True)
        ),
        decisions=progress.total,
        price=schedule.price(
            dim=description.learner.dim, rate=daily, delay=rewards.window or 0.0, created=description.created
        ),
        planned=schedule.table(progress),
        holdout=description.holdout,
        min_propensity=_floor(description, sample, progress),
        warm_start=description.warm_start,
        ended=store.ended(),
        due=due.now,
        waits=() if due.now else due.waits,
        started=store.started(current.number),
        waiting=0 if rewards.window is None else store.younger(now - rewards.window),
        unmatched=totals.unmatched,
        repeated_rewards=totals.repeated_rewards,
        overwritten=totals.overwritten,
        clipped=0 if rewards.clip is None else _clipped(versions),
        repeated_decisions=totals.repeated_decisions,
        deferred=totals.deferred,
        novelty=novelty(current.state, ContextSets.from_ragged(sample)) if sample and current.number > 1 else None,
        early=progress.early,
        fields=fields,
        lift=kept_lift(description, current.report),
        rejected=tuple(report.gate for report in rejections(store, current.number) if report.gate is not None),
    )


def _clipped(versions: Sequence[Version]) -> int:
    """Rewards that were clipped, by what each batch came to when it was learned from last."""
    entries = (entry for version in versions[1:] for entry in version.report.learned)
    return sum({entry.policy_id: entry.clipped for entry in entries}.values())


def _floor(description: Description, sample: list[FloatArray], progress: Progress) -> MinPropensityPrice | None:
    """The least probability of arms and its price."""
    min_propensity, features, learner = description.min_propensity, description.features, description.learner
    if min_propensity is None:
        return None
    if min_propensity.arms is not None:
        arms: float | None = len(min_propensity.arms)
    elif sample:
        arms = sum(map(len, sample)) / len(sample)
    else:
        arms = learner.arms or (None if features is None or features.arms is None else len(features.arms.ids))
    if arms is None or min_propensity.least * arms > 1.0:
        return MinPropensityPrice(least=min_propensity.least, only=min_propensity.arms)
    ends = [end.decisions for end in description.schedule.ends(progress)]
    daily = None if progress.rate is None else DAY * progress.rate
    known = [end for end in ends if end is not None]
    return min_propensity_price(
        min_propensity,
        arms=arms,
        ends=known if len(known) == len(ends) else None,
        dim=learner.dim,
        before=progress.before,
        now=progress.total,
        delay=description.schedule.late(daily, description.rewards.window or 0.0),
        curve=description.schedule.curve,
    )


def _sample(description: Description, store: Store, version: int) -> list[FloatArray]:
    """Some context sets (K, d) that a policy met."""
    sets = islice(store.sample(version, store.marks()), LOOKED_AT)
    return [np.frombuffer(data, dtype="<f8").reshape(-1, description.learner.dim) for _, data in sets]
