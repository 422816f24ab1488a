"""How many decisions it takes until a lift is seen, with the batches and the propensities of a plan.

The lift is what was earned so far above uniform choice, as :func:`rareswitch.evaluate` estimates it: doubly robust,
with an interval from the sum of the variances of all batches. A decision of σ² adds the variance

    E[(1 − w)²]·σ² = (E[1/μ]·share − 1)·σ²,    w the weight of the comparison's arm, μ its propensity,

where the first policy is blind, and later ones play their best arm but for the holdout, the minimum propensity and
what foresight explores.
Before the comparison is worth EFFECTIVE decisions of its own, n/E[1/μ], and has shown LEAST_REWARDS, there is no
interval.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from rareswitch.core import Result
from rareswitch.evaluation import EFFECTIVE, LEAST_REWARDS
from rareswitch.planning.regret_model import RegretCurve

__all__ = ["Detection", "decisions_until_seen"]

#: Of the interval, and the share of experiments that see the lift by then.
LEVEL, POWER = 0.95, 0.8
#: Of the second policy's decisions what foresight explores on average, and later as much less as more was learned from.
EXPLORED = 0.2
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
    informative: float = 1.0,
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
    informative
        The share of rewards that say something: of clicks that of the rarer value.

    Examples
    --------
    >>> problem = {"ends": [50, 500, 10_000], "curve": RegretCurve.of(5), "arms": 4, "holdout": 0.1}
    >>> decisions_until_seen(**problem, gain=0.1).decisions, decisions_until_seen(**problem, gain=0.2).decisions
    (6691, 1718)
    """
    from scipy.special import ndtri

    starts = np.array([0.0, *ends[:-1]])
    least, held = min_propensity or 0.0, holdout or 0.0
    better = (1.0 - least * arms) * (1.0 - curve.at(starts - delay))
    better[0] = 0.0
    explored = np.append(1.0, EXPLORED * ends[0] / starts[1:])
    others = (1.0 - held) * (least + (1.0 - arms * least) * explored / arms)
    best = 1.0 - held - (arms - 1.0) * others
    spreads = (1.0 / (best + held) + (arms - 1.0) / (others + held)) / arms  # E[1/μ] of an arm in the holdout
    if holdout is None:  # of all arms, each in its share
        spreads /= arms
    variances = (spreads - 1.0) / (1.0 - held) ** 2
    totals = STEP ** np.arange(1.0, np.log(BEYOND * ends[-1]) / np.log(STEP))
    last = np.append(np.array(ends[:-1], dtype=np.float64), np.inf)
    lengths = np.clip(totals[:, None], starts, last) - starts
    lifts = lengths @ better / totals
    errors = np.sqrt(lengths @ variances) / totals
    answered = np.square(totals) / (lengths @ spreads) >= max(EFFECTIVE, LEAST_REWARDS / informative)
    seen = answered & (lifts > 0.0) & (gain * lifts >= (ndtri(0.5 + LEVEL / 2.0) + ndtri(POWER)) * errors)
    detection = Detection(gain=gain, holdout=holdout, min_propensity=min_propensity)
    if not seen.any():
        return detection
    at = int(np.argmax(seen))
    return msgspec.structs.replace(detection, decisions=round(float(totals[at])), share=float(lifts[at]))
