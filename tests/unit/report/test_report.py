import math

import numpy as np
import pytest

from rareswitch.design import g_optimal
from rareswitch.report.design_plot import draw_design
from rareswitch.report.figures import figure
from rareswitch.report.run_plot import draw_runs
from rareswitch.report.run_table import grouped, run_table
from rareswitch.sim import Run


def run(learner: str, world: str, horizon: int, seed: int, regret: float, updates: int = 3) -> Run:
    return Run(
        learner=learner,
        world=world,
        horizon=horizon,
        seed=seed,
        regret=regret,
        updates=updates,
        seconds=0.5,
        times=np.array([1, horizon]),
        regrets=np.array([0.0, regret]),
        batch_ends=np.arange(1, updates + 1) * horizon // updates,
        survivors=np.linspace(5, 1, updates),
    )


RUNS = [run("a", "w", 100, 0, 10.0), run("a", "w", 100, 1, 14.0), run("b", "w", 100, 0, 5.0, updates=2)]


def test_groups_are_means_over_seeds() -> None:
    first, second = grouped(RUNS)
    assert (first.learner, first.regret, first.worst, first.updates) == ("a", 12.0, 14.0, 3)
    assert first.standard_error == pytest.approx(2.0)
    assert math.isnan(second.standard_error)


def test_the_table_shows_what_differs() -> None:
    lines = run_table(RUNS).splitlines()
    assert lines[0].split() == [
        "learner",
        "seeds",
        "updates",
        "regret",
        "±",
        "s.e.",
        "worst",
        "seed",
        "regret/T",
        "seconds",
    ]
    assert lines[2].split() == ["a", "2", "3", "12.0", "2.0", "14.0", "0.1200", "0.50"]
    assert "world" in run_table([*RUNS, run("a", "v", 100, 0, 1.0)])
    assert "horizon" in run_table([*RUNS, run("a", "w", 200, 0, 1.0)])


def test_the_picture_has_three_panels_a_world() -> None:
    made = draw_runs([*RUNS, run("a", "v", 100, 0, 1.0)])
    assert len(made.axes) == 6
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
