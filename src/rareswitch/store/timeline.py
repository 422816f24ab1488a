"""What was shown and earned over time, counted by the database."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareswitch.store.rows import Marks
from rareswitch.store.store import Store

__all__ = ["RewardCount", "ShownCount", "rewards_by_age", "shown_by_time"]


class ShownCount(NamedTuple):
    """Decisions for an arm in a span of time."""

    arm: str
    span: int
    decisions: int


class RewardCount(NamedTuple):
    """Decisions of a span of time with a reward of some age."""

    span: int
    #: Which of the ages; equal to their number where it is older than all.
    age: int
    #: Whether they were made after the moment that was asked for.
    recent: int
    decisions: int
    #: The sum of their rewards.
    earned: float


def shown_by_time(store: Store, upto: Marks, *, start: float, width: float) -> list[ShownCount]:
    """Decisions by arm, and by how often ``width`` seconds have passed since ``start``.

    >>> from rareswitch.experiment import create
    >>> trial = create("memory:", "spring", dim=1, now=0.0)
    >>> choices = [trial.decide([[1.0]], ["red"], id=k, now=20.0 * k) for k in range(4)]
    >>> shown_by_time(trial.store, trial.store.marks(), start=0.0, width=30.0)
    [ShownCount(arm='red', span=0, decisions=2), ShownCount(arm='red', span=1, decisions=1), ...]
    """
    span = _whole(store, "time", start, width)
    query = (
        f"SELECT arm, {span}, count(*) FROM rareswitch_decisions {store.scan_hint} "
        f"WHERE experiment = {store.number} AND seq BETWEEN 1 AND {int(upto.decisions)} GROUP BY 1, 2 ORDER BY 1, 2"
    )
    (rows,) = store.read_arrays((query, np.dtype([("arm", "O"), ("span", "<i8"), ("decisions", "<i8")])))
    return [ShownCount(*row) for row in rows.tolist()]


def rewards_by_age(
    store: Store, upto: Marks, *, start: float, width: float, ages: Sequence[float], since: float
) -> list[RewardCount]:
    """Decisions with a reward, by their time as above, and by the age in seconds at which the first reward came."""
    age = " ".join(f"WHEN r.time - d.time <= {float(bound)!r} THEN {k}" for k, bound in enumerate(ages))
    query = (
        f"SELECT {_whole(store, 'd.time', start, width)}, CASE {age} ELSE {len(ages)} END, "
        f"CASE WHEN d.time > {float(since)!r} THEN 1 ELSE 0 END, count(*), sum(r.value) FROM "
        "(SELECT decision, version, min(time) AS time, sum(value) AS value FROM rareswitch_rewards "
        f"WHERE experiment = {store.number} AND version IS NOT NULL AND decision BETWEEN 1 AND {int(upto.decisions)} "
        f"AND superseded IS NULL AND seq <= {int(upto.rewards)} GROUP BY version, decision) r "
        f"JOIN rareswitch_decisions d ON d.experiment = {store.number} AND d.version = r.version "
        "AND d.seq = r.decision GROUP BY 1, 2, 3"
    )
    kinds = [("span", "<i8"), ("age", "<i8"), ("recent", "<i8"), ("decisions", "<i8"), ("earned", "<f8")]
    rows: list[NDArray[np.void]] = store.read_arrays((query, np.dtype(kinds)))
    return [RewardCount(*row) for row in rows[0].tolist()]


def _whole(store: Store, column: str, start: float, width: float) -> str:
    """How often a width has passed; what was before the start counts as then."""
    passed = f"({column} - {float(start)!r}) / {float(width)!r}"
    return store.floored.format(f"CASE WHEN {passed} < 0.0 THEN 0.0 ELSE {passed} END")
