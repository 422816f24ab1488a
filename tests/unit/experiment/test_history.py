"""What was shown over time, how late rewards came, and what a new policy would change."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rareswitch
from rareswitch.experiment import Experiment
from rareswitch.features import Features

DAY = 86_400.0
ARMS = ["a", "b", "c"]
RNG = np.random.default_rng(3)
PEOPLE: list[dict[str, Any]] = [
    {"age": int(age), "device": ("ios", "web")[k % 2]} for k, age in enumerate(RNG.integers(20, 70, 300))
]


def filled(url: str, **settings: Any) -> tuple[Experiment, list[tuple[str, float]], dict[int, float]]:
    """An experiment of ten days: its decisions, as arms and times, and the delays of their rewards by decision."""
    trial = rareswitch.create(
        url, "history", features=Features.fit(PEOPLE, ARMS), policies=3, horizon=900, seed=1, now=0.0,
        rewards=rareswitch.Rewards(window="1d", default=0.0), **settings,
    )  # fmt: skip
    times = np.sort(RNG.uniform(0.0, 10 * DAY, len(PEOPLE)))
    rows, delays = list[tuple[str, float]](), dict[int, float]()
    for k, (record, time) in enumerate(zip(PEOPLE, times.tolist(), strict=True)):
        choice = trial.decide(record, ARMS, id=k, now=time)
        rows.append((choice.arm, time))
        if RNG.random() < 0.7:
            delays[k] = float(RNG.exponential(0.5 * DAY))
    for k, delay in delays.items():
        trial.reward(k, rows[k][0] == ("a" if PEOPLE[k]["device"] == "ios" else "b"), now=rows[k][1] + delay)
    return trial, rows, delays


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_history_counts_every_decision_and_reward_once(store_url: Callable[[str], str], kind: str) -> None:
    trial, rows, delays = filled(store_url(kind))
    trial.decide(PEOPLE[0], ARMS, id="deferred", now=DAY, deferred=True)  # which does not count
    now = 10 * DAY
    history = trial.history(now=now)
    assert history.start == rows[0][1]
    expected = Counter((arm, int((time - history.start) // history.width)) for arm, time in rows)
    counts = {(arm, at): n for arm, spans in history.arms.items() for at, n in enumerate(spans) if n}
    assert counts == expected
    assert [*history.arms] == [
        arm for arm, _ in sorted(Counter(arm for arm, _ in rows).items(), key=lambda x: (-x[1], x[0]))
    ]
    at = [int((rows[k][1] - history.start) // history.width) for k in delays]
    assert history.rewarded == tuple(np.bincount(at, minlength=len(history.rewarded)))
    values = [k for k in delays if rows[k][0] == ("a" if PEOPLE[k]["device"] == "ios" else "b")]
    assert sum(history.earned) == len(values)
    ages = history.ages
    edges = np.array([0.0, *ages.bounds, np.inf])
    assert ages.decisions == tuple(np.histogram([*delays.values()], edges)[0])
    late = sum(delay > DAY for delay in delays.values())
    open_ = [k for k, (_, time) in enumerate(rows) if time > now - DAY and k not in delays]
    assert (ages.in_window, ages.late, ages.waiting) == (len(delays) - late, late, len(open_))
    assert ages.in_window + ages.late + ages.waiting + ages.missing == history.decisions == len(rows)
    trial.delete("history")


def test_an_experiment_without_decisions_has_an_empty_history() -> None:
    history = rareswitch.create("memory:", "none", dim=2, now=0.0).history(now=10.0)
    assert (history.decisions, history.arms, sum(history.ages.decisions), history.ages.waiting) == (0, {}, 0, 0)


def test_a_preview_says_for_whom_by_how_much_and_why() -> None:
    trial, _, _ = filled("memory:")
    changes = trial.preview(now=12 * DAY).changes
    assert 0.1 < changes.gain < 0.7  # a right arm pays 1, and one of three was right by chance
    by_field = {field: [entry for entry in changes.groups if entry.field == field] for field in ("age", "device")}
    for groups in by_field.values():
        assert sum(entry.requests for entry in groups) == changes.requests
        assert sum(entry.requests * entry.share for entry in groups) == pytest.approx(changes.requests * changes.share)
    moved = {entry.name: entry.after - entry.before for entry in changes.coefficients}
    sizes = [abs(change) for change in moved.values()]
    assert sizes == sorted(sizes, reverse=True)
    assert moved["arm a × device=ios"] > 0.0 > moved["arm a × device=web"]
    assert all(entry.before == 0.0 for entry in changes.coefficients)  # nothing was known
    trial.advance(now=12 * DAY, force=True)
    again = trial.preview(now=12 * DAY)
    assert again.changes is None  # the new policy has no requests yet


def test_coefficients_are_what_columns_add_to_the_reward() -> None:
    """Of a world whose rewards are linear without noise the coefficients are known."""
    theta = np.array([0.8, -0.3])
    trial = rareswitch.create("memory:", "line", dim=2, policies=3, horizon=900, seed=1, now=0.0)
    x = np.random.default_rng(1).normal(size=(400, 3, 2)) / 4.0
    choices = trial.decide_many(x, ids=range(400), now=10.0)
    trial.reward_many(range(400), [float(x[k, choice.arm] @ theta) for k, choice in enumerate(choices)], now=20.0)
    changes = trial.preview(now=30.0).changes
    assert {entry.name: round(entry.after, 3) for entry in changes.coefficients} == {"x1": 0.8, "x2": -0.3}
    assert changes.groups == ()


def test_a_report_is_one_file_with_all_parts(tmp_path: Path) -> None:
    trial, _, _ = filled("memory:")
    trial.advance(now=11 * DAY, force=True)
    report = trial.report(now=12 * DAY)
    text = report.to_html(tmp_path / "out.html")
    assert (tmp_path / "out.html").read_text() == text
    assert {value.candidate for value in report.values.values} == {
        "policy 1",
        "policy 2",
        *(f"always {a}" for a in ARMS),
    }
    for part in ("summary", "proposal", "timeline", "shares", "values", "rewards", "health"):
        assert f'id="{part}"' in text
    assert "src=" not in text
    assert "<form" not in text
    assert "<iframe srcdoc=" in report._repr_html_()
    assert "history" in str(report)
    assert trial.report(now=12 * DAY, values=False).values is None
