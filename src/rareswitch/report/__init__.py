"""What is shown to people: tables and pictures."""

from rareswitch.report.agents_table import collaborative_table, concurrent_table, meetings_table
from rareswitch.report.contest import contest_markdown, contest_text
from rareswitch.report.contest_plot import draw_standings, draw_world
from rareswitch.report.design_plot import draw_design, draw_exploration
from rareswitch.report.design_table import design_data, design_text
from rareswitch.report.effects_plot import draw_effects
from rareswitch.report.evaluation_plot import draw_evaluation
from rareswitch.report.experiment_plot import draw_experiment
from rareswitch.report.exploration import Exploration, exploration_table, explore
from rareswitch.report.figures import check_target, figure, save
from rareswitch.report.recommendation_text import recommendation_text
from rareswitch.report.resampling import Ratio, regret_ratio
from rareswitch.report.run_plot import draw_runs
from rareswitch.report.run_table import linear_differs, run_table
from rareswitch.report.tradeoff import draw_tradeoff, tradeoff_table
from rareswitch.report.verdict import Verdict, judge

__all__ = ["Exploration", "Ratio", "Verdict", "check_target", "collaborative_table", "concurrent_table"]
__all__ += [
    "contest_markdown",
    "contest_text",
    "design_data",
    "design_text",
    "draw_design",
    "draw_evaluation",
    "draw_experiment",
    "draw_exploration",
]
__all__ += ["draw_runs", "draw_standings", "draw_tradeoff", "draw_world", "exploration_table", "explore", "figure"]
__all__ += ["judge", "linear_differs", "meetings_table", "recommendation_text", "regret_ratio", "run_table", "save"]
__all__ += ["tradeoff_table"]
__all__ += ["draw_effects"]
