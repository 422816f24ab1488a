"""The schedule that costs least, and the model behind it."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from rareswitch.errors import ParameterError
from rareswitch.experiment import Rewards
from rareswitch.experiment.description import check_schedule
from rareswitch.learner import Foresight
from rareswitch.planning import (
    BestSchedule,
    Progress,
    adaptive_cost,
    baseline_share,
    best_ends,
    cost,
    schedule_from_plain,
    schedule_of,
)
from rareswitch.planning.regret_model import STEP
from rareswitch.store import Counts
from reference.refusals import raises

DAY = 86_400.0
CREATED = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
DATED: dict[str, Any] = {"policies": 6, "rate": 1000.0, "end": CREATED + 50 * DAY, "dim": 10}


MONDAYS: dict[str, Any] = {**DATED, "policies": 4, "on": "monday 10:00", "zone": "Europe/Berlin"}


def test_no_other_ends_cost_less() -> None:
    """All choices of three ends among the times that the search looks at, against what it found."""
    total, dim, delay, gap = 60.0, 2, 3.0, 6.0
    times = np.unique(np.round(STEP ** np.arange(300)))
    times = times[times < total]
    found = best_ends(total, 4, dim=dim, delay=delay, gap=gap, earliest=5.0)
    others = [
        cost((*ends, total), dim=dim, delay=delay)
        for ends in combinations(times[times >= 5.0], 3)
        if all(b - a >= gap for a, b in pairwise(ends))
    ]
    assert cost(found, dim=dim, delay=delay) == pytest.approx(min(others))
    assert all(b - a >= gap for a, b in pairwise(found[:-1]))
    assert found[0] >= 5.0


def test_full_adaptivity_is_the_limit_of_many_updates() -> None:
    every = tuple(range(1, 2001))
    assert cost(every, dim=5) == pytest.approx(adaptive_cost(2000, dim=5), rel=0.02)
    assert cost(best_ends(2000, 60, dim=5), dim=5) < 1.1 * adaptive_cost(2000, dim=5)


def test_more_updates_never_cost_more() -> None:
    costs = [cost(best_ends(10_000, policies, dim=10), dim=10) for policies in range(2, 12)]
    assert all(after < before for before, after in pairwise(costs))


def test_where_updates_cannot_help_fewer_are_planned() -> None:
    assert best_ends(20, 8, dim=10) == (20,)


def counted(*batches: int) -> Progress:
    versions = tuple(Counts(k + 1, count, count, CREATED, CREATED + DAY) for k, count in enumerate(batches))
    return Progress(
        created=CREATED, now=CREATED + DAY, versions=versions, published=tuple(CREATED + k for k in range(len(batches)))
    )


def test_counts_are_planned_early_and_often_at_first_and_kept_to() -> None:
    schedule = BestSchedule(decisions=10_000, policies=8, dim=10)
    ends = [end.decisions for end in schedule.ends(Progress.beginning(0.0))]
    assert ends == [44, 95, 206, 454, 984, 2129, 4610, 10_000]
    assert not schedule.due(counted(43)).now
    assert schedule.due(counted(44)).now
    assert schedule.forecast(counted(44)) == (51, 111, 248, 530, 1145, 2481, 5390)
    assert [end.decisions for end in schedule.ends(counted(44, 51, 3))] == ends[2:], "as it was planned"


def test_a_batch_that_came_out_longer_moves_those_after_it() -> None:
    schedule = BestSchedule(decisions=10_000, policies=4, dim=10)
    first = schedule.ends(Progress.beginning(0.0))[0].decisions
    assert first is not None
    moved = schedule.ends(counted(5 * first, 1))
    assert moved[0].decisions is not None
    assert moved[0].decisions > (schedule.ends(counted(first, 1))[0].decisions or 0)


def seen(days: float, decided: int, **told: Any) -> Progress:
    now = CREATED + days * DAY
    versions = (Counts(1, decided, decided, CREATED, now),)
    return Progress(created=CREATED, now=now, versions=versions, published=(CREATED,), **told)


def test_dates_keep_the_gap_the_delay_and_the_earliest_first_update() -> None:
    schedule = BestSchedule(**DATED, gap="1 day", delay="2 days", first="3 days")
    ends = schedule.ends(Progress.beginning(CREATED))
    dates = [end.at for end in ends if end.at is not None]
    assert len(dates) == len(ends) == 6
    assert dates[0] >= CREATED + 3 * DAY
    assert all(b - a > 2 * DAY for a, b in pairwise([CREATED, *dates[:-1]])), "each batch has rewards to learn from"
    assert dates[-1] == pytest.approx(CREATED + 50 * DAY)
    close = [end.at for end in BestSchedule(**DATED).ends(Progress.beginning(CREATED))]
    assert close[0] < CREATED + 0.1 * DAY, "hours, where nothing stands against it"


def test_an_attribution_window_is_a_delay() -> None:
    ends = BestSchedule(**DATED).ends(replace(Progress.beginning(CREATED), window=2 * DAY))
    assert ends[0].at > CREATED + 2 * DAY


def test_dates_move_with_the_rate_that_is_seen() -> None:
    schedule = BestSchedule(**DATED)
    expected, slow = schedule.ends(Progress.beginning(CREATED))[0], schedule.ends(seen(1.0, 10))[0]
    assert slow.at > expected.at + DAY
    assert schedule.due(seen(1.0, 10)).now is False
    assert schedule.due(seen(1.0, 1000)).now


def test_where_too_little_comes_it_says_that_no_further_update_would_pay() -> None:
    due = BestSchedule(**DATED).due(seen(49.9, 2))
    assert not due.now
    assert str(due) == (
        "Next update: none, another policy would not pay with the decisions expected until Tue 21 April 2026, 00:00 "
        "UTC (policy 1 of up to 6) (to make another, advance with force=True)."
    )


def test_the_forecast_adds_up_to_the_end_at_the_rate_seen() -> None:
    forecast = BestSchedule(**DATED).forecast(seen(10.0, 10_000))
    assert isinstance(forecast, tuple)
    assert len(forecast) == 5
    assert 10_000 + sum(forecast) == pytest.approx(50_000, rel=0.01)


def test_what_the_learner_says_need_not_be_said_again() -> None:
    made = schedule_of("best", learner=Foresight(dim=7, horizon=5000, policies=5))
    assert made == BestSchedule(dim=7, decisions=5000, policies=5)
    assert schedule_of("best", learner=Foresight(dim=7, horizon=5000)) == BestSchedule(
        dim=7, decisions=5000, policies=8
    )
    with pytest.raises(ParameterError, match=r"how long the experiment runs.*horizon.*BestSchedule\(policies=8, rate"):
        schedule_of("best", learner=Foresight(dim=7))


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({"decisions": 100, "rate": 5}, "give one or the other"),
        ({"rate": 5}, "rate and end belong together"),
        ({"end": "2026-06-01"}, "rate and end belong together"),
        ({"decisions": 100, "gap": "1 day"}, "gap, delay and first are durations"),
        ({"decisions": 100, "policies": 1}, "policies must be between 2"),
        ({"rate": 5, "end": "2026-06-01", "gap": "soon"}, "gap must be a duration such as"),
        ({"rate": -5, "end": "2026-06-01"}, "rate, the decisions a day"),
        ({"rate": 5, "end": "next year"}, "end must be a date"),
        ({"rate": 5, "end": "2026-06-01", "on": "funday 10:00"}, "on must be weekdays with a time of day, such as"),
        ({"rate": 5, "end": "2026-06-01", "on": "monday 25:00"}, "on must be weekdays"),
        ({"rate": 5, "end": "2026-06-01", "on": "10:00"}, "on must be weekdays"),
        ({"rate": 5, "end": "2026-06-01", "on": 1}, "on must be weekdays"),
        ({"decisions": 100, "on": "monday 10:00"}, "on is for dates.*give rate"),
    ],
)
def test_settings_are_checked(told: dict[str, Any], rule: str) -> None:
    raises(ParameterError, rule, BestSchedule, **told)


def test_exploration_beside_a_baseline_grows_with_features_and_what_follows() -> None:
    assert baseline_share(5, [1000] * 8) < baseline_share(20, [1000] * 8) < baseline_share(80, [1000] * 8)
    assert baseline_share(10, [1000, 500]) < baseline_share(10, [1000, 9000])
    wrong: list[Any] = [[], 5, "many"]
    for lengths in wrong:
        raises(ParameterError, "lengths must be", baseline_share, 10, lengths)
    assert baseline_share(10, [1000]) == 0.01, "nothing follows"
    assert baseline_share(10, None) == 0.1


def test_no_other_choice_of_meetings_costs_less() -> None:
    schedule = BestSchedule(**MONDAYS)
    begin = Progress.beginning(CREATED)
    found = [end.decisions for end in schedule.ends(begin)]
    rate, total = DATED["rate"] / DAY, 50 * DATED["rate"]
    meetings = [rate * (at - CREATED) for at in schedule.meetings(CREATED)]
    assert len(meetings) == 8
    least = min(cost((*ends, total), dim=10) for ends in combinations(meetings, 3))
    assert cost([float(end or 0) for end in found], dim=10) == pytest.approx(least, rel=1e-4)  # of whole decisions


def test_updates_come_due_at_their_meeting_and_not_minutes_after() -> None:
    """Each is made 23 minutes late; the next is due at its hour all the same, in summer time too."""
    schedule = BestSchedule(**MONDAYS | {"gap": "7 days", "policies": 7})
    progress, zone = Progress.beginning(CREATED), ZoneInfo("Europe/Berlin")
    for _ in range(5):
        end = schedule.ends(progress)[0]
        assert end.at is not None
        meeting = datetime.fromtimestamp(end.at, zone)
        assert (meeting.weekday(), meeting.hour, meeting.minute, meeting.second) == (0, 10, 0, 0)
        for seconds, due in ((-1.0, False), (0.0, True), (1380.0, True)):
            now = end.at + seconds
            came = round(DATED["rate"] * (now - CREATED) / DAY) - progress.before
            current = Counts(progress.policies, came, came, progress.published[-1], now)
            at = replace(progress, now=now, versions=(*progress.versions[:-1], current))
            assert schedule.due(at).now is due
        progress = at.updated()
        following = schedule.ends(progress)[0].at
        assert following is not None
        assert following - end.at >= 7 * DAY - 3600.0, "gaps are those between meetings"


def test_a_meeting_that_was_missed_by_more_than_a_day_is_planned_anew() -> None:
    schedule = BestSchedule(**MONDAYS)
    first = schedule.ends(Progress.beginning(CREATED))[0].at
    for late, due in ((0.9 * DAY, True), (2.0 * DAY, False)):
        days = (first - CREATED + late) / DAY
        progress = seen(days, round(1000 * days))
        assert schedule.due(progress).now is due
    following = schedule.ends(progress)[0].at
    assert following is not None
    assert following == first + 7 * DAY


def test_a_meeting_that_never_comes_is_an_error() -> None:
    wednesday = BestSchedule(**{**DATED, "end": CREATED + 1.9 * DAY, "on": "wednesday 10:00"})
    assert len(wednesday.ends(Progress.beginning(CREATED))) == 1
    with pytest.raises(ParameterError, match=r"on Wednesday 10:00 UTC.*no update would be made before the end"):
        check_schedule(wednesday, CREATED, Rewards())


def test_meetings_are_written_in_a_text_and_kept_with_an_experiment() -> None:
    text = "best: policies=7, on=Monday and thursdays 9:30, rate=2000, end=2026-06-01, zone=Europe/Berlin"
    schedule = schedule_of(text)
    assert schedule == BestSchedule(
        policies=7, rate=2000, end="2026-06-01", zone="Europe/Berlin", on=["monday 09:30", "thursday 09:30"]
    )
    assert schedule_from_plain(schedule.to_plain()) == schedule
    assert "on Monday 09:30, Thursday 09:30 Europe/Berlin" in str(schedule)


def test_many_meetings_are_thinned_to_those_that_matter() -> None:
    times = [*range(1, 20_000)]
    assert best_ends(20_000, 8, dim=10, times=times) == pytest.approx(best_ends(20_000, 8, dim=10), rel=0.03)
