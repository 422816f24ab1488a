"""From what batches say to an answer: an interval and a p-value, or the reason why there is none."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rareswitch.evaluation.effect_results import BatchPart
from rareswitch.evaluation.intervals import moved, pooled, quantile
from rareswitch.evaluation.results import Interval

#: Below this p-value it is said that batches disagree.
_MOVED = 0.001
#: Errors below this, compared with the value, are 0 up to rounding.
_ROUNDING = 1e-12


class Answer(NamedTuple):
    """What all batches together say."""

    interval: Interval | None
    #: Not corrected for the number of questions.
    p_value: float | None
    refusals: tuple[str, ...]
    cautions: tuple[str, ...]


def answer(parts: Sequence[BatchPart], *, level: float, what: str) -> Answer:
    """Pool those that are not left out.

    Parameters
    ----------
    what
        Is asked for, in words, such as ``the effect``.
    """
    used = [part for part in parts if not part.left_out]
    if not used:
        return Answer(None, None, (_nothing_left(parts, what),), ())
    values, errors = (np.array([getattr(part, name) for part in used]) for name in ("value", "error"))
    constant = [part.batch + 1 for part, error in zip(used, errors, strict=True) if error <= _ROUNDING * abs(values).max()]
    if constant:
        told = (
            f"in batch {', '.join(map(str, constant))} rewards do not vary, which leaves no measure of their noise, and "
            f"to leave {'it' if len(constant) == 1 else 'them'} out would bias {what}. Ask with longer batches, or of a "
            "log in which more came of decisions."
        )
        return Answer(None, None, (told,), ())
    interval = pooled(values, errors, counts=np.array([part.decisions for part in used]), level=level)
    cautions = []
    moving = moved(values, errors) if len(used) > 1 else 1.0
    if moving < _MOVED:
        cautions.append(f"{what} moved between batches (p = {moving:.2g}): the pooled one speaks of no single time.")
    return Answer(interval, p_value(interval), (), tuple(cautions))


def p_value(interval: Interval) -> float:
    """That the truth is 0, two-sided, by the interval's own margin."""
    error = (interval.high - interval.low) / 2.0 / quantile(interval.level)
    return math.erfc(abs(interval.value) / error / math.sqrt(2.0))


def _nothing_left(parts: Sequence[BatchPart], what: str) -> str:
    reasons = dict.fromkeys(part.left_out for part in parts)
    told = "; ".join(
        f"batch {', '.join(str(part.batch + 1) for part in parts if part.left_out == reason)}: {reason}"
        for reason in reasons
    )
    return f"no batch tells {what}. {told or 'There is no decision with a reward'}."
