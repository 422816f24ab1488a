"""How an evaluation is made."""

from dataclasses import dataclass

from rareswitch.evaluation.estimators import Columns, Estimate, Estimator, estimate, paired
from rareswitch.evaluation.support import Support


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of an evaluation, checked."""

    estimator: Estimator = "dr"
    #: Of intervals.
    level: float = 0.95
    #: Whether intervals hold for one who looks after every batch.
    anytime: bool = False
    #: Where all rewards lie, if that is known.
    bounds: tuple[float, float] | None = None

    def estimate(self, columns: Columns, support: Support) -> Estimate:
        """Of a batch."""
        return estimate(self.estimator, columns, moments=support.weight_moments)

    def paired(self, columns: Columns, support: Support, share: float, less: float) -> Estimate:
        """A share of that, less a share of what was earned in the same batch."""
        return paired(self.estimator, columns, share, less, moments=support.weight_moments)
