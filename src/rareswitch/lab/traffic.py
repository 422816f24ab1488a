"""Simulated users of an experiment: they come at a rate, and their rewards come late, twice or never."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

from rareswitch.core import ContextSets, FloatArray, number, uniforms, whole
from rareswitch.errors import InputError, ParameterError
from rareswitch.experiment import Advance, Experiment
from rareswitch.lab.simulate import DrawnRounds
from rareswitch.lab.worlds import RecordWorld, World
from rareswitch.planning import DAY, Manual, duration_of, seconds_of

__all__ = ["Traffic", "play"]

#: Decisions that are played at a time.
MOST = 10**8


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """How users come, and what becomes of their rewards."""

    #: Decisions a day.
    rate: float = 200.0
    #: How long rewards take on average, such as "6h" or a timedelta. Each takes a time of its own, exponential.
    delay: str | timedelta | float = 0.0
    #: Share of the rewards that never come.
    missing: float = 0.0
    #: Share of the rewards that come twice.
    repeated: float = 0.0

    def __post_init__(self) -> None:
        number("rate", self.rate, low=1e-6, high=1e9)
        object.__setattr__(self, "delay", duration_of("delay", self.delay))
        number("missing", self.missing, low=0.0, high=1.0)
        number("repeated", self.repeated, low=0.0, high=1.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class TrafficResult:
    """The result of simulated days."""

    decisions: int
    #: Rewards that came, repetitions included.
    rewards: int
    repeated: int
    missing: int
    #: Rewards that would come after the end.
    pending: int
    #: Seconds since 1970.
    start: float
    stop: float
    #: Updates that were made, each with the number of decisions before it.
    updates: list[tuple[int, Advance]] = field(default_factory=list)
    #: (decisions,) what each decision lost to the best arm, in expectation.
    regrets: FloatArray
    #: Expected reward of all decisions.
    earned: float


def play(
    experiment: Experiment,
    world: World,
    traffic: Traffic,
    *,
    days: float,
    seed: int = 0,
    start: str | datetime | float | None = None,
    step: str | timedelta | float = "1h",
    advance: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> TrafficResult:
    """Let users of a world ask an experiment for some days, in simulated time.

    Parameters
    ----------
    world
        Where contexts and rewards come from; for an experiment with features a
        :class:`~rareswitch.lab.worlds.RecordWorld`.
    days
        How long.
    seed
        Keys the world, and the delays.
    start
        When it begins; by default when the last decision was made, or the experiment created.
    step
        Users of one such span, an hour by default, are answered together; then come rewards that are due by its end.
    advance
        Whether to make updates when they are due, at the end of each step; never where they are made by hand.
    progress
        Called with the decisions made and those to be made.

    Examples
    --------
    >>> from rareswitch.lab.worlds import make_world
    >>> from rareswitch.experiment import create
    >>> trial = create("memory:", "spring", dim=3, policies=4, horizon=400, seed=1, now=0)
    >>> world = make_world("gaussian", dim=3, arms=4, noise=0.5)
    >>> played = play(trial, world, Traffic(rate=100, delay="2h", missing=0.1), days=4, seed=1)
    >>> played.decisions, len(played.updates), played.rewards + played.missing + played.pending
    (400, 3, 400)
    """
    check_world(experiment, world)
    whole("seed", seed, low=0, high=None)
    number("days", days, low=0.0, high=1e6)
    if days * traffic.rate > MOST:
        raise ParameterError(
            f"rate and days must be such that at most {MOST:,} decisions are made; got {days * traffic.rate:,.0f}."
        )
    step = number("step", duration_of("step", step), low=1.0)
    first, began = _so_far(experiment)
    start = began if start is None else seconds_of(start)
    total = int(days * traffic.rate)
    mail = _Mail(experiment, traffic, seed)
    regrets: list[FloatArray] = [np.empty(0)]
    updates: list[tuple[int, Advance]] = []
    earned, done = 0.0, 0
    advance = advance and not isinstance(experiment.description.schedule, Manual)
    for k in range(int(np.ceil(days * DAY / step))):
        now = start + (k + 1) * step
        count = min(total, int((k + 1) * step / DAY * traffic.rate)) - done
        if count:
            expected, lost = _ask(experiment, world, count, seed=seed, first=first + done, now=now - step)
            mail.send(world.rewards(expected, seed=seed, first=first + done), first=first + done, now=now - step)
            regrets.append(lost)
            earned, done = earned + float(expected.sum()), done + count
        mail.deliver(now)
        if advance and done and (update := experiment.advance(now=now)).made:
            updates.append((first + done, update))
        if progress is not None:
            progress(done, total)
    return TrafficResult(
        decisions=done,
        **mail.counts,
        pending=len(mail.pending),
        start=start,
        stop=start + days * DAY,
        updates=updates,
        regrets=np.concatenate(regrets),
        earned=earned,
    )


def check_world(experiment: Experiment, world: World) -> None:
    """Refuse a world whose requests are not those of the experiment."""
    features, dim = experiment.description.features, experiment.description.learner.dim
    if features is not None and not isinstance(world, RecordWorld):
        raise InputError("this experiment has features: its users come from a sample of records, with arms.")
    if features is None and isinstance(world, RecordWorld):
        raise InputError(
            "this experiment is for vectors, and was created without features: records mean nothing to it."
        )
    if world.dim != dim:
        raise InputError(f"this experiment is for vectors of {dim} features; the world has {world.dim}.")


def _so_far(experiment: Experiment) -> tuple[int, float]:
    """The number of decisions, and when the last was made."""
    counts = [policy for policy in experiment.store.counts() if policy.decisions]
    times = [policy.last_time for policy in counts]
    return sum(policy.decisions for policy in counts), max([*times, experiment.description.created])


def _ask(
    experiment: Experiment, world: World, count: int, *, seed: int, first: int, now: float
) -> tuple[FloatArray, FloatArray]:
    """Decide, and return the expected rewards (n,) of what was chosen, and what each lost to the best arm."""
    drawn = DrawnRounds.of(world, count, seed=seed, first=first)
    ids = [visit(first + k) for k in range(count)]
    if isinstance(world, RecordWorld):
        contexts, arms = world.requests(count, seed=seed, first=first)
        choices = experiment.decide_many(contexts, arms, ids=ids, now=now)
        chosen = [list(offered).index(choice.arm) for offered, choice in zip(arms, choices, strict=True)]
    else:
        choices = experiment.decide_many(ContextSets(drawn.sets.contexts, drawn.sets.available), ids=ids, now=now)
        chosen = [choice.arm for choice in choices]
    return drawn.means[np.arange(count), chosen], drawn.regrets(np.array(chosen))


def visit(number: int) -> str:
    """The id of a simulated decision."""
    return f"visit-{number}"


class _Mail:
    """Rewards on their way to an experiment."""

    def __init__(self, experiment: Experiment, traffic: Traffic, seed: int) -> None:
        self.experiment, self.traffic, self.seed = experiment, traffic, seed
        #: A heap of rewards to come: when, of which round, how much.
        self.pending: list[tuple[float, int, float]] = []
        self.counts = {"rewards": 0, "repeated": 0, "missing": 0}

    def send(self, paid: FloatArray, *, first: int, now: float) -> None:
        """Put rewards on their way."""
        fates = uniforms(self.seed, "rewards", first, len(paid), 4)
        for k, (value, (lost, twice, wait, more)) in enumerate(zip(paid.tolist(), fates.tolist(), strict=True)):
            if lost < self.traffic.missing:
                self.counts["missing"] += 1
                continue
            for spent in (wait, more) if twice < self.traffic.repeated else (wait,):
                heapq.heappush(self.pending, (now - self.traffic.delay * np.log(spent), first + k, value))

    def deliver(self, now: float) -> None:
        """Hand over the rewards that are due."""
        due = []
        while self.pending and self.pending[0][0] <= now:
            due.append(heapq.heappop(self.pending))
        if due:
            before = self.experiment.store.totals().repeated_rewards
            ids, values = [visit(number) for _, number, _ in due], [value for *_, value in due]
            self.experiment.reward_many(ids, values, now=now)
            self.counts["rewards"] += len(due)
            self.counts["repeated"] += self.experiment.store.totals().repeated_rewards - before
