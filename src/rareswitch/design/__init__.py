"""Optimal designs: G-optimal for one set of arms, distributional for a distribution of sets."""

from rareswitch.design.distributional import *
from rareswitch.design.frank_wolfe import *
from rareswitch.design.goptimal import *
from rareswitch.design.sampling import *
