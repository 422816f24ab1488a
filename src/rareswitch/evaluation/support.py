"""Whether a log can answer for a candidate at all: what is known without looking at a single reward.

A decision of the log counts for a candidate π with the weight w = π(a | x)/μ(a | x), where μ is the policy that
decided. Where π shows what μ could not have shown, no number of decisions helps: the mean weight is below 1 by that
share, and the usual effective sample size (Σw)²/Σw² does not notice. Where μ could, but rarely did, few decisions carry
everything. Both are read off the probabilities alone, so that what is refused does not hang on what was earned.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from rareswitch.evaluation.results import Overlap
from rareswitch.validation import BoolArray, FloatArray, sealed

#: Most of a candidate's play that may have had probability 0.
UNCOVERED = 0.001
#: Most of a candidate's play that may be thin: a single decision of it weighs over 1/WEIGHTY of all.
THIN = 0.01
WEIGHTY = 30.0
#: Decisions of the candidate itself that a batch must be worth to be used, and that all used ones must be.
BATCH_EFFECTIVE = 30.0
EFFECTIVE = 100.0
#: Chance of a mean weight this far from 1, below which it is no chance: of one batch, and of all together.
BATCH_CHANCE = 0.001
CHANCE = 0.01
#: Weights above 2^LARGEST count as infinite: nobody logs that many decisions.
_LARGEST = 40
#: Weights up to 2^SMALLEST are no tail.
_SMALLEST = 4
_FLOORS = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)


@dataclass(frozen=True, eq=False, kw_only=True)
class Support:
    """Sums over decisions of one batch, for one candidate; add up.

    Examples
    --------
    Two arms, of which the log showed the first alone:

    >>> candidate, logging = np.full((50, 2), 0.5), np.tile([1.0, 0.0], (50, 1))
    >>> support = Support.of(np.full(50, 0.5), candidate=candidate, logging=logging)
    >>> support.mean_weight, support.uncovered
    (0.5, 0.5)
    >>> (support + support).count
    100
    """

    count: int
    #: Decisions of these of which the probabilities of all offered arms are known.
    known: int
    #: Σ w, Σ w², and the largest w.
    weights: float
    squares: float
    largest: float
    #: Σ_x Σ_a π²/μ over what μ could show; w² where only the propensity of the chosen arm is known.
    spreads: float
    #: Σ_x Σ_a π where μ is 0, of the known ones.
    missed: float
    #: Σ_x Σ_a π²: 1 each where the candidate has no choice of its own, less where it draws.
    concentration: float
    #: Most arms that were offered at once.
    arms: int
    #: Σ π by the power of two of π/μ: that of place e lies in (2^(e − 1), 2^e].
    tail: FloatArray

    @classmethod
    def zero(cls) -> Self:
        """Of no decisions."""
        none = dict.fromkeys(("weights", "squares", "largest", "spreads", "missed", "concentration"), 0.0)
        return cls(count=0, known=0, arms=0, tail=sealed(np.zeros(_LARGEST + 2)), **none)

    @classmethod
    def of(
        cls,
        weights: FloatArray,
        *,
        candidate: FloatArray,
        logging: FloatArray | None = None,
        alive: BoolArray | None = None,
    ) -> Self:
        """Of decisions of one batch.

        Parameters
        ----------
        weights
            (n,) the candidate's probability of the chosen arm over the propensity.
        candidate
            (n, K) the candidate's probabilities π, 0 where an arm was not offered.
        logging
            (n, K) those of the policy that decided, μ, where they are known.
        alive
            (n, K) which arms were offered; all by default.
        """
        if len(weights) == 0:
            return cls.zero()
        if logging is None:
            spreads, missed, tail = float(weights @ weights), 0.0, _octaves(weights, weights)
        else:
            seen = logging > candidate * 2.0**-_LARGEST
            ratios = np.divide(candidate, logging, out=np.zeros(candidate.shape), where=seen)
            spreads = float(np.vdot(ratios, candidate))
            missed = 0.0 if seen.all() else float(candidate.sum(where=~seen))
            tail = _octaves(ratios.reshape(-1), candidate.reshape(-1))
        return cls(
            count=len(weights),
            known=0 if logging is None else len(weights),
            weights=float(weights.sum()),
            squares=float(weights @ weights),
            largest=float(weights.max()),
            spreads=spreads,
            missed=missed,
            concentration=float(np.vdot(candidate, candidate)),
            arms=candidate.shape[1] if alive is None else int(alive.sum(axis=1).max()),
            tail=tail,
        )

    def __add__(self, other: Self) -> Self:
        return type(self)(
            count=self.count + other.count,
            known=self.known + other.known,
            weights=self.weights + other.weights,
            squares=self.squares + other.squares,
            largest=max(self.largest, other.largest),
            spreads=self.spreads + other.spreads,
            missed=self.missed + other.missed,
            concentration=self.concentration + other.concentration,
            arms=max(self.arms, other.arms),
            tail=sealed(self.tail + other.tail),
        )

    @property
    def mean_weight(self) -> float:
        """Should be 1."""
        return self.weights / self.count if self.count else 0.0

    @property
    def mean_weight_error(self) -> float:
        """Standard error of the mean weight: exact given the contexts where all probabilities are known."""
        if self.count < 2:
            return math.inf
        if self.known == self.count:
            return math.sqrt(max(self.spread - (1.0 - self.missed / self.count) ** 2, 0.0) / self.count)
        variance = (self.squares - self.weights * self.mean_weight) / (self.count - 1)
        return math.sqrt(max(variance, 0.0) / self.count)

    @property
    def spread(self) -> float:
        """E Σ π²/μ = E_π[w], over what could be shown: the variance of the weights is this less 1."""
        return self.spreads / self.count if self.count else math.inf

    @property
    def uncovered(self) -> float | None:
        """Share of the candidate's play that had probability 0; None where that is not known."""
        return self.missed / self.known if self.known else None

    @property
    def effective(self) -> float:
        """As many decisions of the candidate itself would tell as much: n/spread."""
        return self.count / self.spread if self.spreads > 0.0 else 0.0

    @property
    def largest_share(self) -> float:
        """Of the largest weight in the sum of all."""
        return self.largest / self.weights if self.weights > 0.0 else 1.0

    @property
    def thin(self) -> float:
        """Share of the candidate's play on arms so rare that one decision would weigh over 1/30 of all."""
        if self.count == 0:
            return 1.0
        first = max(_SMALLEST + 1, math.ceil(math.log2(max(self.count / WEIGHTY, 1.0))) + 1)
        return float(self.tail[first:].sum()) / self.count


def _octaves(ratios: FloatArray, masses: FloatArray) -> FloatArray:
    """Σ of masses by the power of two of the ratios, of those above 2^SMALLEST."""
    large = np.flatnonzero(ratios > 2.0**_SMALLEST)
    if large.size == 0:
        return sealed(np.zeros(_LARGEST + 2))
    powers = np.minimum(np.frexp(ratios[large])[1], _LARGEST + 1)
    return sealed(np.bincount(powers, masses[large], minlength=_LARGEST + 2).astype(np.float64, copy=False))


class _Fault(NamedTuple):
    """Why decisions cannot answer: the kind, and what to say."""

    kind: str
    text: str


def batch_reasons(support: Support) -> tuple[str, ...]:
    """Why a batch cannot answer, in words; empty where it can. Looks at no reward.

    >>> batch_reasons(Support.of(np.full(50, 0.5), candidate=np.full((50, 2), 0.5)))
    ('the mean weight is 0.50 and should be 1: ...',)
    """
    return tuple(fault.text for fault in _faults(support))


def _faults(support: Support) -> list[_Fault]:
    if support.count == 0:
        return [_Fault("empty", "no decision of it has both a reward and all the arms that were offered.")]
    found = []
    uncovered = support.uncovered or 0.0
    if uncovered > UNCOVERED:
        found.append(_Fault("uncovered", _uncovered_text(support)))
    elif _chance(support) < BATCH_CHANCE:
        found.append(_Fault("mean weight", _mean_text(support)))
    if support.thin > THIN:
        found.append(_Fault("thin", _thin_text(support)))
    if support.effective < BATCH_EFFECTIVE:
        found.append(_Fault("effective", _effective_text(support, BATCH_EFFECTIVE)))
    return found


def _chance(support: Support) -> float:
    """Of a mean weight this far from 1 or farther, in a log that shows everything with its propensities."""
    gap = abs(support.mean_weight - 1.0)
    if gap <= 1e-9:
        return 1.0
    error = support.mean_weight_error
    return float(2.0 * special.ndtr(-gap / error)) if error > 0.0 else 0.0


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
    >>> log = Support.of(np.full(50, 0.5), candidate=np.full((50, 2), 0.5), logging=np.tile([1.0, 0.0], (50, 1)))
    >>> kept, reasons = refusals([log])
    >>> kept
    ()
    >>> print(reasons[0])
    50 % of what this policy would show had probability 0 in the log (mean weight 0.50, should be 1); ...
    >>> print(reasons[-1])
    Exploration would make it answerable: with floor=0.2 ... about 250 more decisions, with floor=0.05 about 1,000.
    """
    whole = sum(supports, Support.zero())
    if whole.count == 0:
        missing = f" ({left_out:,} decisions lack one of them)" if left_out else ""
        return (), (
            f"No decision has both a reward and all the arms that were offered{missing}. Keep the context sets of all "
            "decisions, or of a sample of them, and wait for rewards.",
        )
    faults = [_faults(support) for support in supports]
    kept = tuple(batch for batch, found in enumerate(faults) if not found)
    used = sum((supports[batch] for batch in kept), Support.zero())
    # batches are pooled with weights 1/error, error² in proportion to 1/effective
    effective = sum(math.sqrt(supports[batch].effective) for batch in kept) ** 2 / max(len(kept), 1)
    level = BATCH_CHANCE if used.known == used.count else CHANCE
    unlikely = bool(kept) and _chance(used) < level
    if effective >= EFFECTIVE and not unlikely:
        return kept, ()
    reasons = []
    describe = {"uncovered": _uncovered_text, "mean weight": _mean_text, "thin": _thin_text}
    for kind, words in describe.items():
        batches = [batch for batch, found in enumerate(faults) if any(fault.kind == kind for fault in found)]
        if batches:
            where = "" if len(batches) == len(supports) else f"In {_batches(len(batches))} of {len(supports)}, "
            said = words(sum((supports[batch] for batch in batches), Support.zero()))
            reasons.append(where + (said if where else said[0].upper() + said[1:]))
    if unlikely:
        reasons.append(_sentence(_mean_text(used)))
    if effective < EFFECTIVE:
        reasons.append(_few(whole, used, len(kept), len(supports), effective))
    reasons.append(_remedy(whole, supports))
    return kept, tuple(reasons)


def needed(support: Support) -> tuple[tuple[float, int], ...]:
    """What exploration would make a candidate answerable: two floors, and for how many decisions each.

    Where every offered arm has the probability f at least, E Σ π²/μ ≤ E Σ π²/f, and n decisions are worth
    n f/E Σ π² of the candidate's own, whatever the policy plays otherwise.

    >>> needed(Support.of(np.ones(50), candidate=np.tile([1.0, 0.0], (50, 1))))
    ((0.2, 500), (0.05, 2000))
    """
    if support.count == 0 or support.arms < 2:
        return ()
    concentration = support.concentration / support.count
    floors = [floor for floor in _FLOORS if floor * support.arms <= 0.5] or [0.5 / support.arms]
    return tuple((floor, _rounded_up(EFFECTIVE * concentration / floor)) for floor in floors[:3:2])


def overlap(supports: Sequence[Support]) -> Overlap:
    """How well batches support a candidate, all together."""
    whole = sum(supports, Support.zero())
    return Overlap(
        decisions=whole.count,
        mean_weight=whole.mean_weight,
        mean_weight_error=whole.mean_weight_error,
        uncovered=whole.uncovered,
        effective=whole.effective,
        largest=whole.largest,
        largest_share=whole.largest_share,
    )


def _uncovered_text(support: Support) -> str:
    return (
        f"{_percent(support.uncovered or 0.0)} of what this policy would show had probability 0 in the log (mean "
        f"weight {support.mean_weight:.2f}, should be 1); at most {_percent(UNCOVERED)} may be missing."
    )


def _mean_text(support: Support) -> str:
    missing = max(0.0, 1.0 - support.mean_weight)
    shown = f"{_percent(missing)} of what this policy would show was never shown, or " if missing > 0.0 else ""
    return (
        f"the mean weight is {support.mean_weight:.2f} and should be 1: {shown}propensities are wrong (chance alone "
        f"would explain an error of {3.3 * support.mean_weight_error:.2f})."
    )


def _thin_text(support: Support) -> str:
    return (
        f"{_percent(support.thin)} of what this policy would show was so rare in the log that a single decision weighs "
        f"over 1/{WEIGHTY:.0f} of all; at most {_percent(THIN)} may be."
    )


def _effective_text(support: Support, least: float) -> str:
    return (
        f"its {support.count:,} decisions tell as much as {support.effective:.1f} of this policy itself; "
        f"{least:.0f} are needed."
    )


def _few(whole: Support, used: Support, kept: int, batches: int, effective: float) -> str:
    if kept == 0:
        return f"None of {_batches(batches)} ({whole.count:,} decisions) can answer alone: all are left out."
    return (
        f"{_batches(kept).capitalize()} of {batches} can answer, and {'its' if kept == 1 else 'their'} {used.count:,} "
        f"decisions tell as much as {effective:.0f} of this policy itself; {EFFECTIVE:.0f} are needed."
    )


def _remedy(whole: Support, supports: Sequence[Support]) -> str:
    options = needed(whole)
    if not options:
        return "More decisions with other arms on offer would make it answerable."
    (floor, decisions), *others = options
    text = (
        f"Exploration would make it answerable: with floor={floor:g} (the least probability of every offered arm) "
        f"about {decisions:,} more decisions"
    )
    text += "".join(f", with floor={floor:g} about {decisions:,}" for floor, decisions in others)
    last = supports[-1]
    if last.count and not {fault.kind for fault in _faults(last)} & {"uncovered", "mean weight", "thin"}:
        like_these = _rounded_up(EFFECTIVE * last.spread)
        text += f"; with the latest policy as it is about {like_these:,}"
    return text + "."


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _batches(count: int) -> str:
    return f"{count} batch{'es' * (count != 1)}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %" if share >= 0.1 else f"{100.0 * share:.2g} %"


def _rounded_up(decisions: float) -> int:
    """To two digits."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(decisions, 1.0))) - 1)
    return max(1, math.ceil(decisions / unit - 1e-9)) * unit
