"""A least probability for arms, so that the log can tell what other policies would have earned."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rareswitch.core import BoolArray, FloatArray, IntArray, Sets, arm_flags, kind, number, sealed
from rareswitch.errors import ParameterError
from rareswitch.policy.samplers import raise_to

__all__ = ["MinPropensity", "least_probability"]


@kind("min_propensity")
@dataclass(frozen=True, kw_only=True)
class MinPropensity:
    """Every offered arm, or every one of some, is played with at least this probability, whatever else is believed.

    It reaches arms that eliminations removed. With m protected arms in a set, p becomes (1 - m·least)·p, plus ``least``
    for each of the m: a share m·least of the decisions is spread evenly over them. Propensities stay exact.

    >>> from rareswitch.policy import Policy, PosteriorDraws
    >>> policy = Policy(dim=1, sampler=PosteriorDraws(draws=[[1.0]]), min_propensity=MinPropensity(least=0.02))
    >>> policy.probabilities([[3.0], [1.0], [2.0]]).round(6).tolist()
    [0.96, 0.02, 0.02]
    """

    #: Above 0. A set may have at most 1/least protected arms.
    least: float
    #: The ids of the arms that it is for; None: every arm that is offered.
    arms: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "least", least_probability("least, the minimum propensity of an arm,", self.least))
        if self.arms is None:
            return
        ids = self.arms
        is_list = isinstance(ids, Sequence) and not isinstance(ids, (str, bytes)) and len(ids) > 0
        if not is_list or not all(isinstance(name, (str, int)) and not isinstance(name, bool) for name in ids):
            raise ParameterError(
                f"arms of a minimum propensity must be a list of ids of arms, at least one; got {ids!r:.60}. Leave "
                "them out to protect every arm that is offered."
            )
        arms = tuple(sorted(map(str, ids)))  # in one order: equal values are equal policies
        if len(set(arms)) < len(arms):
            raise ParameterError(f"arms of a minimum propensity must be different; got {', '.join(arms):.100}.")
        object.__setattr__(self, "arms", arms)

    def __str__(self) -> str:
        return f"{self.least:g} for {'every offered arm' if self.arms is None else ', '.join(self.arms)}"

    def of_names(self, names: Sequence[Sequence[Hashable]], width: int) -> BoolArray | None:
        """(n, width) where the protected arms stand, of the ids of the arms of each set; None: all are."""
        if self.arms is None:
            return None
        protected = np.zeros((len(names), width), dtype=np.bool_)
        for at, ids in enumerate(names):
            protected[at, : len(ids)] = [str(name) in self.arms for name in ids]
        return sealed(protected)

    def of_codes(self, arms: Sequence[str] | None, codes: IntArray | None) -> BoolArray | None:
        """(n, K) the same, of ids and of which of them stands where (n, K), -1 for none: as logs keep them.

        >>> MinPropensity(least=0.1, arms=("b",)).of_codes(("a", "b"), np.array([[1, 0], [0, -1]])).tolist()
        [[True, False], [False, False]]
        """
        if self.arms is None:
            return None
        if arms is None or codes is None:
            raise ParameterError(
                f"the minimum propensity is for the arms {', '.join(self.arms):.100}, and the arms of these "
                f"decisions have no ids: "
                "where they stand is not known. Log the ids of all offered arms."
            )
        protected = np.array([arm in self.arms for arm in arms] + [False])  # the last is what -1 looks up
        return sealed(protected[codes])

    def raised(self, sets: Sets, probabilities: FloatArray, protected: ArrayLike | None) -> FloatArray:
        """(n, K) the raised probabilities; ``protected`` says where its arms are, if it is not for all."""
        which = sets.available if self.arms is None else self._mask(sets, protected)
        raised = np.empty(sets.available.shape)
        crowded = raise_to(probabilities, sets.available, which, self.least, raised)
        if crowded >= 0:
            count = int((which[crowded] & sets.available[crowded]).sum())
            raise ParameterError(
                f"a minimum propensity of {self.least:g} is for at most {int(1.0 / self.least + 1e-9)} arms of a set, "
                f"since probabilities sum to 1; set {crowded} offers {count} of them. Offer fewer, or take at "
                f"most {1.0 / count:.4g}."
            )
        return raised

    def _mask(self, sets: Sets, protected: ArrayLike | None) -> BoolArray:
        shape = sets.available.shape[1:] if sets.single else sets.available.shape
        if protected is None:
            raise ParameterError(
                f"protected must be given: this policy has a minimum propensity for the arms "
                f"{', '.join(self.arms or ()):.100}, and "
                f"needs their positions: booleans of shape {shape}. Requests of records, and experiments, take them "
                "from the ids of arms."
            )
        return arm_flags("protected", protected, shape).reshape(sets.available.shape)


def least_probability(name: str, value: float) -> float:
    """A probability that can be a minimum propensity."""
    return number(name, value, low=0.0, high=1.0, open_low=True)
