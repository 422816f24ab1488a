"""The one table of decisions, and which of their rewards count."""

from rareswitch.decisions.attribution import attributed, clip_bounds, clipped, deduplicate, row_hashes
from rareswitch.decisions.decision_log import Column, DecisionLog, chosen_arms, key_order

__all__ = ["Column", "DecisionLog", "attributed", "chosen_arms", "clip_bounds", "clipped", "deduplicate", "key_order"]
__all__ += ["row_hashes"]
