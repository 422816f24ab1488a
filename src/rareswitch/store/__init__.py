"""Where experiments are kept."""

from rareswitch.store.memory import reward_value, rows_table
from rareswitch.store.opening import experiment_names, open_store
from rareswitch.store.store import Counts, DecisionRow, Marks, RewardRow, Slice, Store, Totals, VersionRow

__all__ = ["Counts", "DecisionRow", "Marks", "RewardRow", "Slice", "Store", "Totals", "VersionRow", "experiment_names"]
__all__ += ["open_store", "reward_value", "rows_table"]
