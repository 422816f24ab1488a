"""Whether a decision is what its frozen policy decides, and whether what was learned once is learned again."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise
from typing import Any, Literal

import numpy as np

from rareswitch.core import ContextSets, encode, keys_of_bytes
from rareswitch.errors import RareswitchError
from rareswitch.experiment.description import Description
from rareswitch.experiment.requests import Requests
from rareswitch.experiment.results import Audit, Relearned, Verification
from rareswitch.experiment.versions import Version
from rareswitch.policy import Policy
from rareswitch.store import DecisionRow, RewardRow, Store

#: How far numbers may be apart by the rounding of another processor, relative to the largest.
CLOSE = 1e-6
#: The most stored requests on which both policies decide.
REQUESTS = 1000
#: Requests that are decided at a time.
AT_ONCE = 50
Verdict = Literal["same", "rounding", "otherwise"]


def audit_decision(
    id: int | str,  # noqa: A002
    stored: tuple[DecisionRow, list[RewardRow]],
    version: Version,
    *,
    seed: int,
    dim: int,
    request: Requests | None,
) -> Audit:
    """Decide again, with the kept context set or with the request that is given again."""
    row, rewards = stored
    verdict: Literal["matches", "differs", "contexts needed", "other contexts"] = "contexts needed"
    policy, recomputed = version.policy, None
    if request is not None:
        if row.baseline is not None:
            request = replace(request, baselines=np.array([row.baseline]))
        if request.identity(0)[-1] != row.digest:
            verdict, request = "other contexts", None
    elif row.contexts is not None:
        request = Requests.of_rows([row], dim)
    if policy.min_propensity is not None and policy.min_propensity.arms is not None:
        # logs of servers need not name the arms, and without it the floor is not known
        request = None if request is None or request.names is None else request
    if request is not None:
        again = request.decide(policy, seed)
        recomputed = int(again.arms.reshape(-1)[0]), float(again.propensities.reshape(-1)[0])
        chosen = request.sets.contexts[0, row.arm_index].tobytes()
        same = recomputed == (row.arm_index, row.propensity) and chosen == row.features
        verdict = "matches" if same else "differs"
    return Audit(
        id=id,
        verdict=verdict,
        arm=row.arm,
        propensity=row.propensity,
        policy_id=version.policy.id,
        version=row.version,
        time=row.time,
        rewards={reward.event: reward.value for reward in rewards},
        deferred=row.deferred is not None,
        activated=row.activated,
        recomputed=recomputed,
    )


def verify_versions(description: Description, versions: Sequence[Version], store: Store) -> Verification:
    """Learn everything again from the summaries that each policy was learned from.

    A policy that is the same up to rounding decides again on requests whose context sets the store has kept: of the
    batch that it was learned from and of its own.
    """
    learner = description.learner
    state = description.begin(next(iter(versions[0].summaries), None))
    relearned = [compared(versions[0].policy, state.policy, description, store, versions[0].number)]
    for before, version in pairwise(versions):
        try:
            batch, *late = version.summaries
            forecast = None if version.report.plan is None else version.report.plan.forecast
            state = learner.next(replace(state, policy=before.policy), batch, late=late, forecast=forecast)
            relearned.append(compared(version.policy, state.policy, description, store, version.number))
        except (RareswitchError, ArithmeticError, ValueError, LookupError) as error:
            relearned.append(Relearned(policy_id=version.policy.id, verdict="otherwise", reason=str(error)))
            break
    stored_sums = versions[-1].state.sums
    sums = alike(*([(s.gram, s.moment, s.count, s.square_sum) for s in of] for of in (stored_sums, state.sums)))
    return Verification(policies=tuple(relearned), sums=sums, version=description.version, faults=tuple(store.faults()))


def compared(published: Policy, learned: Policy, description: Description, store: Store, number: int) -> Relearned:
    """The policy with this number, as it was published, against the one that is learned now."""
    if published.id == learned.id:
        return Relearned(policy_id=published.id, verdict="same")
    if not alike(encode(published), encode(learned)):
        return Relearned(policy_id=published.id, verdict="otherwise")
    marks = store.marks()
    stored = chain.from_iterable(store.sample(version, marks) for version in (number - 1, number) if version)
    requests = list(islice(stored, REQUESTS))
    differing = _differing(published, learned, requests, seed=description.seed)
    verdict: Verdict = "otherwise" if differing else "rounding"
    return Relearned(policy_id=published.id, verdict=verdict, decisions=len(requests), differing=differing)


def _differing(published: Policy, learned: Policy, requests: Sequence[tuple[bytes, bytes]], *, seed: int) -> int:
    """The number of requests, keys and context sets as stored, on which two policies choose different arms."""
    # of baselines and of the names of arms a sample tells nothing: both policies get the same in their place
    published, learned = (replace(policy, min_propensity=None, holdout=None) for policy in (published, learned))
    differing = 0
    for first in range(0, len(requests), AT_ONCE):
        keys, vectors = zip(*requests[first : first + AT_ONCE], strict=True)
        sets = ContextSets.from_ragged(
            [np.frombuffer(data, dtype="<f8").reshape(-1, published.dim) for data in vectors]
        )
        ids, baseline = keys_of_bytes(b"".join(keys), len(keys)), np.zeros(len(keys), dtype=np.int64)
        stored, anew = (
            policy.decide(sets.contexts, sets.available, ids=ids, seed=seed, baseline=baseline)
            for policy in (published, learned)
        )
        differing += int(np.count_nonzero(stored.arms != anew.arms))
    return differing


def alike(left: Any, right: Any) -> bool:
    """Whether two things, taken apart into plain data and arrays, differ by rounding alone."""
    if isinstance(left, np.ndarray):
        return left.shape == right.shape and bool(
            (np.abs(left - right) <= CLOSE * np.abs(right).max(initial=0.0)).all()
        )
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(alike(left[k], right[k]) for k in left)
    if isinstance(left, (list, tuple)):
        return type(left) is type(right) and len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=CLOSE)
    return type(left) is type(right) and bool(left == right)
