"""Durable experiments: records and ids in, decisions out, late rewards, and updates when they are due."""

from rareswitch.experiment.advance import Advance
from rareswitch.experiment.audit import Audit
from rareswitch.experiment.choice import Choice
from rareswitch.experiment.experiment import Experiment
from rareswitch.experiment.opening import create, open_experiment
from rareswitch.experiment.rewards import Rewards
from rareswitch.experiment.status import Status

__all__ = ["Advance", "Audit", "Choice", "Experiment", "Rewards", "Status", "create", "open_experiment"]
