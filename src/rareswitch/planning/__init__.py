"""Schedules of updates: how many policies, when, at what expected regret; which learner to take."""

from rareswitch.planning.bounds import *
from rareswitch.planning.guarantees import *
from rareswitch.planning.misfit import *
from rareswitch.planning.parsing import *
from rareswitch.planning.plans import *
from rareswitch.planning.power import *
from rareswitch.planning.regret_model import *
from rareswitch.planning.schedule import *
from rareswitch.planning.schedules import *
from rareswitch.planning.times import *
