"""What another policy would have earned, from the decisions of those that were deployed; or why that cannot be said."""

from rareswitch.evaluation.candidates import RULES, Always, Candidate
from rareswitch.evaluation.estimators import ESTIMATORS, Estimator
from rareswitch.evaluation.evaluate import evaluate, lift_of, source_of
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

__all__ = ["ESTIMATORS", "RULES", "Always", "ArmCount", "BatchValue", "Calibration", "Candidate", "Difference"]
__all__ += ["Estimator", "Evaluation", "Interval", "Overlap", "Value", "evaluate", "lift_of", "source_of"]
