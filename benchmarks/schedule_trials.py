"""Ways of spreading eight policies over 10,000 decisions, and of beginning: what ``schedules.py`` compares."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from measure import FloatArray
from rareswitch.contexts import ContextSets
from rareswitch.experiment import Best, Every, Progress, Schedule, baseline_share, schedule_of
from rareswitch.lab import learner_for
from rareswitch.lab.worlds import World
from rareswitch.learner import Foresight, Learner, Rows, State, Summary
from rareswitch.rng import uniforms
from rareswitch.validation import IntArray

TOTAL, UPDATES, DAYS = 10_000, 8, 56
RATE, WEEK = TOTAL / DAYS, TOTAL // UPDATES
#: Decisions of a day, whose rewards are not known at an update where rewards come a day late.
DAY = math.floor(RATE)
#: Decisions of an older log.
LOGGED = 500
#: The share of exploration beside what is shown, where it is not planned: in the first week, and in the log.
SHARE = 0.2

#: ``blind``: the learner's own first policy. ``planned``, ``share``: a baseline with a planned share of exploration, or
#: with a fifth. ``log``: 500 decisions of a uniform policy. ``shown``: 500 of the baseline, a fifth of them uniform.
Start = Literal["blind", "planned", "share", "log", "shown"]
Ends = Callable[[int], tuple[int, ...]]


def _of(schedule: Callable[[int], Schedule]) -> Ends:
    """Decisions in all at which the batches of a schedule end, by the number of features."""

    def ends(dim: int) -> tuple[int, ...]:
        found = [end.decisions or 0 for end in schedule(dim).ends(Progress.beginning(0.0))]
        return (*found[:-1], TOTAL)

    return ends


def _best(**limits: Any) -> Ends:
    """The best times within limits."""
    return _of(lambda dim: Best(updates=UPDATES, rate=RATE, end=DAYS * 86_400.0, dim=dim, **limits))


_weekly = _of(lambda dim: Every(period="week", times=UPDATES, rate=RATE))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One way of updating."""

    name: str
    ends: Ends
    #: A reward is known when so many decisions have come after its own.
    late: int = 0
    start: Start = "blind"
    learner: str = "foresight"

    def make(self, world: World, seed: int) -> Learner:
        """The learner, with its batches."""
        scale: dict[str, Any] = {"scale": 0.5} if self.learner == "stale-thompson" else {}
        told: dict[str, Any] = {"horizon": TOTAL, "seed": seed, "noise": 0.5, "grid": self.ends(world.dim)}
        return learner_for(world, self.learner, **told, **scale)

    def begin(self, learner: Learner, world: World, seed: int) -> State:
        """The state before the first decision."""
        if self.start == "planned":
            return learner.begin(baseline=baseline_share(world.dim, learner.clock.begin()))
        if self.start == "share":
            return learner.begin(baseline=SHARE)
        if self.start == "blind":
            return learner.begin()
        return learner.begin(warm=logged(learner, world, seed, share=1.0 if self.start == "log" else SHARE))

    @property
    def names_arms(self) -> bool:
        """Whether the first policy is told what the caller would show."""
        return self.start in ("planned", "share")


def shown(means: FloatArray, seed: int, first: int) -> IntArray:
    """What the caller would show: the best arm, or in half of the cases any."""
    coins = uniforms(seed, "baseline", first, len(means), 2)
    anything = (coins[:, 1] * means.shape[1]).astype(np.int64)
    return np.asarray(np.where(coins[:, 0] < 0.5, means.argmax(axis=1), anything))


def logged(learner: Learner, world: World, seed: int, *, share: float) -> Summary:
    """An older log, of what the caller showed but for a share of uniform decisions; of rounds that the run has not."""
    drawn = world.draw(LOGGED, seed=seed, first=TOTAL)
    coins = uniforms(seed, "log", 0, LOGGED, 2)
    anything = (coins[:, 1] * world.arms).astype(np.int64)
    arms, at = np.where(coins[:, 0] < share, anything, shown(drawn.means, seed, TOTAL)), np.arange(LOGGED)
    rows = Rows(
        ids=range(TOTAL, TOTAL + LOGGED),
        policy_id=learner.begin().policy.id,
        features=drawn.contexts[at, arms],
        rewards=world.rewards(drawn.means[at, arms], seed=seed, first=TOTAL),
        sets=ContextSets(drawn.contexts, np.ones(drawn.means.shape, dtype=np.bool_)),
    )
    return learner.summarize(learner.begin(), rows)


TRIALS = {
    trial.name: trial
    for trial in (
        Trial(
            name="best",
            ends=_of(lambda dim: schedule_of("best", learner=Foresight(dim=dim, horizon=TOTAL, updates=UPDATES))),
        ),
        Trial(name="best with a gap", ends=_best(gap="1 day")),
        Trial(name="best with a gap and a delay", ends=_best(gap="1 day", delay="1 day"), late=DAY),
        Trial(name="weekly", ends=_weekly),
        # the first policy must go on for a second week: nothing is known when the first ends
        Trial(name="weekly, rewards a week late", ends=lambda dim: _weekly(dim)[1:], late=WEEK),
        Trial(name="weekly with a baseline", ends=_weekly, start="planned"),
        Trial(name="weekly with a baseline, a fifth explores", ends=_weekly, start="share"),
        Trial(name="weekly after a log", ends=_weekly, start="log"),
        Trial(name="weekly after a log of what was shown", ends=_weekly, start="shown"),
        Trial(name="stale thompson 0.5, weekly", ends=_weekly, learner="stale-thompson"),
        Trial(name="greedy, weekly", ends=_weekly, learner="pure-exploitation"),
        Trial(name="never", ends=lambda dim: (TOTAL,)),
    )
}
