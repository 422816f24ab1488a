"""Which batches can answer for a candidate, and why a log cannot: by what is known without looking at a reward."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rareswitch.core import FloatArray, percent_text
from rareswitch.errors import several
from rareswitch.evaluation.scoring import Scores
from rareswitch.evaluation.support import MAX_UNSUPPORTED, MOST_WEIGHT, Support, carried
from rareswitch.log import Source, StoredLog

__all__ = ["EFFECTIVE", "LEAST_REWARDS", "few_rewards", "judged"]

#: Below this p-value it is said that batches disagree.
DRIFTED = 0.001
#: A share of missing rewards above which it is mentioned.
_MISSING = 0.01


def log_cautions(log: Source, scores: Scores) -> list[str]:
    """That propensities were estimated, and that rewards are missing of decisions whose arms are known."""
    known, waiting, expired = scores.known, scores.waiting, scores.expired
    cautions = list[str]()
    if log.estimated:
        cautions.append(
            f"propensities were estimated ({log.estimated}): what is said is right only as far as these are."
        )
    if waiting:
        cautions.append(f"{waiting:,} of {known:,} decisions are left out until the window of their rewards is over.")
    if expired:
        cautions.append(
            f"{expired:,} of {known:,} decisions are left out, as their reward came after its window: fast rewards are "
            "over-represented. Lengthen the window, or say what such decisions earned: Rewards(window=…, default=0)."
        )
    missing = known - scores.rewarded - waiting - expired
    if missing > _MISSING * known:
        cautions.append(
            f"{missing:,} of {known:,} decisions have no reward and are left out: what is said is about those that "
            "have one, and is wrong if rewards are missing because of what was shown or earned. Where no reward means "
            f"that nothing was earned, {'say so: Rewards(default=0)' if isinstance(log, StoredLog) else 'give 0'}."
        )
    return [*cautions, *log.cautions]


def outlier_cautions(parts: Sequence[tuple[FloatArray, FloatArray]], *, bounded: bool = True) -> list[str]:
    """That a single decision holds more than half of the variance of an estimate.

    Parameters
    ----------
    parts
        By batch, what each decision (n,) adds to the estimate, up to one factor, and the rewards (n,).
    bounded
        Whether it is known where rewards lie.

    Examples
    --------
    >>> import numpy as np
    >>> outlier_cautions([(rewards := np.array([1.0, 2.0, 1.0, 90.0]), rewards)])
    ['one decision, with the reward 90, holds 75 % of the variance of the estimate: ...']
    """
    pulls = np.concatenate([rows - rows.mean() for rows, _ in parts])
    squares = np.square(pulls / (np.abs(pulls).max() or 1.0))  # squares of huge rewards have no floating-point number
    rewards, worst, total = np.concatenate([part for _, part in parts]), int(squares.argmax()), float(squares.sum())
    if squares[worst] <= 0.5 * total:
        return []
    least = "" if bounded or rewards.min() < 0.0 else ", and say what rewards can be: bounds=(0, …)"
    return [
        f"one decision, with the reward {rewards[worst]:,.6g}, holds {percent_text(float(squares[worst]) / total)} of "
        f"the variance of the estimate: look whether it is a mistake, or clip rewards{least}."
    ]


#: Decisions that must carry the weights of all used batches together, or a batch by itself.
CARRIED = 5.0
#: Decisions of the candidate itself that all used ones together must be worth.
EFFECTIVE = 100.0
#: Rewards other than the commonest that must support a candidate.
LEAST_REWARDS = 20
_FLOORS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)


#: All that may be wrong with a batch that has decisions, and of these what exploration mends.
_FAULTS = ("unsupported", "unseen", "unrewarded", "mean weight", "uneven")
_NO_OVERLAP = ("unsupported", "unseen", "uneven")
ZERO = f"probability 0 in the log, or below 1/{MOST_WEIGHT:,.0f} of its own"


def _fault(support: Support) -> str:
    """What is wrong with a batch; empty where nothing is."""
    if support.count == 0:
        return "nothing"
    if (support.unsupported or 0.0) > MAX_UNSUPPORTED:
        return "unsupported"
    even = support.carried >= CARRIED  # else a mean weight is far from normal, and far from 1 too often
    if support.unlikely and (even or support.weights == 0.0):
        if support.weights == 0.0 and (support.unrewarded or support.known < support.count):
            return "unrewarded" if support.unrewarded else "unseen"
        return "mean weight"
    return "" if even else "uneven"


def faulty_batches(supports: Sequence[Support], *, stationary: bool = False) -> list[tuple[str, list[int], str]]:
    """What is wrong with batches: the kind, in which of them (from 0), and the reason in words. Looks at no reward.

    Batches of which few decisions carry the weights are used where enough carry those of all batches together: how
    finely the same decisions are divided into batches does not matter.

    >>> import numpy as np
    >>> faulty_batches([Support.of(np.full(50, 0.5), candidate=np.full((50, 2), 0.5))])
    [('mean weight', [0], 'the mean weight is 0.50 and should be 1, give or take 0.1: 50 % of its play is ...')]
    """
    faults, causes = [_fault(support) for support in supports], []
    usable = [support for support, fault in zip(supports, faults, strict=True) if fault in ("", "uneven")]
    if carried(usable, stationary=stationary) >= CARRIED:
        faults = [fault.replace("uneven", "") for fault in faults]
    for kind in _FAULTS:
        if places := [place for place, fault in enumerate(faults) if fault == kind]:
            faulty = [supports[place] for place in places]
            best = max(faulty, key=lambda support: support.carried)
            causes.append((kind, places, _reason(kind, best if kind == "uneven" else sum(faulty, Support.zero()))))
    return causes


def _reason(kind: str, support: Support) -> str:
    """In words, without a capital."""
    weight, supported = support.mean_weight, 1.0 - (support.missed / support.count if support.known else 0.0)
    if kind == "nothing":
        return _nothing_text(0)
    if kind == "unsupported":
        seen = f"; mean weight {weight:.2f}, should be 1" if weight < 1.0 else ""
        return (
            f"{percent_text(support.unsupported or 0.0)} of its play is unsupported ({ZERO}{seen}); at most "
            f"{percent_text(MAX_UNSUPPORTED)} may be."
        )
    if kind == "unrewarded":
        return "no decision that showed what it would has a reward: wait, or find out where they are lost."
    if kind == "uneven":
        return _uneven_text(support)
    missing = supported - weight if support.known < support.count else 0.0
    shown = f"{percent_text(missing)} of its play is unsupported, or " if missing > 0.0 else ""
    return (
        f"the mean weight is {weight:.2f} and should be {supported:.3g}, give or take "
        f"{support.mean_weight_error:.2g}: {shown}propensities are wrong, or decisions or their rewards are missing "
        "(for instance where only clicks are recorded)."
    )


class Judged(NamedTuple):
    """Which batches can be used for a candidate, why they do not suffice, and what is wrong with others."""

    able: tuple[int, ...]
    #: None where they do suffice.
    reasons: tuple[str, ...]
    faults: list[tuple[str, list[int], str]]


def judged(
    supports: Sequence[Support], *, left_out: int = 0, stationary: bool = False, informative: float = 1.0
) -> Judged:
    """Which batches can be used for a candidate, and why they do not suffice; no reasons where they do.

    Parameters
    ----------
    supports
        One for each batch, in order.
    left_out
        Decisions that are in none of them: their rewards or the arms that were offered are not known.
    stationary
        Whether batches count with their precision, and not with their traffic.
    informative
        The share of rewards that say something: :data:`LEAST_REWARDS` of them are needed too.

    Examples
    --------
    >>> import numpy as np
    >>> log = Support.of(np.full(50, 0.5), candidate=np.full((50, 2), 0.5), logging=np.tile([1.0, 0.0], (50, 1)))
    >>> able, reasons, _ = judged([log])
    >>> able
    ()
    >>> print(reasons[0])
    50 % of its play is unsupported (probability 0 in the log, or below 1/20,000 of its own; mean weight 0.50, ...
    >>> print(reasons[-1])
    Exploration would make it answerable: with min_propensity=0.2 ... 250 more decisions, with ... about 1,000.
    """
    whole = sum(supports, Support.zero())
    if whole.count == 0:
        return Judged((), (_sentence(_nothing_text(left_out)),), [])
    faults = faulty_batches(supports, stationary=stationary)
    faulty = {place for _, places, _ in faults for place in places}
    able = tuple(place for place, support in enumerate(supports) if support.count and place not in faulty)
    used = [supports[place] for place in able]
    together, ess = sum(used, Support.zero()), sum(support.effective for support in used)
    unlikely = bool(used) and together.unlikely
    if ess >= EFFECTIVE and not unlikely:
        return Judged(able, (), faults)
    reasons = []
    for _, places, reason in faults:
        where = "all" if len(places) == len(supports) else f"{len(places)} of"
        reasons.append((f"in {where} {len(supports)} batches, " if len(supports) > 1 else "") + reason)
    if unlikely:
        reasons.append(_reason("mean weight", together))
    if ess < EFFECTIVE and (used or len(supports) > 1):
        where = "" if len(used) == len(supports) else f"in the {len(used)} of {len(supports)} batches that can answer, "
        count = several(together.count if used else whole.count, "decision")
        few = f"{where}the ESS of {count} is {ess:.0f}; {EFFECTIVE:.0f} are needed."
        reasons.append(few if used else f"none of the {several(len(supports), 'batch')} can answer ({count}).")
    if not unlikely and all(kind in _NO_OVERLAP for kind, *_ in faults):
        least = max(EFFECTIVE, LEAST_REWARDS / informative) if informative > 0.0 else EFFECTIVE
        reasons += _remedy(whole, supports[-1], least)
    return Judged(able, tuple(map(_sentence, reasons)), faults)


#: Effective number of rewards that must make up a value, by what each contributes: one tells no variance.
LEAST_CONTRIBUTIONS = 2.0


def informative_share(rewards: FloatArray) -> float:
    """The share of rewards that say something: that differ from 0, from the least and from the greatest.

    >>> import numpy as np
    >>> informative_share(np.array([1.0, 0.0, 0.0, 0.0]))
    0.25
    """
    return min(float((rewards != common).mean()) for common in (0.0, rewards.min(), rewards.max()))


def few_rewards(rewards: FloatArray, weights: FloatArray) -> tuple[str, ...]:
    """Why rewards do not suffice, where they are too few that say something; empty where they do.

    Those that say something differ from 0, from the least and from the greatest reward: clicks, failures where most
    succeed, purchases. They count by their effective sample size, (Σ w)²/Σ w², and by their share of the
    weights is of that of all decisions: where heavy decisions are few, none of them may have failed by chance alone.
    The effective number of rewards by what they contribute, (Σ |w r|)²/Σ (w r)², must be :data:`LEAST_CONTRIBUTIONS`:
    where a single reward is nearly all of a value, nothing tells how often one comes.

    >>> import numpy as np
    >>> few_rewards(np.array([1.0] * 5 + [0.0] * 995), np.full(1000, 2.0))
    ('5 rewards other than 0 support this candidate; 20 are needed for an interval that holds. ...',)
    >>> few_rewards(np.array([9.0] * 50 + [50_000.0] + [0.0] * 949), np.ones(1000))
    ('One reward, 50,000, is 99.1 % of the value: by what they contribute, the effective number of rewards is 1.0...',)
    """
    smallest, largest = float(rewards.min()), float(rewards.max())
    if smallest == largest:
        return (
            f"All {len(rewards):,} rewards are {smallest:g}: they do not vary, and nothing tells how sure a value is. "
            "Wait for other rewards.",
        )
    counts, squared = {}, weights * weights
    for common in (0.0, smallest, largest):
        informative = (rewards != common).astype(np.float64)
        total, squares = float(informative @ weights), float(informative @ squared)
        shared = total * float(weights.sum()) / float(squared.sum()) if total > 0.0 else 0.0
        counts[common] = min(shared, total**2 / squares) if squares > 0.0 else 0.0
    common = min(counts, key=lambda reward: counts[reward])
    if counts[common] < LEAST_REWARDS:
        count = round(counts[common])
        return (
            f"{several(count, 'reward')} other than {common:g} support{'s' * (count == 1)} this candidate; "
            f"{LEAST_REWARDS} are needed for an interval that holds. Wait for more of them, or show its arms more "
            "often.",
        )
    pulls = np.abs(weights * rewards) / max(abs(smallest), abs(largest))  # squares of huge rewards have no number
    number, worst = float(pulls.sum()) ** 2 / float(pulls @ pulls), int(pulls.argmax())
    if number >= LEAST_CONTRIBUTIONS:
        return ()
    return (
        f"One reward, {rewards[worst]:,.6g}, is {percent_text(float(pulls[worst] / pulls.sum()))} of the value: by "
        f"what they contribute, the effective number of rewards is {number:.1f}, and {LEAST_CONTRIBUTIONS:.0f} are "
        "needed. Look whether it is a mistake, or clip rewards.",
    )


def needed(support: Support, least: float = 0.0, ess: float = EFFECTIVE) -> tuple[tuple[float, int], ...]:
    """What exploration would make a candidate answerable: two floors above ``least``, and for how many decisions each.

    Where every offered arm has the probability f at least, E w² = E Σ π²/μ ≤ E Σ π²/f whatever else the policy plays,
    with equality for a candidate that shows what the policy never would; then E w³ = E Σ π³/f².

    >>> import numpy as np
    >>> needed(Support.of(np.ones(50), candidate=np.tile([1.0, 0.0], (50, 1))))
    ((0.2, 500), (0.05, 2000))
    """
    if support.count == 0 or support.arms < 2:
        return ()
    second, third = support.concentration / support.count, support.cubes / support.count
    decisions = max(ess * second, CARRIED * third**2 / second**3)
    floors = [floor for floor in _FLOORS if floor * support.arms <= 0.5] or [0.5 / support.arms]
    higher = [floor for floor in floors if floor > least * (1.0 + 1e-9)]
    return tuple((floor, _rounded_up(decisions / floor)) for floor in higher[:3:2])


def _as_it_is(latest: Support, ess: float) -> int | None:
    """How many decisions of the latest batch's policy would suffice; None where no number would."""
    if not latest.count or (latest.unsupported or 0.0) > MAX_UNSUPPORTED or latest.unlikely:
        return None
    if latest.carried <= 0.0 or (latest.known < latest.count and latest.carried < CARRIED):
        return None
    return _rounded_up(max(ess * latest.spread, CARRIED * latest.count / latest.carried))


def _rounded_up(decisions: float) -> int:
    """To two digits."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(decisions, 1.0))) - 1)
    return max(1, math.ceil(decisions / unit - 1e-9)) * unit


def _uneven_text(support: Support) -> str:
    """Of weights so uneven that few decisions carry everything, or of few decisions."""
    count, least = support.count, f"{CARRIED:.0f}"
    if support.carried > 0.5 * count or count < CARRIED:
        need = least if count < CARRIED else "more"
        return f"{count:,} decision{'s are' if count != 1 else ' is'} too few: {need} are needed."
    many = f"about {support.carried:.0f}" if support.carried >= 1.0 else "less than 1"
    return (
        f"it would often show what the log showed rarely: weights are so uneven that {many} of {count:,} "
        f"decisions carry the answer; {least} are needed."
    )


def _nothing_text(left_out: int) -> str:
    """Of no decisions at all."""
    missing = f" ({several(left_out, 'decision')} without one of them)" if left_out else ""
    return (
        f"no decision has both a reward and all the arms that were offered{missing}. Keep the context sets of all "
        "decisions, or of a sample of them, and wait for rewards."
    )


def _remedy(whole: Support, latest: Support, ess: float) -> list[str]:
    """How many decisions reach an ESS with the latest policy, and how many with more exploration than it has."""
    if whole.arms < 2:
        return ["decisions with more than one arm on offer would help."]
    as_it_is, texts = _as_it_is(latest, ess), []
    if as_it_is is not None:
        texts.append(f"about {as_it_is:,} more decisions of the latest policy would answer")
    floors = needed(whole, latest.least if latest.known else 0.0, ess)
    if options := [option for option in floors if as_it_is is None or option[1] < as_it_is]:
        (floor, decisions), *others = options
        texts.append(
            f"exploration would make it answerable: with min_propensity={floor:g} (the least probability of every "
            f"offered arm) about {decisions:,} more decisions"
            + "".join(f", with min_propensity={floor:g} about {decisions:,}" for floor, decisions in others)
        )
    return [f"{'; or '.join(texts)}."] if texts else []


def _sentence(text: str) -> str:
    """With a capital."""
    return text[:1].upper() + text[1:]
