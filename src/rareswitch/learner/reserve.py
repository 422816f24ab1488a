"""How unlike contexts are to those that a policy was learned from, and policies held in reserve for such contexts."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from rareswitch.core import TIE, BoolArray, FloatArray, IntArray, Sets, SetsLike, context_sets, inverse_root, whole
from rareswitch.errors import ParameterError
from rareswitch.learner.clocks import ModelGrowth, Novelty, ToTheHorizon
from rareswitch.learner.grids import lengths, whole_ends
from rareswitch.learner.state import State

__all__ = ["novelty"]

#: Of the horizon, by when the first of the policies in reserve is deployed anyway.
RELEASED = 0.5
#: Times as uncertain as decisions like those before: more is a change.
UNLIKE = 3.0
#: The same where only policies in reserve are left: those are for features that were never seen.
FAR_UNLIKE = 6.0
#: Times as uncertain that sets are novel: where nothing changes it stays below, and groups of users that were never
#: seen before exceed it many times over.
NOVEL = 2.0
#: Standard errors by which the mean must exceed it: a few odd sets are no change.
ERRORS = 3.0
#: A direction in which fewer decisions than this taught anything is hardly known.
KNOWN = 5.0
#: Decisions for each feature before which rare and new cannot be distinguished.
LEAST_SEEN = 10
#: How much must have been gathered of what is new before it is worth an update; see :meth:`Reserve._worth`.
ENOUGH = 4.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Uncertainty:
    """The uncertainty xᵀΛ⁻¹x of decisions, where Λ is the Gram matrix of those before and one more in each direction.

    It is the one measure of contexts unlike those before, and looks at features alone.
    """

    #: (p, d) such that ‖root·x‖² is the uncertainty of x.
    root: FloatArray
    #: The mean of decisions like those before.
    usual: float

    @classmethod
    def of(cls, gram: FloatArray, count: int, *, only_unknown: bool = False) -> "Uncertainty":
        """Beside ``count`` decisions with Σ xxᵀ (d, d): in all directions, or in those that are hardly known.

        >>> seen = Uncertainty.of(np.diag([80.0, 20.0, 0.0]), 100)
        >>> (seen.each(np.eye(3)) / seen.usual).round(1).tolist()
        [0.4, 1.6, 33.3]
        """
        weight = float(np.trace(gram)) / count or 1.0
        if not only_unknown:
            return cls(root=inverse_root(gram + weight * np.eye(len(gram))), usual=len(gram) / count)
        values, vectors = np.linalg.eigh(gram)
        unknown = values < KNOWN * weight * (1.0 - TIE)  # of plain arms they are counts, up to rounding
        # one decision more in each of them: of few decisions the mean is not well known
        usual = float((values[unknown] / weight + 1.0).sum()) / count
        return cls(root=vectors.T[unknown] / math.sqrt(weight), usual=usual)

    def each(self, features: FloatArray) -> FloatArray:
        """(…) of features (…, d)."""
        return np.asarray(np.square(features @ self.root.T).sum(axis=-1))

    def total(self, gram: FloatArray) -> float:
        """The sum over decisions with this Σ xxᵀ (d, d)."""
        return float(np.sum((self.root @ gram) * self.root))


def novelty(state: State, contexts: SetsLike, available: npt.ArrayLike | None = None) -> Novelty:
    """How uncertain the current policy's choices are on these sets, beside those that it was learned from.

    It is the mean :class:`Uncertainty` of the arms that the policy plays: 1 for decisions like those before, whatever
    the features. Rewards play no part.

    Parameters
    ----------
    state
        With the policy that decides now, and the sums that it was learned from.
    contexts, available
        Context sets (n, K, d) that it meets now, and their mask.

    Examples
    --------
    >>> from rareswitch.decisions import DecisionLog
    >>> from rareswitch.learner import Foresight
    >>> learner = Foresight(dim=2)
    >>> state = learner.begin()
    >>> x = np.random.default_rng(1).standard_normal((400, 3, 2)) * [1.0, 0.01]      # the second hardly varies
    >>> decisions = state.policy.decide(x, ids=range(400), seed=1)
    >>> log = DecisionLog.of(x, decisions, x[np.arange(400), decisions.arms, 0])
    >>> state = learner.next(state, learner.summarize(state, log))
    >>> novelty(state, x).unlike, novelty(state, x[:, :, ::-1]).unlike               # and then it does
    (False, True)
    """
    sets, count = context_sets(contexts, available), sum(stats.count for stats in state.sums)
    if not count:
        return Novelty(value=1.0, unlike=False)
    dim = sets.contexts.shape[2]  # without a level, which has no unit of the features
    uncertainty = Uncertainty.of(np.sum([stats.gram[:dim, :dim] for stats in state.sums], axis=0), count)
    policy = replace(state.policy, min_propensity=None, holdout=None)  # what it plays by its own choice
    shares = np.atleast_2d(policy.probabilities(Sets(sets.contexts, sets.available, False)))
    values = (shares * uncertainty.each(sets.contexts)).sum(axis=1) / uncertainty.usual
    value, error = float(values.mean()), float(values.std()) / math.sqrt(len(values))
    return Novelty(value=value, unlike=value - ERRORS * error > NOVEL)


@dataclass(frozen=True, kw_only=True)
class Reserve(ToTheHorizon):
    """Geometric batches, of whose ends the last ``reserve`` come late, so that they can come early if features change.

    Where nothing changes, the schedule is that of least cost Σ (b - a)/a over batches from a to b in which the last
    ``reserve`` policies are not deployed before shares 2^(-1), …, 2^(-1/reserve) of the horizon, evenly spaced in the
    exponent. A batch that ends early, for whatever reason, takes the place of the next of the policies that are not in
    reserve, and the rest is spread anew; where none of these is left it takes one from the reserve.

    It strikes when the decisions of the current policy are much more uncertain, by the features of the chosen arms
    under the Gram matrix that the policy was learned from, than decisions like those before would be, and when enough
    of them have come that an update now costs less than waiting.

    >>> clock = Reserve(horizon=30_000, policies=8, reserve=2, first=48)
    >>> clock.begin()
    (48, 103, 326, 1030, 3247, 10246, 6213, 8787)
    >>> clock.batch_sizes((10_246, 6213, 8787), batch=6, start=3200)         # the fifth batch ended early
    (11800, 6213, 8787)
    """

    #: Decisions of the first batch.
    first: int
    #: Policies in all, the first included.
    policies: int
    #: Those of them that are in reserve.
    reserve: int
    uses_features: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        policies = whole("policies", self.policies, high=self.horizon)
        if whole("reserve", self.reserve) > policies - 2:
            raise ParameterError(
                f"reserve must leave at least two of the policies to the schedule; got reserve={self.reserve} of "
                f"policies={policies}. Keep fewer back, or deploy more."
            )
        whole("first", self.first, high=self.horizon - policies + 1)

    def batch_sizes(self, planned: tuple[int, ...], *, batch: int, start: int) -> tuple[int, ...]:
        if batch > self.policies or start >= self.horizon:
            return ()
        if planned and start + sum(planned) == self.horizon:
            return planned  # the batch ended where it was to end
        ends, end = list[float](), float(start)
        for left in range(min(self.policies - batch, self.horizon - start - 1), 0, -1):
            end = float(self._next_end(np.array([end]), left)[0]) if end else float(self.first)
            ends.append(end)
        return lengths(whole_ends(ends, start=start, stop=self.horizon), start=start)

    def _next_end(self, start: FloatArray, left: int) -> FloatArray:
        """Where a batch ends that begins at ``start`` (n,), if the policy of the next is the first of ``left`` more.

        All ends have a least place, those that are not in reserve 0 and the run's T. The growth from here that some end
        needs, if all up to it grow alike, is needed at least; with no more than that the cost is least.
        """
        places = np.arange(1, left + 2)
        behind = left + 1 - places
        least = np.where(behind <= self.reserve, self.horizon * RELEASED ** (behind / self.reserve), 0.0)
        return np.asarray(start * ((least / start[:, None]) ** (1.0 / places)).max(axis=1))

    def due(self, progress: ModelGrowth, features: FloatArray, models: IntArray) -> int | None:
        after = np.flatnonzero(self._due(progress, features)[1:])
        return int(after[0]) + 1 if len(after) else None

    def early(self, progress: ModelGrowth) -> Novelty | None:
        if not self._due(progress, np.empty((0, len(progress.frozen[0]))))[0]:
            return None
        uncertainty, decisions = Uncertainty.of(progress.frozen[0], int(progress.counts[0])), int(progress.taught[0])
        times = uncertainty.total(progress.grams[0] - progress.frozen[0]) / (uncertainty.usual * decisions)
        return Novelty(value=times, unlike=True)

    def _due(self, progress: ModelGrowth, features: FloatArray) -> BoolArray:
        """(n + 1,) whether the next policy is due now, and after each of the decisions with these features (n, d)."""
        left, gram, known = len(progress.batch_sizes) - 1, progress.frozen[0], int(progress.counts[0])
        if left < 1 or known < LEAST_SEEN * len(gram):
            return np.zeros(len(features) + 1, dtype=np.bool_)
        decisions = int(progress.taught[0]) + np.arange(len(features) + 1)
        start = np.maximum(1.0, progress.start + decisions)
        next_batch = self._next_end(start, left - 1) - start

        def measured(*, only_unknown: bool = False) -> tuple[FloatArray, FloatArray]:
            """(n + 1,) each: the uncertainty of the decisions so far, and that of equally many like those before."""
            uncertainty = Uncertainty.of(gram, known, only_unknown=only_unknown)
            before = uncertainty.total(progress.grams[0] - gram)
            summed = before + np.cumsum(np.concatenate([[0.0], uncertainty.each(features)]))
            return summed, np.asarray(uncertainty.usual * decisions, dtype=np.float64)

        new, usual = measured(only_unknown=True)
        due = self._worth(new, usual, decisions, next_batch, UNLIKE)
        if left > self.reserve // 2:
            bar = UNLIKE if left > self.reserve else FAR_UNLIKE
            also = self._worth(*measured(), decisions, next_batch, bar)
            due |= also & (new <= UNLIKE * usual)  # where something is new, there must be enough of that
        return due

    def _worth(
        self, summed: FloatArray, usual: FloatArray, decisions: IntArray, next_batch: FloatArray, bar: float
    ) -> BoolArray:
        """Whether an update now costs less than waiting; all (n,).

        Parameters
        ----------
        summed, usual
            The uncertainty of the decisions: one that nothing is known of counts 1. What it would be of decisions like
            those before.
        decisions
            Their number.
        next_batch
            Decisions of the batch that would begin now.

        Of m decisions of a new kind each costs u, and after an update on them about c/m; with N more of them to come,
        waiting pays until m·u·m = c·N. What came beyond the usual is m·u; m lies between that, as u ≤ 1, and all
        decisions of the batch, of which those before the change are many: the geometric mean is taken.
        """
        more = np.maximum(0.0, summed - usual)
        return np.asarray((summed > bar * usual) & (more * np.sqrt(more * decisions) >= ENOUGH * next_batch))
