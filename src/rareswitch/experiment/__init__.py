"""Durable experiments: decide, reward, update, audit."""

from rareswitch.experiment.description import *
from rareswitch.experiment.experiment import *
from rareswitch.experiment.gate import *
from rareswitch.experiment.history import *
from rareswitch.experiment.opening import *
from rareswitch.experiment.requests import *
from rareswitch.experiment.results import *
from rareswitch.experiment.rewards import *
