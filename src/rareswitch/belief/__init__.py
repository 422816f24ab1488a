"""What sums of features and rewards say of θ, by linear and logistic models, and how much to explore on that."""

from rareswitch.belief.logistic import Search, expanded, logistic_posterior, next_point, summed_blindly, values_of
from rareswitch.belief.planning import best_columns, plan, spread, unseen_directions, within_memory
from rareswitch.belief.posterior import (
    NOTHING,
    Link,
    ModelCheck,
    Posterior,
    innovation,
    logistic,
    posterior,
    vague_where_unknown,
)

__all__ = ["NOTHING", "Link", "ModelCheck", "Posterior", "Search", "best_columns", "expanded", "innovation"]
__all__ += ["logistic", "logistic_posterior", "next_point", "plan", "posterior", "spread", "summed_blindly"]
__all__ += ["unseen_directions", "vague_where_unknown", "values_of", "within_memory"]
