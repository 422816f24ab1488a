"""Chunks of one source as one log."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rareswitch.errors import ShapeError
from rareswitch.log import DecisionLog


def joined_logs(chunks: Sequence[DecisionLog]) -> DecisionLog:
    """Chunks of one source, one after the other; places at which no arm was offered fill up the shorter ones.

    >>> one = DecisionLog(arm_indices=[0], propensities=[0.5], rewards=[1.0], arms=["red", "blue"])
    >>> other = DecisionLog(arm_indices=[0], propensities=[1.0], rewards=[0.0], arms=["green"], ids=[1])
    >>> joined_logs([one, other]).chosen_names
    ['red', 'green']
    """
    first = chunks[0]
    width = max(chunk.available.shape[1] for chunk in chunks)
    if len({chunk.batch_names for chunk in chunks}) > 1:
        raise ShapeError("chunks of one source must have the same batch_names.")
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(chunk, name) for chunk in chunks])
        for name in ("arm_indices", "propensities", "rewards", "ids", "batches")
    }
    columns["available"] = np.concatenate([_wide(chunk.available, width, False) for chunk in chunks])
    for name in ("features", "baselines", "times"):
        if all(getattr(chunk, name) is not None for chunk in chunks):
            columns[name] = np.concatenate([getattr(chunk, name) for chunk in chunks])
    for name in ("contexts", "behavior_probs"):
        if all(getattr(chunk, name) is not None for chunk in chunks):
            columns[name] = np.concatenate([_wide(getattr(chunk, name), width, 0.0) for chunk in chunks])
    if all(chunk.arms is not None and chunk.codes is not None for chunk in chunks):
        known: dict[str, int] = {}
        codes = []
        for chunk in chunks:
            mine = np.array([known.setdefault(arm, len(known)) for arm in chunk.arms or ()])
            here = chunk.codes if chunk.codes is not None else np.empty((0, width), dtype=np.int64)
            codes.append(_wide(np.where(here >= 0, mine[here], -1), width, -1))
        columns |= {"arms": tuple(known), "codes": np.concatenate(codes)}
    return DecisionLog(batch_names=first.batch_names, policies=first.policies, estimated=first.estimated, **columns)


def _wide(column: Any, width: int, gap: Any) -> Any:
    """A column (n, K, …) with so many places."""
    more = width - column.shape[1]
    if not more:
        return column
    return np.concatenate([column, np.full((len(column), more, *column.shape[2:]), gap)], axis=1)
