"""What another policy would have earned, from the decisions of those that were deployed; or why that cannot be said."""

from rareswitch.evaluation.candidates import policy_probabilities
from rareswitch.evaluation.estimators import ESTIMATORS, Estimator
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
from rareswitch.evaluation.support import Support, refusals

__all__ = ["ESTIMATORS", "ArmCount", "BatchValue", "Calibration", "Difference", "Estimator", "Evaluation", "Interval"]
__all__ += ["Overlap", "Support", "Value", "policy_probabilities", "refusals"]
