"""Contextual bandits that need only a handful of policy updates."""

from rareswitch.contexts import ContextSets
from rareswitch.stats import Stats

__version__ = "0.1.0"

__all__ = ["ContextSets", "Stats", "__version__"]
