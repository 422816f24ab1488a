"""Where deployments are kept."""

from rareswitch.store.deployment import Deployment, Learned, check_fresh
from rareswitch.store.memory import reward_value
from rareswitch.store.opening import experiment_names, open_store
from rareswitch.store.store import Counts, DecisionRow, Marks, RewardRow, Slice, Store, Totals, VersionRow
from rareswitch.store.verification import Relearned, Verification

__all__ = [
    "Counts",
    "DecisionRow",
    "Deployment",
    "Learned",
    "Marks",
    "Relearned",
    "RewardRow",
    "Slice",
    "Store",
    "Totals",
]
__all__ += ["Verification", "VersionRow", "check_fresh", "experiment_names", "open_store", "reward_value"]
