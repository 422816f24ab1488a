"""Learners by name."""

from collections.abc import Callable
from typing import Any

from rareswitch.errors import InputError
from rareswitch.learner.batch_linucb import BatchLinUCB
from rareswitch.learner.batch_linucb_dg import BatchLinUCBDG
from rareswitch.learner.batch_linucb_kw import BatchLinUCBKW
from rareswitch.learner.batched import BatchedLearner
from rareswitch.learner.designers import CertifiedMixture

LEARNERS: dict[str, tuple[str, Callable[..., BatchedLearner]]] = {
    "batch-linucb": ("Algorithm 1: uniform among the survivors", BatchLinUCB),
    "batch-linucb-kw": ("Appendix B: G-optimal design of the survivors", BatchLinUCBKW),
    "batch-linucb-dg": ("Algorithm 5: a sampling policy learned by CoreLearning", BatchLinUCBDG),
    "batch-linucb-dg-certified": (
        "Algorithm 5 with the certified Frank-Wolfe design in place of CoreLearning",
        lambda **settings: BatchLinUCBDG(designer=CertifiedMixture(), **settings),
    ),
}


def make_learner(name: str, **settings: Any) -> BatchedLearner:
    """A fresh learner of that name with the given settings (dim, arms, horizon and what it takes besides).

    >>> make_learner("batch-linucb-kw", dim=5, arms=10, horizon=1000).grid.batches
    4
    """
    if name not in LEARNERS:
        raise InputError(f"there is no learner '{name}'; the learners are {', '.join(LEARNERS)}.")
    return LEARNERS[name][1](**settings)
