"""What another policy would have earned, from the decisions of those that were deployed; or why that cannot be said."""

from rareswitch.evaluation.estimators import ESTIMATORS, Estimator
from rareswitch.evaluation.numerals import bounds_text, decimals, number_text, percent_text, shortened
from rareswitch.evaluation.results import (
    ArmCount,
    BatchValue,
    Calibration,
    Difference,
    Evaluation,
    Interval,
    Overlap,
    Value,
)
from rareswitch.evaluation.text import evaluation_text

__all__ = ["ESTIMATORS", "ArmCount", "BatchValue", "Calibration", "Difference", "Estimator", "Evaluation", "Interval"]
__all__ += [
    "Overlap",
    "Value",
    "bounds_text",
    "decimals",
    "evaluation_text",
    "number_text",
    "percent_text",
    "shortened",
]
