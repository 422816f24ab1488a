"""The schedule that costs least: early and often at first, as far as gaps and late rewards allow."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from rareswitch.errors import ParameterError
from rareswitch.experiment.durations import duration_of, duration_text
from rareswitch.experiment.moments import date_text, moment_of, zone_of
from rareswitch.experiment.progress import Progress
from rareswitch.experiment.regret_model import PER_FEATURE, best_ends
from rareswitch.experiment.schedule import DAY, End, Price, Schedule
from rareswitch.learner import Learner
from rareswitch.validation import count_of, number, whole

#: Policies, where neither the schedule nor the learner says how many.
POLICIES = 8
#: The least decisions in the rest of a run for which something is planned.
_SHORTEST = 2.0


@dataclass(frozen=True, kw_only=True)
class Best(Schedule):
    """At most so many updates, at the times that cost least by the model of the regret.

    Either ``decisions`` says how many there will be in all, and updates are due after counts of them; or ``rate`` and
    ``end`` say how many come a day and until when, and updates have dates. Dates move with the rate that is seen.

    Parameters
    ----------
    policies
        The most policies, the first included; those of the learner, or 8, by default.
    decisions
        In all, T.
    rate, end
        Decisions a day, as expected, and when the experiment ends.
    delay
        How long after a decision its reward is known; the attribution window by default.
    gap
        The least time between two updates, and before the first one.
    first
        The earliest first update after the creation; the gap by default.
    dim
        Features of an arm; the learner's.

    Examples
    --------
    >>> print(Best(decisions=10_000, policies=5, dim=10).table(Progress.beginning(0.0)))
    policy  until  decisions in all
         1                       69
         2                      241
         3                      840
         4                    2,923
         5                   10,000
    """

    kind: ClassVar[str] = "best"
    durations: ClassVar[tuple[str, ...]] = ("delay", "gap", "first")
    policies: int | None = None
    decisions: int | None = None
    rate: float | None = None
    end: Any = None
    delay: Any = None
    gap: Any = 0.0
    first: Any = None
    zone: str = "UTC"
    dim: int | None = None

    def __post_init__(self) -> None:
        zone_of(self.zone)
        told: dict[str, Any] = {}
        for name in self.durations:
            given = getattr(self, name)
            told[name] = None if given is None else duration_of(name, given)
        if self.policies is not None:
            told["policies"] = whole("policies", self.policies, low=2, high=1000)
        if self.dim is not None:
            told["dim"] = whole("dim", self.dim)
        if self.decisions is not None:
            told["decisions"] = count_of("decisions, in all,", self.decisions, low=2)
        if self.rate is not None:
            told["rate"] = number("rate, the decisions a day,", self.rate, low=0.0, high=1e12, open_low=True)
        if self.end is not None:
            told["end"] = moment_of("end", self.end, self.zone)
        vars(self).update(told)
        dated = self.rate is not None and self.end is not None
        if self.decisions is not None and (self.rate is not None or self.end is not None):
            raise ParameterError(
                "decisions, in all, are for schedules that count; rate and end for those with dates: give one or the "
                "other."
            )
        if not dated and (self.rate is not None or self.end is not None):
            raise ParameterError(
                "rate and end belong together: dates are planned from the decisions a day and the last day, as in "
                "Best(policies=8, rate=2000, end='2026-06-01')."
            )
        if not dated and (self.gap or self.delay or self.first):
            raise ParameterError(
                "gap, delay and first are durations, which a schedule that counts decisions cannot keep: give rate "
                "and end in place of decisions."
            )

    def made_for(self, learner: Learner) -> Self:
        """With what the learner says of features, policies and decisions, where this schedule does not."""
        made = self
        if self.dim is None:
            made = replace(made, dim=learner.dim)
        told = getattr(learner, "policies", None)
        if self.policies is not None and told not in (None, self.policies):
            raise ParameterError(
                f"schedule: best times for {self.policies} policies, and the learner has policies={told}: give one of "
                "the two."
            )
        if self.policies is None:
            made = replace(made, policies=told or POLICIES)
        if self.decisions is None and self.rate is None:
            if learner.horizon is None:
                raise ParameterError(
                    "schedule: the best times hang on how long the experiment runs. Give the learner a horizon, the "
                    "decisions in all; or Best(policies=8, rate=2000, end='2026-06-01'), decisions a day and the last "
                    "day ('best:rate=2000,end=2026-06-01' on the command line)."
                )
            made = replace(made, decisions=learner.horizon)
        return made

    def ends(self, progress: Progress) -> tuple[End, ...]:
        if self.dim is None:
            raise ParameterError("dim, the features of an arm, is not known to this schedule: give dim=….")
        left = (self.policies or POLICIES) - progress.policies + 1
        if left < 1:
            return ()
        if self.decisions is not None:
            found = self._planned(left, float(self.decisions), progress.before)
            return tuple(End(round(end)) for end in found)
        rate = self.expected_rate(progress)
        published, first = progress.published[-1], self.gap if self.first is None else self.first

        def by(moment: float) -> float:
            """Decisions in all at that moment."""
            return progress.total + rate * (moment - progress.now)

        delay = self.delay if self.delay is not None else progress.window or 0.0
        earliest = by(published + (first if progress.policies == 1 else self.gap))
        earliest = max(earliest, by(published + delay) + 1.0)  # an update learns from a reward of its batch at least
        gap = max(rate * self.gap, rate * delay + 1.0)
        found = self._planned(left, by(self.end), progress.before, earliest, gap, rate * delay)
        dates = [progress.now + (end - progress.total) / rate for end in found]
        return tuple(End(round(end), at) for end, at in zip(found, dates, strict=True))

    def _planned(
        self, left: int, total: float, before: float, earliest: float = 0.0, *delays: float
    ) -> tuple[Any, ...]:
        if total - before < _SHORTEST:
            return ()
        gap, delay = delays or (0.0, 0.0)
        assert self.dim is not None
        told = {"start": before, "earliest": earliest, "gap": gap, "delay": delay}
        return best_ends(total, left, dim=self.dim, **told)

    def expected_rate(self, progress: Progress) -> float:
        """Decisions a second: what was told, which counts as the decisions that a first policy needs, and what came."""
        assert self.rate is not None
        worth = PER_FEATURE * (self.dim or 1)
        return (progress.total + worth) / (progress.now - progress.created + worth * DAY / self.rate)

    def price(self, *, delay: Any = 0.0, rate: float | None = None, **told: Any) -> Price | None:
        return super().price(
            delay=delay if self.delay is None else self.delay, rate=rate if self.rate is None else self.rate, **told
        )

    def totals(self, *, rate: float | None, total: float | None, created: float | None) -> tuple[float, ...]:
        if self.end is not None and created is None:
            return ()
        return tuple(float(end.decisions or 0) for end in self.ends(Progress.beginning(created or 0.0)))

    def __str__(self) -> str:
        long = (
            f"{self.decisions:,} decisions"
            if self.decisions is not None
            else f"{self.rate:g} decisions a day until {date_text(self.end, self.zone)}"
            if self.rate is not None
            else "the learner's horizon"
        )
        more = [
            f"{name} {duration_text(value)}"
            for name, value in (("gap", self.gap), ("delay", self.delay), ("first after", self.first))
            if value
        ]
        return ", ".join([f"best times for {self.policies or POLICIES} policies over {long}", *more])
