"""Frozen policies and their files."""

from rareswitch.policy.blend import Blend
from rareswitch.policy.elimination import Elimination
from rareswitch.policy.files import load_policy, save_policy
from rareswitch.policy.inverse_gap import InverseGap
from rareswitch.policy.layered import Layered
from rareswitch.policy.optimism import Optimistic
from rareswitch.policy.policy import Decisions, Policy
from rareswitch.policy.posterior import PosteriorDraws
from rareswitch.policy.signing import Ed25519Key, HmacKey

__all__ = [
    "Blend",
    "Decisions",
    "Ed25519Key",
    "Elimination",
    "HmacKey",
    "InverseGap",
    "Layered",
    "Optimistic",
    "Policy",
    "PosteriorDraws",
    "load_policy",
    "save_policy",
]
