"""Frozen policies and their files."""

from rareswitch.policy.elimination import Elimination
from rareswitch.policy.files import load_policy, save_policy
from rareswitch.policy.policy import Decisions, Policy
from rareswitch.policy.signing import Ed25519Key, HmacKey

__all__ = ["Decisions", "Ed25519Key", "Elimination", "HmacKey", "Policy", "load_policy", "save_policy"]
