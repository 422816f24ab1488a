"""Is one arm better than another, for whom, and by how much: effects from adaptive batches, or why they are not known.

The effect of showing arm A in place of B is the mean, over the decisions that offered both, of

    q̂(A) − q̂(B) + (1[a = A] − 1[a = B])/p · (r − q̂(a)),

where a was chosen with probability p and earned r. The predictions q̂ are made of other decisions, and whatever they
are, the mean is right: p is exact. Batches are pooled as in :func:`rareswitch.evaluate`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rareswitch.errors import ParameterError
from rareswitch.evaluation.batch_answers import Answer, answer
from rareswitch.evaluation.candidates import Always, played
from rareswitch.evaluation.effect_results import BatchPart, Effect, Effects, Heterogeneity
from rareswitch.evaluation.effects_groups import MOST_GROUPS, Groups, groups_of
from rareswitch.evaluation.evaluate import source_of
from rareswitch.evaluation.models import Model
from rareswitch.evaluation.multiplicity import corrected, each_level
from rareswitch.evaluation.parameters import features_of
from rareswitch.evaluation.scoring import learned, logging_probabilities
from rareswitch.evaluation.support import Support, batch_reasons, refusals
from rareswitch.log import Logged, Source
from rareswitch.validation import BoolArray, FloatArray, number

#: What an arm may be compared with besides another arm: what the caller would have shown, and the mean of the others.
BASELINE, REST = "baseline", "rest"


def effects(
    source: Any, arm: Any = None, against: Any = None, *, by: Any = None, level: float = 0.95
) -> Effects:
    """What showing one arm in place of another does to the reward, on average over decisions that offered both.

    Parameters
    ----------
    source
        An experiment, a log, or files of one, as :func:`rareswitch.evaluate` takes them.
    arm
        The id of an arm, or its place where arms have no ids. By default every arm, the best first, with intervals
        that hold together.
    against
        Another arm; ``"baseline"``, what the caller would have shown, over decisions in which that is another arm; or
        ``"rest"``, the mean of the other arms that were offered. By default the baseline where decisions name one,
        otherwise the rest.
    by
        For whom, of one arm: the name of a field of the context (levels, or halves of a number); ``"position"``, the
        place of the arm among those offered; a function of :class:`~rareswitch.log.Logged` to labels (n,); for a log in
        memory also labels. Groups have intervals that hold together, and a test whether the effect differs.
    level
        Of the intervals.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> places, clicks = rng.integers(2, size=4000), rng.random(4000)
    >>> log = Logged(places=places, propensities=[0.5] * 4000, arms=["red", "blue"], rewards=clicks < 0.1 + 0.1 * places)
    >>> print(effects(log, "blue", "red")["blue"].interval)
    0.108 (0.08606 to 0.13)
    """
    number("level", level, low=0.5, high=0.9999)
    log, asked = source_of(source), None if arm is None else str(arm)
    if asked is None and by is not None:
        raise ParameterError("by says for whom one arm is better: name it, arm=….")
    against = _against(log, against)
    if asked == against:
        raise ParameterError(f"against must be another arm than {asked!r:.60}.")
    groups = None if by is None else groups_of(by, features_of(log), _count(log), lambda: log.chunks(contexts=True))
    found = _Found(log, asked, against, groups)
    for chunk in log.chunks(contexts=True):
        found.add(chunk)
    found.check()
    return found.effects(level)


def _against(log: Source, given: Any) -> str:
    if given is None or given == BASELINE:
        named = any(chunk.baselines is not None and (chunk.baselines >= 0).any() for chunk in log.chunks(contexts=True))
        if given is not None and not named:
            raise ParameterError("against cannot be the baseline: no decision of this log names one.")
        return BASELINE if named else REST
    return str(given)


def _count(log: Source) -> int | None:
    """Decisions of a log in memory."""
    return len(log) if isinstance(log, Logged) else None


@dataclass(eq=False)
class _Cell:
    """Decisions of one batch and group that offered both: moments of their scores, and support of either arm."""

    count: int = 0
    mean: float = 0.0
    #: Σ (score − mean)².
    squares: float = 0.0
    one: Support = field(default_factory=Support.zero)
    other: Support = field(default_factory=Support.zero)
    shown: int = 0
    shown_other: int = 0

    def add(self, scores: FloatArray, one: Support, other: Support, shown: int, shown_other: int) -> None:
        """Take more decisions in."""
        count, mean = len(scores), float(scores.mean())
        total, step = self.count + count, mean - self.mean
        self.squares += float(np.square(scores - mean).sum()) + step**2 * self.count * count / total
        self.mean += step * count / total
        self.count, self.one, self.other = total, self.one + one, self.other + other
        self.shown, self.shown_other = self.shown + shown, self.shown_other + shown_other

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return float(np.sqrt(self.squares / (self.count - 1) / self.count)) if self.count > 1 else float("inf")


#: All decisions, as a group.
EVERYBODY = ""
