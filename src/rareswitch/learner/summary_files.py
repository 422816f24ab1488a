"""Summaries as bytes: what an agent sends, and what is kept of a batch."""

from typing import Any

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.errors import FileFormatError, InputError
from rareswitch.learner.feedback import Summary
from rareswitch.stats import Stats
from rareswitch.tensor_files import pack, unpack
from rareswitch.validation import FloatArray

SCHEMA = 1


def summary_to_bytes(summary: Summary) -> bytes:
    """The content of a summary file; equal summaries give equal bytes."""
    meta = {
        "schema": SCHEMA,
        "start": summary.start,
        "stop": summary.stop,
        "policy": summary.policy_id,
        "counts": [stats.count for stats in summary.stats],
    }
    tensors: dict[str, FloatArray] = {"squares": np.array([stats.square_sum for stats in summary.stats])}
    for k, stats in enumerate(summary.stats):
        tensors |= {f"stats.{k}.gram": stats.gram, f"stats.{k}.moment": stats.moment}
    if summary.sample is not None:
        tensors |= {"sample.contexts": summary.sample.contexts, "sample.alive": summary.sample.alive.astype(np.float64)}
    return pack(meta, tensors)


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
        summary = _decode(meta, tensors)
        if summary_to_bytes(summary) != data:
            raise FileFormatError("the summary is not in canonical form: it was changed.")
    except FileFormatError:
        raise
    except (InputError, ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError) as error:
        raise FileFormatError(f"not a summary, or a damaged one ({error}).") from error
    return summary


def _decode(meta: Any, tensors: dict[str, FloatArray]) -> Summary:
    stats = tuple(
        Stats(
            gram=tensors[f"stats.{k}.gram"],
            moment=tensors[f"stats.{k}.moment"],
            count=count,
            square_sum=float(tensors["squares"][k]),
        )
        for k, count in enumerate(meta["counts"])
    )
    sample = None
    if "sample.contexts" in tensors:
        sample = ContextSets(tensors["sample.contexts"], tensors["sample.alive"] != 0.0)
    return Summary(start=meta["start"], stop=meta["stop"], policy_id=meta["policy"], stats=stats, sample=sample)
