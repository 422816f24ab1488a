"""Whether contexts look unlike those that a policy was learned from, by their features alone."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from rareswitch.learner import State
from rareswitch.linalg import inverse_root
from rareswitch.stats import Stats
from rareswitch.structs import Result
from rareswitch.validation import Sets, context_sets

#: A value beyond this is unlike: in worlds where nothing changes it stays below, and groups of users that were never
#: seen before exceed it many times over.
THRESHOLD = 2.0
#: Standard errors by which the value must exceed it: a few odd sets are no change.
ERRORS = 3.0


class Novelty(Result, frozen=True, kw_only=True):
    """How far contexts are from those that were learned from. Prints as text."""

    #: 1 where they are as they were; many times that where features come that were hardly seen.
    value: float
    unlike: bool


def novelty(state: State, contexts: Any, available: Any = None) -> Novelty:
    """How uncertain the current policy's choices are on these sets, beside those that it was learned from.

    It is the mean of xᵀΛ⁻¹x over the arms that the policy plays, times n/d: with n decisions behind the Gram matrix Λ
    it is 1 for decisions like those, whatever the features. Rewards play no part.

    Parameters
    ----------
    state
        With the policy that decides now, and the sums that it was learned from.
    contexts, available
        Context sets (n, K, d) that it meets now, and their mask.

    Examples
    --------
    >>> from rareswitch.learner import Foresight, Rows
    >>> learner = Foresight(dim=2)
    >>> state = learner.begin()
    >>> x = np.random.default_rng(1).standard_normal((400, 3, 2)) * [1.0, 0.01]      # the second hardly varies
    >>> made = state.policy.decide(x, ids=range(400), seed=1)
    >>> rows = Rows.of(x, made, x[np.arange(400), made.arms, 0])
    >>> state = learner.next(state, learner.summarize(state, rows))
    >>> novelty(state, x).unlike, novelty(state, x[:, :, ::-1]).unlike               # and then it does
    (False, True)
    """
    sets = context_sets(contexts, available)
    count = sum(sums.count for sums in state.sums)
    if not count:
        return Novelty(value=1.0, unlike=False)
    policy = replace(state.policy, min_propensity=None)  # what it plays by its own choice
    shares = np.atleast_2d(policy.probabilities(Sets(sets.contexts, sets.available, False)))
    values = (shares * _leverages(sets, state.sums)).sum(axis=1) * count / state.policy.dim
    value, error = float(values.mean()), float(values.std()) / math.sqrt(len(values))
    return Novelty(value=value, unlike=value - ERRORS * error > THRESHOLD)


def _leverages(sets: Sets, sums: tuple[Stats, ...]) -> Any:
    """(n, K) xᵀΛ⁻¹x, where Λ has the weight of one decision more in every direction."""
    x = sets.contexts
    dim = x.shape[2]  # without a level, which has no unit of the features
    gram = np.sum([one.gram[:dim, :dim] for one in sums], axis=0)
    count = sum(one.count for one in sums)
    ridge = max(float(np.trace(gram)) / (count * len(gram)), np.finfo(float).tiny)
    root = inverse_root(gram + ridge * np.eye(len(gram)))
    return np.square(x @ root.T).sum(axis=2)
