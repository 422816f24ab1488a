"""BatchLinUCB (Algorithm 1) and BatchLinUCB-KW (Appendix B)."""

from dataclasses import dataclass
from typing import ClassVar

from rareswitch.design import GOptimal, Uniform
from rareswitch.learner.batched import BatchedLearner
from rareswitch.learner.learner import Parts
from rareswitch.learner.settings import design_of_sets, setting


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


@dataclass(frozen=True, kw_only=True)
class BatchLinUCBKW(BatchedLearner):
    """Plays the G-optimal design of the survivors; regret d√(T log(dKT/δ))·log log T (Theorem 2).

    With at most 2d arms the paper's design is uniform, and the learner that of Algorithm 1; ``GOptimal()`` is a tight
    one.

    >>> BatchLinUCBKW(dim=5, arms=10, horizon=10_000).clock.policies
    4
    """

    g_optimal: GOptimal = setting(
        GOptimal(tol=1.0), "the design of a set, at the paper's factor 2 by default", design_of_sets
    )

    name: ClassVar[str] = "batch-linucb-kw"
    text: ClassVar[str] = "G-optimal design of the survivors (Appendix B)"
    adaptivity: ClassVar[str] = "⌈log log T⌉"
    regret: ClassVar[str] = "d√T, stochastic"

    def compose(self) -> Parts:
        return self.eliminating(self.g_optimal)
