"""The sample-ratio check: whether arms are shown as often as their propensities say.

Where the probabilities of all offered arms are known, an arm comes Σ μ(a | x) times on average, with the variance
Σ μ(1 − μ), given the contexts and whatever was learned in between. Where only the propensity p of the chosen arm is
known, Σ 1/p over the decisions in which an arm was shown is on average the number of those in which it could have been.

A count is compared with a binomial distribution of the same moments, whose tails hold for rare arms too; it is exact
where propensities do not vary. A sum of 1/p is taken for a count of its average size, as weighted Poisson
counts are. The smallest chance of any arm is multiplied by the number of arms.
"""

from dataclasses import dataclass

import numpy as np

from rareswitch.core import BoolArray, ExtendedFloat, FloatArray, IntArray
from rareswitch.decisions import DecisionLog
from rareswitch.errors import several
from rareswitch.lanes import compiled

__all__ = ["ArmCount", "Calibration"]

#: False alarms on honest logs.
THRESHOLD = 0.01
#: How far recorded propensities may lie from what they should be, as a share, before they are no rounding.
ROUNDING = 2e-3
#: How far from 1 the sum of the propensities of all arms may be in a batch that does not look at contexts.
_MADE_UP = 0.15


@dataclass(frozen=True, kw_only=True)
class ArmCount:
    """How often an arm was shown, and how often its propensities say it should have been."""

    arm: str
    #: Decisions in which it was offered.
    offered: int
    shown: int
    expected: float
    #: (shown − expected) over its standard deviation.
    deviation: ExtendedFloat


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The sample-ratio check: whether arms are shown as often as their propensities say."""

    arms: tuple[ArmCount, ...]
    #: Of the largest deviation, corrected for the number of arms looked at.
    p_value: float
    #: Below this it is an alarm.
    threshold: float
    #: From all arms' probabilities, or from those of the chosen ones alone.
    exact: bool
    #: Decisions whose propensity is not that of their policy, or whose probabilities do not add up to 1.
    disagreeing: int = 0

    @property
    def alarm(self) -> bool:
        """Whether the propensities are wrong."""
        return self.p_value < self.threshold

    @property
    def stops(self) -> bool:
        """Whether that is so unlikely to be chance that no number is given."""
        return self.p_value < self.threshold / 1000.0

    @property
    def words(self) -> str:
        """What it says, in a sentence or two."""
        chance = f"p = {self.p_value:.2g}, {several(len(self.arms), 'arm')}"
        if not self.alarm:
            return f"Sample-ratio check passed ({chance})."
        worst = max(self.arms, key=lambda arm: abs(arm.deviation))
        return (
            f"Sample-ratio check failed ({chance}): {worst.arm} was shown {worst.shown:,} times "
            f"where its propensities say {worst.expected:,.0f}, in {worst.offered:,} decisions that offered it. No "
            "value can be trusted before this is explained: look for decisions that were lost, changed after they were "
            "made, or logged with another policy's propensities."
        )


class ArmTally:
    """Counts of arms over the chunks of a log.

    Arms are those of one id, wherever they stand; those of one place where arms have no ids.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> red = rng.random(5_000) < 0.5
    >>> tally = ArmTally()
    >>> tally.add(DecisionLog(arm_indices=np.where(red, 0, 1), propensities=np.full(5_000, 0.5), rewards=red * 1.0))
    >>> tally.calibration().alarm
    False

    Propensities of the first arm that are too low by a tenth:

    >>> tally = ArmTally()
    >>> recorded = np.where(red, 0.45, 0.5)
    >>> tally.add(DecisionLog(arm_indices=np.where(red, 0, 1), propensities=recorded, rewards=red * 1.0))
    >>> tally.calibration().alarm
    True
    """

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        #: (arms, 5) offered, shown, Σ μ, Σ μ(1 − μ), Σ μ(1 − μ)(1 − 2μ), of decisions with all arms' probabilities.
        self._exact = np.zeros((0, 5))
        #: By batch, (arms, 4) offered, shown, Σ 1/p and Σ 1/p² where it was shown, of the others.
        self._inverse: dict[str, FloatArray] = {}
        self._disagreeing = 0

    def add(self, chunk: DecisionLog, behavior_probs: FloatArray | None = None) -> None:
        """Count decisions; ``behavior_probs`` (n, K) are those of all arms under the policies that decided."""
        width = chunk.available.shape[1]
        codes = np.arange(width)[None] if chunk.codes is None else chunk.codes
        labels = tuple(map(str, range(width))) if chunk.arms is None or chunk.codes is None else chunk.arms
        rows = np.array([self._names.setdefault(label, len(self._names)) for label in labels], dtype=np.int64)
        if behavior_probs is not None:
            sums = np.zeros((len(labels), 5))
            self._disagreeing += _count_all(
                chunk.available, codes, chunk.arm_indices, chunk.propensities, behavior_probs, sums
            )
            self._exact = _added(self._exact, rows, sums)
            return
        by_batch = np.zeros((len(chunk.batch_names), len(labels), 4))
        _count_chosen(chunk.available, codes, chunk.arm_indices, chunk.propensities, chunk.batches, by_batch)
        for name, sums in zip(chunk.batch_names, by_batch, strict=True):
            if sums.any():
                self._inverse[name] = _added(self._inverse.get(name, np.zeros((0, 4))), rows, sums)

    def calibration(self) -> Calibration | None:
        """The result; None where nothing was counted, or all decisions had one arm only."""
        arms = len(self._names)
        parts = [_from_all(_padded(self._exact, arms))] if len(self._exact) else []
        if self._inverse:
            parts.append(_from_chosen(np.stack([_padded(batch, arms) for batch in self._inverse.values()])))
        if not parts:
            return None
        offered, shown, expected, variance = np.sum([part[:, :4] for part in parts], axis=0).T
        there = offered > 0
        if there.sum() < 2:
            return None
        tests = sum(int((part[there, 0] > 0).sum()) for part in parts)
        if tests == 2 and not self._inverse:  # what one of two arms has too much, the other lacks: one test
            tests = 1
        smallest = min(float(part[there, 4].min()) for part in parts)
        counts = zip(self._names, offered, shown, expected, variance, there, strict=True)
        return Calibration(
            arms=tuple(_counted(name, *map(float, count[:4])) for name, *count in counts if count[4]),
            p_value=0.0 if self._disagreeing else min(1.0, tests * smallest),
            threshold=THRESHOLD,
            exact=not self._inverse,
            disagreeing=self._disagreeing,
        )


def _from_all(sums: FloatArray) -> FloatArray:
    """(arms, 5) offered, shown, how often it should have been, the variance of that, and the chance of the distance."""
    offered, shown, mean, variance, third = sums.T
    upper, lower = binomial_tails(shown, mean, variance, third, offered)
    return np.column_stack([sums[:, :4], np.minimum(1.0, 2.0 * np.minimum(upper, lower))])


def _from_chosen(batches: FloatArray) -> FloatArray:
    """The same from (batches, arms, 4) sums of 1/p."""
    offered, shown, inverse, _ = batches.sum(axis=0).T
    upper, _ = _inverse_tails(batches)
    _, lower = _inverse_tails(np.where(_context_free(batches)[:, None, None] & (batches[:, :, 1:2] > 0), batches, 0.0))
    rate = np.divide(shown, inverse, out=np.zeros(len(shown)), where=shown > 0)
    chance = np.minimum(1.0, 2.0 * np.minimum(upper, lower))
    return np.column_stack([offered, shown, offered * rate, offered * rate * (1.0 - rate), chance])


def _inverse_tails(batches: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of sums of 1/p as large or as small as these: in units of their average size they are taken for counts."""
    offered, shown, inverse, squares = batches.sum(axis=0).T
    size = np.divide(squares, inverse, out=np.ones(len(shown)), where=shown > 0)
    mean = offered / size
    # the variance is Σ (1 − p)/p² where an arm was shown, in proportion to what is compared: not so in its mean
    share = np.divide(inverse, squares, out=np.ones(len(shown)), where=shown > 0)
    variance = mean * (1.0 - share)
    upper, lower = binomial_tails(inverse / size, mean, variance, variance * (1.0 - 2.0 * share), offered)
    return np.where(shown > 0, upper, 1.0), np.where(shown > 0, lower, 1.0)


def _context_free(batches: FloatArray) -> BoolArray:
    """(batches,) whose arms have one propensity each, which together make up all decisions.

    In others an arm may have had probability 0, or nearly, at times. Then Σ 1/p falls short of the offers in an honest
    log too, and only an excess says something.
    """
    offered, shown, inverse, squares = np.moveaxis(batches, 2, 0)
    there = shown > 0
    varied = (squares * shown > (1.0 + 1e-6) * inverse**2) & there
    rate = np.divide(shown, inverse, out=np.zeros(shown.shape), where=there)
    made_up = (rate * offered).sum(axis=1) / np.maximum(shown.sum(axis=1), 1.0)
    return np.asarray(~varied.any(axis=1) & (np.abs(made_up - 1.0) <= _MADE_UP))


def binomial_tails(
    count: FloatArray, mean: FloatArray, variance: FloatArray, third: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """P(X ≥ count) and P(X ≤ count) of sums X of at most ``most`` independent events, of which three moments are known.

    Of the binomial distribution that, moved, has the same mean, variance Σ μ(1 − μ) and third central moment
    Σ μ(1 − μ)(1 − 2μ): it is the distribution itself where all events are alike. Counts that are impossible there,
    though they are not in the sum, have the chance in that of the same mean and ``most`` events: its tails are heavier.

    >>> [float(tail.round(4)) for tail in binomial_tails(*map(np.array, (8.0, 5.0, 2.5, 0.0, 10.0)))]
    [0.0547, 0.9893]
    """
    from scipy import special

    certain = variance <= 1e-9 * np.maximum(mean, 1.0)
    variance = np.where(certain, 1.0, variance)
    share = np.clip(0.5 - 0.5 * third / variance, 1e-7, 1.0 - 1e-7)
    trials = variance / (share * (1.0 - share))
    moved = count - (mean - trials * share)
    wide = (moved < 0.0) | (moved > trials)
    share = np.where(wide, np.clip(mean / np.maximum(most, 1.0), 0.0, 1.0), share)
    trials, moved = np.where(wide, np.maximum(most, count), trials), np.where(wide, count, moved)
    upper = np.where(moved > 0.0, special.betainc(np.maximum(moved, 1e-9), trials - moved + 1.0, share), 1.0)
    left = trials - moved
    lower = np.where(left > 0.0, special.betaincc(moved + 1.0, np.maximum(left, 1e-9), share), 1.0)
    same = np.abs(count - mean) <= 0.5
    return np.where(certain, same | (count < mean), upper), np.where(certain, same | (count > mean), lower)


def _counted(name: str, offered: float, shown: float, expected: float, variance: float) -> ArmCount:
    gap = shown - expected
    deviation = gap / np.sqrt(variance) if variance > 0.0 else (0.0 if abs(gap) <= 0.5 else np.copysign(np.inf, gap))
    return ArmCount(arm=name, offered=int(offered), shown=int(shown), expected=expected, deviation=float(deviation))


@compiled
def _count_all(available, codes, places, propensities, logging, sums):  # type: ignore[no-untyped-def]
    """Offers, choices and the moments of each arm; how many propensities or sums of probabilities are wrong."""
    wrong = 0
    for s in range(available.shape[0]):
        row = s if codes.shape[0] > 1 else 0
        total = 0.0
        for i in range(available.shape[1]):
            if available[s, i]:
                arm, share = codes[row, i], logging[s, i]
                total += share
                sums[arm, 0] += 1.0
                sums[arm, 2] += share
                sums[arm, 3] += share * (1.0 - share)
                sums[arm, 4] += share * (1.0 - share) * (1.0 - 2.0 * share)
        sums[codes[row, places[s]], 1] += 1.0
        own = logging[s, places[s]]
        wrong += abs(total - 1.0) > ROUNDING or abs(own - propensities[s]) > ROUNDING * propensities[s]
    return wrong


@compiled
def _count_chosen(available, codes, places, propensities, batches, sums):  # type: ignore[no-untyped-def]
    """Offers, choices, Σ 1/p and Σ 1/p² of each arm in each batch."""
    for s in range(available.shape[0]):
        row = s if codes.shape[0] > 1 else 0
        for i in range(available.shape[1]):
            if available[s, i]:
                sums[batches[s], codes[row, i], 0] += 1.0
        chosen, inverse = codes[row, places[s]], 1.0 / propensities[s]
        sums[batches[s], chosen, 1] += 1.0
        sums[batches[s], chosen, 2] += inverse
        sums[batches[s], chosen, 3] += inverse * inverse


def _added(sums: FloatArray, rows: IntArray, more: FloatArray) -> FloatArray:
    sums = _padded(sums, int(rows.max()) + 1)
    sums[rows] += more
    return sums


def _padded(sums: FloatArray, arms: int) -> FloatArray:
    return np.concatenate([sums, np.zeros((max(0, arms - len(sums)), sums.shape[1]))])
