"""What evaluations and effects say: estimates with intervals, or the reasons why there are none."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from rareswitch.core import Displayed, ExtendedFloat, plain_number
from rareswitch.evaluation.calibration import Calibration

__all__ = ["BatchValue", "Difference", "Effect", "Effects", "Evaluation", "Interval", "Overlap", "Value"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Report(Displayed):
    """Prints as text, shows itself in notebooks, and draws itself."""

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, as JSON has it: numbers that are not finite are None."""
        return dict(msgspec.json.decode(msgspec.json.encode(self, enc_hook=plain_number)))


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A value between two bounds."""

    value: ExtendedFloat
    low: ExtendedFloat
    high: ExtendedFloat
    #: Such as 0.95.
    level: float
    #: How it was made: ``by batch``, ``anytime``, ``Fieller``.
    kind: str

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True, kw_only=True)
class BatchValue:
    """The value in one batch, or the effect."""

    #: From 0.
    batch: int
    #: Of the policy that decided.
    name: str
    decisions: int
    value: ExtendedFloat
    #: Its standard error.
    error: ExtendedFloat
    #: None where this batch alone cannot answer.
    interval: Interval | None
    #: E Σ π²/μ = E_π[w], at least 1: the variance of weights is this less 1.
    spread: ExtendedFloat
    #: Share of the candidate's play that this batch's policy could not have shown; None where that is not known.
    unsupported: float | None
    #: Why it is excluded; empty where it is not. It never depends on rewards, which would bias what is left.
    left_out: str = ""


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How well the log supports a candidate."""

    #: Decisions it rests on.
    decisions: int
    #: Should be 1, up to its error.
    mean_weight: float
    mean_weight_error: ExtendedFloat
    #: Share of the candidate's play that the log could not have shown; None where that is not known.
    unsupported: float | None
    #: The effective sample size: this number of decisions of the candidate itself is as precise.
    effective: float
    #: The largest weight that occurred, and its share of all weights.
    largest: float
    largest_share: float
    #: How many decisions have a weight in each of the ranges of :func:`weight_counts`; empty where not counted.
    weights: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Value:
    """What is known of one candidate."""

    candidate: str
    #: The answer; None where the log cannot give one.
    interval: Interval | None
    #: Why not: each names what was seen, the rule, and what would help.
    refusals: tuple[str, ...]
    estimator: str
    overlap: Overlap
    batches: tuple[BatchValue, ...] = ()
    #: The same by every estimator, where there is an answer.
    others: dict[str, Interval] = field(default_factory=dict)
    #: What to bear in mind: estimated propensities, values that drifted between batches, rewards that are missing.
    cautions: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether there is a number."""
        return self.interval is not None

    @property
    def traffic(self) -> float:
        """The share of its decisions that the value is of; less than 1 where batches cannot tell, 1 without a value."""
        total = sum(batch.decisions for batch in self.batches)
        return min(1.0, self.overlap.decisions / total) if self.answered and total else 1.0


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What one way to choose earns more than another, on the same decisions."""

    #: Such as ``so far``, ``week 2026-11-09``, or the candidate's name.
    name: str
    over: str
    decisions: int
    #: None where the log cannot answer.
    interval: Interval | None
    refusals: tuple[str, ...] = ()
    #: Of the two, where there is an answer.
    value: float | None = None
    other: float | None = None
    #: What has to be taken for granted, where not all batches can answer.
    assumes: str = ""
    #: As a share of what it is over (Fieller); None where that may be 0 or less.
    relative: Interval | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Evaluation(Report):
    """Candidates and what is known of each; prints as a table, the lift over the baseline first."""

    values: tuple[Value, ...]
    #: On the log itself: what was earned.
    earned: Interval | None
    #: Over the baseline, so far and by week; empty where no baseline was named.
    lift: tuple[Difference, ...]
    #: Each candidate against what was logged, on the same decisions.
    gains: tuple[Difference, ...]
    calibration: Calibration | None
    #: Decisions in all, of which all offered arms are known, and of these with a reward.
    decisions: int
    known: int
    rewarded: int
    batch_names: tuple[str, ...]
    #: How propensities were estimated; empty where they are exact.
    estimated: str = ""
    #: Whose intervals hold together.
    questions: int = 1

    def __getitem__(self, candidate: str) -> Value:
        for value in self.values:
            if value.candidate == candidate:
                return value
        raise KeyError(candidate)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, as JSON has it: numbers that are not finite are None."""
        return super().as_dict() | ({} if self.calibration is None else {"alarm": self.calibration.alarm})


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What showing one arm in place of another does to the reward, on average over the decisions that offer both."""

    arm: str
    #: Another arm, ``baseline`` (what the caller would have shown) or ``rest`` (the mean of the other offered arms).
    against: str
    #: For whom; empty: for all.
    group: str
    #: Those that offered both, with a reward.
    decisions: int
    #: How often each was shown in them.
    shown: int
    shown_against: int
    #: The answer, a difference of rewards; None where the log cannot give one.
    interval: Interval | None
    #: That there is no difference, corrected for the number of questions.
    p_value: float | None
    #: Of the difference, its standard error.
    error: float | None
    refusals: tuple[str, ...]
    batches: tuple[BatchValue, ...]
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Heterogeneity:
    """Whether an effect differs between groups: Cochran's Q."""

    #: Σ ((effect of a group − their weighted mean) / its standard error)².
    statistic: float
    #: Groups less 1.
    freedom: int
    p_value: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Effects(Report):
    """Effects of arms; prints as a table."""

    #: Of one arm for all and then by group, or of every arm, the best first.
    effects: tuple[Effect, ...]
    #: Of the intervals; with a correction, of all of them together.
    level: float
    #: For the number of questions.
    correction: Literal["none", "bonferroni"]
    #: What the groups are of; empty where there are none.
    by: str
    #: Between the groups; None where fewer than two are answered.
    differ: Heterogeneity | None
    #: In all, of which all offered arms are known, and of these with a reward.
    decisions: int
    known: int
    rewarded: int
    #: What to bear in mind of all of them.
    cautions: tuple[str, ...] = ()
    #: How propensities were estimated; empty where they are exact.
    estimated: str = ""

    def __iter__(self) -> Iterator[Effect]:
        return iter(self.effects)

    def __getitem__(self, name: str) -> Effect:
        """The effect for a group; or of an arm, for all."""
        for effect in self.effects:
            if name in (effect.group, effect.arm):
                return effect
        raise KeyError(name)
