"""From what batches say to an answer: an interval and a p-value, or the reason why there is none."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from rareswitch.evaluation.effect_results import BatchPart
from rareswitch.evaluation.intervals import moved, pool, pooled
from rareswitch.evaluation.refusals import DRIFTED
from rareswitch.evaluation.results import Interval


class Answer(NamedTuple):
    """What all batches together say."""

    interval: Interval | None
    #: Not corrected for the number of questions.
    p_value: float | None
    #: The standard error.
    error: float
    refusals: tuple[str, ...]
    cautions: tuple[str, ...]

    @classmethod
    def refused(cls, *reasons: str) -> Self:
        """No number, but the reasons."""
        return cls(None, None, math.nan, reasons, ())


def answer(parts: Sequence[BatchPart], *, level: float, what: str, changes: str) -> Answer:
    """Pool those that are not left out.

    Parameters
    ----------
    what
        Is asked for, in words, such as ``the effect``.
    changes
        Why batches may disagree, in words.
    """
    used = [part for part in parts if not part.left_out]
    if not used:
        return Answer.refused(_nothing_left(parts, what))
    values, errors, counts = (np.array([getattr(part, name) for part in used]) for name in _COLUMNS)
    found = pool(values, errors, counts)
    if not math.isfinite(found.error):
        return Answer.refused(
            f"rewards do not vary, which leaves no measure of their noise and of how sure {what} is. Wait for "
            "decisions that earn something else."
        )
    cautions = []
    if left := [str(part.batch + 1) for part in parts if part.left_out]:
        these = (
            f"batches {', '.join(left)} cannot tell and are" if len(left) > 1 else f"batch {left[0]} cannot tell and is"
        )
        cautions.append(
            f"{these} left out. Where that hangs on what arms had earned before, the interval is a little too narrow."
        )
    if (moving := moved(values, errors, counts=counts)) < DRIFTED:
        cautions.append(
            f"{what} drifted between batches (p = {moving:.2g}): {changes}. The pooled one speaks of no single batch."
        )
    return Answer(
        interval=pooled(values, errors, counts=counts, thirds=[part.third for part in used], level=level),
        p_value=_p_value(found.value / found.error, found.freedom),
        error=found.error,
        refusals=(),
        cautions=tuple(cautions),
    )


#: What is pooled.
_COLUMNS = ("value", "error", "effective")


def _p_value(ratio: float, freedom: float) -> float:
    """Two-sided, of Student's t distribution."""
    from scipy.special import ndtr, stdtr

    below = ndtr(-abs(ratio)) if math.isinf(freedom) else stdtr(freedom, -abs(ratio))
    return min(1.0, 2.0 * float(below))


def _nothing_left(parts: Sequence[BatchPart], what: str) -> str:
    reasons = dict.fromkeys(part.left_out for part in parts)
    where = {reason: [str(part.batch + 1) for part in parts if part.left_out == reason] for reason in reasons}
    if len(where) == 1:
        return f"no batch tells {what}: {parts[0].left_out}."
    told = "; ".join(f"batch{'es' * (len(at) > 1)} {', '.join(at)}: {reason}" for reason, at in where.items())
    return f"no batch tells {what}. {told[0].upper()}{told[1:]}."
