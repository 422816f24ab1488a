"""What ``import rareswitch`` offers."""

from rareswitch.contexts import ContextSets
from rareswitch.env import make_world
from rareswitch.errors import (
    BatchError,
    CertificateError,
    FileFormatError,
    InputError,
    ParameterError,
    RareswitchError,
    ShapeError,
    UnsuitableError,
)
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
    recommend,
    state_from_bytes,
    state_to_bytes,
)
from rareswitch.policy import Decisions, Ed25519Key, HmacKey, Policy, load_policy, save_policy
from rareswitch.sim import collaborate, simulate, sweep, tradeoff
from rareswitch.stats import Stats
from rareswitch.version import __version__

__all__ = ["OFUL", "BatchError", "BatchLinUCB", "BatchLinUCBDG", "BatchLinUCBKW", "CertificateError", "ContextSets"]
__all__ += ["Decisions", "Ed25519Key", "FileFormatError", "Foresight", "HmacKey", "InputError", "Learner"]
__all__ += ["ParameterError", "Policy", "RarelySwitchSupLinUCB", "RareswitchError", "Rows", "ShapeError", "State"]
__all__ += ["Stats", "Summary", "UnsuitableError", "__version__", "collaborate", "forecast", "load_policy"]
__all__ += ["make_learner", "make_world", "recommend", "save_policy", "simulate", "state_from_bytes", "state_to_bytes"]
__all__ += ["sweep", "tradeoff"]
