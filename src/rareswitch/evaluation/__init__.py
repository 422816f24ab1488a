"""Off-policy evaluation and treatment effects: estimates with intervals, or why a log cannot answer."""

from rareswitch.evaluation.calibration import ArmCount, Calibration
from rareswitch.evaluation.candidates import RULES, Always, Candidate, policy_probabilities
from rareswitch.evaluation.effects import BASELINE, REST, effects
from rareswitch.evaluation.evaluate import evaluate, lift_of, source_of
from rareswitch.evaluation.intervals import combined, term_of
from rareswitch.evaluation.refusals import few_rewards, refusals
from rareswitch.evaluation.results import (
    BatchPart,
    BatchValue,
    Difference,
    Effect,
    Effects,
    Evaluation,
    Interval,
    Overlap,
    Value,
)
from rareswitch.evaluation.scoring import ESTIMATORS, Estimator
from rareswitch.evaluation.support import LEAST_POWER, Support, weight_counts

__all__ = ["ESTIMATORS", "LEAST_POWER", "RULES", "Always", "ArmCount", "BatchValue", "Calibration", "Candidate"]
__all__ += ["Difference", "Effect", "Effects", "Estimator", "Evaluation", "Interval", "Overlap"]
__all__ += ["BASELINE", "REST", "BatchPart", "Value", "effects", "evaluate", "lift_of"]
__all__ += ["source_of", "weight_counts"]
__all__ += ["Support", "combined", "few_rewards", "policy_probabilities", "refusals", "term_of"]
