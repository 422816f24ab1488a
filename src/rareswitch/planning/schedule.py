"""When a policy should change: where an experiment stands, and what every schedule answers about it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Literal, NamedTuple, Self

from rareswitch.core import Result, number, whole
from rareswitch.learner import Forecast, Novelty
from rareswitch.planning.regret_model import RegretCurve, adaptive_cost, best_ends, cost
from rareswitch.planning.times import DAY, Duration, duration_of, plain_fields, zone_of
from rareswitch.store import Counts

__all__ = ["Due", "End", "Price", "Progress", "Schedule", "ScheduleTable", "Wait", "unlearnable"]

#: Batches to come that are forecast where a schedule does not end.
OUTLOOK = 3


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where an experiment stands: all that schedules look at. Times are seconds since 1970."""

    created: float
    now: float
    #: Counts of each policy, the current one last.
    versions: tuple[Counts, ...]
    #: When each policy was published.
    published: tuple[float, ...]
    #: Seconds after which a decision's reward counts, and is known; None where there is no attribution window.
    window: float | None = None
    #: Whether a decision without a reward has a default one.
    has_default: bool = False
    #: The learner's own plan: decisions of the current batch and of those after it.
    planned: tuple[int, ...] = ()
    #: Whether the learner plans nothing after the current batch.
    last: bool = False
    #: By how unlike features are the learner asks for an update before the batch was to end; None where it does not.
    early: Novelty | None = None
    #: Decisions a second, expected while none can be counted; None where nothing is.
    expected_rate: float | None = None

    @classmethod
    def beginning(cls, created: float, *, rate: float | None = None, window: float | None = None) -> Self:
        """That of an experiment without decisions; ``rate`` decisions a second are expected."""
        none = Counts(1, 0, 0, created, created)
        return cls(
            created=created, now=created, versions=(none,), published=(created,), window=window, expected_rate=rate
        )

    @property
    def policies(self) -> int:
        """Policies so far, the first included."""
        return len(self.versions)

    @property
    def total(self) -> int:
        """Decisions so far."""
        return sum(version.decisions for version in self.versions)

    @property
    def before(self) -> int:
        """Decisions of the policies before the current one."""
        return self.total - self.versions[-1].decisions

    @property
    def over(self) -> bool:
        """Whether the last batch that the learner planned is over: it has nothing more to learn for."""
        return self.last and self.versions[-1].decisions >= sum(self.planned)

    @property
    def rate(self) -> float | None:
        """Decisions a second since the first of them; the expected rate before it can be estimated."""
        begun = next((version.first_time for version in self.versions if version.decisions), self.now)
        return self.total / (self.now - begun) if self.total > 1 and self.now > begun else self.expected_rate

    def updated(self) -> Self:
        """As it will be when an update has been made now."""
        return replace(
            self,
            versions=(*self.versions, Counts(self.policies + 1, 0, 0, self.now, self.now)),
            published=(*self.published, self.now),
            planned=self.planned[1:],
        )


class End(NamedTuple):
    """Where a batch ends."""

    #: Decisions in all by then; a forecast where there is a date; None where the rate is not known.
    decisions: int | None
    #: Seconds since 1970; None where decisions alone are counted.
    at: float | None = None


class Wait(Result, frozen=True, kw_only=True):
    """A condition that the next update waits for. Prints as text."""

    #: date: ``at``; decisions: ``more`` of them, to ``needed``; no decisions and no rewards: none yet; window: that of
    #: the first reward is open until ``at``; gate: it looks again when the batch has ``needed`` decisions; manual: the
    #: user; last: the schedule has no policy after ``policy``; done: the learner plans no policy after this one.
    kind: Literal["date", "decisions", "no decisions", "no rewards", "window", "gate", "manual", "last", "done"]
    #: Seconds since 1970, and its time zone; of ``last`` when the schedule ends.
    at: float | None = None
    zone: str = "UTC"
    #: Seconds from now; of ``window`` its length.
    seconds: float | None = None
    #: Decisions of the current batch, and how many it needs.
    decisions: int = 0
    needed: int | None = None
    #: Decisions that are missing; of ``last`` those at which the schedule ends.
    more: int | None = None
    policy: int | None = None
    #: Of ``last``: the most policies that the schedule may make, where it says so.
    most: int | None = None


class Due(Result, frozen=True, kw_only=True):
    """Whether the next update is due, and what it waits for. Prints as text."""

    now: bool
    waits: tuple[Wait, ...] = ()
    #: When it is due, where there is a date.
    at: datetime | None = None
    #: After how many decisions in all, as far as is known.
    decisions: int | None = None


class ScheduleTable(Result, frozen=True, kw_only=True):
    """The batches to come, from policy ``first`` on. Prints as a table."""

    first: int
    ends: tuple[End, ...]
    zone: str


class Price(Result, frozen=True, kw_only=True):
    """What a schedule costs by the model of :mod:`rareswitch.planning.regret_model`, in units of full adaptivity."""

    policies: int
    ratio: float
    #: That of equally many policies at the best times.
    best: float


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
    #: Whether it leaves the planning of batches to the learner.
    learner_plans: ClassVar[bool] = False

    @property
    def curve(self) -> RegretCurve | None:
        """What a decision costs after how many others, where that was simulated."""
        return None

    @abstractmethod
    def ends(self, progress: Progress) -> tuple[End, ...]:
        """Where the current batch and those after it end, as far as is known; the first few where it goes on."""

    @abstractmethod
    def __str__(self) -> str:
        """In a few words."""

    @property
    def endless(self) -> bool:
        """Whether updates go on without an end."""
        return False

    @property
    def in_zone(self) -> str:
        """The time zone in which its dates are shown."""
        return getattr(self, "zone", "UTC")

    def due(self, progress: Progress) -> Due:
        """Whether the next update is due, and what it waits for."""
        ends = self.ends(progress)
        if len(ends) <= self.last_is_end:
            end = ends[0] if ends else End(None)
            more = None if end.at is not None else end.decisions
            most = getattr(self, "policies", None)
            wait = Wait(kind="last", policy=progress.policies, most=most, at=end.at, zone=self.in_zone, more=more)
            return Due(now=False, waits=(wait,))
        end, waits = ends[0], list[Wait]()
        at = None if end.at is None else datetime.fromtimestamp(end.at, zone_of(self.in_zone))
        if end.at is not None:
            if progress.now < end.at:
                waits.append(Wait(kind="date", at=end.at, zone=self.in_zone, seconds=end.at - progress.now))
        elif end.decisions is not None and progress.total < end.decisions:
            waits.append(
                Wait(
                    kind="decisions",
                    decisions=progress.versions[-1].decisions,
                    needed=end.decisions - progress.before,
                    more=end.decisions - progress.total,
                )
            )
        waits += unlearnable(progress, self.in_zone)
        return Due(now=not waits, waits=tuple(waits), at=at, decisions=end.decisions)

    def lengths(self, created: float, *, window: float | None = None) -> tuple[int, ...] | None:
        """Decisions of each batch, as far as is known at the beginning; None where nothing is."""
        return _lengths(0, self.ends(Progress.beginning(created, window=window)))

    def forecast(self, progress: Progress) -> Forecast | None:
        """Decisions of each batch to come if the update is made now; None where the learner's own plan stands."""
        if self.learner_plans:
            return None
        ends = self.ends(progress.updated())
        if not ends:  # past the end: as long again as the batch that ends now
            return (max(1, progress.versions[-1].decisions),)
        return _lengths(progress.total, ends)

    def table(self, progress: Progress) -> ScheduleTable:
        """The batches to come, with dates and counts."""
        return ScheduleTable(first=progress.policies, ends=self.ends(progress), zone=self.in_zone)

    def price(
        self, *, dim: int, rate: float | None = None, delay: Duration = 0.0, created: float | None = None
    ) -> Price | None:
        """What it costs by the model, beside the best schedule with equally many policies; None where it is not known.

        Parameters
        ----------
        dim
            Features of an arm.
        rate
            Decisions a day, which schedules by dates need; their own by default.
        delay
            After which rewards are known, such as "1d" or a timedelta, where the schedule has none of its own; counted
            where a rate is known.
        created
            When the experiment begins, in seconds since 1970, which schedules that end at a date need.
        """
        whole("dim", dim)
        rate = getattr(self, "rate", None) if rate is None else number("rate", rate, low=0.0, open_low=True)
        a_second, late = None if rate is None else rate / DAY, self.late(rate, delay)
        if self.endless or self.learner_plans or (created is None and getattr(self, "end", None) is not None):
            return None
        beginning = Progress.beginning(created or 0.0, rate=a_second, window=duration_of("delay", delay))
        lengths = _lengths(0, self.ends(beginning))
        if lengths is None:
            return None
        ends = [*accumulate(lengths)]
        curve = self.curve
        unit = adaptive_cost(ends[-1], dim=dim, curve=curve)
        best = best_ends(ends[-1], len(ends), dim=dim, delay=late, curve=curve)
        ratio, least = (cost(these, dim=dim, delay=late, curve=curve) / unit for these in (ends, best))
        return Price(policies=len(ends), ratio=ratio, best=min(ratio, least))

    def late(self, rate: float | None, delay: Duration) -> float:
        """Decisions until a reward is known, of decisions a day and the delay where the schedule has none."""
        return duration_of("delay", getattr(self, "delay", None) or delay) * (rate or 0.0) / DAY

    def to_plain(self) -> dict[str, Any]:
        """As JSON-able data, from which :func:`~rareswitch.planning.schedule_from_plain` makes it again."""
        return {"kind": self.kind} | plain_fields(self)


def _lengths(before: int, ends: Sequence[End]) -> tuple[int, ...] | None:
    """Decisions of each batch; None where they are not known."""
    totals = [end.decisions for end in ends if end.decisions is not None]
    if not ends or len(totals) < len(ends):
        return None
    return tuple(max(1, b - a) for a, b in pairwise((before, *totals)))


def unlearnable(progress: Progress, zone: str = "UTC") -> tuple[Wait, ...]:
    """Why there would be nothing to learn from."""
    current = progress.versions[-1]
    if not current.decisions:
        return (Wait(kind="no decisions"),)
    if progress.window is not None and progress.now < current.first_time + progress.window:
        return (Wait(kind="window", at=current.first_time + progress.window, zone=zone, seconds=progress.window),)
    if not current.rewarded and not progress.has_default:
        return (Wait(kind="no rewards", decisions=current.decisions),)
    return ()
