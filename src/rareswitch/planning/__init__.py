"""Schedules of updates: how many policies, when, at what expected regret; which learner to take."""

from rareswitch.planning.guarantees import CONTEXTS, KnownRegret, known_regret, proved_rate
from rareswitch.planning.parsing import schedule_from_plain, schedule_of
from rareswitch.planning.recommendation import Problem, Recommendation, recommend
from rareswitch.planning.regret_model import (
    MinPropensityPrice,
    adaptive_cost,
    baseline_share,
    best_ends,
    cost,
    min_propensity_price,
)
from rareswitch.planning.schedule import Due, Price, Progress, Schedule, ScheduleTable, Wait, unlearnable
from rareswitch.planning.schedules import AfterCounts, BestSchedule, LearnerSchedule, Manual, Periodic
from rareswitch.planning.times import (
    DAY,
    Moment,
    date_text,
    duration_of,
    duration_text,
    from_settings,
    minute_text,
    moment_of,
    plain_fields,
    seconds_of,
)

__all__ = ["CONTEXTS", "DAY", "AfterCounts", "BestSchedule", "Due", "KnownRegret", "LearnerSchedule", "Manual"]
__all__ += [
    "MinPropensityPrice",
    "Moment",
    "Periodic",
    "Price",
    "Problem",
    "Progress",
    "Recommendation",
    "Schedule",
    "ScheduleTable",
    "Wait",
]
__all__ += ["adaptive_cost", "baseline_share", "best_ends", "cost", "date_text", "duration_of", "duration_text"]
__all__ += ["from_settings", "known_regret", "min_propensity_price", "minute_text", "moment_of", "plain_fields"]
__all__ += ["proved_rate", "recommend", "schedule_from_plain", "schedule_of", "seconds_of", "unlearnable"]
