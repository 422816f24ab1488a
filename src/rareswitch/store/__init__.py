"""Stores of experiments: SQLite (in memory or a file) and PostgreSQL."""

from rareswitch.store.connections import Job
from rareswitch.store.opening import experiment_names, open_store
from rareswitch.store.rows import Counts, DecisionRow, Marks, RewardRow, Totals, VersionRow, reward_value, rows_table
from rareswitch.store.slices import Slice
from rareswitch.store.store import Store

__all__ = ["Counts", "DecisionRow", "Job", "Marks", "RewardRow", "Slice", "Store", "Totals", "VersionRow"]
__all__ += ["experiment_names", "open_store", "reward_value", "rows_table"]
