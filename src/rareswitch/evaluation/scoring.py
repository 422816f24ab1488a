"""One way through a log: what candidates would have done, what a model predicts, how well the log supports them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rareswitch.core import BoolArray, FloatArray, IntArray
from rareswitch.errors import EmptySetError, ParameterError
from rareswitch.evaluation.calibration import ArmTally
from rareswitch.evaluation.candidates import Candidate, played, policy_probabilities
from rareswitch.evaluation.estimators import Columns
from rareswitch.evaluation.models import ArmMeans, CrossFitted, Given, Model
from rareswitch.evaluation.support import MOST_WEIGHT, Support
from rareswitch.log import DecisionLog, Source

ReadProgress = Callable[[int, int], None]
#: How far a recorded propensity may be from that of its policy, as rounding may have it.
_ROUNDING = 1e-9


@dataclass(eq=False)
class Scored:
    """A candidate, by decision; decisions that are not for it are left out."""

    name: str
    #: By batch, of all decisions that are for it; None where a batch has none.
    supports: list[Support | None]
    #: What other decisions do that makes them say nothing about it.
    otherwise: str = ""
    #: Whether it was given by row, so that nothing tells what it was learned from.
    given: bool = False
    _weights: list[FloatArray] = field(default_factory=list)
    _predicted: list[FloatArray] = field(default_factory=list)
    _expected: list[FloatArray] = field(default_factory=list)
    _applies: list[BoolArray] = field(default_factory=list)

    @cached_property
    def weights(self) -> FloatArray:
        """(n,) w of all decisions; 0 where they are not for it."""
        return np.concatenate(self._weights)

    @cached_property
    def predicted(self) -> FloatArray:
        """(n,) q̂ of the chosen arms."""
        return np.concatenate(self._predicted)

    @cached_property
    def expected(self) -> FloatArray:
        """(n,) Σ π q̂."""
        return np.concatenate(self._expected)

    @cached_property
    def applies(self) -> BoolArray:
        """(n,) which decisions are for it."""
        return np.concatenate(self._applies)


@dataclass(eq=False)
class Scores:
    """What came of one way through a log: columns of the decisions with a reward of which all arms are known."""

    batch_names: tuple[str, ...]
    candidates: dict[str, Scored]
    tally: ArmTally
    #: Decisions in all, of which all offered arms are known, and of these with a reward.
    decisions: int = 0
    known: int = 0
    rewarded: int = 0
    #: Of those without one, those whose window is open.
    waiting: int = 0
    #: What is wrong with recorded propensities, where they are not those of the policies.
    mismatch: str = ""
    _rewards: list[FloatArray] = field(default_factory=list)
    _batches: list[IntArray] = field(default_factory=list)
    _times: list[FloatArray] = field(default_factory=list)

    @cached_property
    def rewards(self) -> FloatArray:
        """(n,) what they earned."""
        return np.concatenate(self._rewards)

    @cached_property
    def batches(self) -> IntArray:
        """(n,) the batch of each."""
        return np.concatenate(self._batches)

    @cached_property
    def times(self) -> FloatArray:
        """(n,) seconds since 1970, NaN where they are not known."""
        return np.concatenate(self._times)

    def columns(self, name: str, which: BoolArray) -> Columns:
        """Those of a candidate, of some decisions (n,)."""
        scored = self.candidates[name]
        return Columns(self.rewards[which], scored.weights[which], scored.predicted[which], scored.expected[which])


def score(
    source: Source, candidates: Mapping[str, Candidate], *, model: Any = None, progress: ReadProgress | None = None
) -> Scores:
    """Go through a log: once for the model, where it is learned, and once for the candidates.

    Parameters
    ----------
    model
        Predictions (n, K), or a function to them; by default they are learned from the log itself.
    progress
        Called with the number of decisions that were read, and how many there are: 0 in the first pass.
    """
    batches, names = len(source.batch_names), tuple(source.batch_names)
    predictor: Model = Given(model) if model is not None else own_model(source)
    decisions = 0
    for log in source.chunks(contexts=source.dim is None):
        decisions += len(log)
        if model is None:
            predictor.add(log)
        if progress is not None:
            progress(0, decisions)
    if not decisions:
        raise EmptySetError("this log has no decisions: there is nothing to evaluate.")
    supports: list[Support | None] = [None] * batches
    scores = Scores(names, {name: Scored(name, [*supports]) for name in candidates}, ArmTally(), decisions=decisions)
    for log in source.chunks(contexts=True):
        scores.known += len(log)
        logging, mismatch = logging_probabilities(source, log)
        scores.mismatch = scores.mismatch or mismatch
        scores.tally.add(log, logging)
        if log.times is not None:
            scores.waiting += int((np.isnan(log.rewards) & (log.times > source.open_from)).sum())
        _add(scores, candidates, predictor, log, logging)
        if progress is not None:
            progress(scores.known, decisions)
    if not scores.known:
        raise ParameterError(
            f"of none of the {decisions} decisions of this log it is known which arms were offered, so no other policy "
            "can be evaluated. Keep the context sets of a share of decisions: create(…, context_sample_rate=0.1), a "
            "column contexts."
        )
    if not scores.rewarded:
        raise ParameterError(
            f"none of the {scores.known} decisions of this log has a reward: nothing can be "
            "evaluated. Where rewards count only after a window, say as of when: trial.logged(now=…)."
        )
    return scores


def own_model(source: Source) -> Model:
    """What is learned from the log itself."""
    batches = len(source.batch_names)
    return ArmMeans(batches) if source.dim is None else CrossFitted(source.dim, batches)


def _add(
    scores: Scores, candidates: Mapping[str, Candidate], predictor: Model, log: DecisionLog, logging: FloatArray | None
) -> None:
    """Score some decisions; those without a reward are left out at the end, since candidates may be given by row."""
    rewarded = ~np.isnan(log.rewards)
    if not rewarded.any():
        return
    rows, kept = np.arange(len(log)), slice(None) if rewarded.all() else rewarded
    scores.rewarded += int(rewarded.sum())
    predicted, batches = predictor.predict(log), log.batches[kept]
    scores._rewards.append(log.rewards[kept])
    scores._batches.append(batches)
    scores._times.append((np.full(len(log), np.nan) if log.times is None else log.times)[kept])
    present = np.unique(batches).tolist()
    for name, candidate in candidates.items():
        scored = scores.candidates[name]
        probabilities, applies, otherwise = played(name, candidate, log)
        scored.otherwise = otherwise or scored.otherwise
        scored.given = isinstance(candidate, (np.ndarray, list))
        did = isinstance(candidate, str) and candidate == "logged"
        weights = (probabilities[rows, log.arm_indices] / (1.0 if did else log.propensities))[kept]
        weights[weights > MOST_WEIGHT] = 0.0
        scored._weights.append(weights)
        scored._predicted.append(predicted.chosen[kept])
        scored._expected.append(np.einsum("nk,nk->n", probabilities, predicted.arms)[kept])
        mine = np.ones(len(weights), dtype=np.bool_) if applies is None else applies[kept]
        scored._applies.append(mine)
        whole = applies is None and len(present) == 1
        for batch in present:
            at: Any = slice(None) if whole else mine & (batches == batch)
            if not whole and not at.any():
                continue
            found = Support.of(
                weights[at],
                candidate=probabilities[kept][at],
                logging=None if logging is None or did else logging[kept][at],
                available=log.available[kept][at],
            )
            before = scored.supports[batch]
            scored.supports[batch] = found if before is None else before + found


def logging_probabilities(source: Source, log: DecisionLog) -> tuple[FloatArray | None, str]:
    """μ (n, K), the probabilities of all offered arms under the policies that decided, where they are known.

    With it, what is wrong with recorded propensities, where they are not those of the policies.
    """
    found, mismatch = log.behavior_probs, ""
    present = log.present
    names = [log.batch_names[batch] for batch in present]
    if log.contexts is not None and all(name in source.policies for name in names):
        found = np.empty(log.available.shape)
        for batch, name in zip(present, names, strict=True):
            one = len(present) == 1
            at: Any = slice(None) if one else log.batches == batch
            found[at] = policy_probabilities(source.policies[name], log if one else log.select(at))
        own = found[np.arange(len(log)), log.arm_indices]
        off = np.abs(own - log.propensities)
        if off.max() > _ROUNDING:
            at = int(off.argmax())
            policy = log.batch_names[log.batches[at]]
            mismatch = (
                f"recorded propensities are not those of the policy that decided: where {log.propensities[at]:.6g} is "
                f"recorded, policy {policy[:12]} chooses this arm with {own[at]:.6g}; {int((off > _ROUNDING).sum())} "
                f"of {len(log)} decisions differ so. They were changed, or another policy decided. Find out which, and "
                "correct the log."
            )
    return found, mismatch
