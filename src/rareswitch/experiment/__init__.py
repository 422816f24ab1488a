"""Durable experiments: decide, reward, update, audit."""

from rareswitch.experiment.description import WarmStart
from rareswitch.experiment.experiment import Experiment
from rareswitch.experiment.gate import Gate, GateReport
from rareswitch.experiment.opening import copy_experiment, create, list_experiments, open_experiment
from rareswitch.experiment.requests import Id, Request, Requests, read_requests
from rareswitch.experiment.results import (
    Activated,
    Advance,
    Audit,
    BatchStatus,
    Choice,
    LearnerNote,
    Lift,
    Listed,
    PolicyChanges,
    Relearned,
    Rewarded,
    Status,
    Verification,
)
from rareswitch.experiment.rewards import Rewards

__all__ = [
    "Activated",
    "Advance",
    "Audit",
    "BatchStatus",
    "Choice",
    "Experiment",
    "Gate",
    "GateReport",
    "Id",
    "LearnerNote",
    "Lift",
    "Listed",
    "PolicyChanges",
    "Relearned",
    "Request",
    "Requests",
    "Rewarded",
    "Rewards",
    "Status",
    "Verification",
    "WarmStart",
    "copy_experiment",
    "create",
    "list_experiments",
    "open_experiment",
    "read_requests",
]
