"""Whether what was learned once is learned again, and decides the same."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice, pairwise
from typing import Any, Literal

import numpy as np

from rareswitch import codec
from rareswitch.contexts import ContextSets
from rareswitch.errors import RareswitchError
from rareswitch.experiment.description import Description
from rareswitch.experiment.versions import Version
from rareswitch.ids import keys_of_bytes
from rareswitch.policy import Policy
from rareswitch.store import Store
from rareswitch.version import __version__

#: How far numbers may be apart by the rounding of another processor, relative to the largest.
CLOSE = 1e-6
#: The most stored requests on which both policies decide.
REQUESTS = 1000
#: How many of them are decided at a time.
AT_ONCE = 50


@dataclass(frozen=True, kw_only=True)
class Relearned:
    """What learning again says about one policy of an experiment, given those before it as they are."""

    policy_id: str
    verdict: Literal["same", "rounding", "otherwise"]
    #: Why it would be learned otherwise, where nothing is learned at all or decisions differ.
    reason: str = ""
    #: Stored requests on which a policy that is the same up to rounding was compared: its arm was the same in all.
    decisions: int = 0


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What learning again from the summaries of an experiment gives, policy by policy. Prints as text.

    >>> from rareswitch.experiment import create
    >>> print(create("memory:", "spring", dim=2).verify())
    policy 1, ...: the same policy is learned again
    Everything is learned again from the summaries.
    """

    #: The first one included, which nothing was learned for.
    policies: tuple[Relearned, ...]
    #: Whether the sums that the experiment goes on with are those of its summaries.
    sums: bool
    #: Of rareswitch, with which it was created.
    version: str
    #: What is damaged in the files of the store.
    faults: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether everything is learned again."""
        return self.sums and not self.faults and all(entry.verdict != "otherwise" for entry in self.policies)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self) | {"holds": self.holds}

    def __str__(self) -> str:
        again = "the same policy is learned again"
        texts = {"same": again, "rounding": f"{again}, up to rounding", "otherwise": "would now be learned otherwise"}
        lines = []
        for number, entry in enumerate(self.policies, 1):
            reason = entry.reason or (f"the same arm for {entry.decisions:,} requests" if entry.decisions else "")
            lines.append(f"policy {number}, {entry.policy_id[:12]}…: {texts[entry.verdict]}{reason and f' ({reason})'}")
        if self.holds:
            return "\n".join([*lines, "Everything is learned again from the summaries."])
        if self.faults:
            lines += ["The store is damaged. Restore a backup.", *(f"  {fault}" for fault in self.faults)]
            if self.sums and all(entry.verdict != "otherwise" for entry in self.policies):
                return "\n".join(lines)
        if not self.sums:
            lines.append("The sums in the state are not those of the summaries.")
        return "\n".join(lines) + (
            f"\nThe learner of rareswitch {self.version}, with which the experiment was created, may not be that of "
            f"{__version__}, or the store was changed. The policies that are there stay as they are, and the "
            "experiment can go on."
        )


def verify_versions(description: Description, versions: Sequence[Version], store: Store) -> Verification:
    """Learn everything again from the summaries that each policy was learned from.

    A policy that is the same up to rounding decides again on requests whose context sets the store has kept: of the
    batch that it was learned from and of its own.
    """
    learner = description.learner
    state = description.begin(next(iter(versions[0].summaries), None))
    found = [compared(versions[0].policy, state.policy, description, store, versions[0].number)]
    for before, version in pairwise(versions):
        try:
            batch, *late = version.summaries
            forecast = version.report["plan"]["forecast"]
            state = learner.next(replace(state, policy=before.policy), batch, late=late, forecast=forecast)
            found.append(compared(version.policy, state.policy, description, store, version.number))
        except (RareswitchError, ArithmeticError, ValueError, LookupError) as error:
            found.append(Relearned(policy_id=version.policy.id, verdict="otherwise", reason=str(error)))
            break
    kept = versions[-1].state.sums
    sums = alike(*([(s.gram, s.moment, s.count, s.square_sum) for s in of] for of in (kept, state.sums)))
    return Verification(policies=tuple(found), sums=sums, version=description.version)


def compared(kept: Policy, learned: Policy, description: Description, store: Store, number: int) -> Relearned:
    """The policy with this number, as it was kept, against the one that is learned now."""
    if kept.id == learned.id:
        return Relearned(policy_id=kept.id, verdict="same")
    if not alike(codec.encode(kept), codec.encode(learned)):
        return Relearned(policy_id=kept.id, verdict="otherwise")
    marks = store.marks()
    stored = chain.from_iterable(store.sample(version, marks) for version in (number - 1, number) if version)
    requests = list(islice(stored, REQUESTS))
    differing = _differing(kept, learned, requests, seed=description.seed)
    if differing:
        reason = f"it decides otherwise on {differing:,} of {len(requests):,} stored requests"
        return Relearned(policy_id=kept.id, verdict="otherwise", reason=reason)
    return Relearned(policy_id=kept.id, verdict="rounding", decisions=len(requests))


def _differing(kept: Policy, learned: Policy, requests: Sequence[tuple[bytes, bytes]], *, seed: int) -> int:
    """On how many requests, keys and context sets as a store keeps them, two policies choose different arms."""
    # of baselines and of the names of arms a sample tells nothing: both policies get the same in their place
    kept, learned = (replace(policy, min_propensity=None) for policy in (kept, learned))
    differing = 0
    for first in range(0, len(requests), AT_ONCE):
        keys, vectors = zip(*requests[first : first + AT_ONCE], strict=True)
        sets = ContextSets.from_ragged([np.frombuffer(data, dtype="<f8").reshape(-1, kept.dim) for data in vectors])
        ids, baseline = keys_of_bytes(b"".join(keys), len(keys)), np.zeros(len(keys), dtype=np.int64)
        stored, anew = (
            policy.decide(sets.contexts, sets.available, ids=ids, seed=seed, baseline=baseline)
            for policy in (kept, learned)
        )
        differing += int(np.count_nonzero(stored.arms != anew.arms))
    return differing


def alike(one: Any, other: Any) -> bool:
    """Whether two things, taken apart into plain data and arrays, differ by rounding alone."""
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and bool((np.abs(one - other) <= CLOSE * np.abs(other).max(initial=0.0)).all())
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE)
    return type(one) is type(other) and bool(one == other)
