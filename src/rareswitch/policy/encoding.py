"""A policy as plain data: canonical JSON beside named arrays, and the hash of both."""

import hashlib
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from rareswitch.design import Argmax, GOptimal, MixedArgmax, MixedSoftmax, Softmax, Uniform
from rareswitch.errors import FileFormatError, InputError
from rareswitch.features import Features
from rareswitch.files import canonical_json
from rareswitch.policy.floor import Floor
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
)
from rareswitch.validation import FloatArray

if TYPE_CHECKING:
    from rareswitch.policy.policy import Policy

KINDS: dict[str, type[Any]] = {
    "uniform": Uniform,
    "g-optimal": GOptimal,
    "argmax": Argmax,
    "softmax": Softmax,
    "mixed-argmax": MixedArgmax,
    "mixed-softmax": MixedSoftmax,
    "elimination": Elimination,
    "optimistic": Optimistic,
    "posterior-draws": PosteriorDraws,
    "layered": Layered,
    "inverse-gap": InverseGap,
    "blend": Blend,
    "baseline": Baseline,
    "empirical-divergence": EmpiricalDivergence,
    "allocation": Allocation,
}
_NAMES = {kind: name for name, kind in KINDS.items()}


def encode(policy: "Policy") -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """The policy as JSON-able data in which arrays are named, and these arrays."""
    tensors: dict[str, FloatArray] = {}
    parts = [_encode(part, f"eliminations.{k}", tensors) for k, part in enumerate(policy.eliminations)]
    sampler = _encode(policy.sampler, "sampler", tensors)
    data = {"dim": policy.dim, "eliminations": parts, "sampler": sampler}
    if policy.edition:
        data["edition"] = policy.edition
    if policy.features is not None:
        data["features"] = policy.features.to_plain()
    if policy.floor is not None:
        data["floor"] = floor_to_plain(policy.floor)
    return data, tensors


def decode(data: Any, tensors: dict[str, FloatArray]) -> "Policy":
    """The policy that :func:`encode` was given. Every array must be used."""
    from rareswitch.policy.policy import Policy

    unused = dict(tensors)
    try:
        parts = tuple(_decode(part, unused) for part in data["eliminations"])
        sampler = _decode(data["sampler"], unused)
        features = Features.from_plain(data["features"]) if "features" in data else None
        floor = floor_from_plain(data["floor"]) if "floor" in data else None
        policy = Policy(
            dim=data["dim"],
            sampler=sampler,
            eliminations=parts,
            edition=data.get("edition", 0),
            features=features,
            floor=floor,
        )
    except (KeyError, TypeError, AttributeError, InputError) as error:
        raise FileFormatError(f"the description of the policy is damaged ({error!s:.200}).") from error
    if unused:
        raise FileFormatError(f"the arrays {sorted(unused)!s:.200} belong to nothing.")
    return policy


def floor_to_plain(floor: Floor) -> dict[str, Any]:
    """A floor as JSON keeps it."""
    return {"least": floor.least, "arms": None if floor.arms is None else [*floor.arms]}


def floor_from_plain(data: Any) -> Floor:
    """The floor that :func:`floor_to_plain` was given."""
    return Floor(least=data["least"], arms=None if data["arms"] is None else tuple(data["arms"]))


def content_id(policy: "Policy") -> str:
    """SHA-256 over the canonical description and the bytes of the arrays, as 64 hexadecimal digits."""
    data, tensors = encode(policy)
    digest = hashlib.sha256(canonical_json(data))
    for name in sorted(tensors):
        digest.update(f"\n{name} {tensors[name].shape}\n".encode())
        digest.update(tensors[name].astype("<f8").tobytes())
    return digest.hexdigest()


def _encode(part: Any, path: str, tensors: dict[str, FloatArray]) -> Any:
    if isinstance(part, np.ndarray):
        tensors[path] = part
        return {"array": path}
    name = _NAMES.get(type(part))
    if name is not None:
        entries = {
            field.name: _encode(getattr(part, field.name), f"{path}.{field.name}", tensors) for field in fields(part)
        }
        return {"kind": name, **entries}
    if part is None or isinstance(part, (bool, int, float, str)):
        return part
    raise InputError(
        f"a policy can be identified and saved if it is made of {', '.join(KINDS)}; it holds a {type(part).__name__}."
    )


def _decode(data: Any, tensors: dict[str, FloatArray]) -> Any:
    if isinstance(data, dict) and set(data) == {"array"}:
        return tensors.pop(data["array"])
    if isinstance(data, dict):
        entries = {name: _decode(value, tensors) for name, value in data.items() if name != "kind"}
        return KINDS[data["kind"]](**entries)
    return data
