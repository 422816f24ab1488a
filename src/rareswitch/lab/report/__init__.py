"""Tables and pictures of runs, contests and designs."""

from rareswitch.lab.report.contest import contest_markdown, contest_text, draw_standings, draw_world
from rareswitch.lab.report.design import (
    Exploration,
    design_data,
    design_text,
    draw_design,
    draw_exploration,
    exploration_table,
    explore,
)
from rareswitch.lab.report.resampling import Ratio, regret_ratio
from rareswitch.lab.report.run_plot import draw_runs
from rareswitch.lab.report.run_table import (
    collaborative_table,
    concurrent_table,
    linear_differs,
    meetings_table,
    run_table,
)
from rareswitch.lab.report.tradeoff import draw_tradeoff, tradeoff_table
from rareswitch.lab.report.verdict import Verdict, judge

__all__ = [
    "Exploration",
    "Ratio",
    "Verdict",
    "collaborative_table",
    "concurrent_table",
    "contest_markdown",
    "contest_text",
    "design_data",
    "design_text",
    "draw_design",
    "draw_exploration",
    "draw_runs",
    "draw_standings",
    "draw_tradeoff",
    "draw_world",
    "exploration_table",
    "explore",
    "judge",
    "linear_differs",
    "meetings_table",
    "regret_ratio",
    "run_table",
    "tradeoff_table",
]
