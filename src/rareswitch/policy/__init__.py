"""Frozen policies and their files."""

from rareswitch.policy.allocation import Allocation
from rareswitch.policy.baseline import Baseline
from rareswitch.policy.blend import Blend
from rareswitch.policy.divergence import EmpiricalDivergence
from rareswitch.policy.elimination import Elimination, widest_intervals
from rareswitch.policy.encoding import decode as policy_from_plain
from rareswitch.policy.encoding import encode as policy_to_plain
from rareswitch.policy.encoding import floor_from_plain, floor_to_plain
from rareswitch.policy.files import from_bytes as policy_from_bytes
from rareswitch.policy.files import load_policy, save_policy
from rareswitch.policy.files import to_bytes as policy_to_bytes
from rareswitch.policy.floor import Floor, least_probability
from rareswitch.policy.inverse_gap import InverseGap
from rareswitch.policy.key_files import key_from_text, load_key, new_key, save_key
from rareswitch.policy.layered import Layered
from rareswitch.policy.optimism import Optimistic
from rareswitch.policy.policy import Chosen, Decisions, Policy
from rareswitch.policy.posterior import PosteriorDraws
from rareswitch.policy.signing import Ed25519Key, HmacKey, Key, check_signature, check_signs, sign
from rareswitch.policy.signing import verify as verify_signature

__all__ = ["Allocation", "Baseline", "Blend", "Chosen", "Decisions", "Ed25519Key", "Elimination"]
__all__ += ["EmpiricalDivergence", "Floor", "HmacKey", "InverseGap"]
__all__ += ["Key", "Layered", "Optimistic", "Policy", "PosteriorDraws", "check_signature", "check_signs"]
__all__ += ["floor_from_plain", "floor_to_plain", "key_from_text", "least_probability", "load_key", "load_policy"]
__all__ += ["new_key", "policy_from_bytes", "policy_from_plain", "policy_to_bytes", "policy_to_plain", "save_key"]
__all__ += ["save_policy", "sign", "verify_signature", "widest_intervals"]
