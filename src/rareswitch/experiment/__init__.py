"""Durable experiments: records and ids in, decisions out, late rewards, and updates when they are due."""

from rareswitch.experiment.advance import Advance
from rareswitch.experiment.audit import Audit
from rareswitch.experiment.best import Best
from rareswitch.experiment.choice import Choice, caution_text
from rareswitch.experiment.copying import copy_experiment
from rareswitch.experiment.counted import After, ByHand, Planned
from rareswitch.experiment.durations import duration_of
from rareswitch.experiment.every import Every
from rareswitch.experiment.experiment import Experiment
from rareswitch.experiment.gate import Gate, GateReport
from rareswitch.experiment.lift import Lift
from rareswitch.experiment.min_propensity_price import MinPropensityPrice, min_propensity_price
from rareswitch.experiment.moments import moment_of, seconds_of
from rareswitch.experiment.novelty import Novelty, novelty
from rareswitch.experiment.opening import create, open_experiment
from rareswitch.experiment.progress import Progress
from rareswitch.experiment.regret_model import adaptive_cost, best_ends, cost
from rareswitch.experiment.rewards import Rewards
from rareswitch.experiment.schedule import DAY, Due, End, Price, Schedule
from rareswitch.experiment.short_forms import schedule_from_plain, schedule_of
from rareswitch.experiment.start import baseline_share
from rareswitch.experiment.status import Status
from rareswitch.experiment.verification import Relearned, Verification

__all__ = [
    "DAY",
    "Advance",
    "After",
    "Audit",
    "Best",
    "ByHand",
    "Choice",
    "Due",
    "End",
    "Every",
    "Experiment",
    "Gate",
    "GateReport",
    "Lift",
    "MinPropensityPrice",
    "Novelty",
    "Planned",
    "Price",
    "Progress",
    "Relearned",
    "Rewards",
    "Schedule",
    "Status",
    "Verification",
    "adaptive_cost",
    "baseline_share",
    "best_ends",
    "caution_text",
    "copy_experiment",
    "cost",
    "create",
    "duration_of",
    "min_propensity_price",
    "moment_of",
    "novelty",
    "open_experiment",
    "schedule_from_plain",
    "schedule_of",
    "seconds_of",
]
