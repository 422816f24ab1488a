"""Logs that exercise all that a format must carry, and what they tell of each decision."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rareswitch.core import FloatArray, IntArray
from rareswitch.decisions import DecisionLog
from rareswitch.policy import Policy


def decided_by(
    policies: Sequence[Policy], contexts: FloatArray, reward: Callable[[IntArray], Any], *, seed: int = 7, **more: Any
) -> DecisionLog:
    """What policies decided about contexts (n, K, d), equally many decisions each; ``reward`` sees the arms (n,)."""
    count, parts = len(contexts), []
    batches = np.arange(count) * len(policies) // count
    for batch, policy in enumerate(policies):
        mine = np.flatnonzero(batches == batch)
        named = {"baseline": more["baselines"][mine]} if policy.needs_baseline else {}
        parts.append(policy.decide(contexts[mine], ids=mine, seed=seed, **named))
    arms = np.concatenate([part.arms for part in parts])
    columns: dict[str, Any] = {
        "arm_indices": arms,
        "propensities": np.concatenate([part.propensities for part in parts]),
        "rewards": reward(arms),
        "contexts": contexts,
        "batches": batches,
        "batch_names": tuple(policy.id for policy in policies),
        "policies": {policy.id: policy for policy in policies},
    }
    return DecisionLog(**columns | more)


class Chunked:
    """A log that is read a few decisions at a time."""

    def __init__(self, log: DecisionLog, size: int) -> None:
        self._log, self._size = log, size
        self.batch_names, self.estimated, self.dim = log.batch_names, log.estimated, log.dim
        self.policies: Mapping[str, Policy] = log.policies
        self.cautions = log.cautions

    def chunks(self, *, contexts: bool = True) -> Iterator[DecisionLog]:
        for first in range(0, len(self._log), self._size):
            yield self._log.select(slice(first, first + self._size))


def told(*chunks: DecisionLog) -> dict[Any, Any]:
    """By batch and id, all that is known of each decision; arms by their names, of the offered ones alone."""
    found: dict[Any, Any] = {}
    for log in chunks:
        names, codes = log.arm_codes
        for row in range(len(log)):
            offered = [k for k in range(codes.shape[1]) if log.available[row, k]]
            arms = [names[codes[row, k]] for k in offered]
            found[log.batch_names[log.batches[row]], *log.ids[row].tolist()] = {
                "chosen": log.chosen_names[row],
                "propensity": log.propensities[row],
                "reward": repr(log.rewards[row] + 0.0),
                "arms": arms,
                "contexts": None if log.contexts is None else log.contexts[row, offered].tolist(),
                "features": None if log.features is None else log.features[row].tolist(),
                "behavior_probs": None if log.behavior_probs is None else log.behavior_probs[row, offered].tolist(),
                "baseline": _name(log, row),
                "time": None if log.times is None or np.isnan(log.times[row]) else round(log.times[row], 6),
                "estimated": log.estimated,
            }
    return found


def _name(log: DecisionLog, row: int) -> str | None:
    if log.baselines is None or log.baselines[row] < 0:
        return None
    names, codes = log.arm_codes
    return names[int(codes[row, log.baselines[row]])]


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
