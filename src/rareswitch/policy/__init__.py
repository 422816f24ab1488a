"""Frozen policies: how they sample arms, their files, keys and signatures."""

from rareswitch.policy.keys import (
    Ed25519Key,
    HmacKey,
    Key,
    check_signature,
    check_signs,
    find_key,
    key_from_text,
    load_key,
    new_key,
    save_key,
    sign,
    verify_signature,
)
from rareswitch.policy.min_propensity import MinPropensity, least_probability
from rareswitch.policy.policy import (
    Chosen,
    Decisions,
    Policy,
    in_holdout,
    load_policy,
    policy_from_bytes,
    policy_to_bytes,
    save_policy,
)
from rareswitch.policy.samplers import (
    Baseline,
    Blend,
    Elimination,
    FittedSampler,
    Layered,
    Optimistic,
    PosteriorDraws,
    widest_intervals,
)

__all__ = ["Baseline", "Blend", "Chosen", "Decisions", "Ed25519Key", "Elimination", "FittedSampler", "MinPropensity"]
__all__ += ["HmacKey", "Key", "Layered", "Optimistic", "Policy", "PosteriorDraws", "check_signature", "check_signs"]
__all__ += ["find_key", "in_holdout", "key_from_text", "least_probability", "load_key", "load_policy", "new_key"]
__all__ += ["policy_from_bytes"]
__all__ += ["policy_to_bytes", "save_key", "save_policy", "sign", "verify_signature", "widest_intervals"]
