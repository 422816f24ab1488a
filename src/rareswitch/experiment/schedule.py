"""When a policy should change: what every schedule answers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from rareswitch.errors import several
from rareswitch.experiment.durations import duration_of, duration_text
from rareswitch.experiment.moments import date_text, zone_of
from rareswitch.experiment.progress import Progress
from rareswitch.experiment.regret_model import adaptive_cost, best_ends, cost
from rareswitch.learner import Forecast
from rareswitch.validation import whole

#: Batches to come that are forecast where a schedule does not end.
OUTLOOK = 3
DAY = 86_400.0


class End(NamedTuple):
    """Where a batch ends."""

    #: Decisions in all by then; a forecast where there is a date; None where the rate is not known.
    decisions: int | None
    #: Seconds since 1970; None where decisions alone are counted.
    at: float | None = None


class Due(NamedTuple):
    """Whether the next update is due, and what it waits for."""

    now: bool
    #: In people's words.
    waits: tuple[str, ...] = ()
    #: When it is due, where there is a date.
    at: datetime | None = None
    #: After how many decisions in all, as far as is known.
    decisions: int | None = None

    def __str__(self) -> str:
        return "due now" if self.now else f"waits for {'; and '.join(self.waits)}"


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a schedule costs by the model of :mod:`rareswitch.experiment.regret_model`, in units of full adaptivity."""

    #: Policies, the first included.
    policies: int
    times: float
    #: What equally many cost at the best times.
    best: float

    def __str__(self) -> str:
        text = f"about {_times(self.times)} times the regret of full adaptivity"
        if self.times < 1.1 * self.best:
            return f"{text}, which is the best that {self.policies} policies can do"
        return f"{text}; the best schedule with the same {self.policies} policies {_times(self.best)}"


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:,.0f}"


@dataclass(frozen=True, kw_only=True)
class Schedule(ABC):
    """When updates are due. A value: it is kept with the experiment and asked with its progress.

    Policies are counted with the first: eight weeks have eight policies and seven updates between them, and after the
    eighth week the last policy goes on until someone advances by hand.
    """

    kind: ClassVar[str]
    #: Its settings that are durations; JSON has their seconds.
    durations: ClassVar[tuple[str, ...]] = ()
    #: Whether the last of its ends is no update.
    last_is_end: ClassVar[bool] = True

    @abstractmethod
    def ends(self, progress: Progress) -> tuple[End, ...]:
        """Where the current batch and those after it end, as far as is known."""

    @abstractmethod
    def __str__(self) -> str:
        """In a few words."""

    @property
    def in_zone(self) -> str:
        """The time zone in which its dates are shown."""
        return getattr(self, "zone", "UTC")

    def due(self, progress: Progress) -> Due:
        """Whether the next update is due, and what it waits for."""
        ends = self.ends(progress)
        if len(ends) <= self.last_is_end:
            until = f", until {self._text(ends[0])}" if ends else ""
            last = f"nothing: policy {progress.policies} is the last of the schedule{until}"
            return Due(False, (f"{last}. To make another all the same, advance with force=True",))
        end, waits = ends[0], list[str]()
        at = None if end.at is None else datetime.fromtimestamp(end.at, zone_of(self.in_zone))
        if end.at is not None:
            if progress.now < end.at:
                waits.append(f"{date_text(end.at, self.in_zone)}, in {duration_text(end.at - progress.now)}")
        elif end.decisions is not None and progress.total < end.decisions:
            current, batch = progress.versions[-1].decisions, end.decisions - progress.before
            waits.append(f"{several(end.decisions - progress.total, 'more decision')} ({current:,} of {batch:,} came)")
        waits += unlearnable(progress, self.in_zone)
        return Due(not waits, tuple(waits), at, end.decisions)

    def lengths(self, created: float) -> tuple[int, ...] | None:
        """Decisions of each batch, as far as is known at the beginning; None where nothing is."""
        return _lengths(0, self.ends(Progress.beginning(created)))

    def forecast(self, progress: Progress) -> Forecast | None:
        """Decisions of each batch to come if the update is made now; None where the learner's own plan stands."""
        ends = self.ends(progress.updated())
        if not ends:  # past the end: as long again as the batch that ends now
            return (max(1, progress.versions[-1].decisions),)
        return _lengths(progress.total, ends)

    def table(self, progress: Progress) -> str:
        """The batches to come, with dates and counts, for people."""
        ends, lines = self.ends(progress), [("policy", "until", "decisions in all")]
        for number_, end in enumerate(ends, start=progress.policies):
            when = "" if end.at is None else date_text(end.at, self.in_zone)
            lines.append((str(number_), when, "?" if end.decisions is None else f"{end.decisions:,}"))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(f"{a:>{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}" for a, b, c in lines)

    def price(
        self,
        *,
        dim: int,
        rate: float | None = None,
        total: float | None = None,
        delay: Any = 0.0,
        created: float | None = None,
    ) -> Price | None:
        """What it costs by the model, beside the best schedule with the same updates; None where that is not known.

        Parameters
        ----------
        dim
            Features of an arm.
        rate
            Decisions a day, which schedules by dates need.
        total
            Decisions in all, which schedules without an end need.
        delay
            After which rewards are known, such as "1d" or a timedelta; needs a rate.
        created
            When the experiment begins, in seconds since 1970, which schedules that end at a date need.
        """
        whole("dim", dim)
        delay = duration_of("delay", delay)
        ends = self.totals(rate=rate, total=total, created=created)
        if not ends or (delay and rate is None):
            return None
        unit = adaptive_cost(ends[-1], dim=dim)
        late = delay * (rate or 0.0) / DAY
        best = best_ends(ends[-1], len(ends), dim=dim, delay=late)
        paid, least = (cost(these, dim=dim, delay=late) / unit for these in (ends, best))
        return Price(policies=len(ends), times=paid, best=min(paid, least))

    @abstractmethod
    def totals(self, *, rate: float | None, total: float | None, created: float | None) -> tuple[float, ...]:
        """Decisions in all at which its batches end, expected at the beginning; none where that is not known."""

    def to_plain(self) -> dict[str, Any]:
        """As JSON-able data, from which :func:`~rareswitch.experiment.schedule_from_plain` makes it again."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}
        return {"kind": self.kind} | {name: value for name, value in plain.items() if value is not None}

    def _text(self, end: End) -> str:
        if end.at is not None:
            return date_text(end.at, self.in_zone)
        return "the end" if end.decisions is None else f"{several(end.decisions, 'decision')} in all"


def _lengths(before: int, ends: Sequence[End]) -> tuple[int, ...] | None:
    """Decisions of each batch; None where they are not known."""
    totals = [end.decisions for end in ends if end.decisions is not None]
    if not ends or len(totals) < len(ends):
        return None
    return tuple(max(1, b - a) for a, b in pairwise((before, *totals)))


def unlearnable(progress: Progress, zone: str = "UTC") -> tuple[str, ...]:
    """Why there would be nothing to learn from."""
    current = progress.versions[-1]
    if not current.decisions:
        return ("a decision: none has come yet",)
    if progress.window is not None and progress.now < current.first_time + progress.window:
        closes = current.first_time + progress.window
        return (
            f"the first rewards: decisions count {duration_text(progress.window)} after they were made, the first of "
            f"these on {date_text(closes, zone)}",
        )
    if not current.rewarded:
        return (f"a reward: {several(current.decisions, 'decision')} without any",)
    return ()
