"""What is summed of a batch where rewards may be clicks: a linear model, and beside it a logistic one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rareswitch.errors import UnsuitableError
from rareswitch.learner.levels import unexplained_level
from rareswitch.learner.link import logistic
from rareswitch.learner.logistic import Search, expanded, summed_blindly, values_of
from rareswitch.learner.state import State
from rareswitch.learner.statistics import OneModel
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, Sets

#: By what names a state keeps the models of all batches so far, θ and a level: the logistic one, and the linear one.
LOGISTIC, LINEAR = "logistic_point", "linear_point"
#: The log-likelihood of all batches but the first, each by the models of those before it: (logistic, linear).
HELD_OUT = "held_out"
#: Where the rows of the current batch are expanded, and what is known of the passes before.
PASS_POINT, PASS_BEST, PASS_COUNT, PASS_VALUE = "pass_point", "pass_best", "pass_count", "pass_value"
#: A linear model's probabilities are at least this share of one click among the decisions so far.
LEAST_CLICKS = 0.5


@dataclass(frozen=True, kw_only=True)
class ClicksModel(OneModel):
    """One model of the chosen features, summed for a logistic belief as well while all rewards are 0 or 1."""

    #: Whether other rewards are refused.
    only: bool = False

    def of(self, state: State, features: FloatArray, rewards: FloatArray, sets: Sets | None) -> tuple[Stats, ...]:
        (plain,) = super().of(state, features, rewards, sets)
        other = rewards[(rewards != 0.0) & (rewards != 1.0)]
        if len(other):
            if self.only:
                raise UnsuitableError(
                    f'rewards="binary" is for rewards of 0 and 1; {len(other)} of {len(rewards)} are others, the first '
                    f'{other[0]:g}. Use rewards="linear", or leave the choice to the data.'
                )
            return (plain,)
        if self.intercept:
            features = np.column_stack([features, np.ones(len(features))])
        point = state.kept.get(PASS_POINT, state.kept.get(LOGISTIC, np.zeros(plain.dim)))
        rates = list[FloatArray]()
        if LOGISTIC in state.kept:
            least = LEAST_CLICKS / (1.0 + sum(batch.rewarded for batch in (*state.before, *state.past)))
            rates = [
                logistic(values_of(features, state.kept[LOGISTIC])),
                values_of(features, state.kept[LINEAR]),
            ]
            rates = [np.clip(rate, least, 1.0 - least) for rate in rates]
        return (replace(plain, expansion=expanded(features, rewards, point, rates)),)

    def unexplained_level(self, sums: tuple[Stats, ...]) -> float | None:
        """Of clicks without a level against a half, which a logistic model has at x = 0; by the first batch alone."""
        (total,) = sums
        if self.intercept or not self.only:
            return super().unexplained_level(sums)
        if total.expansion is None or not summed_blindly(total):
            return None
        clicks, half = total.square_sum, 0.5 * total.count
        gradient = total.expansion.gradient  # Σ (r - ½)·x
        level = unexplained_level((replace(total, moment=gradient, square_sum=0.5 * half, reward_sum=clicks - half),))
        return None if level is None else level + 0.5


def search_of(kept: Mapping[str, FloatArray]) -> Search:
    """What a state knows of the passes before."""
    if PASS_COUNT not in kept:
        return Search()
    return Search(int(kept[PASS_COUNT]), kept.get(PASS_BEST), float(kept[PASS_VALUE]))


def searching(state: State, point: FloatArray, search: Search) -> State:
    """A state for the next pass over the rows of the current batch."""
    best = {} if search.best is None else {PASS_BEST: search.best}
    passes = {PASS_POINT: point, PASS_COUNT: np.array(float(search.passes)), PASS_VALUE: np.array(search.value)}
    return replace(state, kept={name: part for name, part in state.kept.items() if name != PASS_BEST} | passes | best)
