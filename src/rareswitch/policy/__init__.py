"""Frozen policies: how they sample arms, their files, keys and signatures."""

from rareswitch.policy.keys import *
from rareswitch.policy.min_propensity import *
from rareswitch.policy.policy import *
from rareswitch.policy.samplers import *
