"""What one way to choose earns more than another, on the same decisions: gains, and the lift over the baseline."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from rareswitch.evaluation.anytime import mixture_bound
from rareswitch.evaluation.estimators import Estimate
from rareswitch.evaluation.how import How
from rareswitch.evaluation.intervals import Pool, around, skewed
from rareswitch.evaluation.results import Difference, Interval
from rareswitch.evaluation.scoring import Scores
from rareswitch.evaluation.support import Support, refusals
from rareswitch.validation import BoolArray, FloatArray

_WEEK = 7 * 86400.0
#: Seconds from 1970 within which years have four digits.
_LATEST = 6e10
#: Monday, 1970-01-05, in seconds since 1970.
_MONDAY = 4 * 86400.0


def earned(scores: Scores, how: How) -> Interval:
    """What was earned a decision, over all batches."""
    parts = [scores.rewards[scores.batches == batch] for batch in np.unique(scores.batches).tolist()]
    return _combined([(len(part) / len(scores.rewards), _mean(part)) for part in parts], [], how)


def difference(scores: Scores, name: str, how: How) -> Difference:
    """What a candidate would have earned more than what was logged."""
    scored = scores.candidates[name]
    return _Wanted(scores, name, name, "logged", how).difference(scored.applies, scored.supports)


def lift(scores: Scores, baseline: str, *, level: float = 0.95, anytime: bool = False) -> tuple[Difference, ...]:
    """What was earned more than the baseline would have, so far and in each week from Monday to Sunday (UTC).

    Only decisions that name a baseline count; empty where none does.
    """
    scored = scores.candidates[baseline]
    if not scored.applies.any():
        return ()
    wanted = _Wanted(scores, baseline, "so far", "baseline", How(level=level, anytime=anytime))
    found = [wanted.difference(scored.applies, scored.supports)]
    known = scored.applies & (np.abs(scores.times) <= _LATEST)  # others have no date
    weeks = np.floor((scores.times - _MONDAY) / _WEEK)
    for week in np.unique(weeks[known]).tolist():
        monday = datetime(1970, 1, 5, tzinfo=UTC) + timedelta(weeks=week)
        which = known & (weeks == week)
        supports = [_support(scored.weights[which & (scores.batches == b)]) for b in range(len(scores.batch_names))]
        one = replace(wanted, label=f"week of {monday:%Y-%m-%d}", alone=True)
        found.append(one.difference(which, supports))
    return tuple(found)


def _support(weights: FloatArray) -> Support | None:
    return Support.of(weights, candidate=np.ones((len(weights), 1))) if len(weights) else None


@dataclass(frozen=True, eq=False)
class _Wanted:
    """A difference between a candidate and what was logged."""

    scores: Scores
    #: Of the candidate.
    name: str
    label: str
    #: What is taken off: ``logged``, or the candidate.
    over: str
    how: How
    #: Whether every batch must answer for itself.
    alone: bool = False

    def difference(self, which: BoolArray, supports: Sequence[Support | None]) -> Difference:
        """Of some decisions (n,).

        Where all batches can answer, what was earned and what would have been are compared on the same decisions.
        Otherwise the candidate's value is that of the batches that can, and traffic is taken to have been alike.
        """
        scores = self.scores
        present = [batch for batch, support in enumerate(supports) if support is not None]
        kept, reasons = refusals([support for support in supports if support is not None])
        if self.alone and (reasons or len(kept) < len(present)):
            reasons = (
                "policies of these weeks hardly ever show what the baseline would, so nothing can be said of the week "
                "alone. Keep every arm at a least probability: arm_floor=….",
            )
        if scores.mismatch:
            reasons = (scores.mismatch,)
        if not present:
            reasons = ("no decision is for it.",)
        if reasons:
            return self._told(int(which.sum()), refusals=reasons)
        columns = {batch: scores.columns(self.name, which & (scores.batches == batch)) for batch in present}
        told = [support for support in supports if support is not None]
        would = {present[at]: self.how.estimate(columns[present[at]], told[at]) for at in kept}
        total = sum(len(one.rewards) for one in columns.values())
        did = [(len(one.rewards) / total, _mean(one.rewards)) for one in columns.values()]
        if len(would) == len(present):
            parts: list[_Part] = [(share, would[batch]) for batch, (share, _) in zip(present, did, strict=True)]
            assumes = ""
        else:
            scales = {batch: math.sqrt(one.effective) for batch, one in enumerate(supports) if one and batch in would}
            parts = [
                (scales[batch] / sum(scales.values()), would[batch]) if batch in would else None for batch in present
            ]
            seen = ", ".join(str(batch + 1) for batch in would)
            assumes = f"as seen in batch{'es' * (len(would) > 1)} {seen}, traffic taken to have been alike"
        interval = _combined(parts, did, self.how)
        pair = (_total(parts), _total(did))
        if self.over != "logged":
            interval, pair = _turned(interval), pair[::-1]
        return self._told(total, interval=interval, value=pair[0], other=pair[1], assumes=assumes)

    def _told(self, decisions: int, **more: Any) -> Difference:
        return Difference(name=self.label, over=self.over, decisions=decisions, **{"interval": None} | more)


#: A batch's share in a sum, and its estimate; None where it is not in it.
_Part = tuple[float, Estimate] | None


def _combined(parts: Sequence[_Part], less: Sequence[_Part], how: How) -> Interval:
    """Σ share·estimate of batches, less another such sum of the same batches, where there is one."""
    variances, third = [], 0.0
    for at, part in enumerate(parts):
        pulls, least, alike = (0.0, 0.0, 0.0) if part is None else _scaled(*part)
        other = less[at] if less else None
        if other is not None:
            pulls = pulls - other[0] * other[1].pulls
        made = Estimate(0.0, np.asarray(pulls), least, alike)
        variances.append(made.error**2)
        third += made.skew
    variance, value = sum(variances), _total(parts) - _total(less)
    if how.anytime and 0.0 < variance < math.inf:
        half = mixture_bound(np.array(variances), how.level) * math.sqrt(variance)
        return around(value, half, level=how.level, kind="anytime")
    skewness = third / variance**1.5 if variance > 0.0 else 0.0
    found = Pool(value, math.sqrt(variance) or math.inf, math.inf, skewness)  # rewards all alike tell no error
    return skewed(found, level=how.level, kind="by batch")


def _scaled(share: float, made: Estimate) -> tuple[Any, float, float]:
    """Pulls, least error and third moment of a share of an estimate."""
    return share * made.pulls, share * made.least, share**3 * made.third


def _total(parts: Sequence[_Part]) -> float:
    return sum(part[0] * part[1].value for part in parts if part is not None)


def _turned(interval: Interval) -> Interval:
    return replace(interval, value=-interval.value, low=-interval.high, high=-interval.low)


def _mean(rewards: FloatArray) -> Estimate:
    value = float(rewards.mean())
    return Estimate(value, rewards - value)
