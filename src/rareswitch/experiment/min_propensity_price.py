"""What a least probability of arms costs: the decisions that it plays are taken to be as bad as blind ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rareswitch.errors import ParameterError
from rareswitch.experiment.regret_model import price_of
from rareswitch.policy import MinPropensity
from rareswitch.validation import number


@dataclass(frozen=True, kw_only=True)
class MinPropensityPrice:
    """What a minimum propensity costs, in the unit of the regret model: a decision that is made blindly.

    With 8 policies at their best times, 10,000 decisions with 10 features cost about 208 for learning. A floor of 0.02
    under 5 arms costs several times that:

    >>> from rareswitch.experiment import best_ends
    >>> print(min_propensity_price(MinPropensity(least=0.02), arms=5, ends=best_ends(10_000, 8, dim=10), dim=10))
    minimum propensity of 0.02 for every offered arm: with 5 arms a set 10 % of decisions explore for evaluation; \
over the 10,000 decisions to come this costs about as much as 1,000 blind decisions, beside about 208 for learning
    """

    min_propensity: MinPropensity
    #: Arms that it is for, in a set; a mean where sets differ.
    arms: float
    #: To come; None where that is not known.
    decisions: int | None
    #: What learning costs over these, in blind decisions; None where that is not known.
    learning: float | None

    @property
    def share(self) -> float:
        """Of the decisions, that it takes."""
        return self.min_propensity.least * self.arms

    @property
    def cost(self) -> float | None:
        """Over the decisions to come, in blind decisions."""
        return None if self.decisions is None else self.share * self.decisions

    def as_dict(self) -> dict[str, float | None]:
        """All of it as plain data."""
        facts: dict[str, float | None] = {"least": self.min_propensity.least, "arms": self.arms, "share": self.share}
        return facts | {"decisions": self.decisions, "cost": self.cost, "learning": self.learning}

    def __str__(self) -> str:
        which = f"{self.arms:.4g} arm{'s' * (self.arms != 1.0)} a set"
        share = f"{100.0 * self.share:.3g} %"
        text = f"minimum propensity of {self.min_propensity}: with {which} {share} of decisions explore for evaluation"
        if self.cost is None:
            return f"{text}, each of which costs about as much as a blind one"
        learning = "" if self.learning is None else f", beside about {self.learning:,.0f} for learning"
        return (
            f"{text}; over the {self.decisions:,} decisions to come this costs about as much as {self.cost:,.0f} blind "
            f"decisions{learning}"
        )


def min_propensity_price(
    min_propensity: MinPropensity,
    *,
    arms: float,
    ends: Sequence[float] | None,
    dim: int,
    before: float = 0.0,
    now: float | None = None,
) -> MinPropensityPrice:
    """What a minimum propensity costs over the decisions to come.

    Parameters
    ----------
    arms
        Arms in a set that it is for.
    ends
        Decisions in all at which the current batch and those after it end; None where that is not known.
    dim
        Features of an arm.
    before
        Decisions of the policies before the current one, from which it was learned.
    now
        Decisions so far; ``before`` by default.
    """
    number("arms", arms, low=0.0)
    if min_propensity.least * arms > 1.0 + 1e-9:
        raise ParameterError(
            f"a minimum propensity of {min_propensity.least:g} is for at most {int(1.0 / min_propensity.least + 1e-9)} "
            f"arms of a set, since probabilities sum to 1; there are {arms:g}. Take at most {1.0 / arms:.4g}."
        )
    if not ends:
        return MinPropensityPrice(min_propensity=min_propensity, arms=arms, decisions=None, learning=None)
    begun = before if now is None else now
    points = np.array([begun, *(max(begun, end) for end in ends)])
    prices = price_of(np.array([before, *ends[:-1]]), dim)
    learning = sum(price * (b - a) for price, (a, b) in zip(prices.tolist(), pairwise(points.tolist()), strict=True))
    return MinPropensityPrice(
        min_propensity=min_propensity, arms=arms, decisions=round(points[-1] - begun), learning=float(learning)
    )
