"""What a model says arms would have earned, made of other decisions than those that it speaks of.

Rows of one half of a batch are predicted from all batches before it and from the other half of the same batch; halves
are told by a hash of the id. What comes later is never looked at: policies of later batches depend on these rewards.
"""

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from rareswitch.core import FloatArray, IntArray, Stats, uniforms_at
from rareswitch.errors import ParameterError, ShapeError
from rareswitch.log import DecisionLog


def arm_numbers(who: str, given: Any, log: DecisionLog) -> FloatArray:
    """(n, K) one for each arm of each decision.

    >>> log = DecisionLog(arm_indices=[0], propensities=[0.5], rewards=[1.0], arms=["a", "b"])
    >>> arm_numbers("model", [[0.1, 0.2]], log)
    array([[0.1, 0.2]])
    """
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{who} must give numbers; got {given!r:.60}.") from None
    if found.shape != log.available.shape:
        raise ShapeError(
            f"{who} must give a number for each arm, shape {log.available.shape}; got shape {found.shape}."
        )
    return found


#: λ of the ridge regression, as in learners.
RIDGE = 1.0


class Predicted(NamedTuple):
    """q̂ of some decisions."""

    #: (n,) of the chosen arm.
    chosen: FloatArray
    #: (n, K) of all; what stands where no arm was offered says nothing.
    arms: FloatArray


class Model(Protocol):
    """Predicts rewards; it is shown all decisions first."""

    def add(self, log: DecisionLog) -> None:
        """Learn from some decisions."""

    def predict(self, log: DecisionLog) -> Predicted:
        """What the arms of some decisions would have earned."""


def halves(log: DecisionLog) -> IntArray:
    """(n,) the half, 0 or 1, of each decision."""
    return np.asarray(uniforms_at(0, "cross-fit", log.ids) < 0.5).astype(np.int64)


class CrossFitted:
    """The linear model of learners, with a level: ridge regression of rewards on the vectors of chosen arms.

    Parameters
    ----------
    dim
        Features of an arm.
    batches
        How many there are.
    """

    def __init__(self, dim: int, batches: int) -> None:
        self.dim = dim
        self._sums = [[Stats.zero(dim + 1), Stats.zero(dim + 1)] for _ in range(batches)]
        self._fitted: dict[tuple[int, int], tuple[FloatArray, float]] = {}

    def add(self, log: DecisionLog) -> None:
        assert log.features is not None
        known, half = ~np.isnan(log.rewards), halves(log)
        for batch in log.present:
            for side in (0, 1):
                at = known & (half == side) & (log.batches == batch)
                if at.any():
                    x = np.column_stack([log.features[at], np.ones(int(at.sum()))])
                    rewards = log.rewards[at]
                    self._sums[batch][side] += Stats.of(x, rewards, shift=_level(rewards))

    def predict(self, log: DecisionLog) -> Predicted:
        assert log.contexts is not None
        count, arms, _ = log.contexts.shape
        flat, half = log.contexts.reshape(count * arms, self.dim), halves(log)
        found = np.empty((count, arms))
        for batch in log.present:
            pair = [self._coefficients(batch, side) for side in (0, 1)]
            at: Any = slice(None) if len(log.batch_names) == 1 else log.batches == batch
            rows = flat if isinstance(at, slice) or at.all() else log.contexts[at].reshape(-1, self.dim)
            second = half[at] == 1
            values, others = ((rows @ one[:-1]).reshape(-1, arms) for one, _ in pair)
            np.copyto(values, others, where=second[:, None])
            levels = [one[-1] + level for one, level in pair]
            found[at] = values + np.where(second, levels[1], levels[0])[:, None]
        return Predicted(found[np.arange(count), log.arm_indices], found)

    @cached_property
    def _before(self) -> list[Stats]:
        """(B,) the sums of all batches before each; asked for when all decisions were added."""
        found = [Stats.zero(self.dim + 1)]
        for one, other in self._sums[:-1]:
            found.append(found[-1] + one + other)
        return found

    def _coefficients(self, batch: int, side: int) -> tuple[FloatArray, float]:
        """Of the model for one half of a batch, with the level that is to be added."""
        if (batch, side) not in self._fitted:
            total = self._before[batch] + self._sums[batch][1 - side]
            found: FloatArray = np.zeros(self.dim + 1)
            if total.count:  # the level is not drawn to 0, or it would matter what was taken off before sums were made
                penalty = np.diag(np.append(np.full(self.dim, RIDGE), 0.0))
                found = np.asarray(np.linalg.solve(total.gram + penalty, total.moment), dtype=np.float64)
            self._fitted[batch, side] = found, total.shift
        return self._fitted[batch, side]


def _level(rewards: FloatArray) -> float:
    """Taken off before squares are summed, so that a high level costs no digits."""
    return float(np.median(rewards))


class ArmMeans:
    """The mean reward of each arm, for logs without vectors."""

    def __init__(self, batches: int) -> None:
        self._batches = batches
        #: By arm: (batches, 2 halves) of counts and of sums.
        self._counts: defaultdict[str, FloatArray] = defaultdict(lambda: np.zeros((batches, 2)))
        self._sums: defaultdict[str, FloatArray] = defaultdict(lambda: np.zeros((batches, 2)))
        self._seen: dict[str, FloatArray] = {}

    def add(self, log: DecisionLog) -> None:
        known, half = ~np.isnan(log.rewards), halves(log)
        names, codes = _arm_codes(log)
        chosen = codes[np.arange(len(log)), log.arm_indices]
        cells = (chosen * self._batches + log.batches) * 2 + half
        size = len(names) * self._batches * 2
        counts = np.bincount(cells[known], minlength=size).reshape(-1, self._batches, 2)
        sums = np.bincount(cells[known], log.rewards[known], minlength=size).reshape(-1, self._batches, 2)
        for code, name in enumerate(names):
            self._counts[name] += counts[code]
            self._sums[name] += sums[code]

    def predict(self, log: DecisionLog) -> Predicted:
        names, codes = _arm_codes(log)
        means = np.stack([self._means(name) for name in names])
        found = means[codes, log.batches[:, None], halves(log)[:, None]]
        return Predicted(found[np.arange(len(log)), log.arm_indices], found)

    def _means(self, name: str) -> FloatArray:
        """(batches, 2) the mean of an arm for each half of each batch; that of all arms where it has none.

        It is not drawn to that of all arms: what an arm earns must not hang on the rewards of others.
        """
        if name not in self._seen:
            level = _ratio(_usable(sum(self._sums.values())), _usable(sum(self._counts.values())))
            counts, sums = _usable(self._counts[name]), _usable(self._sums[name])
            self._seen[name] = np.where(counts > 0, _ratio(sums, counts), level)
        return self._seen[name]


def _usable(cells: Any) -> FloatArray:
    """(batches, 2) of a count by cell: that of all batches before, and of the other half."""
    before = np.cumsum(cells.sum(axis=1)) - cells.sum(axis=1)
    return np.asarray(before[:, None] + cells[:, ::-1])


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.asarray(np.divide(above, below, out=np.zeros(above.shape), where=below > 0))


def _arm_codes(log: DecisionLog) -> tuple[tuple[str, ...], IntArray]:
    """Arms by name, or by place where they have none; (n, K), what is not offered has the code 0."""
    if log.arms is not None and log.codes is not None:
        return log.arms, np.where(log.available, log.codes, 0)
    arms = log.available.shape[1]
    return tuple(map(str, range(arms))), np.broadcast_to(np.arange(arms), log.available.shape)


class Given:
    """Predictions that the caller brings: an array (n, K), or a function of contexts (n, K, d) and available (n, K)."""

    def __init__(self, given: FloatArray | Callable[[Any, Any], Any]) -> None:
        self.given = given

    def add(self, log: DecisionLog) -> None:
        """It learns nothing."""

    def predict(self, log: DecisionLog) -> Predicted:
        told = self.given(log.contexts, log.available) if callable(self.given) else self.given
        found = arm_numbers("model", told, log)
        if not np.isfinite(found[log.available]).all():
            raise ParameterError("model must predict finite rewards for all offered arms.")
        found = np.where(log.available, found, 0.0)
        return Predicted(found[np.arange(len(log)), log.arm_indices], found)
