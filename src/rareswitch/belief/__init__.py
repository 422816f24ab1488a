"""What sums of features and rewards say of θ, by linear and logistic models, and how much to explore on that."""

from rareswitch.belief.planning import best_arms, plan, spread, unseen_directions, within_memory
from rareswitch.belief.posterior import (
    NOTHING,
    Link,
    ModelCheck,
    Posterior,
    Search,
    expanded,
    innovation,
    logistic,
    logistic_posterior,
    next_point,
    posterior,
    summed_blindly,
    vague_where_unknown,
    values_of,
)

__all__ = [
    "NOTHING",
    "Link",
    "ModelCheck",
    "Posterior",
    "Search",
    "best_arms",
    "expanded",
    "innovation",
    "logistic",
    "logistic_posterior",
    "next_point",
    "plan",
    "posterior",
    "spread",
    "summed_blindly",
    "unseen_directions",
    "vague_where_unknown",
    "values_of",
    "within_memory",
]
