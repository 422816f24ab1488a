"""Learners: their settings, states, clocks and statistics; the only code that makes policies."""

from rareswitch.learner.batch_linucb_dg import *
from rareswitch.learner.batched import *
from rareswitch.learner.catalogue import *
from rareswitch.learner.clocks import *
from rareswitch.learner.confidence import *
from rareswitch.learner.foresight import *
from rareswitch.learner.grids import *
from rareswitch.learner.learner import *
from rareswitch.learner.one_model import *
from rareswitch.learner.rarely_switch import *
from rareswitch.learner.reserve import *
from rareswitch.learner.rule import *
from rareswitch.learner.settings import *
from rareswitch.learner.state import *
from rareswitch.learner.suplinucb import *
