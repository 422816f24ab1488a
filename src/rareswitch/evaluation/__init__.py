"""Off-policy evaluation and treatment effects: estimates with intervals, or why a log cannot answer."""

from rareswitch.evaluation.candidates import RULES, Always, Candidate, policy_probabilities
from rareswitch.evaluation.effect_results import Effect, Effects
from rareswitch.evaluation.effects import effects
from rareswitch.evaluation.effects_text import effects_title, label_of
from rareswitch.evaluation.estimators import ESTIMATORS, Estimator
from rareswitch.evaluation.evaluate import evaluate, lift_of, source_of
from rareswitch.evaluation.importance_weights import LEAST_POWER, weight_counts
from rareswitch.evaluation.models import halves
from rareswitch.evaluation.numerals import bounds_text, decimals, number_text, percent_text, shortened
from rareswitch.evaluation.refusals import refusals
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
from rareswitch.evaluation.support import Support
from rareswitch.evaluation.text import evaluation_text

__all__ = ["ESTIMATORS", "LEAST_POWER", "RULES", "Always", "ArmCount", "BatchValue", "Calibration", "Candidate"]
__all__ += ["Difference", "Effect", "Effects", "Estimator", "Evaluation", "Interval", "Overlap"]
__all__ += ["Value", "bounds_text", "decimals", "effects", "effects_title", "evaluate"]
__all__ += ["evaluation_text", "label_of", "lift_of", "number_text", "percent_text", "shortened"]
__all__ += ["source_of", "weight_counts"]
__all__ += ["Support", "halves", "policy_probabilities", "refusals"]
