"""Worlds to learn in."""

from rareswitch.lab.worlds.catalogue import *
from rareswitch.lab.worlds.classification import *
from rareswitch.lab.worlds.clicks import *
from rareswitch.lab.worlds.linear import *
from rareswitch.lab.worlds.lower_bound import *
from rareswitch.lab.worlds.movielens import *
from rareswitch.lab.worlds.sequence import *
from rareswitch.lab.worlds.tables import *
from rareswitch.lab.worlds.world import *
