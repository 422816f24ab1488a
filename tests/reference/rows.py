"""Rows for stores: made up, the same for the same number."""

from collections.abc import Sequence

import numpy as np

from rareswitch.store import DecisionRow, RewardRow, VersionRow

DIM, ARMS = 3, 4

#: Kinds of stores, and those of them that other processes can open too; the fixture ``store_url`` has their addresses.
STORES = ("memory", "sqlite", "postgres")
SHARED = ("sqlite", "postgres")


def version(number: int) -> VersionRow:
    return VersionRow(
        number, b"policy %d" % number, b"state\0", b"" if number == 1 else b"sums", "{}", "", 1e9 + number
    )


def decision(number: int, *, of: int = 1, kept: bool = False, arm: str = "a") -> DecisionRow:
    """The decision of a number; by its features one can tell which it is."""
    rng = np.random.default_rng(number)
    return DecisionRow(
        key=rng.bytes(16),
        id=f'"request {number} ≤ ☃"',
        version=of,
        arm=arm,
        arm_index=number % ARMS,
        propensity=float(rng.uniform(0.01, 1)),
        features=np.array([number, 1, -0.5], dtype="<f8").tobytes(),
        digest=rng.bytes(16),
        time=1e9 + number / 7,
        rank=float(rng.random()),
        baseline=None if number % 3 else 2,
        contexts=rng.bytes(8 * DIM * ARMS) if kept else None,
        names='["a", "b", "c", "d"]' if kept and number % 2 else None,
        record='{"context": {"☃": 1}, "arms": ["a"]}' if kept else None,
    )


def decisions(numbers: Sequence[int], *, of: int = 1, kept: bool = False) -> list[DecisionRow]:
    return [decision(number, of=of, kept=kept) for number in numbers]


def reward(number: int, value: float, *, event: str = "", time: float = 2e9) -> RewardRow:
    """A reward of the decision of a number."""
    row = decision(number)
    return RewardRow(row.key, row.id, event, value, time)
