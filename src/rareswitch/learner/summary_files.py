"""Summaries as bytes: what an agent sends, and what is kept of a batch."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import BatchError, FileFormatError, InputError
from rareswitch.files import pack, unpack
from rareswitch.learner.feedback import Summary
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray

SCHEMA = 1
DAMAGE = (InputError, ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError)
"""What decoding damaged data may raise."""


def summary_to_bytes(summary: Summary) -> bytes:
    """The content of a summary file; equal summaries give equal bytes."""
    meta, tensors = encode([summary])
    return pack({"schema": SCHEMA, **meta}, tensors)


def summary_from_bytes(data: bytes) -> Summary:
    """The summary in such a content.

    >>> from rareswitch.stats import Stats
    >>> whole = Summary(start=0, stop=1, policy_id="a", stats=(Stats.of([[1.0]], [2.0]),), sample=None)
    >>> summary_from_bytes(summary_to_bytes(whole)).stats[0].moment.tolist()
    [2.0]
    """
    try:
        meta, tensors = unpack(data)
        if meta["schema"] != SCHEMA:
            raise FileFormatError(f"summaries have schema {SCHEMA}; this one has {meta['schema']!r}.")
        (summary,) = decode(meta, tensors)
        if summary_to_bytes(summary) != data:
            raise FileFormatError("the summary is not in canonical form: it was changed.")
    except FileFormatError:
        raise
    except DAMAGE as error:
        raise FileFormatError(f"not a summary, or a damaged one ({error}).") from error
    return summary


def encode(summaries: Sequence[Summary]) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Summaries of one policy and learner as JSON-able data beside arrays, in which they are stacked."""
    policies = {summary.policy_id for summary in summaries}
    if len(policies) > 1:
        raise BatchError(f"summaries of {len(policies)} policies cannot be sent together.")
    meta = {
        "policy": next(iter(policies), ""),
        "summaries": [
            {
                "start": summary.start,
                "stop": summary.stop,
                "counts": [stats.count for stats in summary.stats],
                "sampled": 0 if summary.sample is None else len(summary.sample),
            }
            for summary in summaries
        ],
    }
    tensors: dict[str, FloatArray] = {}
    if summaries:
        tensors["gram"] = np.array([[stats.gram for stats in one.stats] for one in summaries])
        tensors["moment"] = np.array([[stats.moment for stats in one.stats] for one in summaries])
        tensors["squares"] = np.array([[stats.square_sum for stats in one.stats] for one in summaries])
    samples = [one.sample for one in summaries if one.sample is not None]
    if samples:
        sample = ContextSets.concatenate(samples)
        tensors |= {"contexts": sample.contexts, "alive": sample.alive.astype(np.float64)}
    return meta, tensors


def decode(meta: Any, tensors: dict[str, FloatArray]) -> list[Summary]:
    """What :func:`encode` was given; any of :data:`DAMAGE` if it was not."""
    found, taken = [], 0
    for k, entry in enumerate(meta["summaries"]):
        stats = tuple(
            Stats(
                gram=tensors["gram"][k, m],
                moment=tensors["moment"][k, m],
                count=count,
                square_sum=float(tensors["squares"][k, m]),
            )
            for m, count in enumerate(entry["counts"])
        )
        sample = None
        if entry["sampled"]:
            at = slice(taken, taken := taken + entry["sampled"])
            sample = ContextSets(tensors["contexts"][at], tensors["alive"][at] != 0.0)
        found.append(
            Summary(start=entry["start"], stop=entry["stop"], policy_id=meta["policy"], stats=stats, sample=sample)
        )
    return found
