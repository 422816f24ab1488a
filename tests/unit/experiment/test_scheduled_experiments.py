"""Schedules and baselines in experiments, from the first decision to the last policy."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rareswitch.core import normals
from rareswitch.errors import ParameterError
from rareswitch.experiment import Experiment, Rewards, create
from rareswitch.experiment.results import Choice
from rareswitch.features import Features
from rareswitch.planning import DAY, BestSchedule, Periodic, Progress, plan
from reference.refusals import raises

pytestmark = pytest.mark.usefixtures("short_plans")
DIM, ARMS = 3, 4
START = datetime(2026, 3, 2, tzinfo=UTC)
THETA = np.array([0.7, -0.4, 0.2])


def live(trial: Experiment, decisions: int, every: timedelta, **told: Any) -> list[int]:
    """Decide at equal distances, reward at once, advance whenever it is due: how many came before each update."""
    policies = []
    for k in range(decisions):
        now = START + k * every
        x = normals(1, "contexts", k, 1, ARMS * DIM).reshape(ARMS, DIM) / 3.0
        choice = trial.decide(x, id=k, now=now, **told)
        trial.reward(k, float(x[choice.arm] @ THETA), now=now)
        if trial.advance(now=now).made:
            policies.append(k + 1)
    return policies


def test_the_best_counts_are_kept_to() -> None:
    trial = create("memory:", "counts", dim=DIM, horizon=300, policies=4, schedule="best", seed=1, now=START)
    planned = BestSchedule(decisions=300, policies=4, dim=DIM).ends(Progress.beginning(trial.description.created))
    assert live(trial, 300, timedelta(minutes=1)) == [end.decisions for end in planned[:-1]]
    assert "policy 4 is the last of the schedule" in str(trial.status(now=START + timedelta(days=1)))


def test_the_best_dates_follow_the_traffic() -> None:
    """Half of the expected traffic comes, and the first update waits for about as many decisions all the same."""
    ends = START + timedelta(days=10)
    schedule = BestSchedule(rate=48.0, end=ends, policies=4, gap="2 hours")
    trial = create("memory:", "dates", dim=DIM, schedule=schedule, seed=1, now=START)
    planned = [
        end.decisions or 0 for end in trial.description.schedule.ends(Progress.beginning(trial.description.created))
    ]
    policies = live(trial, 240, timedelta(hours=1))
    assert len(policies) == 3
    assert 0.5 * planned[0] <= policies[0] <= 1.5 * planned[0]


def test_best_dates_wait_for_the_reward_window_as_for_a_delay() -> None:
    """The price, the table and the batches are those of a schedule that says the delay itself."""
    text, rewards = "best:policies=6,rate=1000,end=2026-04-21", Rewards(window="14d")
    silent, spoken = (
        create("memory:", "x", dim=5, schedule=text + more, rewards=rewards, baseline=True, seed=1, now=START)
        for more in ("", ",delay=14d")
    )
    assert silent.status(now=START).price == spoken.status(now=START).price
    assert silent.status(now=START).planned == spoken.status(now=START).planned
    assert silent.policy.id == spoken.policy.id, "its share of exploration depends on the batches to come"
    planned = plan(rate=1000, start=START, end="2026-04-21", dim=5, arms=4, policies=6).schedule
    late = create("memory:", "x", dim=5, schedule=planned, rewards=rewards, seed=1, now=START)
    assert late.status(now=START).planned.ends[0].at >= START.timestamp() + 14 * DAY


def test_weeks_with_a_baseline_begin_with_what_is_named_and_go_on_without_it() -> None:
    schedule = Periodic(period="week", times=3, rate=24.0)
    trial = create("memory:", "weeks", dim=DIM, schedule=schedule, baseline=True, seed=1, now=START)
    x = np.eye(ARMS, DIM)
    raises(ParameterError, "baseline must name", trial.decide, x, id="none", now=START)
    assert live(trial, 7 * 24 + 1, timedelta(hours=1), baseline=2) == [7 * 24 + 1]
    later = trial.decide(x, id="later", now=START + timedelta(days=8))
    assert later.version == 2


def test_a_field_names_the_baseline_in_records_and_tables_until_the_first_update() -> None:
    records = [{"age": k % 7, "shown": [1, 2][k % 2]} for k in range(60)]
    features = Features.fit(records, [1, 2, 3], drop="shown")
    trial = create("memory:", "field", features=features, schedule="by hand", baseline="shown", seed=1, now=START)
    some = [record["shown"] == choice.arm for record, choice in zip(records, _decided(trial, records, 0), strict=True)]
    again = _decided(trial, pd.DataFrame(records), 100)
    assert sum(some) > 30
    assert sum(record["shown"] == choice.arm for record, choice in zip(records, again, strict=True)) > 30
    lacking = [*records[:3], {"age": 3}]
    for given in (lacking, pd.DataFrame(lacking)):  # a column with a gap holds 1.0 and 2.0
        with pytest.raises(ParameterError, match="in the field 'shown' of its record; request 203 names none"):
            _decided(trial, given, 200)
    trial.reward_many(range(60), [float(one) for one in some], now=START)
    trial.advance(now=START)
    for first, given in ((200, lacking), (300, pd.DataFrame(lacking)), (400, pd.DataFrame({"age": [1, 2]}))):
        assert {choice.version for choice in _decided(trial, given, first)} == {2}
        assert trial.audit(first).matches


def _decided(trial: Experiment, given: Any, first: int) -> list[Choice]:
    return trial.decide_many(given, [1, 2, 3], ids=range(first, first + len(given)), now=START)
