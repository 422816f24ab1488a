"""How many policies an experiment needs, when, and what it loses with fewer."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np

from rareswitch.core import FloatArray, Result, number, whole
from rareswitch.errors import ParameterError
from rareswitch.features import Features
from rareswitch.planning.bounds import Bounds, bounds_of
from rareswitch.planning.evidence import evidence_of, metric_of
from rareswitch.planning.guarantees import ContextKind
from rareswitch.planning.power import Detection, decisions_until_seen
from rareswitch.planning.regret_model import MinPropensityPrice, RegretCurve, adaptive_cost, cost, min_propensity_price
from rareswitch.planning.schedule import End, Progress
from rareswitch.planning.schedules import BestSchedule
from rareswitch.planning.simulation import regret_curves
from rareswitch.planning.times import DAY, Duration, Moment, Seconds, duration_of, moment_of, seconds_of, zone_of
from rareswitch.policy import MinPropensity, least_probability

__all__ = ["Option", "Plan", "PlannedRegret", "plan"]

#: Numbers of policies that are compared, beside the one that is asked for.
COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16)
#: More policies are recommended while each saves at least this share of the regret.
WORTH = 0.05
#: Of the logarithm of a run's regret around that of its truth: chance, about 0.3 with few features, and the model's
#: error, 0.15, or 0.35 where it does not describe the rewards.
RUN_SPREAD, MISFIT_SPREAD = 0.35, 0.45
#: Of the intervals of regret.
LEVEL = 0.9
#: Of uniform choice: some hundred sets do not resolve smaller losses on average; and those of a single truth, of that.
RESOLVED, LEAST = 1e-4, 1e-2
#: The share of ids by which the lift is measured, where neither it nor a minimum propensity is given.
HOLDOUT = 0.05
#: A minimum propensity whose cost is shown where none is asked for.
SHOWN_PROPENSITY = 0.01


class PlannedRegret(Result, frozen=True, kw_only=True):
    """An expected regret with its interval."""

    expected: float
    low: float
    high: float


class Option(Result, frozen=True, kw_only=True):
    """A number of policies at their best times."""

    policies: int
    ends: tuple[End, ...]
    #: In units of full adaptivity: its cost, and the modelled floor of this number of batches, which end at their best
    #: times whatever meetings and gaps are.
    ratio: float
    floor: float
    #: In decisions of uniform choice, and in the unit of the metric where that is known.
    regret: PlannedRegret
    metric: PlannedRegret | None = None
    #: Order of the proved regret of the learner with the best bound; None where it is vacuous, no less than T.
    bound: float | None = None


class Other(Result, frozen=True, kw_only=True):
    """Times that people choose without a plan."""

    #: ``meeting``: at every meeting; ``week``, ``day``; ``equal``: batches of equal length; ``never``: one policy.
    kind: str
    policies: int
    ratio: float


class Plan(Result, frozen=True, kw_only=True):
    """How many policies, when, and at what cost. Prints as text; ``create(…, schedule=plan.schedule)`` follows it."""

    decisions: int
    dim: int
    arms: int
    #: What the contexts and the rewards were taken from: "sizes", "sample" or "log".
    source: str
    #: Decisions a day, and when it begins and ends, in seconds since 1970; None where only decisions are counted.
    rate: float | None = None
    start: float | None = None
    end: float | None = None
    zone: str = "UTC"
    #: Of the metric, for uniform choice; its standard deviation; whether rewards are clicks.
    mean: float | None = None
    spread: float | None = None
    clicks: bool = False
    #: Whether a linear, of clicks a logistic, model describes the rewards of the log; None where there is none.
    fits: bool | None = None
    #: How much more the best arms earn than uniform choice, lowest and highest assumption: in standard deviations.
    gain: tuple[float, float]
    #: Of a new policy after every decision, in decisions of uniform choice.
    adaptive: float
    recommended: int
    #: The most policies that can be deployed, where that was said.
    most: int | None = None
    options: tuple[Option, ...]
    others: tuple[Other, ...]
    learner: str
    bounds: Bounds
    min_propensity: MinPropensityPrice
    detections: tuple[Detection, ...]
    #: The schedule of the recommended policies, as ``create(schedule=…)`` takes it; it carries the simulated regret.
    schedule: dict[str, Any]

    @property
    def best(self) -> Option:
        """The recommended one."""
        return next(option for option in self.options if option.policies == self.recommended)


@dataclass(frozen=True, kw_only=True)
class Span:
    """How many decisions, and when."""

    decisions: int
    rate: float | None = None
    start: float | None = None
    end: float | None = None
    zone: str = "UTC"
    delay: float = 0.0
    gap: float = 0.0
    on: str | Sequence[str] | None = None

    def schedule(self, policies: int, *, dim: int, curve: RegretCurve) -> BestSchedule:
        """The best times for a number of policies."""
        regret = [*zip(curve.known, curve.price, strict=True)]
        if self.rate is None:
            return BestSchedule(policies=policies, decisions=self.decisions, dim=dim, regret=regret)
        return BestSchedule(
            policies=policies,
            rate=self.rate,
            end=self.end,
            delay=Seconds(self.delay) if self.delay else None,
            gap=Seconds(self.gap),
            on=self.on,
            zone=self.zone,
            dim=dim,
            regret=regret,
        )

    @property
    def late(self) -> float:
        """Decisions until a reward is known."""
        return self.delay * (self.rate or 0.0) / DAY

    @property
    def progress(self) -> Progress:
        """That of an experiment that begins."""
        return Progress.beginning(self.start or 0.0, rate=None if self.rate is None else self.rate / DAY)

    def habit(self) -> tuple[str, list[int]] | None:
        """Updates at every meeting; or every week, or day where that is less than three; and the ends of batches."""
        if self.rate is None or self.start is None or self.end is None:
            return None
        days = (self.end - self.start) / DAY
        if self.on is not None:
            meetings = self.schedule(2, dim=1, curve=RegretCurve.of(1)).meetings(self.start)
            counts = [round(self.rate * (at - self.start) / DAY) for at in meetings]
            return "meeting", [*dict.fromkeys([*counts, self.decisions])]
        for name, length in (("week", 7), ("day", 1)):
            if (count := math.ceil(days / length - 1e-9)) >= 3:
                counts = [min(self.decisions, round(self.rate * length * (k + 1))) for k in range(min(count, 2000))]
                return name, [*dict.fromkeys([*counts, self.decisions])]
        return None


def span_of(
    decisions: int | None,
    rate: float | None,
    start: Moment | None,
    end: Moment | None,
    zone: str,
    delay: Duration,
    gap: Duration,
    on: str | Sequence[str] | None,
) -> Span:
    """How many decisions, and when, of what people say."""
    zone_of(zone)
    if decisions is not None:
        decisions = whole("decisions", decisions, low=2, high=10**15)
    if rate is None:
        if decisions is None:
            raise ParameterError(
                "decisions must be given, in all; or rate, the decisions a day, and end, the last day."
            )
        for name, value in (("end", end), ("start", start), ("delay", delay), ("gap", gap), ("on", on)):
            if value:
                raise ParameterError(
                    f"{name} is for a plan with dates, and there is no rate: give rate=…, the decisions a day, too.",
                    parameter=name,
                    given=value,
                )
        return Span(decisions=decisions)
    rate = number("rate", rate, low=0.0, high=1e12, open_low=True)
    begins = seconds_of(None) if start is None else moment_of("start", start, zone)
    if (decisions is None) == (end is None):
        raise ParameterError("end, the last day, or decisions, in all, must be given beside rate; and not both.")
    last = begins + DAY * decisions / rate if decisions is not None else moment_of("end", end, zone)  # type: ignore[arg-type]
    if last <= begins:
        raise ParameterError(
            f"end must be after the start ({'now' if start is None else start}); got {end!r:.60}.",
            parameter="end",
            given=end,
        )
    last = moment_of("end", last, zone)  # a year that can be written
    total = rate * (last - begins) / DAY
    if total < 2.0:
        raise ParameterError(f"rate and end must be such that there are two decisions at least; there are {total:.3g}.")
    seconds = {"delay": duration_of("delay", delay), "gap": duration_of("gap", gap)}
    span = Span(decisions=round(total), rate=rate, start=begins, end=last, zone=zone, on=on, **seconds)
    if on is not None and not span.schedule(2, dim=1, curve=RegretCurve.of(1)).meetings(begins):
        raise ParameterError(
            f"on must be a meeting between start and end; there is none on {on}. Choose another day or a later end.",
            parameter="on",
            given=on,
        )
    return span


def plan(
    decisions: int | None = None,
    *,
    rate: float | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    zone: str = "UTC",
    dim: int | None = None,
    arms: Any = None,
    sample: Any = None,
    features: Features | None = None,
    log: Any = None,
    policies: int | None = None,
    delay: Duration = 0.0,
    gap: Duration = 0.0,
    on: str | Sequence[str] | None = None,
    mean: float | None = None,
    spread: float | None = None,
    click_rate: float | None = None,
    lift: float | None = None,
    holdout: float | None = None,
    min_propensity: float | None = None,
    contexts: ContextKind = "stochastic",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """How many policies an experiment needs, when, and what it loses with fewer, by simulation on its contexts.

    Parameters
    ----------
    decisions
        In all; or ``rate``, the decisions a day, with ``end``, the last day; or decisions and rate.
    start, zone
        When it begins, now by default; the time zone of ``start``, ``end`` and ``on``.
    dim, arms
        Features of an arm, and arms in a set: all that is needed where there is no sample. Contexts are then random
        directions.
    sample
        What requests will be like: context sets (n, K, d), or records with ``features``; ``arms`` are then the ids or
        records that each request offers, by default all that the features know.
    log
        Decisions with rewards, as :func:`rareswitch.evaluate` takes them: contexts and rewards are like theirs.
    policies
        The most that can be deployed, the first included.
    delay, gap, on
        How long after a decision its reward is known, the least time between updates, and the weekdays and times of day
        at which updates may be made, such as ``"monday 10:00"``; for plans with dates.
    mean, spread
        Of the metric: what a decision of uniform choice earns on average, and the standard deviation of a reward.
    click_rate
        In place of both where rewards are clicks.
    lift
        How much more the best arms earn than uniform choice, as a share of the mean, such as 0.1; by default from 0.1
        to 1, or from half to twice a standard deviation where there is no mean, or as the log says.
    holdout
        The share of ids that keeps a baseline, against which the lift is measured; 0.05 by default.
    min_propensity
        The least probability of every offered arm.
    contexts
        What bounds are for: ``fixed``, ``stochastic`` or ``adversarial`` contexts.
    seed
        Keys the simulation.
    progress
        Called with what is done and the total.

    Examples
    --------
    >>> spring = plan(20_000, dim=5, arms=8, policies=8)
    >>> spring.recommended, len(spring.best.ends)
    (8, 8)
    >>> from rareswitch import create
    >>> trial = create("memory:", "spring", dim=5, schedule=spring.schedule, seed=1)
    >>> round(trial.status().price.ratio - spring.best.ratio, 9)
    0.0
    """
    span = span_of(decisions, rate, start, end, zone, delay, gap, on)
    if policies is not None and whole("policies", policies) > span.decisions:
        raise ParameterError(
            f"policies must be at most the decisions, {span.decisions:,}; got {policies}.", parameter="policies"
        )
    holdout = HOLDOUT if holdout is None else number("holdout", holdout, low=0.001, high=0.9)
    metric = metric_of(mean, spread, click_rate, lift)
    facts = evidence_of(dim=dim, arms=arms, sample=sample, features=features, log=log, metric=metric, seed=seed)
    width, most_arms = facts.sets.contexts.shape[2], facts.sets.contexts.shape[1]
    offered = float(facts.sets.available.sum(axis=1).mean())
    least = least_probability(
        "min_propensity", min(SHOWN_PROPENSITY, 0.5 / offered) if min_propensity is None else min_propensity
    )
    min_propensity_price(MinPropensity(least=least), arms=offered, ends=None, dim=width)  # refuses what cannot be
    bounds = bounds_of(dim=width, arms=most_arms, horizon=span.decisions, policies=policies, contexts=contexts)
    curves = regret_curves(facts.sets, facts.truths, total=float(span.decisions), seed=seed, progress=progress)
    uniform = np.maximum(curves.regret[:, 0], np.finfo(np.float64).tiny)
    relative = np.clip(curves.regret[:, 1:] / uniform[:, None], LEAST * RESOLVED, 1.0)
    resolved = max(1, int((np.minimum.accumulate(relative.mean(axis=0)) >= RESOLVED).sum()))  # beyond, it falls as 1/n
    relative, known = relative[:, :resolved], tuple(curves.known[1 : resolved + 1].tolist())
    curve = RegretCurve(known, tuple(np.minimum.accumulate(relative.mean(axis=0)).tolist()))
    model = Simulated(
        span=span,
        dim=width,
        curve=curve,
        each=tuple(RegretCurve(known, tuple(row)) for row in relative.tolist()),
        uniform=uniform if facts.mean is not None else None,
        spread=RUN_SPREAD if facts.fits else MISFIT_SPREAD,
        bounds=bounds,
        adaptive=adaptive_cost(float(span.decisions), dim=width, curve=curve),
    )
    options = model.options(policies)
    # what no linear model learns is lost whatever the number of policies
    lasting = 0.0 if facts.fits else float(span.decisions) * curve.price[-1] / model.adaptive
    best = recommended(options, lasting)
    ends = [end.decisions or 0 for end in best.ends]
    price = min_propensity_price(
        MinPropensity(least=least), arms=offered, ends=ends, dim=width, delay=span.late, curve=curve
    )
    detection = partial(
        decisions_until_seen,
        ends=ends,
        curve=curve,
        delay=span.late,
        arms=offered,
        gain=math.sqrt(facts.gains[0] * facts.gains[1]),
        informative=min(facts.mean, 1.0 - facts.mean) if facts.clicks and facts.mean is not None else 1.0,
    )
    detections = [detection(holdout=holdout)]
    if min_propensity is not None:
        detections.append(detection(min_propensity=least))
    return Plan(
        decisions=span.decisions,
        dim=width,
        arms=most_arms,
        source="log" if log is not None else "sizes" if sample is None else "sample",
        rate=span.rate,
        start=span.start,
        end=span.end,
        zone=zone,
        mean=facts.mean,
        spread=None if facts.mean is None else facts.spread,
        clicks=facts.clicks,
        fits=None if log is None else facts.fits,
        gain=facts.gains,
        adaptive=model.adaptive,
        recommended=best.policies,
        most=policies,
        options=options,
        others=model.others(best.policies),
        learner="oful" if contexts == "adversarial" else "foresight",
        bounds=bounds,
        min_propensity=price,
        detections=tuple(detections),
        schedule=span.schedule(max(2, best.policies), dim=width, curve=curve).to_plain(),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Simulated:
    """The simulated regret of a problem, and what times cost by it."""

    span: Span
    dim: int
    curve: RegretCurve
    #: That of each truth, relative to its own uniform choice.
    each: tuple[RegretCurve, ...]
    #: (J,) what uniform choice loses in the unit of the metric; None where that is not known.
    uniform: FloatArray | None
    #: Of the logarithm of a run's regret around that of its truth.
    spread: float
    bounds: Bounds
    adaptive: float

    def options(self, most: int | None) -> tuple[Option, ...]:
        """One policy, and more at their best times, as long as more make a difference."""
        options = [self.option(1)]
        limit = self.span.decisions if most is None else most
        for count in sorted({*COUNTS, *([] if most is None else [most])}):
            if 1 < count <= limit:
                option = self.option(count)
                if option.policies <= options[-1].policies:  # no more would pay, or there are no more meetings
                    break
                options.append(option)
        return tuple(options)

    def option(self, count: int) -> Option:
        """A number of policies at their best times, or fewer where more would not pay."""
        span = self.span
        ends: tuple[End, ...] = (End(span.decisions, span.end),)
        ratio = floor = self.ratio([span.decisions])
        if count > 1:
            schedule = span.schedule(count, dim=self.dim, curve=self.curve)
            price = schedule.price(dim=self.dim, rate=span.rate, delay=Seconds(span.delay), created=span.start)
            assert price is not None
            ends, ratio, floor = schedule.ends(span.progress), price.ratio, price.best
        counts = [end.decisions or 0 for end in ends]
        totals = np.array([cost(counts, dim=self.dim, delay=span.late, curve=curve) for curve in self.each])
        chance = np.exp(self.spread * np.array(NormalDist().quantiles(n=40)))
        runs = counts[0] + np.outer(totals - counts[0], chance)  # the first policy is blind for certain
        expected, metric = ratio * self.adaptive, None
        if self.uniform is not None:
            metric = _regret(expected * float(self.uniform.mean()), self.uniform[:, None] * runs)
        regret = _regret(expected, runs)
        bound = self.bounds.order_with(len(ends))
        return Option(
            policies=len(ends), ends=ends, ratio=ratio, floor=floor, regret=regret, metric=metric, bound=bound
        )

    def ratio(self, ends: Sequence[int]) -> float:
        """What batches with these ends cost, in units of full adaptivity."""
        return cost(ends, dim=self.dim, delay=self.span.late, curve=self.curve) / self.adaptive

    def others(self, policies: int) -> tuple[Other, ...]:
        """A habit, every week or day or batches of equal length, and never."""
        total = self.span.decisions
        kind, ends = self.span.habit() or ("equal", [total * (k + 1) // policies for k in range(policies)])
        others = [Other(kind=kind, policies=len(ends), ratio=self.ratio(ends))] if policies > 1 else []
        return (*others, Other(kind="never", policies=1, ratio=self.ratio([total])))


def recommended(options: Sequence[Option], lasting: float = 0.0) -> Option:
    """The fewest policies of which each further one saves less than WORTH of the regret, less what always lasts."""
    for few, many in pairwise(options):
        share = max(many.ratio - lasting, 0.0) / max(few.ratio - lasting, np.finfo(np.float64).tiny)
        saved = 1.0 - share ** (1.0 / (many.policies - few.policies))
        if saved < WORTH and few.policies > 1:
            return few
    return options[-1]


def _regret(expected: float, runs: FloatArray) -> PlannedRegret:
    """The interval of a run: of its truth, and of chance around that."""
    low, high = np.quantile(runs, (0.5 - LEVEL / 2.0, 0.5 + LEVEL / 2.0))
    return PlannedRegret(expected=float(expected), low=float(low), high=float(high))
