"""From what batches say to an answer: an interval and a p-value, or the reason why there is none."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

from rareswitch.evaluation.effect_results import BatchPart
from rareswitch.evaluation.intervals import BatchMean, combined, drift_p_value
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
    terms = [_term(part) for part in used]
    decisions = sum(part.decisions for part in used)
    shares = [part.decisions / decisions for part in used]
    pooled = [term.scaled(share) for term, share in zip(terms, shares, strict=True)]
    interval, variance = combined(pooled, level=level), sum(term.variance for term in pooled)
    if not math.isfinite(interval.low):
        return Answer.refused(
            f"rewards do not vary, which leaves no measure of their noise and of how sure {what} is. Wait for "
            "decisions that earn something else."
        )
    error, freedom = math.sqrt(variance), 1.0 / sum((term.variance / variance) ** 2 / term.freedom for term in pooled)
    cautions = []
    if left := [str(part.batch + 1) for part in parts if part.left_out]:
        these = (
            f"batches {', '.join(left)} cannot tell and are" if len(left) > 1 else f"batch {left[0]} cannot tell and is"
        )
        cautions.append(
            f"{these} left out. Where that hangs on what arms had earned before, the interval is a little too narrow."
        )
    if (moving := drift_p_value(terms)) < DRIFTED:
        cautions.append(
            f"{what} drifted between batches (p = {moving:.2g}): {changes}. The pooled one speaks of no single batch."
        )
    return Answer(
        interval=interval,
        p_value=_p_value(interval.value / error, freedom),
        error=error,
        refusals=(),
        cautions=tuple(cautions),
    )


def _term(part: BatchPart) -> BatchMean:
    assert part.value is not None
    assert part.error is not None
    return BatchMean(part.value, part.error**2, part.third, part.freedom)


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
