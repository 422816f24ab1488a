"""Contextual bandits that need only a handful of policy updates."""

from rareswitch.contexts import ContextSets
from rareswitch.learner import BatchLinUCB, BatchLinUCBDG, BatchLinUCBKW, Feedback, recommend
from rareswitch.policy import Policy, load_policy, save_policy
from rareswitch.sim import simulate, sweep
from rareswitch.stats import Stats
from rareswitch.version import __version__

__all__ = [
    "BatchLinUCB",
    "BatchLinUCBDG",
    "BatchLinUCBKW",
    "ContextSets",
    "Feedback",
    "Policy",
    "Stats",
    "__version__",
    "load_policy",
    "recommend",
    "save_policy",
    "simulate",
    "sweep",
]
