"""Logs that exercise all that a format must carry, and whether two are the same to the last bit."""

from typing import Any

import numpy as np

from rareswitch.log import DecisionLog


def bits(column: Any) -> Any:
    if column is None or not isinstance(column, np.ndarray):
        return column
    return column.shape, column.dtype.str, column.tobytes()


def differing(one: DecisionLog, other: DecisionLog) -> list[str]:
    """The names of columns that differ in a single bit."""
    names = [name for name in one.__dataclass_fields__ if name != "policies"]
    return [name for name in names if bits(getattr(one, name)) != bits(getattr(other, name))]


def log_of(seed: int, *, count: int = 60, **changes: Any) -> DecisionLog:
    """Sets of changing arms, some of them shared, two batches, unknown rewards, odd names, times and numbers."""
    rng = np.random.default_rng(seed)
    width, arms = 4, ("red", "a|b", "back\\slash", 'quo"te, comma', "line\nbreak\r", "ünï", "7")
    available = rng.random((count, width)) < 0.7
    available[np.arange(count), rng.integers(width, size=count)] = True
    available[0] = True
    codes = np.array([rng.permutation(len(arms))[:width] for _ in range(count)])
    logging = rng.random((count, width)) * available
    logging /= logging.sum(axis=1, keepdims=True)
    places = np.array([rng.choice(width, p=row) for row in logging])
    rewards = np.where(rng.random(count) < 0.2, np.nan, rng.normal(size=count))
    rewards[:2] = 0.0, -0.0
    times = rng.uniform(1.6e9, 1.8e9, size=count)
    times[:3] = np.nan, 0.1, -1e6 / 3
    contexts = np.where(available[:, :, None], rng.normal(size=(count, width, 3)), 0.0)
    baselines = np.where(rng.random(count) < 0.3, -1, available.argmax(axis=1))
    columns: dict[str, Any] = {
        "arm_indices": places,
        "propensities": logging[np.arange(count), places],
        "rewards": rewards,
        "available": available,
        "contexts": contexts,
        "arms": arms,
        "codes": codes,
        "behavior_probs": logging,
        "baselines": baselines,
        "ids": [f"request {k}" if k % 3 else k for k in range(count)],
        "times": times,
        "batches": rng.integers(2, size=count),
        "batch_names": ("nobody's", "second", "first"),
    }
    columns["batches"] = columns["batches"] + 1
    return DecisionLog(**columns | changes)


def kinds() -> dict[str, DecisionLog]:
    """Logs of all kinds."""
    full = log_of(1000)
    known = full.select(~np.isnan(full.rewards))
    bare: dict[str, Any] = {"contexts": None, "behavior_probs": None, "baselines": None, "times": None}
    return {
        "everything": full,
        "no unknown rewards": known,
        "estimated": log_of(1001, estimated="arm frequencies within each policy, smoothing 1"),
        "no vectors": log_of(1002, contexts=None),
        "vectors of the chosen arms": log_of(
            1003, contexts=None, features=np.random.default_rng(3).normal(size=(60, 2))
        ),
        "no ids of arms": log_of(1004, arms=None, codes=None),
        "nothing more": log_of(1005, arms=None, codes=None, available=None, **bare, ids=None),
        "one row": full.select(slice(0, 1)),
        "no times known": log_of(1006, times=np.full(60, np.nan)),
    }
