"""The value of one candidate: the batches that can answer for it, pooled; or why there is no number."""

from dataclasses import dataclass, replace

import numpy as np

from rareswitch.core import FloatArray
from rareswitch.evaluation.anytime import anytime, bounded
from rareswitch.evaluation.estimators import ESTIMATORS, Columns, Estimate
from rareswitch.evaluation.importance_weights import weight_counts
from rareswitch.evaluation.intervals import iid, moved, pooled
from rareswitch.evaluation.refusals import DRIFTED, log_cautions, refusals
from rareswitch.evaluation.results import BatchValue, Interval, Value
from rareswitch.evaluation.scoring import Scores
from rareswitch.evaluation.settings import Settings
from rareswitch.evaluation.support import Support, effective, overlap
from rareswitch.log import Source


def value_of(scores: Scores, name: str, log: Source, settings: Settings) -> Value:
    """What is known of one candidate."""
    scored = scores.candidates[name]
    found = {batch: support for batch, support in enumerate(scored.supports) if support is not None}
    if not found:
        reason = f"All decisions of this log {scored.otherwise}. Name one that they are for."
        return Value(
            candidate=name, interval=None, refusals=(reason,), estimator=settings.estimator, overlap=overlap([])
        )
    supports, numbers = [*found.values()], [*found]
    kept, reasons = refusals(supports)
    if scores.mismatch:
        reasons = (scores.mismatch, *reasons)
    usable = [] if reasons else [numbers[at] for at in kept]
    columns = {batch: scores.columns(name, scored.applies & (scores.batches == batch)) for batch in found}
    batches = tuple(
        _batch_value(scores, batch, found[batch], columns[batch], settings, batch in usable) for batch in found
    )
    value = Value(
        candidate=name,
        interval=None,
        refusals=reasons,
        estimator=settings.estimator,
        overlap=replace(
            overlap(supports),
            effective=effective([supports[at] for at in kept]),
            weights=tuple(weight_counts(scored.weights[scored.applies]).tolist()),
        ),
        batches=batches,
        cautions=_cautions(scores, name, log, left=[batch for batch in found if batch not in usable]),
    )
    if reasons:
        return value
    pool = _Pool([columns[batch] for batch in usable], [found[batch] for batch in usable], settings)
    moving = pool.moved()
    if moving < DRIFTED:
        caution = (
            f"the value drifted between batches (p = {moving:.2g}): contexts or rewards changed over time, and the "
            "pooled value speaks of no single time. Look at the batches."
        )
        value = replace(value, cautions=(*value.cautions, caution))
    plain = replace(settings, anytime=False)
    others = {str(one): replace(pool, settings=replace(plain, estimator=one)).interval() for one in ESTIMATORS}
    shown = replace(overlap(pool.supports), weights=value.overlap.weights)
    return replace(value, interval=pool.interval(), others=others, naive=pool.naive(), overlap=shown)


@dataclass(frozen=True, eq=False)
class _Pool:
    """The batches that can answer."""

    columns: list[Columns]
    supports: list[Support]
    settings: Settings

    def _made(self) -> list[Estimate]:
        return [self.settings.estimate(columns, one) for columns, one in zip(self.columns, self.supports, strict=True)]

    def _terms(self) -> tuple[FloatArray, FloatArray]:
        made = self._made()
        return np.array([one.value for one in made]), np.array([one.error for one in made])

    @property
    def _counts(self) -> FloatArray:
        return np.array([float(len(columns.rewards)) for columns in self.columns])

    @property
    def _spreads(self) -> FloatArray:
        return np.array([support.spread for support in self.supports])

    def interval(self) -> Interval:
        """The pooled value."""
        (values, errors), level = self._terms(), self.settings.level
        if not self.settings.anytime:
            thirds = np.array([one.skew for one in self._made()])
            return pooled(values, errors, counts=self._counts, spreads=self._spreads, thirds=thirds, level=level)
        if self.settings.bounds is None:
            return anytime(values, errors, counts=self._counts, spreads=self._spreads, level=level)
        low, high = self.settings.bounds
        weights, rewards = (np.concatenate([one[at] for one in self.columns]) for at in (1, 0))
        return bounded(weights, rewards, low=low, high=high, level=level)

    def naive(self) -> Interval:
        """As if all rows were one sample."""
        plain = [one._replace(least=0.0) for one in self._made()]
        return iid([one.value for one in plain], [one.error for one in plain], self._counts, level=self.settings.level)

    def moved(self) -> float:
        """The p-value of all batches having the same value."""
        return moved(*self._terms(), counts=self._counts, spreads=self._spreads)


def _batch_value(
    scores: Scores, batch: int, support: Support, columns: Columns, settings: Settings, answers: bool
) -> BatchValue:
    nothing = Estimate(float("nan"), np.full(1, np.nan))
    made = settings.estimate(columns, support) if answers else nothing
    return BatchValue(
        batch=batch,
        name=scores.batch_names[batch],
        decisions=len(columns.rewards),
        value=made.value,
        error=made.error if answers else float("nan"),
        interval=_Pool([columns], [support], replace(settings, anytime=False)).interval() if answers else None,
        spread=support.spread,
        unsupported=support.unsupported,
    )


def _cautions(scores: Scores, name: str, log: Source, *, left: list[int]) -> tuple[str, ...]:
    """What to bear in mind beside the number."""
    found = log_cautions(log, known=scores.known, rewarded=scores.rewarded)
    applies = int(scores.candidates[name].applies.sum())
    if applies < scores.rewarded:
        others = f"{scores.rewarded - applies:,} of {scores.rewarded:,} decisions"
        found.append(f"{others} are left out: they {scores.candidates[name].otherwise}.")
    if left and len(left) < sum(support is not None for support in scores.candidates[name].supports):
        numbers, many = ", ".join(str(batch + 1) for batch in left), len(left) > 1
        them = f"batch{'es' * many} {numbers}"
        found.append(f"{them} hardly ever showed what it would, and {'are' if many else 'is'} left out.")
    return tuple(found)
