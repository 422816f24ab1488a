"""What one way to choose earns more than another, on the same decisions: gains, and the lift over the baseline."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from rareswitch.core import BoolArray, FloatArray
from rareswitch.evaluation.anytime import mixture_bound
from rareswitch.evaluation.estimators import Estimate
from rareswitch.evaluation.intervals import Pool, around, skewed
from rareswitch.evaluation.refusals import refusals
from rareswitch.evaluation.results import Difference, Interval
from rareswitch.evaluation.scoring import Scores
from rareswitch.evaluation.settings import Settings
from rareswitch.evaluation.support import Support

_WEEK = 7 * 86400.0
#: Seconds from 1970 within which years have four digits.
_LATEST = 6e10
#: Monday, 1970-01-05, in seconds since 1970.
_MONDAY = 4 * 86400.0
#: Of the decisions of a week: policies with fewer, as after an update at its beginning, are left out of it.
_FEW = 0.01


def earned(scores: Scores, settings: Settings) -> Interval:
    """What was earned a decision, over all batches."""
    parts = [scores.rewards[scores.batches == batch] for batch in np.unique(scores.batches).tolist()]
    return _combined([_mean(part, len(part) / len(scores.rewards)) for part in parts], settings)


def difference(scores: Scores, name: str, settings: Settings) -> Difference:
    """What a candidate would have earned more than what was logged."""
    scored = scores.candidates[name]
    return _Wanted(scores, name, name, "logged", settings).difference(scored.applies, scored.supports)


def lift(scores: Scores, baseline: str, *, level: float = 0.95, anytime: bool = False) -> tuple[Difference, ...]:
    """What was earned more than the baseline would have, so far and in each week from Monday to Sunday (UTC).

    Only decisions that name a baseline count; empty where none does. A week is without the policies that made less than
    1 % of its decisions.
    """
    scored = scores.candidates[baseline]
    if not scored.applies.any():
        return ()
    wanted = _Wanted(scores, baseline, "so far", "baseline", Settings(level=level, anytime=anytime))
    found = [wanted.difference(scored.applies, scored.supports)]
    known = scored.applies & (np.abs(scores.times) <= _LATEST)  # others have no date
    weeks = np.floor((scores.times - _MONDAY) / _WEEK)
    for week in np.unique(weeks[known]).tolist():
        monday = datetime(1970, 1, 5, tzinfo=UTC) + timedelta(weeks=week)
        which = known & (weeks == week)
        counts = np.bincount(scores.batches[which], minlength=len(scores.batch_names))
        which &= (counts >= _FEW * counts.sum())[scores.batches]
        few = int(counts.sum()) - int(which.sum())
        supports = [_support(scored.weights[which & (scores.batches == b)]) for b in range(len(scores.batch_names))]
        one = replace(wanted, label=f"week of {monday:%Y-%m-%d}", alone=True)
        made = one.difference(which, supports)
        found.append(replace(made, assumes=f"without {few} decisions of other policies") if few else made)
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
    settings: Settings
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
                "a policy of these weeks hardly ever showed what the baseline would, or decided too little, so nothing "
                "can be said of the week alone. Keep every arm at a least probability: min_propensity=….",
            )
        if scores.mismatch:
            reasons = (scores.mismatch,)
        if not present:
            reasons = ("no decision is for it.",)
        if reasons:
            return self._told(int(which.sum()), refusals=reasons)
        columns = {batch: scores.columns(self.name, which & (scores.batches == batch)) for batch in present}
        total = sum(len(one.rewards) for one in columns.values())
        shares = {batch: len(one.rewards) / total for batch, one in columns.items()}
        able, scales, assumes = [present[at] for at in kept], shares, ""
        if len(able) < len(present):
            scales = {batch: math.sqrt(one.effective) for batch, one in enumerate(supports) if one and batch in able}
            seen = ", ".join(str(batch + 1) for batch in able)
            assumes = f"as seen in batch{'es' * (len(able) > 1)} {seen}, traffic taken to have been alike"
        parts = []
        for batch, support in enumerate(supports):
            if support is not None and batch in able:
                scale = scales[batch] / sum(scales.values())
                parts.append(self.settings.paired(columns[batch], support, scale, shares[batch]))
            elif support is not None:
                parts.append(_mean(columns[batch].rewards, -shares[batch]))
        interval = _combined(parts, self.settings)
        did = sum(shares[batch] * float(one.rewards.mean()) for batch, one in columns.items())
        pair = (did + interval.value, did)
        if self.over != "logged":
            interval, pair = _turned(interval), pair[::-1]
        return self._told(total, interval=interval, value=pair[0], other=pair[1], assumes=assumes)

    def _told(self, decisions: int, **more: Any) -> Difference:
        return Difference(name=self.label, over=self.over, decisions=decisions, **{"interval": None} | more)


def _combined(parts: Sequence[Estimate], settings: Settings) -> Interval:
    """The sum of estimates of batches."""
    value, variances = sum(part.value for part in parts), [part.error**2 for part in parts]
    variance = sum(variances)
    if settings.anytime and 0.0 < variance < math.inf:
        half = mixture_bound(np.array(variances), settings.level) * math.sqrt(variance)
        return around(value, half, level=settings.level, kind="anytime")
    skewness = sum(part.skew for part in parts) / variance**1.5 if variance > 0.0 else 0.0
    found = Pool(value, math.sqrt(variance) or math.inf, math.inf, skewness)  # rewards all alike tell no error
    return skewed(found, level=settings.level, kind="by batch")


def _turned(interval: Interval) -> Interval:
    return replace(interval, value=-interval.value, low=-interval.high, high=-interval.low)


def _mean(rewards: FloatArray, share: float) -> Estimate:
    """A share of the mean reward."""
    value = float(rewards.mean())
    return Estimate(share * value, share * (rewards - value))
