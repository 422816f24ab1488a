"""Contextual bandits that need only a handful of policy updates."""

from rareswitch.contexts import ContextSets
from rareswitch.learner import (
    OFUL,
    BatchLinUCB,
    BatchLinUCBDG,
    BatchLinUCBKW,
    Feedback,
    Foresight,
    RarelySwitchSupLinUCB,
    make_learner,
    recommend,
)
from rareswitch.policy import Policy, load_policy, save_policy
from rareswitch.sim import collaborate, simulate, sweep, tradeoff
from rareswitch.stats import Stats
from rareswitch.version import __version__

__all__ = [
    "OFUL",
    "BatchLinUCB",
    "BatchLinUCBDG",
    "BatchLinUCBKW",
    "ContextSets",
    "Feedback",
    "Foresight",
    "Policy",
    "RarelySwitchSupLinUCB",
    "Stats",
    "__version__",
    "collaborate",
    "load_policy",
    "make_learner",
    "recommend",
    "save_policy",
    "simulate",
    "sweep",
    "tradeoff",
]
