"""One way through a log for the effects of arms: scores of decisions that offered both, and support for both."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rareswitch.core import BoolArray, FloatArray
from rareswitch.core import IntArray as Rows
from rareswitch.errors import EmptySetError, ParameterError, did_you_mean
from rareswitch.evaluation.calibration import ArmTally
from rareswitch.evaluation.candidates import Always, played
from rareswitch.evaluation.effects_groups import MOST_GROUPS, Groups
from rareswitch.evaluation.estimators import Columns, row_scores
from rareswitch.evaluation.intervals import BatchMean, term_of
from rareswitch.evaluation.models import Predicted
from rareswitch.evaluation.scoring import logging_probabilities, own_model
from rareswitch.evaluation.support import Support
from rareswitch.log import DecisionLog, Source

#: What an arm may be compared with besides another arm: what the caller would have shown, and the mean of the others.
BASELINE, REST = "baseline", "rest"
#: All decisions, as a group.
EVERYBODY = ""


@dataclass(eq=False)
class Cell:
    """Decisions of one batch and group that offered both: their columns, and the support of either.

    Weights are those of showing the arm, less those of what it is compared with.
    """

    parts: list[Columns] = field(default_factory=list)
    #: Of showing the arm, and of what it is compared with.
    support: Support = field(default_factory=Support.zero)
    other: Support = field(default_factory=Support.zero)
    #: How often each was shown.
    shown: int = 0
    shown_other: int = 0

    @property
    def count(self) -> int:
        """Decisions."""
        return self.support.count

    @property
    def spread(self) -> float:
        """E w²: no decision shows both."""
        return self.support.spread + self.other.spread

    @cached_property
    def columns(self) -> Columns:
        """Of all decisions; asked for when all were added."""
        return Columns(*map(np.concatenate, zip(*self.parts, strict=True)))

    @cached_property
    def term(self) -> BatchMean:
        """The effect, doubly robust."""
        return term_of(row_scores("dr", self.columns))


#: By batch.
Cells = dict[int, Cell]


class EffectScores:
    """Reads a log twice: for a model, where decisions are predicted from others, and for the scores.

    Parameters
    ----------
    arm
        None: every arm.
    against
        An arm, ``baseline`` or ``rest``.
    groups
        For whom; None: for all together alone.
    """

    def __init__(self, source: Source, arm: str | None, against: str, groups: Groups | None) -> None:
        self.arm, self.against, self.groups, self.batch_names = arm, against, groups, source.batch_names
        #: By arm and group.
        self.cells: dict[tuple[str, str], Cells] = {}
        #: The arms that were offered at least once, in the order in which they came.
        self.arms: dict[str, None] = {}
        self.decisions = self.known = self.rewarded = 0
        #: What is wrong with recorded propensities.
        self.mismatch = ""
        tally = ArmTally()
        model = own_model(source)
        for log in source.chunks(contexts=source.dim is None):
            self.decisions += len(log)
            model.add(log)
        for log in source.chunks(contexts=True):
            logging, mismatch = logging_probabilities(source, log)
            self.mismatch = self.mismatch or mismatch
            tally.add(log, logging)
            self._add(log, model.predict(log), logging)
        calibration = None if source.estimated else tally.calibration()
        if calibration is not None and calibration.stops:
            self.mismatch = self.mismatch or calibration.words
        self._check()

    def _add(self, log: DecisionLog, predicted: Predicted, logging: FloatArray | None) -> None:
        rewarded = ~np.isnan(log.rewards)
        self.known += len(log)
        self.rewarded += int(rewarded.sum())
        names = [*map(str, range(log.available.shape[1]))] if log.arms is None else [*log.arms]
        self.arms |= dict.fromkeys(names)
        if not rewarded.any():
            return
        for arm in names if self.arm is None else [self.arm]:
            if arm != self.against:
                self._add_arm(arm, log, predicted, logging, rewarded)

    def _add_arm(
        self, arm: str, log: DecisionLog, predicted: Predicted, logging: FloatArray | None, rewarded: BoolArray
    ) -> None:
        """Score the decisions that offered this arm and what it is compared with."""
        one, other = played(arm, Always(arm), log).probabilities, self._other(arm, log)
        differ = np.einsum("nk,nk->n", one, other) == 0.0  # a baseline may be this very arm
        at = np.flatnonzero(rewarded & differ & one.any(axis=1) & other.any(axis=1))
        if not len(at):
            return
        chosen = (at, log.arm_indices[at])
        here, there = one[chosen] / log.propensities[at], other[chosen] / log.propensities[at]
        expected = np.einsum("nk,nk->n", one[at] - other[at], predicted.arms[at])
        columns = Columns(log.rewards[at], here - there, predicted.chosen[at], expected)
        for label, rows in self._groups(log, one, at):
            for batch in np.unique(log.batches[at[rows]]).tolist():
                part = rows[log.batches[at[rows]] == batch]
                told = {"logging": None if logging is None else logging[at[part]], "available": log.available[at[part]]}
                cell = self.cells.setdefault((arm, label), {}).setdefault(batch, Cell())
                cell.parts.append(Columns(*(column[part] for column in columns)))
                cell.support += Support.of(here[part], candidate=one[at[part]], **told)
                cell.other += Support.of(there[part], candidate=other[at[part]], **told)
                cell.shown += int((here[part] > 0.0).sum())
                cell.shown_other += int((there[part] > 0.0).sum())

    def _other(self, arm: str, log: DecisionLog) -> FloatArray:
        """(n, K) what an arm is compared with, as probabilities; rows in which that is not offered are 0."""
        if self.against == BASELINE:
            return played(BASELINE, BASELINE, log).probabilities
        if self.against != REST:
            return played(self.against, Always(self.against), log).probabilities
        others = log.available & (played(arm, Always(arm), log).probabilities == 0.0)
        return np.asarray(others / np.maximum(others.sum(axis=1, keepdims=True), 1))

    def _groups(self, log: DecisionLog, one: FloatArray, at: Rows) -> Iterator[tuple[str, Rows]]:
        """All of the rows ``at``, and those of each group."""
        yield EVERYBODY, np.arange(len(at))
        if self.groups is None:
            return
        labels = self.groups.labels(log, one.argmax(axis=1))[at]
        for label in np.unique(labels).tolist():
            yield label, np.flatnonzero(labels == label)
        count = len({group for _, group in self.cells} - {EVERYBODY})
        if count > MOST_GROUPS:
            raise ParameterError(
                f"by must have at most {MOST_GROUPS} groups, or none has enough decisions; got {count} and more. Join "
                "some: give a function to labels."
            )

    def _check(self) -> None:
        """Refuse a log that cannot say anything about any arm, and arms that are not in it."""
        if not self.decisions:
            raise EmptySetError("this log has no decisions: there are no effects.")
        if not self.known:
            raise ParameterError(
                f"source must tell which arms were offered; of none of its {self.decisions:,} decisions that is known. "
                "Keep the context sets of a share of decisions: create(…, context_sample_rate=0.1), a column contexts."
            )
        for name, given in (("arm", self.arm), ("against", self.against)):
            if given is not None and given not in self.arms and not (name == "against" and given in (BASELINE, REST)):
                shown = ", ".join([*self.arms][:10]) + (
                    f" and {len(self.arms) - 10} more" if len(self.arms) > 10 else ""
                )
                words = f"; {BASELINE!r} or {REST!r}" if name == "against" else ""
                raise ParameterError(
                    f"{name} must be one of the arms that were offered, {shown}{words}; got {given!r:.60}."
                    f"{did_you_mean(given, self.arms)}"
                )
        if not self.rewarded:
            raise ParameterError(f"source must have rewards; none of its {self.known:,} decisions has one.")
