"""Frozen policies and their files."""

from rareswitch.policy.floor import Floor, least_probability
from rareswitch.policy.keys import (
    Ed25519Key,
    HmacKey,
    Key,
    check_signature,
    check_signs,
    key_from_text,
    load_key,
    new_key,
    save_key,
    sign,
)
from rareswitch.policy.keys import verify as verify_signature
from rareswitch.policy.policy import Chosen, Decisions, Policy, load_policy, save_policy
from rareswitch.policy.policy import from_bytes as policy_from_bytes
from rareswitch.policy.policy import to_bytes as policy_to_bytes
from rareswitch.policy.samplers import (
    Allocation,
    Baseline,
    Blend,
    Elimination,
    EmpiricalDivergence,
    InverseGap,
    Layered,
    Optimistic,
    PosteriorDraws,
    widest_intervals,
)

__all__ = ["Allocation", "Baseline", "Blend", "Chosen", "Decisions", "Ed25519Key", "Elimination"]
__all__ += ["EmpiricalDivergence", "Floor", "HmacKey", "InverseGap"]
__all__ += ["Key", "Layered", "Optimistic", "Policy", "PosteriorDraws", "check_signature", "check_signs"]
__all__ += ["key_from_text", "least_probability", "load_key", "load_policy"]
__all__ += ["new_key", "policy_from_bytes", "policy_to_bytes", "save_key"]
__all__ += ["save_policy", "sign", "verify_signature", "widest_intervals"]
