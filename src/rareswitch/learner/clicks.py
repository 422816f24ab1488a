"""What is summed of a batch where rewards may be clicks: a linear model, and beside it a logistic one."""

from dataclasses import dataclass, replace

import numpy as np

from rareswitch.errors import UnsuitableError
from rareswitch.learner.levels import unexplained_level
from rareswitch.learner.logistic import linearised, summed_blindly
from rareswitch.learner.state import State
from rareswitch.learner.statistics import OneModel
from rareswitch.stats import Stats
from rareswitch.validation import FloatArray, Sets


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
        return (replace(plain, linearised=linearised(features, rewards, state.kept)),)

    def unexplained_level(self, sums: tuple[Stats, ...]) -> float | None:
        """Of clicks against a half, which a logistic model without a level has at x = 0; by the first batch alone."""
        (total,) = sums
        same = not 0.0 < total.square_sum < total.count  # then they are not taken for clicks yet
        if total.linearised is None or self.intercept or same:
            return super().unexplained_level(sums)
        clicks, half = total.square_sum, 0.5 * total.count
        if not summed_blindly(total) or clicks == 0.0:  # a level of 0 is none, and rewards need not be clicks
            return None
        about_half = replace(
            total,
            moment=total.moment - 0.5 * total.linearised.moment,
            square_sum=0.5 * half,
            reward_sum=clicks - half,
            linearised=None,
        )
        found = unexplained_level((about_half,))
        return None if found is None else found + 0.5
