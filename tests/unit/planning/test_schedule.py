"""Schedules that count decisions, and what all schedules answer."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.experiment import Rewards
from rareswitch.lab import Traffic
from rareswitch.learner import Foresight
from rareswitch.planning import (
    AfterCounts,
    BestSchedule,
    LearnerSchedule,
    Manual,
    Periodic,
    Progress,
    Schedule,
    Wait,
    from_settings,
    plain_fields,
    schedule_from_plain,
    schedule_of,
)
from rareswitch.report import as_text
from rareswitch.store import Counts
from reference.refusals import raises

DAY = 86_400.0
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp()  # a Wednesday


def after(*batches: int, days: float = 1.0, rewarded: bool = True, **told: Any) -> Progress:
    """An experiment whose batches had so many decisions, each in so many days; the last one is the current."""
    starts = [NOW + k * days * DAY for k in range(len(batches))]
    versions = tuple(
        Counts(k + 1, count, count if rewarded else 0, start, start + days * DAY)
        for k, (count, start) in enumerate(zip(batches, starts, strict=True))
    )
    end = NOW + len(batches) * days * DAY
    return Progress(created=NOW, now=end, versions=versions, published=tuple(starts), **told)


def test_an_update_is_due_after_so_many_decisions_of_each_policy() -> None:
    every = AfterCounts(decisions=100)
    assert every.due(after(100)).now
    assert every.due(after(130, 100)).now
    waiting = every.due(after(130, 99))
    assert (waiting.now, waiting.waits) == (False, (Wait(kind="decisions", decisions=99, needed=100, more=1),))
    assert str(waiting) == "Next update: after 1 more decision (99 of 100)."


def test_listed_ends_are_counted_from_the_beginning_and_the_last_is_no_update() -> None:
    ends = AfterCounts(decisions=[100, 400, 1000])
    assert ends.due(after(100)).now
    assert not ends.due(after(100, 299)).now
    assert ends.due(after(100, 300)).now
    over = ends.due(after(100, 300, 5000))
    assert not over.now
    assert over.waits == (Wait(kind="last", policy=3, more=1000),)
    assert str(over) == (
        "Next update: none, policy 3 is the last of the schedule, until 1,000 decisions in all (to make another, "
        "advance with force=True)."
    )
    assert "advance with --force)." in as_text(over, cli=True)


def test_an_end_that_an_update_came_too_late_for_is_left_out() -> None:
    assert [end.decisions for end in AfterCounts(decisions=[100, 400, 1000]).ends(after(450, 10))] == [1000]


def test_a_number_of_times_is_a_number_of_policies() -> None:
    thrice = AfterCounts(decisions=100, times=3)
    assert thrice.due(after(100, 100)).now
    assert not thrice.due(after(100, 100, 100)).now


def test_the_forecast_is_that_of_the_batches_after_an_update_now() -> None:
    assert AfterCounts(decisions=[100, 400, 1000]).forecast(after(120)) == (280, 600)
    assert AfterCounts(decisions=[100, 400, 1000]).forecast(after(60)) == (340, 600)
    assert AfterCounts(decisions=100).forecast(after(130)) == (100, 100, 100)
    assert AfterCounts(decisions=100, times=2).forecast(after(100)) == (100,)
    assert AfterCounts(decisions=100, times=2).forecast(after(100, 70)) == (70,), "past the end: as long again"


def test_nothing_is_due_where_there_is_nothing_to_learn_from() -> None:
    none, unrewarded = AfterCounts(decisions=1).due(after(0)), AfterCounts(decisions=10).due(after(10, rewarded=False))
    assert [wait.kind for wait in none.waits] == ["decisions", "no decisions"]
    assert str(none) == "Next update: after 1 more decision (0 of 1); no decisions yet."
    assert str(unrewarded) == "Next update: no rewards yet (10 decisions)."
    young = AfterCounts(decisions=10).due(after(10, window=3 * DAY))
    assert str(young) == "Next update: Sat 7 March 2026, 12:00 UTC (first rewards, 3-day window)."
    assert AfterCounts(decisions=10).due(after(10, days=3.0, window=3 * DAY)).now


def test_without_a_schedule_the_learner_s_plan_rules() -> None:
    learner = Foresight(dim=3, horizon=1000, policies=4)
    planned = learner.begin().batch_sizes
    assert schedule_of(None) == LearnerSchedule()
    progress = after(planned[0] - 1, planned=planned)
    assert str(LearnerSchedule().due(progress)) == (
        f"Next update: after 1 more decision ({planned[0] - 1} of {planned[0]})."
    )
    assert LearnerSchedule().due(after(planned[0], planned=planned)).now
    assert LearnerSchedule().forecast(progress) is None


def test_by_hand_nothing_is_ever_due() -> None:
    assert not Manual().due(after(10**6)).now
    assert Manual().forecast(after(10)) is None


EVERY_KIND = [
    LearnerSchedule(),
    Manual(),
    AfterCounts(decisions=100, times=3),
    AfterCounts(decisions=[10, 20]),
    Periodic(period="monday", times=8, at="09:30", zone="Europe/Berlin", start="2026-03-01"),
    Periodic(period="6 hours", rate=100),
    BestSchedule(policies=5, decisions=1000, dim=3),
    BestSchedule(policies=5, rate=100, end="2026-06-01", delay="1 day", gap="6h", first="12h", dim=4),
]


@pytest.mark.parametrize("schedule", EVERY_KIND, ids=str)
def test_a_schedule_goes_through_plain_data(schedule: Schedule) -> None:
    import json

    again = schedule_from_plain(json.loads(json.dumps(schedule.to_plain())))
    assert again == schedule
    progress = after(30, 70, planned=(100, 200))
    assert (again.due(progress), again.forecast(progress)) == (schedule.due(progress), schedule.forecast(progress))


@pytest.mark.parametrize("data", [None, {}, {"kind": "whenever"}, {"kind": "after", "monday": 1}, {"kind": "after"}])
def test_plain_data_of_no_schedule_is_refused(data: Any) -> None:
    raises(FileFormatError, "schedule", schedule_from_plain, data)


@pytest.mark.parametrize(
    ("short", "schedule"),
    [
        ("monday*8", Periodic(period="monday", times=8)),
        ("Monday 09:00 * 8", Periodic(period="monday", times=8, at="09:00")),
        ("every week", Periodic(period="week")),
        ("every day*14", Periodic(period="day", times=14)),
        ("weeks*3", Periodic(period="week", times=3)),
        ("6 hours", Periodic(period="6h")),
        ("every 6 hours*4", Periodic(period="6h", times=4)),
        (10_000, AfterCounts(decisions=10_000)),
        (1e4, AfterCounts(decisions=10_000)),
        ("10_000", AfterCounts(decisions=10_000)),
        ("10,000*8", AfterCounts(decisions=10_000, times=8)),
        ([500, 2000], AfterCounts(decisions=[500, 2000])),
        ("by hand", Manual()),
        (
            "best:policies=5,rate=100,end=2026-06-01,gap=1d",
            BestSchedule(policies=5, rate=100, end="2026-06-01", gap="1 day"),
        ),
        (None, LearnerSchedule()),
    ],
)
def test_short_forms_are_understood(short: Any, schedule: Schedule) -> None:
    assert schedule_of(short) == schedule


NO_SCHEDULES: dict[str, list[Any]] = {
    r"schedule must be one of the kinds 'best'|decisions": [
        *("7d*99999999999", f"7d*{'9' * 5000}", "9" * 5000),
        *("mondai*8", "monday*many", "monday*1", True, "", "0.5 decisions", 3.5, {"a": 1}, [], [5, 5]),
    ],
    "times, the number of batches, must be between 2 and 1000": ["1000*1001", "monday*1001"],
    r"with (a|its) unit": ["best:policies=5,rate=100,end=2026-06-01,gap=2", "every 90"],
    "schedule": ["best:speed=3", "best:rate", "best:rate=fast", "best:rate=1,rate=2"],
}


@pytest.mark.parametrize(("rule", "given"), [(rule, given) for rule in NO_SCHEDULES for given in NO_SCHEDULES[rule]])
def test_what_is_no_schedule_is_refused(rule: str, given: Any) -> None:
    raises(ParameterError, rule, schedule_of, given)


DATED: dict[str, Any] = {"policies": 5, "rate": 100, "end": "2026-06-01"}


@pytest.mark.parametrize("given", [2, 2.5, "2", np.float64(2.0)])
@pytest.mark.parametrize(
    "read",
    [
        lambda given: Rewards(window=given),
        lambda given: Traffic(delay=given),
        lambda given: BestSchedule(**DATED, gap=given),
        lambda given: BestSchedule(**DATED, delay=given),
        lambda given: BestSchedule(**DATED, first=given),
        lambda given: Periodic(period="week", times=8, rate=20).price(dim=2, delay=given),
    ],
)
def test_a_bare_number_is_no_duration(read: Callable[[Any], Any], given: Any) -> None:
    with pytest.raises(
        ParameterError, match=r"(window|delay|gap|first) must be a duration with a unit, such as '2"
    ) as no:
        read(given)
    assert ("timedelta(days=2" in str(no.value)) != isinstance(given, str)
    read("0")  # which needs none


def test_a_period_has_a_unit() -> None:
    raises(ParameterError, r"period must be .* a duration of at least a minute with its unit", Periodic, period=3600)
    assert Periodic(period=timedelta(hours=1)) == Periodic(period="1h")


def test_what_was_read_once_is_read_again() -> None:
    told = Rewards(window=timedelta(days=2), default=0)
    assert replace(told, kind="binary").window == from_settings(Rewards, plain_fields(told)).window == 2 * DAY
    assert replace(BestSchedule(**DATED, gap="6h"), dim=3).gap == 6 * 3600.0


def test_what_a_schedule_costs_is_said_beside_the_best() -> None:
    raises(ParameterError, "dim must be at least 1; got 0", Periodic(period="week", times=8, rate=2000).price, dim=0)
    weekly = Periodic(period="week", times=8, rate=10_000 / 56).price(dim=10)
    counted = AfterCounts(decisions=1250, times=8).price(dim=10)
    assert weekly.ratio == pytest.approx(counted.ratio)
    assert str(counted) == "Expected regret: 9.0 × full adaptivity (1.4 is optimal for 8 policies)."
    best = BestSchedule(decisions=10_000, policies=8, dim=10).price(dim=10)
    assert best is not None
    assert str(best) == "Expected regret: 1.4 × full adaptivity (optimal for 8 policies)."
    assert AfterCounts(decisions=1250).price(dim=10) is None, "it does not end"
    assert Periodic(period="week", times=8).price(dim=10) is None, "the rate is not known"
    assert Manual().price(dim=10) is None
    late = AfterCounts(decisions=1250, times=8).price(dim=10, rate=1250.0, delay="1d")
    assert late.ratio > counted.ratio
    dated = BestSchedule(policies=5, rate=100, end=NOW + 50 * DAY, delay="1 day", dim=4)
    assert dated.price(dim=4) is None, "it is not known when it begins"
    found = dated.price(dim=4, created=NOW)
    assert found.ratio == pytest.approx(found.best, rel=0.05), "the delay is its own"
