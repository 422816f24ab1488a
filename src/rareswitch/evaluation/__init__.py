"""Off-policy evaluation and treatment effects: estimates with intervals, or why a log cannot answer."""

from rareswitch.evaluation.calibration import *
from rareswitch.evaluation.candidates import *
from rareswitch.evaluation.effects import *
from rareswitch.evaluation.evaluate import *
from rareswitch.evaluation.groups import *
from rareswitch.evaluation.questions import *
from rareswitch.evaluation.refusals import *
from rareswitch.evaluation.results import *
from rareswitch.evaluation.scoring import *
from rareswitch.evaluation.support import *
