"""The public API: all names of ``import rareswitch``."""

from rareswitch.contexts import ContextSets
from rareswitch.errors import (
    BatchError,
    CertificateError,
    ConflictError,
    FileFormatError,
    InputError,
    ParameterError,
    RareswitchError,
    ShapeError,
    StoreError,
    UnsuitableError,
)
from rareswitch.evaluation import Always, Effects, Evaluation, effects, evaluate
from rareswitch.experiment import Experiment, Gate, Rewards, create
from rareswitch.experiment import open_experiment as open  # noqa: A004
from rareswitch.features import Features
from rareswitch.lab import collaborate, make_world, simulate, sweep, tradeoff
from rareswitch.learner import (
    OFUL,
    BatchLinUCB,
    BatchLinUCBDG,
    BatchLinUCBKW,
    Foresight,
    Learner,
    RarelySwitchSupLinUCB,
    Rows,
    State,
    Summary,
    forecast,
    make_learner,
    state_from_bytes,
    state_to_bytes,
)
from rareswitch.log import DecisionLog
from rareswitch.plan import AfterCounts, BestSchedule, Manual, Periodic, recommend
from rareswitch.policy import Decisions, Ed25519Key, HmacKey, MinPropensity, Policy, load_policy, save_policy
from rareswitch.stats import Stats
from rareswitch.version import __version__

__all__ = [
    "OFUL",
    "AfterCounts",
    "Always",
    "BatchError",
    "BatchLinUCB",
    "BatchLinUCBDG",
    "BatchLinUCBKW",
    "BestSchedule",
    "Manual",
]
__all__ += ["CertificateError", "ConflictError"]
__all__ += [
    "ContextSets",
    "Decisions",
    "Ed25519Key",
    "Effects",
    "Evaluation",
    "Experiment",
    "Features",
    "FileFormatError",
    "Foresight",
    "Gate",
    "HmacKey",
    "MinPropensity",
    "Periodic",
]
__all__ += [
    "DecisionLog",
    "InputError",
    "Learner",
    "ParameterError",
    "Policy",
    "RarelySwitchSupLinUCB",
    "RareswitchError",
    "Rewards",
]
__all__ += ["Rows", "ShapeError", "State", "Stats", "StoreError", "Summary", "UnsuitableError", "__version__"]
__all__ += [
    "collaborate",
    "create",
    "effects",
    "evaluate",
    "forecast",
    "load_policy",
    "make_learner",
    "make_world",
    "open",
    "recommend",
]
__all__ += ["save_policy", "simulate", "state_from_bytes", "state_to_bytes", "sweep", "tradeoff"]
