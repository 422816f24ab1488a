"""What a learner needs of a log that others made, to begin with it."""

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from rareswitch.contexts import ContextSets
from rareswitch.errors import BatchError, ParameterError, ShapeError
from rareswitch.learner import Learner, Rows, State, Summary
from rareswitch.log.logged import DecisionLog
from rareswitch.log.source import Source


def summarize_source(
    learner: Learner, source: Source, *, default: float | None = None, clip: tuple[float, float] | None = None
) -> Summary:
    """The decisions of a log, whoever made them, as a learner begins with them: ``learner.begin(warm=…)``.

    They are counted as if the learner's own first policy had made them: what is learned from sums does not depend on
    how arms were chosen. Propensities are not looked at.

    Parameters
    ----------
    default
        The reward of decisions whose own is not known; by default they do not count.
    clip
        The least and the largest reward as they are summed.

    Examples
    --------
    >>> import numpy as np
    >>> from rareswitch.learner import Foresight
    >>> x, arms = np.random.default_rng(1).standard_normal((500, 3, 2)), np.arange(500) % 3
    >>> rewards = x[np.arange(500), arms] @ [1.0, -1.0]
    >>> log = DecisionLog(contexts=x, arm_indices=arms, propensities=[0.5] * 500, rewards=rewards)
    >>> learner = Foresight(dim=2, horizon=1000)
    >>> state = learner.begin(warm=summarize_source(learner, log))
    >>> state, state.policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).round(3).tolist()
    (<state of foresight: policy 1, planned for decisions 0 to 5, then 7 more for 994>, [1.0, 0.0])
    """
    if source.dim is None:
        raise ParameterError(
            f"the log has no vectors of arms, and {learner.name} learns from those of {learner.dim} features. Read it "
            "with features, or begin without it."
        )
    if source.dim != learner.dim:
        raise ShapeError(
            f"the vectors of the log have {source.dim} features, and {learner.name} learns from those of "
            f"{learner.dim}. Make both with the same features."
        )
    state = learner.begin()

    def summed(at: State) -> Summary:
        chunks = source.chunks(contexts=False)
        return reduce(add, (_summary(learner, at, chunk, default=default, clip=clip) for chunk in chunks))

    found = summed(state)
    if found.sample is None and learner.sample_size(state):
        samples = [
            _summary(learner, state, chunk, default=default, clip=clip).sample for chunk in source.chunks(contexts=True)
        ]
        kept = [one for one in samples if one is not None]
        found = replace(found, sample=reduce(add, kept) if kept else None)
    if not found.rewarded:
        raise BatchError(
            f"none of the {found.decided} decisions of the log has a reward: there is nothing to begin with. Give it "
            "the rewards, or begin without it."
        )
    return learner.fitted(state, found, summed)


def _summary(learner: Learner, state: State, log: DecisionLog, **counting: Any) -> Summary:
    sets = None if log.contexts is None else ContextSets(log.contexts, log.available)
    assert log.features is not None  # as the source has a dimension
    rows = Rows(ids=log.ids, policy_id=state.policy.id, features=log.features, rewards=log.rewards, sets=sets)
    return learner.summarize(state, rows, **counting, part=True)
