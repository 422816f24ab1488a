"""The laboratory: simulated worlds, runs, sweeps, contests, and learners to compare with."""

from rareswitch.lab.collaborate import *
from rareswitch.lab.contest import *
from rareswitch.lab.simulate import *
from rareswitch.lab.sweep import *
from rareswitch.lab.traffic import *
from rareswitch.lab.worlds import make_world as make_world
