"""What another policy would have earned, from the decisions of those that were deployed; or why that cannot be said."""

from rareswitch.evaluation.candidates import RULES, Always, Candidate
from rareswitch.evaluation.estimators import ESTIMATORS, Estimator
from rareswitch.evaluation.evaluate import evaluate, lift_of, source_of
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
from rareswitch.evaluation.weights import LEAST_POWER, weight_counts

__all__ = ["ESTIMATORS", "LEAST_POWER", "RULES", "Always", "ArmCount", "BatchValue", "Calibration", "Candidate"]
__all__ += ["Difference", "Estimator", "Evaluation", "Interval", "Overlap", "Value", "bounds_text", "decimals"]
__all__ += ["evaluate", "evaluation_text", "lift_of", "number_text", "percent_text", "shortened", "source_of"]
__all__ += ["weight_counts"]
