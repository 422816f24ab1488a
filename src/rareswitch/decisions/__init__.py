"""The one table of decisions, and which of their rewards count."""

from rareswitch.decisions.attribution import *
from rareswitch.decisions.decision_log import *
