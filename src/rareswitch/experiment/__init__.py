"""Durable experiments: records and ids in, decisions out, late rewards, and updates when they are due."""

from rareswitch.experiment.best import Best
from rareswitch.experiment.every import Every
from rareswitch.experiment.regret_model import adaptive_cost, baseline_share, best_ends
from rareswitch.experiment.schedule import After, ByHand, Decided, Due, End, Planned, Price, Progress, Schedule
from rareswitch.experiment.short_forms import schedule_from_plain, schedule_of

__all__ = ["After", "Best", "ByHand", "Decided", "Due", "End", "Every", "Planned", "Price", "Progress", "Schedule"]
__all__ += ["adaptive_cost", "baseline_share", "best_ends", "schedule_from_plain", "schedule_of"]
