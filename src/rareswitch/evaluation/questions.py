"""What is asked of a log, as sums over the same scored rows: values, gains over what was logged, lifts.

With t the share of a batch in the traffic, ψ the scores of its rows and s the share with which it counts, what was
earned is Σ t·r, a value Σ s·ψ, and a gain their difference, so that value = earned + gain. By default s is the traffic
of the batches that can answer; with ``pooling="stationary"`` it is their precision, n over E w², which policies and
contexts tell without a look at a reward.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import nan
from typing import Literal

import numpy as np

from rareswitch.core import BoolArray, FloatArray
from rareswitch.errors import several
from rareswitch.evaluation.intervals import BatchMean, bounded, combined, drift_p_value, quantile_of_level, term_of
from rareswitch.evaluation.refusals import (
    CARRIED,
    DRIFTED,
    ZERO,
    few_rewards,
    informative_share,
    judged,
    log_cautions,
    outlier_cautions,
)
from rareswitch.evaluation.results import BatchValue, Difference, Interval, Value
from rareswitch.evaluation.scoring import ESTIMATORS, Columns, Estimator, Scores, row_scores
from rareswitch.evaluation.support import Support, overlap, weight_counts
from rareswitch.log import Source

__all__ = ["Settings", "question_of"]

Pooling = Literal["traffic", "stationary"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of an evaluation, checked."""

    estimator: Estimator = "dr"
    #: Of intervals, of all questions together.
    level: float = 0.95
    #: Whether intervals hold for one who looks after every batch.
    anytime: bool = False
    #: Where all rewards lie, if that is known.
    bounds: tuple[float, float] | None = None
    #: How batches count: as their traffic, or by their precision where nothing drifts.
    pooling: Pooling = "traffic"
    #: Whose intervals hold together (Bonferroni).
    questions: int = 1

    @cached_property
    def level_of_each(self) -> float:
        """The level of one interval."""
        return 1.0 - (1.0 - self.level) / max(1, self.questions)

    def interval(self, terms: list[BatchMean], *, more: float = 0.0, anytime: bool | None = None) -> Interval:
        """Of a sum over batches; ``more`` is added at both ends."""
        anytime = self.anytime if anytime is None else anytime
        interval = combined(terms, level=self.level_of_each, anytime=anytime)
        return replace(interval, low=interval.low - more, high=interval.high + more, level=self.level)

    def bounded(self, interval: Interval) -> Interval:
        """Of a value, which lies where rewards do."""
        if self.bounds is None:
            return interval
        low, high, value = *self.bounds, interval.value
        return replace(interval, low=min(max(interval.low, low), value), high=max(min(interval.high, high), value))


#: How many times as wide as under ``pooling="stationary"`` an interval is before that is said.
_MUCH_WIDER = 1.5
_WEEK = 7 * 86400.0
#: Seconds from 1970 within which years have four digits.
_LATEST = 6e10
#: Monday, 1970-01-05, in seconds since 1970.
_MONDAY = 4 * 86400.0
#: Of the decisions of a week: policies with fewer, as after an update at its beginning, are left out of it.
_FEW = 0.01
_NO_WEEK = (
    "a policy of these weeks hardly ever showed what the baseline would, or decided too little, so nothing can be said "
    "of the week alone. Keep every arm at a least probability: min_propensity=…."
)


@dataclass(frozen=True, eq=False)
class Question:
    """A candidate on some decisions of a log; or two, decision by decision the one less the other."""

    scores: Scores
    #: Of the candidate, and of the other one.
    names: tuple[str, ...]
    #: (n,) the decisions.
    which: BoolArray
    #: Of each candidate, by batch that has such decisions.
    known: tuple[Mapping[int, Support], ...]
    settings: Settings
    #: Whether every batch must answer.
    alone: bool = False
    #: What the other one does, as reasons say it.
    other: str = ""

    @cached_property
    def columns(self) -> dict[int, Columns]:
        """By batch."""
        columns = {}
        for batch in self.known[0]:
            own, *others = (self.scores.columns(name, batch, self.which) for name in self.names)
            for less in others:
                own = own._replace(weights=own.weights - less.weights, expected=own.expected - less.expected)
            columns[batch] = own
        return columns

    @cached_property
    def _judged(self) -> tuple[tuple[int, ...], tuple[str, ...], dict[int, str]]:
        """The batches that can answer, why all of them cannot, and why others cannot."""
        stationary = self.settings.pooling == "stationary"
        rewards = self.scores.rewards[self.which]
        share = informative_share(rewards) if len(rewards) else 1.0
        reasons, faults = list[str](), dict[int, str]()
        for prefix, known in zip(("", self.other), self.known, strict=False):
            order, supports = [*known], [*known.values()]
            _, why_not, faulty = judged(supports, stationary=stationary, informative=share)
            reasons += [f"{prefix}{reason[0].lower()}{reason[1:]}" if prefix else reason for reason in why_not]
            for _, places, reason in faulty:
                for place in places:
                    before = f"{faults[order[place]]}; " if order[place] in faults else ""
                    faults[order[place]] = f"{before}{prefix}{reason}"
        able = tuple(batch for batch in self.known[0] if batch not in faults)
        if self.alone and (reasons or faults):
            reasons = [_NO_WEEK]
        if not self.known[0]:
            reasons = ["no decision is for it."]
        if self.scores.mismatch:
            reasons = [self.scores.mismatch]  # what weights say besides is not to be trusted
        if not reasons and not able:
            reasons = ["no batch showed both often enough, though some showed the one and some the other."]
        if not reasons and (reasons := self._few(able, self.settings.pooling)) and not self._few(able, "stationary"):
            reasons.append(
                "Batches that hardly ever show it count with their traffic. If nothing drifts, "
                'pooling="stationary" weighs batches by their precision, and answers.'
            )
        return able, tuple(reasons), faults

    def _few(self, able: Sequence[int], pooling: str) -> list[str]:
        """Why the rewards of these batches do not suffice."""
        parts = [(self.columns[batch], share) for batch, share in self._shares(able, pooling).items()]
        weights = [share / len(columns.weights) * np.abs(columns.weights) for columns, share in parts]
        return [*few_rewards(np.concatenate([columns.rewards for columns, _ in parts]), np.concatenate(weights))]

    @cached_property
    def able(self) -> tuple[int, ...]:
        """The batches that can answer."""
        return self._judged[0]

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not identifiable; empty where it is."""
        return self._judged[1]

    @cached_property
    def faults(self) -> dict[int, str]:
        """By batch that cannot answer, why not."""
        return self._judged[2]

    @cached_property
    def decisions(self) -> int:
        """In all."""
        return sum(len(columns.rewards) for columns in self.columns.values())

    @cached_property
    def traffic(self) -> dict[int, float]:
        """The share of each batch in the decisions."""
        return {batch: len(columns.rewards) / self.decisions for batch, columns in self.columns.items()}

    def spread(self, batch: int) -> float:
        """E w², of all candidates together."""
        return sum(known[batch].spread for known in self.known)

    @cached_property
    def shares(self) -> dict[int, float]:
        """With which the batches that can answer count."""
        return self._shares(self.able, self.settings.pooling)

    def _shares(self, able: Sequence[int], pooling: str) -> dict[int, float]:
        sizes = {batch: float(len(self.columns[batch].rewards)) for batch in able}
        if pooling == "stationary":
            sizes = {batch: size / self.spread(batch) for batch, size in sizes.items()}
        total = sum(sizes.values())
        return {batch: size / total for batch, size in sizes.items()}

    @cached_property
    def _ratio(self) -> tuple[float, float]:
        """The means of w·r and of w over all batches that can answer, whose ratio is SNIPS."""
        parts = [(share, self.columns[batch]) for batch, share in self.shares.items()]
        above = sum(share * float((columns.weights * columns.rewards).mean()) for share, columns in parts)
        return above, sum(share * float(columns.weights.mean()) for share, columns in parts)

    def _rows_by(self, estimator: Estimator) -> dict[int, FloatArray]:
        """By batch that can answer, the scores of its rows (n,)."""
        ratio = self._ratio if estimator == "snips" else None
        return {batch: row_scores(estimator, self.columns[batch], ratio) for batch in self.able}

    @cached_property
    def rows(self) -> dict[int, FloatArray]:
        """By batch that can answer, the scores of its rows (n,)."""
        return self._rows_by(self.settings.estimator)

    @cached_property
    def terms(self) -> dict[int, BatchMean]:
        """By batch that can answer, what it says of the value."""
        return {batch: term_of(rows) for batch, rows in self.rows.items()}

    def carries(self, batch: int) -> bool:
        """Whether a batch says something by itself."""
        return all(known[batch].carried >= CARRIED for known in self.known)

    def pooled(self, estimator: Estimator) -> list[BatchMean]:
        """What batches add to the value by an estimator."""
        of = self.terms
        if estimator != self.settings.estimator:
            of = {batch: term_of(rows) for batch, rows in self._rows_by(estimator).items()}
        return [of[batch].scaled(share) for batch, share in self.shares.items()]

    def value(self, estimator: Estimator, *, anytime: bool = False) -> Interval:
        """The value by an estimator, for one look or for all of them."""
        settings, terms, missed = self.settings, self.pooled(estimator), self._missed(estimator)
        interval = settings.interval(terms, more=missed, anytime=anytime)
        if anytime and settings.bounds is not None:
            low, high = settings.bounds
            weights, rewards = (np.concatenate([self.columns[batch][at] for batch in self.able]) for at in (1, 0))
            exact = bounded(weights, rewards, low=low, high=high, level=settings.level_of_each)
            once = settings.interval(terms, more=missed, anytime=False)
            interval = replace(interval, low=min(exact.low, once.low), high=max(exact.high, once.high))
        return settings.bounded(interval)

    def batch_values(self) -> tuple[BatchValue, ...]:
        """What batches say, and why some do not."""
        values = []
        for batch, columns in self.columns.items():
            term = self.terms[batch] if not self.reasons and batch in self.able and self.carries(batch) else None
            values.append(
                BatchValue(
                    batch=batch,
                    name=self.scores.batch_names[batch],
                    decisions=len(columns.rewards),
                    value=nan if term is None else term.value,
                    error=nan if term is None else term.variance**0.5,
                    interval=None if term is None else combined([term], level=self.settings.level),
                    spread=self.spread(batch),
                    unsupported=self.known[0][batch].unsupported,
                    left_out=self.faults.get(batch, ""),
                )
            )
        return tuple(values)

    def cautions(self) -> list[str]:
        """What to bear in mind beside the number: batches without, decisions that outweigh others, drift."""
        cautions, settings = list[str](), self.settings
        for reason in dict.fromkeys(self.faults.values()) if self.able else ():
            left = [str(batch + 1) for batch in self.faults if self.faults[batch] == reason]
            cautions.append(f"batch{'es' * (len(left) > 1)} {', '.join(left)} excluded: {reason}")
        if self.reasons:
            return cautions
        missed = max(known[batch].unsupported or 0.0 for known in self.known for batch in self.able)
        if missed > 0.0:
            cautions.append(
                f"up to {100.0 * missed:.2g} % of its play is unsupported ({ZERO}): the interval is longer by that "
                "share of the range of rewards, which is that of the arms that were shown."
            )
        rows = [(share / len(self.rows[b]) * self.rows[b], b) for b, share in self.shares.items()]
        parts = [(scores, self.columns[batch].rewards) for scores, batch in rows]
        cautions += outlier_cautions(parts, bounded=settings.bounds is not None or len(self.names) > 1)
        if (drift := drift_p_value([self.terms[batch] for batch in self.able if self.carries(batch)])) < DRIFTED:
            cautions.append(
                f"the {'effect' if self.other else 'value'} drifted between batches (p = {drift:.2g}): contexts or "
                "rewards changed over time, and the pooled value speaks of no single time. Look at the batches."
            )
        elif settings.pooling == "traffic" and not self.other and (ratio := self.narrower()) > _MUCH_WIDER:
            cautions.append(
                f"batches that hardly ever show what it would make the interval about {ratio:.1f} times as wide, as "
                'each batch counts with its traffic. If nothing drifts, pooling="stationary" weighs batches by their '
                "precision."
            )
        return cautions

    def narrower(self) -> float:
        """How many times as wide traffic shares make the interval as precision would, as far as weights tell it."""

        def error(pooling: str) -> float:
            shares = self._shares(self.able, pooling)
            sizes = {batch: len(self.columns[batch].rewards) / self.spread(batch) for batch in shares}
            return float(np.sqrt(sum(share**2 / sizes[batch] for batch, share in shares.items())))

        return error("traffic") / error("stationary")

    def _missed(self, estimator: Estimator) -> float:
        """What play with probability 0 could be off by: its share times the range of rewards; IPS takes them for 0."""
        low, high = self.settings.bounds or (float(self.scores.rewards.min()), float(self.scores.rewards.max()))
        low, high = (min(low, 0.0), max(high, 0.0)) if estimator == "ips" else (low, high)
        shares = self.shares
        missed = {batch: sum(known[batch].unsupported or 0.0 for known in self.known) for batch in shares}
        return (high - low) * sum(share * missed[batch] for batch, share in shares.items())

    def _rows(self) -> list[tuple[FloatArray, FloatArray]]:
        """By batch, the rows of the value and of what was earned."""
        shares, parts = self.shares, []
        for batch, columns in self.columns.items():
            value = np.zeros(len(columns.rewards))
            if batch in shares:
                value = shares[batch] * self.rows[batch]
            parts.append((value, self.traffic[batch] * columns.rewards))
        return parts

    def difference(self, label: str, over: str) -> Difference:
        """The candidate over what was logged; or where it is what is compared with, what was logged over it."""
        if self.reasons:
            return Difference(
                name=label, over=over, decisions=int(self.which.sum()), interval=None, refusals=self.reasons
            )
        sign = 1.0 if over == "logged" else -1.0
        rows = self._rows()
        interval = self.settings.interval(
            [term_of(sign * (value - earned)) for value, earned in rows], more=self._missed(self.settings.estimator)
        )
        if all(np.array_equal(value, earned) for value, earned in rows):  # it is the policy that decided
            interval = replace(interval, value=0.0, low=0.0, high=0.0)
        would, was = (sum(float(part.mean()) for part in side) for side in ([r[0] for r in rows], [r[1] for r in rows]))
        pair = (would, was)[:: int(sign)]
        assumes = ""
        if len(self.able) < len(self.columns):
            seen = ", ".join(str(batch + 1) for batch in self.able)
            assumes = f"of batch{'es' * (len(self.able) > 1)} {seen} alone, assuming that other traffic is alike"
        return Difference(
            name=label,
            over=over,
            decisions=self.decisions,
            interval=interval,
            value=pair[0],
            other=pair[1],
            assumes=assumes,
            relative=self._relative(rows, sign),
        )

    def _relative(self, rows: Sequence[tuple[FloatArray, FloatArray]], sign: float) -> Interval | None:
        """The difference as a share of what it is over, by Fieller's theorem; None where that may be 0 or less."""
        sums, squares = np.zeros(2), np.zeros((2, 2))
        for value, earned in rows:
            pair = np.stack([sign * (value - earned), earned if sign > 0.0 else value])
            sums += pair.mean(axis=1)
            squares += np.cov(pair) / pair.shape[1] if pair.shape[1] > 1 else np.inf
        if sums[1] <= 0.0 or not np.isfinite(squares).all():
            return None
        gain, squares = float(sums[0] / sums[1]), squares / sums[1] ** 2
        bar = quantile_of_level(self.settings.level_of_each) ** 2
        below = 1.0 - bar * squares[1, 1]
        if below <= 0.0:
            return None
        middle = gain - bar * squares[0, 1]
        half = np.sqrt(max(0.0, middle**2 - below * (gain**2 - bar * squares[0, 0])))
        ends = {"low": float((middle - half) / below), "high": float((middle + half) / below)}
        return Interval(value=gain, level=self.settings.level, kind="Fieller", **ends)


def question_of(scores: Scores, *names: str, settings: Settings, group: str | None = None, other: str = "") -> Question:
    """Of a candidate, or of one less another, on all decisions that are for it, of a group or of all."""
    candidates = [scores.candidates[name] for name in names]
    which = candidates[0].applies if group is None else candidates[0].applies & (scores.labels == group)
    known = tuple(candidate.by_batch(group) for candidate in candidates)
    return Question(scores, names, which, known, settings, other=other)


def earned(scores: Scores, settings: Settings) -> Interval:
    """What was earned a decision, over all batches."""
    parts = [scores.rewards[scores.rows_of(batch)] for batch in np.flatnonzero(np.bincount(scores.batches)).tolist()]
    terms = [term_of(part).scaled(len(part) / len(scores.rewards)) for part in parts]
    return settings.bounded(replace(settings, questions=1).interval(terms))


def lift(scores: Scores, baseline: str, settings: Settings, *, holdout: float | None = None) -> tuple[Difference, ...]:
    """What was earned more than the baseline would have, so far and in each week from Monday to Sunday (UTC).

    Only decisions that name a baseline count; empty where none does. A week is without the policies that made less than
    1 % of its decisions. Where a share ``holdout`` of all ids keeps the baseline, it is the lift of the others.
    """
    scored = scores.candidates[baseline]
    if not scored.applies.any():
        return ()
    whole = question_of(scores, baseline, settings=replace(settings, questions=1))
    parts = [whole.difference("so far", "baseline")]
    known = scored.applies & (np.abs(scores.times) <= _LATEST)  # others have no date
    weeks = np.floor((scores.times - _MONDAY) / _WEEK)
    for week in np.unique(weeks[known]).tolist():
        monday = datetime(1970, 1, 5, tzinfo=UTC) + timedelta(weeks=week)
        which = known & (weeks == week)
        counts = np.bincount(scores.batches[which], minlength=len(scores.batch_names))
        which &= (counts >= _FEW * counts.sum())[scores.batches]
        few = int(counts.sum()) - int(which.sum())
        parts_of = {batch: scored.weights[scores.rows_of(batch, which)] for batch in whole.known[0]}
        known_of = {b: Support.of(w, candidate=np.ones((len(w), 1))) for b, w in parts_of.items() if len(w)}
        week_lift = replace(whole, which=which, known=(known_of,), alone=True).difference(
            f"week of {monday:%Y-%m-%d}", "baseline"
        )
        parts.append(
            replace(week_lift, assumes=f"without {several(few, 'decision')} of other policies") if few else week_lift
        )
    return tuple(parts if holdout is None else [_outside(part, holdout) for part in parts])


def _outside(lift: Difference, holdout: float) -> Difference:
    """The lift of the decisions outside of the holdout, whose own is 0: that of all, over the share of the others."""

    def scaled(interval: Interval | None) -> Interval | None:
        if interval is None:
            return None
        ends = {name: getattr(interval, name) / (1.0 - holdout) for name in ("value", "low", "high")}
        return replace(interval, **ends)

    gain = scaled(lift.interval)
    value = None if gain is None or lift.other is None else lift.other + gain.value
    return replace(lift, over="holdout", interval=gain, value=value, relative=scaled(lift.relative))


def value_of(question: Question, log: Source) -> Value:
    """What is known of one candidate."""
    (name,), (known,), settings, scores = question.names, question.known, question.settings, question.scores
    scored = scores.candidates[name]
    value = Value(candidate=name, interval=None, refusals=(), estimator=settings.estimator, overlap=overlap([]))
    if not known:
        reason = f"None of the {scores.rewarded:,} decisions says anything about this candidate: they"
        return replace(value, refusals=(f"{reason} {scored.otherwise}.",))
    answered = not question.reasons
    supports = [support for batch, support in known.items() if not answered or batch in question.able]
    cautions = log_cautions(log, scores)
    if (applies := int(scored.applies.sum())) < scores.rewarded:
        others = f"{scores.rewarded - applies:,} of {scores.rewarded:,} decisions"
        cautions.append(f"{others} are left out: they {scored.otherwise}.")
    value = replace(
        value,
        refusals=question.reasons,
        overlap=replace(
            overlap(supports),
            effective=sum(known[batch].effective for batch in question.able),
            weights=tuple(weight_counts(scored.weights[scored.applies]).tolist()),
        ),
        batches=question.batch_values(),
        cautions=(*cautions, *_UNKNOWN[scored.unknown], *question.cautions()),
    )
    if not answered:
        return value
    once = {str(estimator): question.value(estimator) for estimator in ESTIMATORS}
    interval = question.value(settings.estimator, anytime=True) if settings.anytime else once[settings.estimator]
    return replace(value, interval=interval, others=once)


#: What to bear in mind of candidates of which nothing tells what they were learned from.
_UNKNOWN: dict[str, tuple[str, ...]] = {
    "": (),
    "array": (
        "it was given as probabilities: if what was shown or earned made them, they flatter it, or its mean weight is "
        "not 1.",
    ),
    "policy": (
        "the log does not know this policy: if it was learned from these decisions, they flatter it. Name the policies "
        "of the log in their order, this one among them, or evaluate it on later decisions.",
    ),
}
