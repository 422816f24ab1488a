"""How many decisions it takes until a lift is seen, with the batches and the propensities of a plan.

The lift is what was earned so far above uniform choice, as :func:`rareswitch.evaluate` estimates it: doubly robust,
with an interval from the sum of the variances of all batches. A decision of σ² adds the variance

    E[(1 − w)²]·σ² = (E[1/μ]·share − 1)·σ²,    w the weight of the comparison's arm, μ its propensity,

where the first policy is blind, and later ones play their best arm but for the holdout and the minimum propensity.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from rareswitch.core import Result
from rareswitch.planning.regret_model import RegretCurve

__all__ = ["Detection", "decisions_until_seen"]

#: Of the interval, and the share of experiments that see the lift by then.
LEVEL, POWER = 0.95, 0.8
#: Decisions are tried in steps of this factor, up to this multiple of the plan's.
STEP, BEYOND = 1.03, 1000.0


class Detection(Result, frozen=True, kw_only=True):
    """How long until a lift is seen."""

    #: Of the best arms above uniform choice, in standard deviations of a reward.
    gain: float
    #: The comparison: a share of ids that keeps a baseline, or a minimum propensity of every arm.
    holdout: float | None = None
    min_propensity: float | None = None
    level: float = LEVEL
    power: float = POWER
    #: Decisions in all, the last policy going on after the plan's end; None where these would be too many to plan.
    decisions: int | None = None
    #: What is seen then: the lift of all decisions so far as a share of that of the best arms.
    share: float | None = None


def decisions_until_seen(
    *,
    ends: Sequence[float],
    curve: RegretCurve,
    delay: float = 0.0,
    arms: float,
    gain: float,
    holdout: float | None = None,
    min_propensity: float | None = None,
) -> Detection:
    """When the interval of the lift so far is above 0 in four of five experiments.

    Parameters
    ----------
    ends
        Decisions at which batches end.
    gain
        Of the best arms above uniform choice, in standard deviations of a reward.
    arms
        In a set, a mean where sets differ. A holdout keeps any of them.

    Examples
    --------
    >>> problem = {"ends": [50, 500, 10_000], "curve": RegretCurve.of(5), "arms": 4, "holdout": 0.1}
    >>> decisions_until_seen(**problem, gain=0.1).decisions, decisions_until_seen(**problem, gain=0.2).decisions
    (7099, 1933)
    """
    from scipy.special import ndtri

    starts = np.array([0.0, *ends[:-1]])
    explored = (min_propensity or 0.0) * arms
    better = (1.0 - explored) * (1.0 - curve.at(starts - delay))
    better[0] = 0.0
    if holdout is None:
        least = min_propensity or 0.0
        most = 1.0 - (arms - 1.0) * least
        later = (1.0 / most + (arms - 1.0) / least) / arms**2 - 1.0 if least else np.inf
        first = 0.0
    else:
        blind = (1.0 - holdout) / arms + holdout
        share = (1.0 - holdout) * (min_propensity or 0.0) + holdout
        later = (1.0 - 1.0 / arms) * (1.0 - share) / share / (1.0 - holdout) ** 2
        first = (1.0 - blind) / blind / (1.0 - holdout) ** 2
    variances = np.full(len(starts), later)
    variances[0] = first
    counts = np.arange(1.0, np.log(BEYOND * ends[-1]) / np.log(STEP))
    totals = STEP**counts
    last = np.append(np.array(ends[:-1], dtype=np.float64), np.inf)
    lengths = np.clip(totals[:, None], starts, last) - starts
    lifts = lengths @ better / totals
    errors = np.sqrt(lengths @ variances) / totals
    seen = gain * lifts >= (ndtri(0.5 + LEVEL / 2.0) + ndtri(POWER)) * errors
    seen &= lifts > 0.0
    detection = Detection(gain=gain, holdout=holdout, min_propensity=min_propensity)
    if not seen.any():
        return detection
    at = int(np.argmax(seen))
    return msgspec.structs.replace(detection, decisions=round(float(totals[at])), share=float(lifts[at]))
