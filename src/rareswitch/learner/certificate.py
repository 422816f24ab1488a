"""What a policy costs: at most, as far as its confidence intervals tell, and by a belief."""

import numpy as np

from rareswitch.contexts import ContextSets
from rareswitch.learner.posterior import Posterior
from rareswitch.policy import Policy


def certified_cost(policy: Policy, sets: ContextSets) -> float | None:
    """The most that a decision of the policy costs on average in these sets, if its intervals hold.

    Where they hold the best arm survives, and is worth at most the highest upper end u of a survivor; an arm that is
    played is worth at least its own lower end l. So a set costs at most Σ propensity·(u - l). An arm's ends are the
    tightest that any elimination gives. In units of the rewards; None where two eliminations contradict each other,
    so that not all intervals can hold.

    >>> from rareswitch.design import Uniform
    >>> from rareswitch.policy import Elimination
    >>> close = Elimination.of([1.0, 0.8], np.eye(2), 0.2)       # values 1 ± 0.2 and 0.8 ± 0.2
    >>> both = Policy(dim=2, sampler=Uniform(), eliminations=(close,))
    >>> round(certified_cost(both, ContextSets.from_ragged([np.eye(2)])), 6)
    0.5
    """
    survivors = policy.survivors(sets)
    upper, lower = np.full(survivors.shape, np.inf), np.full(survivors.shape, -np.inf)
    for elimination in policy.eliminations:
        values = sets.contexts @ elimination.estimate
        widths = np.linalg.norm(sets.contexts @ elimination.root.T, axis=2)
        upper, lower = np.minimum(upper, values + widths), np.maximum(lower, values - widths)
    if (survivors & (lower > upper)).any():
        return None
    highest = np.where(survivors, upper, -np.inf).max(axis=1)
    costs = np.where(survivors, highest[:, None] - lower, 0.0)
    return float((policy.probabilities(sets) * costs).sum(axis=1).mean())


def believed_cost(policy: Policy, sets: ContextSets, belief: Posterior) -> float:
    """What a decision of the policy costs on average in these sets, by what is believed now.

    >>> from rareswitch.design import Uniform
    >>> belief = Posterior(estimate=np.array([1.0, 0.8]), precision=np.eye(2), noise=1.0, ridge=1.0)
    >>> round(believed_cost(Policy(dim=2, sampler=Uniform()), ContextSets.from_ragged([np.eye(2)]), belief), 6)
    0.1
    """
    values = sets.contexts @ belief.estimate
    if belief.link is not None:
        values = belief.link.rates(sets.contexts, belief.estimate[None])[:, :, 0]
    best = np.where(sets.alive, values, -np.inf).max(axis=1)
    return float((best - (policy.probabilities(sets) * np.where(sets.alive, values, 0.0)).sum(axis=1)).mean())
