"""How an evaluation is made."""

from dataclasses import dataclass, replace
from typing import Literal

from rareswitch.evaluation.estimators import Estimator
from rareswitch.evaluation.intervals import BatchMean, combined
from rareswitch.evaluation.results import Interval

Pooling = Literal["traffic", "stationary"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of an evaluation, checked."""

    estimator: Estimator = "dr"
    #: Of intervals, of all questions together.
    level: float = 0.95
    #: Whether intervals hold for one who looks after every batch.
    anytime: bool = False
    #: Where all rewards lie, if that is known.
    bounds: tuple[float, float] | None = None
    #: How batches count: as their traffic, or by their precision where nothing drifts.
    pooling: Pooling = "traffic"
    #: Whose intervals hold together (Bonferroni).
    questions: int = 1

    @property
    def level_of_each(self) -> float:
        """The level of one interval."""
        return 1.0 - (1.0 - self.level) / max(1, self.questions)

    def interval(self, terms: list[BatchMean], *, more: float = 0.0) -> Interval:
        """Of a sum over batches; ``more`` is added at both ends."""
        one = combined(terms, level=self.level_of_each, anytime=self.anytime)
        return replace(one, low=one.low - more, high=one.high + more, level=self.level)
