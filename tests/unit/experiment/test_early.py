"""Experiments whose learner keeps policies back: an update is due when other features come."""

from typing import Any

import numpy as np
import pytest

from rareswitch.core import normals
from rareswitch.experiment import Experiment, create, open_experiment
from rareswitch.learner import Foresight

pytestmark = pytest.mark.usefixtures("short_plans")
#: Two groups of users with two features each; the second appears late.
DIM, ARMS, HORIZON = 4, 3, 30_000


def contexts(first: int, count: int, group: int) -> Any:
    x = np.zeros((count, ARMS, DIM))
    x[:, :, 2 * group : 2 * group + 2] = normals(1, "contexts", first, count, ARMS * 2).reshape(count, ARMS, 2)
    return x


def live(trial: Experiment, first: int, count: int, group: int, *, rewarded: bool = True) -> None:
    x, ids = contexts(first, count, group), range(first, first + count)
    arms = [choice.arm for choice in trial.decide_many(x, ids=ids)]
    if rewarded:
        trial.reward_many(ids, x[np.arange(count), arms] @ np.array([1.0, 0.0, 0.0, 1.0]))


def begun(url: str = "memory:", **told: Any) -> Experiment:
    """An experiment in its third batch, of which 100 decisions have been made."""
    trial = create(url, "early", learner=Foresight(dim=DIM, horizon=HORIZON, reserve=2), seed=1, **told)
    first = 0
    for count in trial.versions[0].state.batch_sizes[:3]:
        live(trial, first, count, 0)
        assert trial.advance().made
        first += count
    live(trial, first, 100, 0)
    return trial


def test_an_update_is_due_early_where_a_group_appears(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'early.db'}"
    with begun(url) as trial:
        planned = trial.versions[-1].state.batch_sizes
        assert not trial.status().due
        assert not trial.status().early
        assert not trial.advance().made
        live(trial, 10_000, 200, 1)
    with open_experiment(url, "early") as trial:
        status = trial.status()
        assert status.due
        assert status.early.unlike
        assert f"Early update requested: new kinds of requests, {status.early.value:.1f} ×" in str(status)
        assert status.as_dict()["early"] == {"value": status.early.value, "unlike": True}
        outcome = trial.advance()
        assert outcome.made
        assert outcome.decided == 300
        assert len(outcome.batch_sizes) == len(planned) - 1
        assert sum(outcome.batch_sizes) == sum(planned) - 300
        assert not trial.status().early


def test_decisions_that_could_not_be_learned_from_call_for_nothing() -> None:
    trial = begun()
    live(trial, 10_000, 200, 1, rewarded=False)
    assert not trial.status().early
    assert not trial.status().due


def test_other_schedules_keep_their_times_and_say_what_the_learner_asks_for() -> None:
    trial = create(
        "memory:", "counted", learner=Foresight(dim=DIM, horizon=HORIZON, reserve=2), schedule="by hand", seed=1
    )
    live(trial, 0, 200, 0)
    assert trial.advance().made
    live(trial, 1000, 200, 1)
    status = trial.status()
    assert not status.due
    assert "Early update requested (advance with force=True): " in str(status)
