import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from rareswitch.core.codec import pack, unpack
from rareswitch.design import GOptimal, MixedSoftmax, Uniform
from rareswitch.errors import FileFormatError, InputError, ParameterError
from rareswitch.policy import (
    Blend,
    Ed25519Key,
    Elimination,
    HmacKey,
    Policy,
    PosteriorDraws,
    load_policy,
    policy_from_bytes,
    policy_to_bytes,
    save_policy,
)
from reference.hostile import resealed
from reference.refusals import raises

SECRET = HmacKey(secret=b"0123456789abcdef")


def rich_policy() -> Policy:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((30, 3))
    return Policy(
        dim=3,
        sampler=MixedSoftmax(
            weights=np.array([0.25, 0.75]), matrices=np.stack([np.eye(3), x.T @ x]), g_optimal=GOptimal(tol=0.1)
        ),
        eliminations=(
            Elimination.of(rng.standard_normal(3), x.T @ x, 1.3),
            Elimination.of(np.zeros(3), np.eye(3), 0.1),
        ),
    )


def test_the_bytes_never_change() -> None:
    """Policies that were shipped must load, with their ids, in years to come."""
    policy = Policy(dim=2, sampler=Uniform(), eliminations=(Elimination(estimate=np.ones(2), root=np.eye(2)),))
    assert policy.id == "e971dde9b5b1071bef2053a762a517c8a006eec6f2264b42cf782f63b33e56b1"


def test_any_safetensors_reader_can_open_it(tmp_path: Path) -> None:
    save_policy(rich_policy(), tmp_path / "p.safetensors")
    arrays = safetensors.numpy.load_file(tmp_path / "p.safetensors")
    np.testing.assert_array_equal(arrays["sampler.weights"], [0.25, 0.75])
    np.testing.assert_array_equal(arrays["eliminations.0.root"], rich_policy().eliminations[0].root)


def repacked(change: Callable[[dict[str, Any]], None], key: HmacKey | None = None) -> bytes:
    """A file whose description was edited by someone who knows the format."""
    meta, tensors = unpack(policy_to_bytes(rich_policy(), key=key))
    change(meta)
    return pack(meta, tensors)


@pytest.mark.parametrize(
    "signature",
    [
        "abc",
        5,
        [],
        {"scheme": "hmac-sha256"},
        *(
            {"scheme": "hmac-sha256", "value": value}
            for value in ("é", "\ud800", "A" * 64, "a" * 63 + "\n", None, ["a"])
        ),
        *({"scheme": scheme, "value": "a" * 64} for scheme in ("ed25519", "rsa", None, ["hmac-sha256"])),
        {"scheme": "hmac-sha256", "value": "a" * 64, "by": "nobody"},
    ],
)
def test_signatures_of_any_other_form_are_refused_with_a_key_or_without(signature: Any) -> None:
    data = repacked(lambda meta: meta.update(signature=signature), SECRET)
    for key in (None, SECRET):
        raises(FileFormatError, "the signature is damaged", policy_from_bytes, data, key=key)


def test_a_signature_has_one_spelling() -> None:
    """Ed25519 values in upper case or with spaces are the same bytes, and another file."""
    key = Ed25519Key(private=bytes(range(32)))
    meta, tensors = unpack(policy_to_bytes(rich_policy(), key=key))
    value = meta["signature"]["value"]
    for other in (value.upper(), " ".join([value[:64], value[64:]]), f"{value} ", value[:-1]):
        meta["signature"]["value"] = other
        raises(FileFormatError, "the signature is damaged", policy_from_bytes, pack(meta, tensors), key=key)


def test_crafted_policies_with_fitting_ids_are_refused() -> None:
    """Whoever knows the format can give any content its id: the content must make sense by itself."""
    mad = Policy(dim=2, sampler=Uniform(), eliminations=(Elimination(estimate=np.ones(2), root=np.eye(2)),))
    object.__setattr__(mad.eliminations[0], "estimate", np.full(2, 1e308))
    raises(FileFormatError, r"damaged one \(estimate must lie between", policy_from_bytes, policy_to_bytes(mad))
    blend = Policy(dim=3, sampler=Blend(main=PosteriorDraws(draws=np.ones((2, 3))), explorer=Uniform(), share=0.1))
    object.__setattr__(blend, "dim", 2)
    raises(FileFormatError, "a sampler of 3 dimensions in a policy of 2", policy_from_bytes, policy_to_bytes(blend))
    meta, tensors = unpack(policy_to_bytes(Policy(dim=2, sampler=Uniform())))
    meta["content"]["dim"] = 2.0
    raises(FileFormatError, "policy: Expected int, got float at dim", policy_from_bytes, resealed(meta, tensors))
    meta["content"].update(dim=2, sampler={"kind": "g-optimal", "tol": 1})
    raises(FileFormatError, "canonical form", policy_from_bytes, resealed(meta, tensors))


def test_mixtures_of_any_weights_come_back() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        weights = rng.dirichlet(np.ones(5))
        matrices = np.stack([np.eye(2)] * 5)
        policy = Policy(dim=2, sampler=MixedSoftmax(weights=weights, matrices=matrices))
        assert policy_from_bytes(policy_to_bytes(policy)).id == policy.id


def test_foreign_files_are_refused_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    safetensors.numpy.save_file({"a": np.ones(3)}, path)
    raises(FileFormatError, r"other\.safetensors: not a policy", load_policy, path)
    path.write_bytes(b"PK\x03\x04" * 10)
    raises(FileFormatError, "not a policy", load_policy, path)
    raises(FileFormatError, "cannot be read", load_policy, tmp_path / "none")
    newer = policy_to_bytes(rich_policy()).replace(b'\\"schema\\":1', b'\\"schema\\":9')
    raises(FileFormatError, "schema 1; this one has 9", policy_from_bytes, newer)


def test_samplers_that_cannot_be_saved_are_named() -> None:
    class Own:
        def probabilities(self, contexts: object, available: object = None) -> object:
            return None

    raises(InputError, "it holds a Own", policy_to_bytes, Policy(dim=2, sampler=Own()))  # type: ignore[arg-type]


def test_hmac_signatures() -> None:
    signed = policy_to_bytes(rich_policy(), key=SECRET)
    assert policy_from_bytes(signed, key=SECRET).id == rich_policy().id
    assert policy_from_bytes(signed).id == rich_policy().id
    with pytest.raises(FileFormatError, match="signature does not match"):
        policy_from_bytes(signed, key=HmacKey(secret=b"another secret, long"))
    raises(FileFormatError, "not signed", policy_from_bytes, policy_to_bytes(rich_policy()), key=SECRET)
    raises(ParameterError, "at least 16 bytes", HmacKey, secret=b"short")


def test_ed25519_signatures() -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = bytes(range(32))
    public = Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()
    signed = policy_to_bytes(rich_policy(), key=Ed25519Key(private=private))
    assert policy_from_bytes(signed, key=Ed25519Key(public=public)).id == rich_policy().id
    assert policy_from_bytes(signed, key=Ed25519Key(private=private)).id == rich_policy().id
    raises(FileFormatError, "signature does not match", policy_from_bytes, signed, key=Ed25519Key(private=bytes(32)))
    with pytest.raises(FileFormatError, match="signed with 'ed25519'; the key given is for 'hmac-sha256'"):
        policy_from_bytes(signed, key=SECRET)
    raises(ParameterError, "private half", policy_to_bytes, rich_policy(), key=Ed25519Key(public=public))
    raises(ParameterError, "32 raw bytes", Ed25519Key, private=b"x")


def test_files_are_not_read_beyond_reason(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    raises(FileFormatError, "at most", load_policy, path)
    os.unlink(path)
