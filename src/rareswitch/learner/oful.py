"""OFUL with rare switches (Abbasi-Yadkori, Pál, Szepesvári 2011, Section 5.1)."""

from typing import Any, ClassVar

from rareswitch.learner.clocks import DeterminantGrowth
from rareswitch.learner.linucb import LinUCB


class OFUL(LinUCB):
    """LinUCB whose policy changes only when the determinant has grown by C; regret √C·d√T·log T.

    It deploys O(d log T/log C) policies. ``growth`` is C.

    >>> learner = OFUL(dim=5, arms=10, horizon=10_000, growth=4.0, noise=0.5)
    >>> learner.switch_bound
    33
    """

    name: ClassVar[str] = "oful"

    def __init__(self, *, horizon: int, growth: float = 2.0, **settings: Any) -> None:
        super().__init__(horizon=horizon, clock=DeterminantGrowth(horizon=horizon, factor=growth), **settings)

    @property
    def switch_bound(self) -> int:
        """The most policies that a run can deploy, the first included."""
        assert isinstance(self.clock, DeterminantGrowth)
        return self.clock.most(self.dim, self.confidence.ridge)
