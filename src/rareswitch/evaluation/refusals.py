"""Which batches can answer for a candidate, and why a log cannot: by what is known without looking at a reward."""

import math
from collections.abc import Sequence

from rareswitch.core import FloatArray, percent_text
from rareswitch.errors import several
from rareswitch.evaluation.support import MAX_UNSUPPORTED, Support, effective
from rareswitch.log import Source

#: Below this p-value it is said that batches disagree.
DRIFTED = 0.001
#: A share of missing rewards above which it is mentioned.
_MISSING = 0.01


def log_cautions(log: Source, *, known: int, rewarded: int, waiting: int = 0) -> list[str]:
    """That propensities were estimated, and that rewards are missing of decisions whose arms are known.

    ``waiting`` of them may still come.
    """
    found = list[str]()
    if log.estimated:
        found.append(f"propensities were estimated ({log.estimated}): what is said is right only as far as these are.")
    if waiting:
        found.append(f"{waiting:,} of {known:,} decisions are left out until the window of their rewards is over.")
    missing = known - rewarded - waiting
    if missing > _MISSING * known:
        found.append(
            f"{missing:,} of {known:,} decisions have no reward and are left out: what is said is about those that "
            "have one, and is wrong if rewards are missing because of what was shown or earned. Where no reward means "
            "that nothing was earned, say so: Rewards(default=0)."
        )
    return [*found, *log.cautions]


#: Decisions that must carry a batch for it to be used, and all used ones together. With fewer, intervals that know
#: their skewness cover too little all the same: benchmarks/inference.py, case few-decisions.
BATCH_CARRIED = 5.0
CARRIED = 5.0
#: Decisions of the candidate itself that all used ones together must be worth.
EFFECTIVE = 100.0
#: Rewards other than the commonest that must support a candidate.
LEAST_REWARDS = 20
_FLOORS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)


def batch_reasons(support: Support) -> tuple[str, ...]:
    """Why a batch cannot answer, in words; empty where it can. Looks at no reward.

    >>> import numpy as np
    >>> batch_reasons(Support.of(np.full(50, 0.5), candidate=np.full((50, 2), 0.5)))
    ('the mean weight is 0.50 and should be 1, give or take 0.1: 50 % of what this policy would show ...',)
    """
    return tuple(_reason(kind, support) for kind in _faults(support))


def _faults(support: Support) -> list[str]:
    if support.count == 0:
        return ["nothing"]
    if (support.unsupported or 0.0) > MAX_UNSUPPORTED:
        return ["unsupported"]
    if support.unlikely:
        return ["mean weight"]
    return ["uneven"] if support.carried < BATCH_CARRIED else []


def _reason(kind: str, support: Support) -> str:
    """In words, without a capital."""
    weight, supported = support.mean_weight, 1.0 - (support.missed / support.count if support.known else 0.0)
    if kind == "nothing":
        return _nothing_text(0)
    if kind == "unsupported":
        seen = f" (mean weight {weight:.2f}, should be 1)" if weight < 1.0 else ""
        return (
            f"{percent_text(support.unsupported or 0.0)} of what this policy would show had probability 0 in the "
            f"log{seen}; at most {percent_text(MAX_UNSUPPORTED)} may be missing."
        )
    if kind == "mean weight":
        missing = supported - weight
        shown = f"{percent_text(missing)} of what this policy would show was unsupported, or " if missing > 0.0 else ""
        return (
            f"the mean weight is {weight:.2f} and should be {supported:.3g}, give or take "
            f"{support.mean_weight_error:.2g}: {shown}propensities are wrong."
        )
    return _uneven_text(support.count, support.carried, BATCH_CARRIED)


def refusals(supports: Sequence[Support], *, left_out: int = 0) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Which batches can be used for a candidate, and why they do not suffice; no reasons where they do.

    Parameters
    ----------
    supports
        One for each batch, in order.
    left_out
        Decisions that are in none of them: their rewards or the arms that were offered are not known.

    Examples
    --------
    >>> import numpy as np
    >>> log = Support.of(np.full(50, 0.5), candidate=np.full((50, 2), 0.5), logging=np.tile([1.0, 0.0], (50, 1)))
    >>> kept, reasons = refusals([log])
    >>> kept
    ()
    >>> print(reasons[0])
    50 % of what this policy would show had probability 0 in the log (mean weight 0.50, should be 1); ...
    >>> print(reasons[-1])
    Exploration would make it answerable: with min_propensity=0.2 ... 250 more decisions, with ... about 1,000.
    """
    whole = sum(supports, Support.zero())
    if whole.count == 0:
        return (), (_sentence(_nothing_text(left_out)),)
    faults = [_faults(support) for support in supports]
    kept = tuple(batch for batch, found in enumerate(faults) if not found)
    used = [supports[batch] for batch in kept]
    together = sum(used, Support.zero())
    ess = effective(used)
    carried = sum(one.carried for one in used)
    unlikely = bool(used) and together.unlikely
    if ess >= EFFECTIVE and carried >= CARRIED and not unlikely:
        return kept, ()
    reasons = []
    for kind in ("unsupported", "mean weight", "uneven"):
        faulty = [support for support, found in zip(supports, faults, strict=True) if kind in found]
        if faulty:
            best = max(faulty, key=lambda support: support.carried)
            reason = _reason(kind, best if kind == "uneven" else sum(faulty, Support.zero()))
            where = "all" if len(faulty) == len(supports) else f"{len(faulty)} of"
            reasons.append((f"in {where} {len(supports)} batches, " if len(supports) > 1 else "") + reason)
    if unlikely:
        reasons.append(_reason("mean weight", together))
    if used and carried < CARRIED and (ess >= EFFECTIVE or carried < 0.5 * ess):
        reasons.append(_uneven_text(together.count, carried, CARRIED))
    if ess < EFFECTIVE and (used or len(supports) > 1):
        where = "" if len(used) == len(supports) else f"in the {len(used)} of {len(supports)} batches that can answer, "
        count = several(together.count if used else whole.count, "decision")
        few = f"{where}{count} tell as much as {ess:.0f} of this policy itself; {EFFECTIVE:.0f} are needed."
        reasons.append(few if used else f"none of the {several(len(supports), 'batch')} can answer ({count}).")
    reasons.append(_remedy_text(needed(whole), _as_it_is(supports[-1])))
    return kept, tuple(map(_sentence, reasons))


def few_rewards(rewards: FloatArray, weights: FloatArray) -> tuple[str, ...]:
    """Why rewards do not suffice, where they are too few that say something; empty where they do.

    Those that say something differ from 0, from the least and from the greatest reward: clicks, failures where most
    succeed, purchases. As many are counted as their effective sample size, (Σ w)²/Σ w², and as their share of the
    weights is of that of all decisions: where heavy decisions are few, none of them may have failed by chance alone.

    >>> import numpy as np
    >>> few_rewards(np.array([1.0] * 5 + [0.0] * 995), np.full(1000, 2.0))
    ('5 rewards other than 0 support this candidate; 20 are needed for an interval that holds. ...',)
    """
    smallest, largest = float(rewards.min()), float(rewards.max())
    if smallest == largest:
        return (
            f"All {len(rewards):,} rewards are {smallest:g}: they do not vary, and nothing tells how sure a value is. "
            "Wait for other rewards.",
        )
    counts = {}
    for common in (0.0, smallest, largest):
        informative = weights[rewards != common]
        total, squares = float(informative.sum()), float(informative @ informative)
        shared = total * float(weights.sum()) / float(weights @ weights) if total > 0.0 else 0.0
        counts[common] = min(shared, total**2 / squares) if squares > 0.0 else 0.0
    common = min(counts, key=lambda one: counts[one])
    if counts[common] >= LEAST_REWARDS:
        return ()
    return (
        f"{counts[common]:.0f} rewards other than {common:g} support this candidate; {LEAST_REWARDS} are needed for an "
        "interval that holds. Wait for more of them, or show its arms more often.",
    )


def needed(support: Support) -> tuple[tuple[float, int], ...]:
    """What exploration would make a candidate answerable: two floors, and for how many decisions each.

    Where every offered arm has the probability f at least, E w² = E Σ π²/μ ≤ E Σ π²/f whatever else the policy plays,
    with equality for a candidate that shows what the policy never would; then E w³ = E Σ π³/f².

    >>> import numpy as np
    >>> needed(Support.of(np.ones(50), candidate=np.tile([1.0, 0.0], (50, 1))))
    ((0.2, 500), (0.05, 2000))
    """
    if support.count == 0 or support.arms < 2:
        return ()
    second, third = support.concentration / support.count, support.cubes / support.count
    decisions = max(EFFECTIVE * second, CARRIED * third**2 / second**3)
    floors = [floor for floor in _FLOORS if floor * support.arms <= 0.5] or [0.5 / support.arms]
    return tuple((floor, _rounded_up(decisions / floor)) for floor in floors[:3:2])


def _as_it_is(latest: Support) -> int | None:
    """As many decisions of the latest batch's policy would suffice; None where no number would."""
    if not latest.count or (latest.unsupported or 0.0) > MAX_UNSUPPORTED or latest.unlikely:
        return None
    if latest.carried <= 0.0 or (latest.known < latest.count and latest.carried < BATCH_CARRIED):
        return None
    return _rounded_up(max(EFFECTIVE * latest.spread, CARRIED * latest.count / latest.carried))


def _rounded_up(decisions: float) -> int:
    """To two digits."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(decisions, 1.0))) - 1)
    return max(1, math.ceil(decisions / unit - 1e-9)) * unit


def _uneven_text(count: int, carried: float, least: float) -> str:
    """Of weights so uneven that few decisions carry everything, or of few decisions."""
    if carried > 0.5 * count or count < least:
        need = f"{least:.0f}" if count < least else "more"
        return f"{count:,} decision{'s are' if count != 1 else ' is'} too few: {need} are needed."
    many = f"about {carried:.0f}" if carried >= 1.0 else "less than 1"
    return (
        f"this policy would often show what the log showed rarely: weights are so uneven that {many} of {count:,} "
        f"decisions carry the answer; {least:.0f} are needed."
    )


def _nothing_text(left_out: int) -> str:
    """Of no decisions at all."""
    missing = f" ({several(left_out, 'decision')} without one of them)" if left_out else ""
    return (
        f"no decision has both a reward and all the arms that were offered{missing}. Keep the context sets of all "
        "decisions, or of a sample of them, and wait for rewards."
    )


def _remedy_text(options: tuple[tuple[float, int], ...], as_it_is: int | None) -> str:
    """Of (floor, decisions), and of the decisions that would do with the latest policy, where any number would."""
    also = "" if as_it_is is None else f"about {as_it_is:,} more decisions of the latest policy would answer"
    if not options:
        return also + "." if also else "decisions with more than one arm on offer would help."
    (floor, decisions), *others = options
    text = f"{also}; or e" if also else "e"
    text += (
        f"xploration would make it answerable: with min_propensity={floor:g} (the least probability of every offered "
        f"arm) about {decisions:,} more decisions"
    )
    return text + "".join(f", with min_propensity={floor:g} about {decisions:,}" for floor, decisions in others) + "."


def _sentence(text: str) -> str:
    """With a capital."""
    return text[:1].upper() + text[1:]
