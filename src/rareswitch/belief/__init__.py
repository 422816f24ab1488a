"""What sums of features and rewards say of θ, by linear and logistic models, and how much to explore on that."""

from rareswitch.belief.planning import *
from rareswitch.belief.posterior import *
