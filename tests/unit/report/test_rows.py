"""What a prompt, a notebook and a frame show of a result: a line, a part of a page, its rows."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import numpy as np
import pytest

import rareswitch
from rareswitch import Always, Foresight, make_world
from rareswitch.core import Displayed
from rareswitch.errors import MissingExtraError, ParameterError
from rareswitch.experiment import Experiment, Gate
from rareswitch.report import ProgressBar, as_part, as_text, draw, rows_of
from reference.refusals import raises

WORLD = make_world("gaussian", dim=2, arms=3)
ARMS = ["<b>a & b</b>", *(f"an arm with a long name, number {k}" for k in range(8))]


def learner(world: Any, horizon: int, seed: int) -> Foresight:
    return Foresight(dim=2, horizon=horizon, policies=3)


@pytest.fixture(scope="module")
def trial() -> Experiment:
    """Of nine arms and 400 decisions, with a baseline, a window and a second policy."""
    visitors = [{"age": 18.0 + k % 60, "device": ("ios", "web")[k % 2]} for k in range(200)]
    trial = rareswitch.create(
        "memory:",
        "short",
        features=rareswitch.Features.fit(visitors, ARMS),
        horizon=2000,
        seed=1,
        baseline=True,
        min_propensity=0.001,
        rewards=rareswitch.Rewards(default=0, window="1d"),
        schedule="best:policies=8,rate=100,end=2026-06-01",
        now="2026-03-02",
    )
    trial.decide_many(visitors, ARMS, ids=range(200), baseline=[ARMS[k % 5] for k in range(200)], now="2026-03-02")
    trial.reward_many(range(200), [float(k % 3 == 0) for k in range(200)], now="2026-03-02")
    trial.advance(force=True, now="2026-03-05")
    trial.decide_many(visitors, ARMS, ids=range(200, 400), now="2026-03-05")
    trial.reward_many(range(200, 400), [float(k % 3 == 0) for k in range(200)], now="2026-03-05")
    return trial


RESULTS: dict[str, Callable[[Experiment], Any]] = {
    "status": lambda trial: trial.status(now="2026-03-07"),
    "lift": lambda trial: trial.status(now="2026-03-07").lift,
    "update": lambda trial: trial.advance(now="2026-03-05"),
    "preview": lambda trial: trial.preview(now="2026-03-07"),
    "gate": lambda trial: trial.preview(gate=Gate(), now="2026-03-07"),
    "verification": Experiment.verify,
    "audit": lambda trial: trial.audit(7),
    "choice": lambda trial: trial.decide({"age": 4, "device": "tv"}, ARMS, id="c", baseline=ARMS[0]),
    "rewarded": lambda trial: trial.reward("later", 1.0),
    "report": Experiment.report,
    "log": Experiment.logged,
    "experiment": lambda trial: trial,
    "evaluation": lambda trial: rareswitch.evaluate(trial, ["uniform", Always(ARMS[3])]),
    "effects": lambda trial: rareswitch.effects(trial, ARMS[0], by="device"),
    "policy": lambda trial: trial.policy,
    "first policy": lambda trial: trial.policies[0],
    "features": lambda trial: trial.policy.features,
    "plan": lambda trial: rareswitch.plan(rate=400, start="2026-03-02", end="2026-05-11", dim=5, arms=10, policies=4),
    "run": lambda trial: rareswitch.simulate(Foresight(dim=2, horizon=200, policies=3), WORLD, seed=1),
    "stepwise run": lambda trial: rareswitch.simulate(
        rareswitch.make_learner("linucb", dim=2, arms=3, horizon=200), WORLD, seed=1
    ),
    "sweep": lambda trial: rareswitch.sweep({"foresight": learner}, {"gaussian": WORLD}, horizons=[100], seeds=[0, 1]),
    "many agents": lambda trial: rareswitch.collaborate(
        Foresight(dim=2, horizon=200, policies=3), WORLD, agents=2, seed=1
    ),
    "state": lambda trial: Foresight(dim=2).begin(),
    "decisions": lambda trial: Foresight(dim=2).begin().policy.decide(np.ones((9, 5, 2)), ids=range(9), seed=1),
}


@pytest.fixture(scope="module")
def result(trial: Experiment) -> Callable[[str], Any]:
    """A result by its name, got once."""
    return cache(lambda name: RESULTS[name](trial))


def parts_of(value: Any) -> Iterator[Any]:
    """The results in a value, and itself."""
    if isinstance(value, Displayed):
        yield value
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from parts_of(part)
    elif isinstance(value, (Displayed, msgspec.Struct)):
        names = [part.name for part in fields(value)] if is_dataclass(value) else value.__struct_fields__
        for name in names:
            yield from parts_of(getattr(value, name))


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_a_line_on_the_prompt(name: str, result: Callable[[str], Any]) -> None:
    for part in (result(name), *parts_of(result(name))):
        assert len(repr(part)) <= 500
        assert "\n" not in repr(part)


@pytest.mark.parametrize("name", [name for name in RESULTS if name not in ("log", "experiment", "state", "report")])
def test_a_result_is_a_part_of_a_page(name: str, result: Callable[[str], Any]) -> None:
    shown = rows_of(result(name))
    page = result(name)._repr_html_()
    tree = ET.fromstring(page.replace("<br>", "<br/>"))  # well-formed: whatever arms are called is escaped
    assert "<b>" not in page
    if not shown.rows:
        assert as_text(result(name)).strip() or shown.lead
        return
    head, *lines = tree.iter("tr")
    assert len(lines) == min(20, len(shown.rows))
    assert len([cell for cell in head if cell.text]) <= len(shown.rows[0])
    marks = [line for line in lines if line.find(".//{http://www.w3.org/2000/svg}svg") is not None]
    assert marks or all(row[shown.drawn] is None for row in shown.rows if shown.drawn)
    frame = result(name).to_frame()
    assert len(frame) == len(shown.rows)
    assert [*frame.columns] == [*shown.rows[0]]


@pytest.mark.parametrize("name", ["status", "preview", "evaluation", "effects", "plan", "policy", "features", "run"])
def test_a_result_draws_itself(name: str, result: Callable[[str], Any], tmp_path: Any) -> None:
    path = tmp_path / "picture.png"
    assert result(name).plot(str(path)).axes
    assert path.stat().st_size > 5000


def test_what_has_no_rows_says_so(trial: Experiment) -> None:
    assert len(trial.audit(7).to_frame()) == 0
    raises(ParameterError, "no picture of this Audit", draw, trial.audit(7))


def test_frames_are_of_the_library_that_is_there(trial: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    status = trial.status()
    assert isinstance(status.to_frame(), pd.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    frame = status.to_frame()
    assert type(frame).__module__.startswith("polars")
    assert frame["decisions"].to_list() == [batch.decisions for batch in status.batches]
    monkeypatch.setitem(sys.modules, "polars", None)
    raises(MissingExtraError, "pandas or polars", status.to_frame)


def test_wide_intervals_are_drawn_on_a_logarithmic_scale() -> None:
    plan = rareswitch.plan(10_000, dim=5, arms=10, policies=8)
    tree = ET.fromstring(as_part(plan).replace("<br>", "<br/>"))
    dots = [float(dot.attrib["cx"]) for dot in tree.iter("{http://www.w3.org/2000/svg}circle")]
    regrets = [option.regret.expected for option in plan.options]
    low, high = min(o.regret.low for o in plan.options), max(o.regret.high for o in plan.options)
    low = min(low, plan.adaptive)
    scaled = [6.0 + np.log(regret / low) / np.log(high / low) * 138.0 for regret in regrets]
    assert dots == pytest.approx(scaled, abs=0.06)  # drawn to a tenth of a pixel


def test_a_progress_bar_is_shown_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []
    handle = SimpleNamespace(update=lambda data, raw: lines.append(data["text/plain"]))
    notebook = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=object()),
        display=SimpleNamespace(display=lambda data, raw, display_id: handle),
    )
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    with ProgressBar("working") as bar:
        bar(10, 10, "<last>")
    assert "100%" in lines[0]
    assert lines[-1] == ""


def test_every_public_result_is_tried_here(result: Callable[[str], Any]) -> None:
    """But for bases, answers of one line, and those of the service and the reproduction, tried elsewhere."""
    seen = {type(part) for name in RESULTS for part in parts_of(result(name))}
    lines = {"Activated", "Due", "ImportReport", "KnownRegret", "Listed", "Price", "WarmStart"}
    elsewhere = (".service.", ".reproduction.")
    missing = {cls.__name__ for cls in known(Displayed) if not any(name in cls.__module__ for name in elsewhere)} - {
        cls.__name__ for cls in seen
    }
    assert missing <= {"Report", "Result", "Contest"} | lines


def known(base: type[Displayed]) -> Iterator[type[Displayed]]:
    for cls in base.__subclasses__():
        yield cls
        yield from known(cls)
