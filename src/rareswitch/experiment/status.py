"""Where an experiment stands, and whether contexts look unlike those that its policy was learned from."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from rareswitch.core import ContextSets, FloatArray, Sets, Stats, context_sets, inverse_root
from rareswitch.experiment.description import Description
from rareswitch.experiment.results import BatchStatus, Novelty, Status
from rareswitch.experiment.update import kept_lift, progress_of, rejections
from rareswitch.experiment.versions import Version
from rareswitch.learner import State
from rareswitch.planning import DAY, MinPropensityPrice, Progress, min_propensity_price
from rareswitch.store import Store

#: Context sets by which novelty is measured.
LOOKED_AT = 200
#: A value beyond this is unlike: in worlds where nothing changes it stays below, and groups of users that were never
#: seen before exceed it many times over.
THRESHOLD = 2.0
#: Standard errors by which the value must exceed it: a few odd sets are no change.
ERRORS = 3.0


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
        min_propensity=_floor(description, sample, progress),
        warm_start=description.warm_start,
        due=due.now,
        waits=() if due.now else due.waits,
        started=store.started(current.number),
        waiting=0 if rewards.window is None else store.younger(now - rewards.window),
        unmatched=totals.unmatched,
        repeated_rewards=totals.repeated_rewards,
        overwritten=totals.overwritten,
        clipped=0 if rewards.clip is None else _clipped(versions),
        repeated_decisions=totals.repeated_decisions,
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
    known = [end for end in ends if end is not None]
    return min_propensity_price(
        min_propensity,
        arms=arms,
        ends=known if len(known) == len(ends) else None,
        dim=learner.dim,
        before=progress.before,
        now=progress.total,
    )


def _sample(description: Description, store: Store, version: int) -> list[FloatArray]:
    """Some context sets (K, d) that a policy met."""
    sets = islice(store.sample(version, store.marks()), LOOKED_AT)
    return [np.frombuffer(data, dtype="<f8").reshape(-1, description.learner.dim) for _, data in sets]


def novelty(state: State, contexts: ContextSets | npt.ArrayLike, available: npt.ArrayLike | None = None) -> Novelty:
    """How uncertain the current policy's choices are on these sets, beside those that it was learned from.

    It is the mean of xᵀΛ⁻¹x over the arms that the policy plays, times n/d: with n decisions behind the Gram matrix Λ
    it is 1 for decisions like those, whatever the features. Rewards play no part.

    Parameters
    ----------
    state
        With the policy that decides now, and the sums that it was learned from.
    contexts, available
        Context sets (n, K, d) that it meets now, and their mask.

    Examples
    --------
    >>> from rareswitch.learner import Foresight, Rows
    >>> learner = Foresight(dim=2)
    >>> state = learner.begin()
    >>> x = np.random.default_rng(1).standard_normal((400, 3, 2)) * [1.0, 0.01]      # the second hardly varies
    >>> made = state.policy.decide(x, ids=range(400), seed=1)
    >>> rows = Rows.of(x, made, x[np.arange(400), made.arms, 0])
    >>> state = learner.next(state, learner.summarize(state, rows))
    >>> novelty(state, x).unlike, novelty(state, x[:, :, ::-1]).unlike               # and then it does
    (False, True)
    """
    sets = context_sets(contexts, available)
    count = sum(sums.count for sums in state.sums)
    if not count:
        return Novelty(value=1.0, unlike=False)
    policy = replace(state.policy, min_propensity=None)  # what it plays by its own choice
    shares = np.atleast_2d(policy.probabilities(Sets(sets.contexts, sets.available, False)))
    values = (shares * _leverages(sets, state.sums)).sum(axis=1) * count / state.policy.dim
    value, error = float(values.mean()), float(values.std()) / math.sqrt(len(values))
    return Novelty(value=value, unlike=value - ERRORS * error > THRESHOLD)


def _leverages(sets: Sets, sums: tuple[Stats, ...]) -> FloatArray:
    """(n, K) xᵀΛ⁻¹x, where Λ has the weight of one decision more in every direction."""
    x = sets.contexts
    dim = x.shape[2]  # without a level, which has no unit of the features
    gram = np.sum([stats.gram[:dim, :dim] for stats in sums], axis=0)
    count = sum(stats.count for stats in sums)
    ridge = max(float(np.trace(gram)) / (count * len(gram)), np.finfo(float).tiny)
    root = inverse_root(gram + ridge * np.eye(len(gram)))
    return np.asarray(np.square(x @ root.T).sum(axis=2))
