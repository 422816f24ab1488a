"""Whether a decision is what its frozen policy decides."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from rareswitch.experiment.moments import minute_text
from rareswitch.experiment.requests import Requests
from rareswitch.experiment.versions import Version
from rareswitch.ids import keys_of_bytes
from rareswitch.store import DecisionRow, RewardRow

Verdict = Literal["matches", "differs", "contexts needed", "other contexts"]


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A decision, and what its policy says of it now. Prints as text."""

    id: int | str
    verdict: Verdict
    arm: str
    propensity: float
    policy_id: str
    version: int
    #: Seconds since 1970.
    time: float
    #: Event and value of each that is in force.
    rewards: dict[str, float]
    #: What the policy says now: the place of the arm among those available, and its propensity.
    recomputed: tuple[int, float] | None = None

    @property
    def matches(self) -> bool:
        """Whether arm and propensity come out again, exactly."""
        return self.verdict == "matches"

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self) | {"matches": self.matches}

    def __str__(self) -> str:
        earned = ", ".join(f"{value:g}{f' ({event})' if event else ''}" for event, value in self.rewards.items())
        lines = [
            f"decision {self.id!r} of {minute_text(self.time)} UTC: arm {self.arm}, propensity {self.propensity:.6g}",
            f"policy {self.version}, {self.policy_id[:12]}…; reward {earned or 'not known'}",
        ]
        texts = {
            "matches": "The frozen policy decides the same, with the same propensity.",
            "contexts needed": "Its context set was not kept, or lacks the ids of arms. Give the request again, and "
            "it is checked by its hash.",
            "other contexts": "This is not the request that was decided: its hash is another.",
            "differs": f"THE POLICY DECIDES OTHERWISE: {self._said()}. The store was changed, "
            "or another machine made the decision with another seed.",
        }
        return "\n".join([*lines, texts[self.verdict]])

    def _said(self) -> str:
        return (
            "its set differs"
            if self.recomputed is None
            else "arm number {}, propensity {:.6g}".format(*self.recomputed)
        )


def audit_decision(
    id: int | str,  # noqa: A002
    kept: tuple[DecisionRow, list[RewardRow]],
    version: Version,
    *,
    seed: int,
    dim: int,
    request: Requests | None,
) -> Audit:
    """Decide again, with the kept context set or with the request that is given again."""
    row, rewards = kept
    verdict: Verdict = "contexts needed"
    recomputed = None
    vectors, names = None, None
    if request is not None:
        if row.baseline is not None:
            request = replace(request, baselines=np.array([row.baseline]))
        vectors = np.ascontiguousarray(request.vectors(0))
        names = request.names_text(0)
        if request.digest(0, names, vectors.tobytes()) != row.digest:
            verdict, vectors = "other contexts", None
    elif row.contexts is not None:
        vectors, names = np.frombuffer(row.contexts, dtype="<f8").reshape(-1, dim), row.names
    min_propensity = version.policy.min_propensity
    if min_propensity is not None and min_propensity.arms is not None and names is None:
        vectors = None  # logs of servers need not name the arms, and without it the floor is not known
    if vectors is not None:
        words = keys_of_bytes(row.key, 1)
        baseline = {} if row.baseline is None else {"baseline": np.array([row.baseline])}
        protected = (
            None
            if min_propensity is None or names is None
            else min_propensity.of_names([json.loads(names)], len(vectors))
        )
        again = version.policy.decide(vectors[None], ids=words, seed=seed, protected=protected, **baseline)
        recomputed = int(again.arms[0]), float(again.propensities[0])
        same = recomputed == (row.arm_index, row.propensity) and vectors[row.arm_index].tobytes() == row.features
        verdict = "matches" if same else "differs"
    return Audit(
        id=id,
        verdict=verdict,
        arm=row.arm,
        propensity=row.propensity,
        policy_id=version.policy.id,
        version=row.version,
        time=row.time,
        rewards={one.event: one.value for one in rewards},
        recomputed=recomputed,
    )
