"""Estimates of what a policy would have earned, of the decisions of another: IPS, SNIPS and DR.

Each takes the columns of some decisions of one frozen policy: rewards r, weights w = π(a | x)/μ(a | x) of the chosen
arms, and for the doubly robust one a model's predictions of the chosen arm, q̂(x, a), and of the candidate policy,
v(x) = Σ π(a | x) q̂(x, a).
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from rareswitch.core import BoolArray, FloatArray, IntArray, Stats, uniforms_at
from rareswitch.decisions import DecisionLog
from rareswitch.errors import EmptySetError, ParameterError
from rareswitch.evaluation.calibration import ArmTally, Calibration
from rareswitch.evaluation.candidates import Candidate, arm_numbers, played, since_of
from rareswitch.evaluation.support import MOST_WEIGHT, Support
from rareswitch.log import Source
from rareswitch.policy import Policy

__all__ = ["ESTIMATORS", "Estimator", "score"]

Estimator = Literal["ips", "snips", "dr"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)
#: Weights that differ from 1 by less are 1, and propensities that differ so are the same.
_ROUNDING = 1e-9


class Columns(NamedTuple):
    """Some decisions of one policy, as a candidate sees them; all (n,)."""

    rewards: FloatArray
    #: w, the candidate's probability of the chosen arm over the propensity.
    weights: FloatArray
    #: q̂ of the chosen arm; 0 where there is no model.
    predicted: FloatArray
    #: v, Σ π(a | x) q̂(x, a) over the offered arms.
    expected: FloatArray


def row_scores(name: Estimator, columns: Columns, ratio: tuple[float, float] | None = None) -> FloatArray:
    """(n,) scores of rows, whose mean is the estimate of that name and whose spread is its error.

    Where all weights are 1 the candidate is the policy that decided, and its value is what was earned, by every
    estimator. SNIPS is linearised at the means of w·r and w, by default of these rows; NaN where no row has a weight.

    >>> columns = Columns(*map(np.array, ([1.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.5] * 3, [0.5] * 3)))
    >>> [round(float(row_scores(name, columns).mean()), 6) for name in ESTIMATORS]
    [1.0, 1.0, 1.0]
    """
    rewards, weights, predicted, expected = columns
    if np.abs(weights - 1.0).max() <= _ROUNDING:
        return rewards
    if name == "dr":
        return np.asarray(expected + weights * (rewards - predicted))
    if name == "ips":
        return np.asarray(weights * rewards)
    above, below = ratio or (float(weights @ rewards) / len(rewards), float(weights.sum()) / len(rewards))
    if below <= 0.0:
        return np.full(len(rewards), np.nan)
    return np.asarray(above / below + weights * (rewards - above / below) / below)


#: λ of the ridge regression, as in learners.
RIDGE = 1.0


class Model(Protocol):
    """Predicts rewards; it is shown all decisions first."""

    def add(self, log: DecisionLog) -> None:
        """Learn from some decisions."""

    def predict(self, log: DecisionLog) -> FloatArray:
        """(n, K) what the arms of some decisions would have earned; where none was offered it says nothing."""


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
        self.dim, self._batches = dim, batches
        #: By batch and half.
        self._sums: dict[tuple[int, int], Stats] = {}

    def add(self, log: DecisionLog) -> None:
        assert log.features is not None
        known, half = ~np.isnan(log.rewards), halves(log)
        for batch in log.present:
            for side in (0, 1):
                at = known & (half == side) & (log.batches == batch)
                if at.any():
                    x = np.column_stack([log.features[at], np.ones(int(at.sum()))])
                    rewards = log.rewards[at]
                    part = Stats.of(x, rewards, shift=_level(rewards))
                    own = self._sums.get((batch, side))
                    self._sums[batch, side] = part if own is None else own + part

    def predict(self, log: DecisionLog) -> FloatArray:
        assert log.contexts is not None
        rewards, half = np.empty(log.available.shape), halves(log)
        for batch in log.present:
            pair = [self._models[batch, side] for side in (0, 1)]
            theta, levels = np.array([own for own, _ in pair]), np.array([own[-1] + level for own, level in pair])
            at: slice | BoolArray = slice(None) if len(log.batch_names) == 1 else log.batches == batch
            own = half[at]
            rewards[at] = np.einsum("nkd,nd->nk", log.contexts[at], theta[own, :-1]) + levels[own, None]
        return rewards

    @cached_property
    def _models(self) -> dict[tuple[int, int], tuple[FloatArray, float]]:
        """By batch and half, the model of the batches before and the other half, with the level that is to be added.

        Asked for when all decisions were added.
        """
        before: Stats | None = None
        models, penalty = {}, np.diag(np.append(np.full(self.dim, RIDGE), 0.0))
        for batch in range(self._batches):
            halves = [self._sums.get((batch, side)) for side in (0, 1)]
            for side, other in enumerate(reversed(halves)):
                theta, total = np.zeros(self.dim + 1), _added(before, other)
                if total is not None:  # the level is not drawn to 0, or it would matter what was taken off before
                    theta = np.asarray(np.linalg.solve(total.gram + penalty, total.moment), dtype=np.float64)
                models[batch, side] = theta, 0.0 if total is None else total.shift
            before = _added(before, *halves)
        return models


def _added(*parts: Stats | None) -> Stats | None:
    """The sum of those that are there."""
    return reduce(add, known) if (known := [part for part in parts if part is not None]) else None


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
        names, codes = log.arm_codes
        chosen = codes[np.arange(len(log)), log.arm_indices]
        cells = (chosen * self._batches + log.batches) * 2 + half
        size = len(names) * self._batches * 2
        counts = np.bincount(cells[known], minlength=size).reshape(-1, self._batches, 2)
        sums = np.bincount(cells[known], log.rewards[known], minlength=size).reshape(-1, self._batches, 2)
        for code, name in enumerate(names):
            self._counts[name] += counts[code]
            self._sums[name] += sums[code]

    def predict(self, log: DecisionLog) -> FloatArray:
        names, codes = log.arm_codes
        means = np.stack([self._means(name) for name in names])
        return np.asarray(means[codes, log.batches[:, None], halves(log)[:, None]])

    def _means(self, name: str) -> FloatArray:
        """(batches, 2) the mean of an arm for each half of each batch; that of all arms where it has none.

        It is not drawn to that of all arms: what an arm earns must not depend on the rewards of others.
        """
        if name not in self._seen:
            totals = (np.sum([*cells.values()], axis=0) for cells in (self._sums, self._counts))
            level = _ratio(*map(_usable, totals))
            counts, sums = _usable(self._counts[name]), _usable(self._sums[name])
            self._seen[name] = np.where(counts > 0, _ratio(sums, counts), level)
        return self._seen[name]


def _usable(cells: FloatArray) -> FloatArray:
    """(batches, 2) of a count by cell: that of all batches before, and of the other half."""
    before = np.cumsum(cells.sum(axis=1)) - cells.sum(axis=1)
    return np.asarray(before[:, None] + cells[:, ::-1])


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.asarray(np.divide(above, below, out=np.zeros(above.shape), where=below > 0))


#: Predictions (n, K), or a function of contexts (n, K, d), None in logs without, and available (n, K) to these.
RewardModel = npt.ArrayLike | Callable[[FloatArray | None, BoolArray], npt.ArrayLike]


class Given:
    """Predictions that the caller brings: an array (n, K), or a function of contexts (n, K, d) and available (n, K)."""

    def __init__(self, model: RewardModel) -> None:
        self._model = model

    def add(self, log: DecisionLog) -> None:
        """It learns nothing."""

    def predict(self, log: DecisionLog) -> FloatArray:
        numbers = self._model(log.contexts, log.available) if callable(self._model) else self._model
        rewards = arm_numbers("model", numbers, log)
        if not np.isfinite(rewards[log.available]).all():
            raise ParameterError("model must predict finite rewards for all offered arms.")
        return np.where(log.available, rewards, 0.0)


ReadProgress = Callable[[int, int], None]
Texts = NDArray[np.str_]
_GIVE = "Give the rewards of its decisions, one number each, or none where it is not known."


@dataclass(frozen=True, eq=False, kw_only=True)
class Scored:
    """A candidate, by decision with a reward; weights of decisions that are not for it are 0."""

    #: (n,) w of the chosen arms.
    weights: FloatArray
    #: (n,) Σ π q̂.
    expected: FloatArray
    #: (n,) which decisions are for it.
    applies: BoolArray
    #: By batch and group, of all decisions that are for it.
    supports: Mapping[tuple[int, str], Support]
    #: What other decisions do that makes them say nothing about it.
    otherwise: str
    #: ``array``, or ``policy`` that the log does not know: where nothing tells what it was learned from.
    unknown: Literal["", "array", "policy"]

    def by_batch(self, group: str | None = None) -> dict[int, Support]:
        """The supports of batches with decisions that are for it, of a group or of all."""
        sums: dict[int, Support] = {}
        for (batch, label), support in sorted(self.supports.items(), key=lambda item: item[0]):
            if group in (None, label):
                sums[batch] = sums[batch] + support if batch in sums else support
        return sums


@dataclass(frozen=True, eq=False, kw_only=True)
class Scores:
    """The result of one pass over a log: columns of the decisions with a reward of which all arms are known.

    The rows of a batch stand together, in the order of the batches.
    """

    batch_names: tuple[str, ...]
    candidates: Mapping[str, Scored]
    #: (n,) what they earned, q̂ of the chosen arms, the batch, seconds since 1970 or NaN, and the group.
    rewards: FloatArray
    predicted: FloatArray
    batches: IntArray
    times: FloatArray
    labels: Texts
    #: Decisions in all, of which all offered arms are known, and of these without a reward but with an open window.
    decisions: int
    known: int
    waiting: int
    #: Of these with a reward that came after its window.
    expired: int
    #: None where propensities were estimated, or nothing tells.
    calibration: Calibration | None
    #: What is wrong with recorded propensities.
    mismatch: str

    @property
    def rewarded(self) -> int:
        """Decisions with a reward."""
        return len(self.rewards)

    def rows_of(self, batch: int, which: BoolArray | None = None) -> slice | IntArray:
        """The rows of a batch, of some decisions (n,) or of all."""
        begin, end = np.searchsorted(self.batches, [batch, batch + 1]).tolist()
        if which is None or which[begin:end].all():
            return slice(begin, end)
        rows: IntArray = begin + np.flatnonzero(which[begin:end])
        return rows

    def columns(self, name: str, batch: int, which: BoolArray) -> Columns:
        """Those of a candidate, of the decisions of a batch that are some of these (n,)."""
        scored, rows = self.candidates[name], self.rows_of(batch, which)
        return Columns(self.rewards[rows], scored.weights[rows], self.predicted[rows], scored.expected[rows])


def score(
    source: Source,
    candidates: Mapping[str, Candidate],
    *,
    model: RewardModel | None = None,
    progress: ReadProgress | None = None,
    groups: Callable[[DecisionLog], Texts] | None = None,
) -> Scores:
    """Go through a log: once for the model, where it is learned, and once for the candidates.

    Parameters
    ----------
    model
        Predictions (n, K), or a function to them; by default they are learned from the log itself.
    progress
        Called with the number of decisions that were read, and how many there are: 0 in the first pass.
    groups
        Names the group (n,) of each decision, by which supports are kept apart.
    """
    batches = len(source.batch_names)
    own: Model = ArmMeans(batches) if source.dim is None else CrossFitted(source.dim, batches)
    predictor = own if model is None else Given(model)
    decisions = known = waiting = expired = 0
    for log in source.chunks(contexts=source.dim is None):
        decisions += len(log)
        if model is None:
            predictor.add(log)
        if progress is not None:
            progress(0, decisions)
    if not decisions:
        raise EmptySetError("this log has no decisions: there is nothing to evaluate.")
    tally, mismatch, parts = ArmTally(), "", list[tuple[FloatArray, FloatArray, IntArray, FloatArray, Texts]]()
    scorers = {name: _Scorer(name, candidate) for name, candidate in candidates.items()}
    for log in source.chunks(contexts=True):
        count = len(log)
        known += count
        logging, wrong = logging_probabilities(log)
        mismatch = mismatch or wrong
        tally.add(log, logging)
        times = np.full(count, np.nan) if log.times is None else log.times
        rewarded = ~np.isnan(log.rewards)
        waiting += 0 if log.waiting is None else int(log.waiting.sum())
        expired += 0 if log.expired is None else int(log.expired.sum())
        if rewarded.any():
            predicted, at = predictor.predict(log), slice(None) if rewarded.all() else rewarded
            labels = np.zeros(count, dtype=np.str_) if groups is None else groups(log)
            chosen = predicted[np.arange(count), log.arm_indices]
            parts.append((log.rewards[at], chosen[at], log.batches[at], times[at], labels[at]))
            cells = _cells(log.batches[at], labels[at])
            for scorer in scorers.values():
                scorer.add(log, predicted, logging, at, cells)
        if progress is not None:
            progress(known, decisions)
    if not known:
        raise ParameterError(
            f"of none of the {decisions} decisions of this log it is known which arms were offered, so no other policy "
            "can be evaluated. Keep the context sets of a share of decisions: create(…, context_sample_rate=0.1), a "
            "column contexts."
        )
    if not parts:
        raise ParameterError(
            f"none of the {known} decisions of this log has a reward: nothing can be evaluated. "
            + ("Their windows are still open: wait, or say as of when, trial.logged(now=…)." if waiting else _GIVE)
        )
    calibration = None if source.estimated else tally.calibration()  # estimated ones fit by construction
    if calibration is not None and calibration.stops:
        mismatch = mismatch or calibration.words
    rewards, chosen, numbers, when, label = (np.concatenate(column) for column in zip(*parts, strict=True))
    order: slice | IntArray = slice(None) if (np.diff(numbers) >= 0).all() else np.argsort(numbers, kind="stable")
    return Scores(
        batch_names=tuple(source.batch_names),
        candidates={name: scorer.scored(order, source) for name, scorer in scorers.items()},
        rewards=rewards[order],
        predicted=chosen[order],
        batches=numbers[order],
        times=when[order],
        labels=label[order],
        decisions=decisions,
        known=known,
        waiting=waiting,
        expired=expired,
        calibration=calibration,
        mismatch=mismatch,
    )


def _cells(batches: IntArray, labels: Texts) -> dict[tuple[int, str], BoolArray | None]:
    """Which decisions (n,) are in each batch and group; None: all."""
    if (labels == "").all():
        present = np.unique(batches).tolist()
        return {(batch, ""): None if len(present) == 1 else batches == batch for batch in present}
    pairs = sorted({*zip(batches.tolist(), labels.tolist(), strict=True)})
    return {(batch, label): (batches == batch) & (labels == label) for batch, label in pairs}


class _Scorer:
    """Collects the scores of one candidate."""

    def __init__(self, name: str, candidate: Candidate) -> None:
        self._name, self._candidate, self._otherwise = name, candidate, ""
        self._parts: list[tuple[FloatArray, FloatArray, BoolArray]] = []
        self._supports: dict[tuple[int, str], Support] = {}
        #: The batches with decisions that showed what it would, and have no reward.
        self._unrewarded: set[int] = set()

    def add(
        self,
        log: DecisionLog,
        predicted: FloatArray,
        logging: FloatArray | None,
        rewarded: BoolArray | slice,
        cells: Mapping[tuple[int, str], BoolArray | None],
    ) -> None:
        """Score some decisions; those without a reward are left out at the end, as candidates may be given by row."""
        probabilities, applies, otherwise = played(self._name, self._candidate, log)
        self._otherwise = otherwise or self._otherwise
        if applies is not None and not applies.any():
            nothing = np.zeros(len(probabilities))[rewarded]
            self._parts.append((nothing, nothing, applies[rewarded]))
            return
        did = isinstance(self._candidate, str) and self._candidate == "logged"
        shares = probabilities[np.arange(len(probabilities)), log.arm_indices]
        if not isinstance(rewarded, slice):
            self._unrewarded |= {*log.batches[(shares > 0.0) & ~rewarded].tolist()}
        weights = (shares if did else shares / log.propensities)[rewarded]
        weights = np.where(weights > MOST_WEIGHT, 0.0, weights)
        mine = np.ones(len(weights), dtype=np.bool_) if applies is None else applies[rewarded]
        expected = np.einsum("nk,nk->n", probabilities, predicted)[rewarded]
        self._parts.append((weights, expected, mine))
        probabilities, available = probabilities[rewarded], log.available[rewarded]
        behavior = probabilities if did else None if logging is None else logging[rewarded]
        for cell, members in cells.items():
            at: slice | BoolArray = (
                slice(None) if members is None and applies is None else mine if members is None else mine & members
            )
            support = Support.of(
                weights[at],
                candidate=probabilities[at],
                logging=None if behavior is None else behavior[at],
                available=available[at],
            )
            if support.count:
                self._supports[cell] = self._supports[cell] + support if cell in self._supports else support

    def scored(self, order: slice | IntArray, source: Source) -> Scored:
        """The scored rows of a source, in this order."""
        weights, expected, applies = (np.concatenate(column)[order] for column in zip(*self._parts, strict=True))
        foreign = isinstance(self._candidate, Policy) and since_of(self._candidate, source) is None
        return Scored(
            weights=weights,
            expected=expected,
            applies=applies,
            supports={
                cell: replace(support, unrewarded=cell[0] in self._unrewarded)
                for cell, support in self._supports.items()
            },
            otherwise=self._otherwise,
            unknown="array" if isinstance(self._candidate, (np.ndarray, list)) else "policy" if foreign else "",
        )


def logging_probabilities(log: DecisionLog) -> tuple[FloatArray | None, str]:
    """μ (n, K), the probabilities of all offered arms under the policies that decided, where they are known.

    With it, what is wrong with recorded propensities, where they are not those of the policies.
    """
    behavior = log.policy_probs()
    if behavior is None:
        return log.behavior_probs, ""
    own = behavior[np.arange(len(behavior)), log.arm_indices]
    off = np.abs(own - log.propensities)
    if off.max() <= _ROUNDING:
        return behavior, ""
    row = int(off.argmax())
    policy = log.batch_names[log.batches[row]]
    return behavior, (
        f"recorded propensities are not those of the policy that decided: where {log.propensities[row]:.6g} is "
        f"recorded, policy {policy[:12]} chooses this arm with {own[row]:.6g}; {int((off > _ROUNDING).sum())} of "
        f"{len(log)} decisions differ so. They were changed, or another policy decided. Find out which, and correct "
        "the log."
    )
