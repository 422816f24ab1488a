"""What an experiment showed and earned over time, how late rewards came, and all of this in one report."""

import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rareswitch.core import Result, result_html, write_whole
from rareswitch.errors import InputError
from rareswitch.evaluation import Always, Candidate, Evaluation, evaluate
from rareswitch.experiment.description import Description
from rareswitch.experiment.results import Advance, Status
from rareswitch.planning import DAY
from rareswitch.store import Store, rewards_by_age, shown_by_time

if TYPE_CHECKING:
    from rareswitch.experiment.experiment import Experiment

__all__ = ["ExperimentReport", "History", "RewardAges", "report_values"]

#: Spans of time into which the life of an experiment is divided, at the most, and the shortest in seconds.
SPANS, SHORTEST = 40, 1.0
#: Ages of rewards that are told apart, in seconds.
AGES = (60.0, 600.0, 3600.0, 6 * 3600.0, DAY, 2 * DAY, 7 * DAY, 30 * DAY)
#: Arms of which values are estimated: the most shown.
MOST_ARMS = 40


class RewardAges(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions by the age at which their first reward came."""

    #: Upper bounds in seconds; what is older than the last is counted after it.
    bounds: tuple[float, ...]
    #: (bounds + 1)
    decisions: tuple[int, ...]
    #: With a reward in the window, with one after it, without one while it is open, and without one since it closed.
    in_window: int
    late: int
    waiting: int
    missing: int


class History(Result, frozen=True, kw_only=True):
    """Decisions by arm and rewards, in equal spans of time, of the decisions up to ``decisions``."""

    #: When the first span begins, in seconds since 1970, and how long each is.
    start: float
    width: float
    decisions: int
    #: By arm, the most shown first: decisions in each span.
    arms: dict[str, tuple[int, ...]]
    #: Of the decisions in each span: those with a reward, and the sum of their rewards.
    rewarded: tuple[int, ...]
    earned: tuple[float, ...]
    ages: RewardAges


class ExperimentReport(Result, frozen=True, kw_only=True):
    """All that is known of an experiment: its status, history, proposal, and the values of its policies and arms."""

    #: Seconds since 1970.
    at: float
    status: Status
    history: History
    #: The update whose policy waits for approval.
    proposal: Advance | None = None
    #: Of policies and arms; None where they were not asked for, or there is nothing to evaluate.
    values: Evaluation | None = None

    def to_html(self, path: str | Path | None = None) -> str:
        """A page that needs no other file; with a path, it is written there too."""
        text = result_html(self)
        if path is not None:
            write_whole(text.encode(), path)
        return text

    def _repr_html_(self) -> str:
        """In a notebook, in a frame of its own."""
        from html import escape

        return f'<iframe srcdoc="{escape(result_html(self))}" width="100%" height="900" frameborder="0"></iframe>'


def history_of(description: Description, store: Store, *, now: float) -> History:
    """What was shown and earned so far."""
    upto, counts, window = store.marks(), store.counts(), description.rewards.window
    total = sum(count.decisions for count in counts)
    start = min((count.first_time for count in counts), default=description.created)
    end = max((count.last_time for count in counts), default=start)
    width = max(SHORTEST, (end - start) / SPANS * (1.0 + 1e-9))
    spans = 1 + math.floor((end - start) / width)
    arms: dict[str, list[int]] = defaultdict(lambda: [0] * spans)
    for shown in shown_by_time(store, upto, start=start, width=width):
        arms[shown.arm][min(shown.span, spans - 1)] += shown.decisions
    bounds = tuple(sorted({*AGES, *([] if window is None else [window])}))
    rewarded, earned, by_age = [0] * spans, [0.0] * spans, [0] * (len(bounds) + 1)
    open_since = math.inf if window is None else now - window
    most_shown = sorted(arms.items(), key=lambda item: (-sum(item[1]), item[0]))
    known = 0  # of those whose window is open
    for paid in rewards_by_age(store, upto, start=start, width=width, ages=bounds, since=min(open_since, 1e18)):
        at = min(paid.span, spans - 1)
        rewarded[at] += paid.decisions
        earned[at] += paid.earned
        by_age[paid.age] += paid.decisions
        known += paid.decisions * paid.recent
    late = 0 if window is None else sum(by_age[bounds.index(window) + 1 :])
    waiting = total - sum(by_age) if window is None else max(0, store.younger(open_since) - known)
    return History(
        start=start,
        width=width,
        decisions=total,
        arms={arm: tuple(counts_of) for arm, counts_of in most_shown},
        rewarded=tuple(rewarded),
        earned=tuple(earned),
        ages=RewardAges(
            bounds=bounds,
            decisions=tuple(by_age),
            in_window=sum(by_age) - late,
            late=late,
            waiting=waiting,
            missing=max(0, total - sum(by_age) - waiting),
        ),
    )


def candidates_of(trial: "Experiment", history: History) -> dict[str, Candidate]:
    """What is evaluated in a report: all policies, and the arms that were shown most."""
    policies: dict[str, Candidate] = {f"policy {number}": policy for number, policy in enumerate(trial.policies, 1)}
    return policies | {f"always {arm}": Always(arm) for arm in [*history.arms][:MOST_ARMS]}


def report_values(
    trial: "Experiment",
    history: History,
    *,
    now: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation | None:
    """The values of policies and arms, whose intervals hold together; None where there is nothing to evaluate."""
    try:
        return evaluate(trial.logged(now=now), candidates_of(trial, history), progress=progress)
    except InputError:
        return None  # of a log without whole context sets or without rewards, which the status shows
