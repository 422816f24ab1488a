"""Stores of experiments: SQLite (in memory or a file) and PostgreSQL."""

from rareswitch.store.columns import DecisionColumns, Offers, Slice
from rareswitch.store.connections import Job
from rareswitch.store.opening import experiment_names, open_store
from rareswitch.store.rows import EARLIEST, Counts, DecisionRow, Marks, RewardRow, Totals, VersionRow, reward_value
from rareswitch.store.store import Store

__all__ = ["EARLIEST", "Counts", "DecisionColumns", "DecisionRow", "Job", "Marks", "Offers", "RewardRow", "Slice"]
__all__ += ["Store", "Totals", "VersionRow", "experiment_names", "open_store", "reward_value"]
