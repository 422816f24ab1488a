"""What is known of effects: estimates with intervals, or the reasons why there are none."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rareswitch.core import data_frame, draw_result, result_text
from rareswitch.evaluation.results import Interval, interval_columns


@dataclass(frozen=True, kw_only=True)
class BatchPart:
    """What one batch says."""

    #: From 0.
    batch: int
    #: Of the policy that decided.
    name: str
    #: Those it rests on.
    decisions: int
    #: None where the batch is left out, as is its standard error.
    value: float | None
    error: float | None
    #: As many decisions that are all about the question would tell as much; 0 where it is left out.
    effective: float
    #: Third central moment of the value, by which its interval is longer on one side.
    third: float = 0.0
    #: Degrees of freedom of the standard error.
    freedom: float = 0.0
    #: Why it is left out; empty where it is not. It never depends on rewards, which would bias what is left.
    left_out: str = ""


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
    refusals: tuple[str, ...]
    batches: tuple[BatchPart, ...]
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Heterogeneity:
    """Whether an effect differs between groups: Cochran's Q."""

    #: Σ ((effect of a group − their weighted mean) / its standard error)².
    statistic: float
    #: Groups less 1.
    freedom: int
    p_value: float


@dataclass(frozen=True, kw_only=True)
class Effects:
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
        for one in self.effects:
            if name in (one.group, one.arm):
                return one
        raise KeyError(name)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self)

    def to_frame(self) -> Any:
        """A data frame (pandas) with a row for each effect."""
        return data_frame(
            {
                "arm": effect.arm,
                "against": effect.against,
                "group": effect.group,
                **interval_columns("effect", effect.interval),
                "level": self.level,
                "p_value": effect.p_value,
                "decisions": effect.decisions,
                "shown": effect.shown,
                "shown_against": effect.shown_against,
                "refusals": " ".join(effect.refusals),
            }
            for effect in self.effects
        )

    def plot(self, path: str | None = None) -> Any:
        """A Matplotlib figure, which is also written to a file where a path is given."""
        return draw_result(self, path)

    def __str__(self) -> str:
        return result_text(self)
