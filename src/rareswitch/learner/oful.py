"""OFUL with rare switches (Abbasi-Yadkori, Pál, Szepesvári 2011, Section 5.1)."""

from dataclasses import dataclass
from typing import ClassVar

from rareswitch.learner.growing import GrowingLearner
from rareswitch.learner.linucb import LinUCB


@dataclass(frozen=True, kw_only=True)
class OFUL(GrowingLearner, LinUCB):
    """LinUCB whose policy changes only when the determinant has grown by C; regret √C·d√T·log T.

    It deploys O(d log T/log C) policies.

    >>> OFUL(dim=5, arms=10, horizon=10_000, growth=4.0, noise=0.5).switch_bound
    33
    """

    name: ClassVar[str] = "oful"
    text: ClassVar[str] = "LinUCB, changed when the determinant grows by C"
    adaptivity: ClassVar[str] = "O(d log T / log C)"
    regret: ClassVar[str] = "√C·d√T, adversarial"
