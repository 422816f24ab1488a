"""Text, tables and pictures of results."""

from rareswitch.report.effects_plot import draw_effects
from rareswitch.report.effects_text import effects_text
from rareswitch.report.evaluation_plot import draw_evaluation
from rareswitch.report.evaluation_text import evaluation_text
from rareswitch.report.experiment_text import caution_text
from rareswitch.report.features_text import features_text
from rareswitch.report.figures import (
    BLUE,
    DARK_GREY,
    GREY,
    ORANGE,
    WIDTH,
    beside,
    check_target,
    draw,
    draw_experiment,
    figure,
    headline,
    name_points,
    plain_ticks,
    save,
    series_colors,
)
from rareswitch.report.progress import ProgressBar
from rareswitch.report.text import as_text, recommendation_text

__all__ = [
    "BLUE",
    "DARK_GREY",
    "GREY",
    "ORANGE",
    "WIDTH",
    "ProgressBar",
    "as_text",
    "beside",
    "caution_text",
    "check_target",
    "draw",
    "draw_effects",
    "draw_evaluation",
    "draw_experiment",
    "effects_text",
    "evaluation_text",
    "features_text",
    "figure",
    "headline",
    "name_points",
    "plain_ticks",
    "recommendation_text",
    "save",
    "series_colors",
]
