import math
from pathlib import Path

import numpy as np
import pytest

from rareswitch.design import g_optimal
from rareswitch.lab import Run
from rareswitch.lab.report.design import draw_design
from rareswitch.lab.report.plots import draw_runs
from rareswitch.lab.report.runs import grouped, run_table
from rareswitch.report import draw_experiment
from rareswitch.report.figures import DARK_GREY, GREY, ORANGE, figure, name_points, save
from reference.runs import run_of

RUNS = [run_of("a", "w", 0, 10.0), run_of("a", "w", 1, 14.0), run_of("b", "w", 0, 5.0, policies=2)]


def test_groups_are_means_over_seeds() -> None:
    first, second = grouped(RUNS)
    assert (first.learner, first.regret, first.worst, first.policies) == ("a", 12.0, 14.0, 3)
    assert first.standard_error == pytest.approx(2.0)
    assert math.isnan(second.standard_error)


def test_the_table_shows_what_differs() -> None:
    lines = run_table(RUNS).splitlines()
    assert " ".join(lines[0].split()) == "learner seeds policies regret worst 5 % ± s.e. regret/T seconds"
    assert lines[2].split() == ["a", "2", "3", "12.0", "14.0", "2.0", "0.1200", "0.50"]
    assert "world" in run_table([*RUNS, run_of("a", "v", 0, 1.0)])
    assert "horizon" in run_table([*RUNS, run_of("a", "w", 0, 1.0, 200)])


def seeded(learner: str, mean: float, spread: float, horizon: int = 100, policies: int = 3) -> list[Run]:
    return [run_of(learner, "w", s, mean + spread * (s - 3.5), horizon, policies=policies) for s in range(8)]


def test_learners_of_a_world_are_compared_with_its_best() -> None:
    text = run_table([*seeded("a", 90.0, 2.0), *seeded("b", 40.0, 1.0), *seeded("c", 140.0, 39.0)])
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert rows["a"][:5] == ["a", "3", "90.0", "97.0", "2.00"]  # (90 + 10)/(40 + 10)
    assert rows["b"][4:6] == ["1.00", "1.00"]  # itself: no interval
    assert rows["c"][8] == "?"
    assert "?" not in rows["a"]
    assert "w, T = 100, 8 seeds" in text
    assert "that of b, the best" in text
    assert "? marks 1 of 2 ratios" in text


def test_one_seed_has_no_interval_and_says_so() -> None:
    text = run_table([run_of("a", "w", 0, 90.0), run_of("b", "w", 0, 40.0)])
    assert "intervals need at least 5 seeds, and there is one." in text
    assert " to " not in text


def test_runs_that_lack_seeds_are_not_compared() -> None:
    text = run_table([*seeded("a", 90.0, 2.0), *seeded("b", 40.0, 1.0), *seeded("c", 60.0, 1.0)[:-1]])
    (row,) = (line.split() for line in text.splitlines() if line.startswith("c "))
    assert row == ["c", "7", "3", "59.5", "62.5", "0.50"]


def test_every_panel_says_what_it_shows_and_names_its_series() -> None:
    made = draw_runs([*seeded("foresight", 90.0, 2.0, policies=8), *seeded("b", 40.0, 1.0, policies=90)])
    curves, trade, survivors = made.axes
    assert curves.get_title(loc="left") == "w, T = 100, 8 seeds: b paid least"
    assert trade.get_title(loc="left") == "with 8 policies, foresight paid 2.00 times what b paid"
    assert survivors.get_title(loc="left") == "arms that elimination leaves"
    for panel in (curves, trade):
        assert panel.get_legend() is None
        assert {text.get_text(): text.get_color() for text in panel.texts} == {"foresight": ORANGE, "b": DARK_GREY}
        assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
        assert panel.get_ylim()[0] <= 40.0 * 0.8  # the best does not lie on the axis
    assert [text.get_text() for text in survivors.texts] == ["foresight"]


def test_names_do_not_cover_each_other() -> None:
    made, (panel,) = figure()
    panel.set(xlim=(0, 1), ylim=(0, 1))
    points = {f"name {k}": (1.0, 0.5 + 0.001 * k) for k in range(6)}
    name_points(panel, points, dict.fromkeys(points, "black"))
    scale = made.dpi / 72.0
    heights = sorted(panel.transData.transform(t.xy)[1] / scale + t.xyann[1] for t in panel.texts)
    assert np.diff(heights).min() >= 10.0 - 1e-6


def test_the_picture_has_panels_for_every_world_and_horizon() -> None:
    assert len(draw_runs(RUNS).axes) == 3
    longer = draw_runs([*seeded("a", 90.0, 2.0), *seeded("a", 120.0, 2.0, horizon=400)])
    titles = {panel.get_title(loc="left") for panel in longer.axes}
    assert titles >= {"w, T = 100, 8 seeds", "w, T = 400, 8 seeds"}
    made = draw_runs([*RUNS, run_of("a", "v", 0, 1.0)])
    assert len(made.axes) == 4
    curve = made.axes[0]
    assert [line.get_label() for line in curve.lines if not line.get_label().startswith("_")] == ["a", "b"]
    np.testing.assert_array_equal(curve.lines[0].get_ydata(), [0.0, 12.0])


def test_the_ellipse_is_the_level_of_the_largest_leverage() -> None:
    points = np.array([[1.0, 0.2], [-0.3, 0.8], [0.4, 0.4], [0.0, 0.1]])
    design = g_optimal(points)
    _, (panel,) = figure()
    draw_design(panel, points, np.ones(4, dtype=bool), design, ("price", "speed"), "title")
    ring = np.stack(panel.lines[0].get_data())
    moment = points.T @ (points * design.weights[:, None])
    levels = np.einsum("in,ij,jn->n", ring, np.linalg.inv(moment), ring)
    np.testing.assert_allclose(levels, float(design.max_leverage), rtol=1e-9)
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("price", "speed")


def test_the_command_that_draws_a_picture_again_is_its_caption(tmp_path: Path) -> None:
    made = draw_runs(RUNS)
    save(made, tmp_path / "p.png", "rareswitch compare " + "--learners " + "a-long-name " * 20)
    lines = made.get_supxlabel().splitlines()
    assert lines[0].startswith("rareswitch compare --learners a-long-name")
    assert len(lines) > 1
    assert max(map(len, lines)) < 120


def test_an_experiment_is_drawn_against_full_adaptivity_and_no_update() -> None:
    lost = {"best times": np.full(1000, 0.3), "all": np.full(1000, 0.1), "never": np.full(1000, 0.9)}
    made = draw_experiment(lost, {"best times": [200, 500]}, adaptive="all", never="never", title="few cost little")
    (panel,) = made.axes
    assert panel.get_title(loc="left") == "few cost little"
    assert {text.get_text(): text.get_color() for text in panel.texts} == {
        "best times": ORANGE,
        "all": DARK_GREY,
        "never": GREY,
    }
    (dots,) = [line for line in panel.lines if line.get_marker() == "o" and np.size(line.get_xdata())]
    np.testing.assert_allclose(np.asarray(dots.get_ydata()), [60.0, 150.0])
    assert (panel.get_xscale(), panel.get_yscale(), panel.get_legend()) == ("log", "log", None)
