"""What another policy would have earned, from the decisions of those that were deployed; or why that cannot be said."""

from rareswitch.evaluation.candidates import RULES, Always, Candidate
from rareswitch.evaluation.effect_results import Effect, Effects, Parameter, Parameters
from rareswitch.evaluation.effects import effects
from rareswitch.evaluation.estimators import ESTIMATORS, Estimator
from rareswitch.evaluation.evaluate import evaluate, lift_of, source_of
from rareswitch.evaluation.numerals import bounds_text, decimals, number_text, percent_text, shortened
from rareswitch.evaluation.parameters import parameters
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
from rareswitch.evaluation.weights import LEAST_POWER, MOST_POWER, weight_counts

__all__ = ["ESTIMATORS", "RULES", "Always", "ArmCount", "BatchValue", "Calibration", "Candidate", "Difference"]
__all__ += ["Effect", "Effects", "Estimator", "Evaluation", "Interval", "Overlap", "Parameter", "Parameters", "Value"]
__all__ += ["bounds_text", "decimals", "effects", "evaluate", "evaluation_text", "lift_of", "number_text"]
__all__ += ["parameters", "percent_text", "shortened", "source_of"]
__all__ += ["LEAST_POWER", "MOST_POWER", "weight_counts"]
