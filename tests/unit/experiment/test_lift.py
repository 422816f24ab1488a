"""The lift over the baseline, as updates measure it and reports begin with it."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from rareswitch.errors import StoreError
from rareswitch.experiment import Advance, Experiment, Lift, Status, create
from rareswitch.experiment.results import UpdateReport
from reference.refusals import raises

pytestmark = pytest.mark.usefixtures("short_plans")
WEEK = 7 * 86_400.0
RATES = np.array([0.2, 0.4, 0.6])


def begun(**more: Any) -> Experiment:
    told: dict[str, Any] = {"dim": 3, "horizon": 20_000, "policies": 4, "seed": 7, "now": 0.0, "schedule": "by hand"}
    return create("memory:", "spring", **told | {"intercept": True, "baseline": True} | more)


def play(trial: Experiment, count: int, *, baseline: Sequence[Any] | None, now: float) -> None:
    """Decisions among three arms, of which the last is best."""
    first = sum(one.decisions for one in trial.store.counts())
    ids = list(range(first, first + count))
    arms = [choice.arm for choice in trial.decide_many([np.eye(3)] * count, ids=ids, baseline=baseline, now=now)]
    clicks = np.random.default_rng(first).random(count) < RATES[arms]
    trial.reward_many(ids, clicks.tolist(), now=now)


def lift_of(outcome: Advance | Status) -> Lift:
    assert outcome.lift is not None
    return outcome.lift


def test_the_lift_is_the_first_line_and_is_kept() -> None:
    trial = begun()
    before = "Lift over the baseline: not identifiable: no update has measured it yet."
    assert str(trial.status(now=0.0)).splitlines()[0] == before
    play(trial, 1500, baseline=[0] * 1500, now=0.0)
    trial.advance(now=10.0)
    play(trial, 1500, baseline=[0] * 1000 + [None] * 500, now=WEEK)
    outcome = trial.advance(now=WEEK + 10.0)
    whole, *weeks = lift_of(outcome).parts
    assert (whole.decisions, whole.over) == (2500, "baseline")
    assert 0.1 < whole.interval.low < whole.interval.high < 0.25  # 0.4 in 1,000 of 2,500, and what was explored
    assert len(weeks) == 2
    seen, line = str(outcome).splitlines()[0], str(status := trial.status(now=2 * WEEK)).splitlines()[0]
    assert line.startswith("Lift over the baseline, as of 1970-01-08 00:00 UTC: +")
    assert "on 2,500 decisions with a baseline" in line
    assert seen.endswith(f". {line}")
    assert msgspec.json.decode(trial.versions[-1].row.report, type=UpdateReport).lift == lift_of(outcome)
    assert lift_of(status) == lift_of(outcome)
    assert status.as_dict()["lift"]["parts"][0]["decisions"] == 2500
    assert trial.verify().holds


def test_a_gate_that_refuses_and_a_preview_tell_it_too() -> None:
    trial = begun()
    play(trial, 300, baseline=[0] * 300, now=0.0)
    assert lift_of(trial.preview(now=1.0)).parts
    outcome = trial.advance(now=1.0, gate=True)
    assert not outcome.made
    assert lift_of(outcome).parts[0].decisions == 300
    assert str(outcome).startswith("Lift over the baseline, as of 1970-01-01 00:00 UTC: ")


def test_where_the_log_cannot_tell_it_says_why() -> None:
    without = begun(baseline=None)
    play(without, 50, baseline=None, now=0.0)
    outcome = without.advance(now=1.0)
    assert outcome.lift is without.status(now=1.0).lift is without.versions[1].report.lift is None
    assert "baseline" not in f"{outcome}{without.status(now=1.0)}"
    few = begun()
    play(few, 20, baseline=[0] * 20, now=0.0)
    assert "not identifiable: " in str(few.advance(now=1.0)).splitlines()[0]
    assert few.store.head() == 2


def test_a_store_that_is_gone_is_no_lack_of_a_lift(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = begun()
    play(trial, 50, baseline=[0] * 50, now=0.0)

    def gone(*given: Any, **more: Any) -> Any:
        raise StoreError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(trial.store, "slices", gone)
        raises(StoreError, "gone", trial.advance, now=1.0)
    assert trial.store.started(1)
    assert trial.advance(now=2.0).made
