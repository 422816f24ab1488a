"""BatchLinUCB (Algorithm 1)."""

from dataclasses import dataclass
from typing import ClassVar

from rareswitch.design import Uniform
from rareswitch.learner.batched import BatchedLearner
from rareswitch.learner.learner import Parts


@dataclass(frozen=True, kw_only=True)
class BatchLinUCB(BatchedLearner):
    """Plays a uniformly random survivor; regret √(dKT log(dKT/δ))·log log T with ⌈log log T⌉ batches (Theorem 1).

    >>> BatchLinUCB(dim=5, arms=10, horizon=10_000).clock.ends
    (100, 1000, 3162, 10000)
    """

    name: ClassVar[str] = "batch-linucb"
    text: ClassVar[str] = "uniform among the survivors of elimination (Algorithm 1)"
    adaptivity: ClassVar[str] = "⌈log log T⌉"
    regret: ClassVar[str] = "√(dKT), stochastic"

    def compose(self) -> Parts:
        return self.eliminating(Uniform())
