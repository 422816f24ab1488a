"""Schedules by the calendar."""

from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rareswitch.errors import ParameterError
from rareswitch.planning import Periodic, Progress
from rareswitch.store import Counts
from reference.refusals import raises

BERLIN = ZoneInfo("Europe/Berlin")
DAY = 86_400.0


def dates(schedule: Periodic, created: datetime, count: int = 3) -> list[datetime]:
    zone = ZoneInfo(schedule.zone)
    return [datetime.fromtimestamp(at, zone) for at in islice(schedule.dates(created.timestamp()), count)]


def at(moment: datetime, decided: int, *, created: datetime, published: datetime | None = None) -> Progress:
    """That of an experiment with so many decisions since its creation, at this moment."""
    first = created.timestamp()
    versions = [Counts(1, decided, decided, first, moment.timestamp())]
    if published is not None:
        versions.append(Counts(2, 10, 10, published.timestamp(), moment.timestamp()))
    out = tuple(one.timestamp() for one in (created, published) if one is not None)
    return Progress(created=first, now=moment.timestamp(), versions=tuple(versions), published=out)


def test_mondays_are_those_of_the_time_zone_and_clocks_may_change() -> None:
    created = datetime(2026, 3, 18, 15, tzinfo=BERLIN)  # clocks change on 29 March
    found = dates(Periodic(period="monday", zone="Europe/Berlin", at="09:00"), created)
    assert [(when.day, when.hour, when.weekday()) for when in found] == [(23, 9, 0), (30, 9, 0), (6, 9, 0)]
    assert found[1].timestamp() - found[0].timestamp() == 7 * DAY - 3600.0


def test_the_day_of_creation_counts_if_its_hour_is_to_come() -> None:
    monday = datetime(2026, 3, 16, 8, tzinfo=UTC)
    assert dates(Periodic(period="monday", at="09:00"), monday)[0] == monday.replace(hour=9)
    assert dates(Periodic(period="monday", at="08:00"), monday)[0] == monday + timedelta(days=7)


def test_weeks_and_days_keep_the_hour_on_the_wall_and_hours_do_not() -> None:
    created = datetime(2026, 3, 28, 12, tzinfo=BERLIN)
    assert dates(Periodic(period="day", zone="Europe/Berlin"), created, 1)[0].hour == 12
    assert dates(Periodic(period="week", zone="Europe/Berlin"), created, 1)[0].hour == 12
    assert dates(Periodic(period="24 hours", zone="Europe/Berlin"), created, 1)[0].hour == 13


def test_a_start_takes_the_place_of_the_creation() -> None:
    created = datetime(2026, 3, 1, tzinfo=UTC)
    assert dates(Periodic(period="week", start=date(2026, 4, 1)), created, 1) == [datetime(2026, 4, 8, tzinfo=UTC)]


def test_an_update_waits_for_its_date_and_says_how_long() -> None:
    created = datetime(2026, 3, 2, tzinfo=UTC)
    due = Periodic(period="week", times=3).due(at(created + timedelta(days=5, hours=22), 50, created=created))
    assert (due.now, due.at) == (False, datetime(2026, 3, 9, tzinfo=UTC))
    assert str(due) == "Next update: Mon 9 March 2026, 00:00 UTC (in 1 day 2 hours)."
    assert Periodic(period="week", times=3).due(at(created + timedelta(days=7), 50, created=created)).now


def test_a_date_that_was_missed_is_due_until_an_update_is_made() -> None:
    created = datetime(2026, 3, 2, tzinfo=UTC)
    late = created + timedelta(days=9)
    assert Periodic(period="week").due(at(late, 50, created=created)).now
    after = Periodic(period="week").due(at(late + timedelta(hours=1), 50, created=created, published=late))
    assert (after.now, after.at) == (False, created + timedelta(days=14))


def test_the_forecast_is_from_the_rate_seen_so_far_and_the_dates() -> None:
    created = datetime(2026, 3, 2, tzinfo=UTC)
    schedule = Periodic(period="week", times=4)
    assert schedule.forecast(at(created + timedelta(days=7), 700, created=created)) == (700, 700, 700)
    assert schedule.forecast(at(created + timedelta(days=10), 700, created=created)) == (280, 490, 490)
    assert schedule.forecast(at(created, 0, created=created)) is None
    told = Periodic(period="week", times=4, rate=50.0)
    assert told.lengths(created.timestamp()) == (350, 350, 350, 350)
    assert schedule.lengths(created.timestamp()) is None


def test_the_last_date_is_the_end_and_no_update() -> None:
    created = datetime(2026, 3, 2, tzinfo=UTC)
    over = Periodic(period="week", times=2).due(
        at(created + timedelta(days=15), 50, created=created, published=created + timedelta(days=7))
    )
    assert not over.now
    assert "policy 2 is the last of the schedule, until Mon 16 March 2026, 00:00 UTC" in str(over)


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({"period": "fortnight"}, "period must be 'week', 'day', a weekday"),
        ({"period": 0.5}, "period must be"),
        ({"period": "monday", "at": "nine"}, "at must be a time of day"),
        ({"period": "day", "at": "09:00"}, "at is for weekdays"),
        ({"period": "day", "zone": "Mars/Olympus"}, "zone must be a time zone"),
        ({"period": "day", "start": "soon"}, "start must be a date"),
        ({"period": "day", "times": 1}, "times, the number of batches, must be between 2"),
        ({"period": "day", "rate": 0}, "rate, the decisions a day"),
    ],
)
def test_settings_are_checked(told: dict[str, Any], rule: str) -> None:
    raises(ParameterError, rule, Periodic, **told)
