"""Signatures: with a shared secret (HMAC-SHA256) or a key pair (Ed25519).

What is signed is a text that begins with its kind, ``1/`` for a policy, ``experiment/`` for the description of an
experiment, ``version/`` for what is kept with a policy and ``plan/`` for what is frozen of an update, so that no
signature passes for one of another kind.
"""

import hashlib
import hmac
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rareswitch.errors import FileFormatError, MissingExtraError, ParameterError


@dataclass(frozen=True, kw_only=True)
class HmacKey:
    """A secret of at least 16 bytes that signer and verifier share."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.secret, bytes) or len(self.secret) < 16:
            raise ParameterError("an HMAC secret must be at least 16 bytes. Make one with secrets.token_bytes(32).")


@dataclass(frozen=True, kw_only=True)
class Ed25519Key:
    """A key pair, or its public half alone; needs the extra ``rareswitch[sign]``."""

    #: 32 bytes; needed to sign.
    private: bytes | None = field(default=None, repr=False)
    #: 32 bytes; enough to verify.
    public: bytes | None = None

    def __post_init__(self) -> None:
        if self.private is None and self.public is None:
            raise ParameterError("an Ed25519 key needs its private or its public half.")
        for half in (self.private, self.public):
            if half is not None and (not isinstance(half, bytes) or len(half) != 32):
                raise ParameterError("each half of an Ed25519 key is 32 raw bytes.")


Key = HmacKey | Ed25519Key
#: Hexadecimal digits of the signatures of each scheme.
DIGITS = {"hmac-sha256": 64, "ed25519": 128}


def sign(key: Key, content: str) -> dict[str, str]:
    """The signature to store beside the content that it is of."""
    check_signs(key)
    if isinstance(key, HmacKey):
        return {"scheme": "hmac-sha256", "value": _hmac(key, content)}
    private = ed25519().Ed25519PrivateKey.from_private_bytes(key.private)
    return {"scheme": "ed25519", "value": private.sign(content.encode()).hex()}


def check_signature(signature: Any) -> None:
    """Refuse what no key ever made; a signature has one form alone."""
    if not isinstance(signature, dict) or set(signature) != {"scheme", "value"}:
        raise FileFormatError("the signature is damaged: it must have a scheme and a value.")
    scheme, value = signature["scheme"], signature["value"]
    texts = isinstance(scheme, str) and isinstance(value, str)
    if not texts or len(value) != DIGITS.get(scheme) or not {*value} <= {*"0123456789abcdef"}:
        rules = " or ".join(f"{name!r} with {count} digits" for name, count in DIGITS.items())
        raise FileFormatError(f"the signature is damaged: it must be {rules}, 0 to 9 and a to f.")


def verify(key: Key, content: str, signature: Any) -> None:
    """Raise unless the signature is this key's for this content."""
    if signature is None:
        raise FileFormatError("the policy is not signed, and a key was given to verify it with.")
    check_signature(signature)
    scheme = "hmac-sha256" if isinstance(key, HmacKey) else "ed25519"
    if signature.get("scheme") != scheme:
        raise FileFormatError(f"it is signed with {signature.get('scheme')!r}; the key given is for {scheme!r}.")
    value = signature["value"]
    if isinstance(key, HmacKey):
        matches = hmac.compare_digest(_hmac(key, content), value)
    else:
        matches = _ed25519_matches(key, content, value)
    if not matches:
        raise FileFormatError("the signature does not match: the key is another one, or the file was changed.")


def check_signs(key: Key) -> None:
    """Refuse a key that can only verify."""
    if isinstance(key, Ed25519Key) and key.private is None:
        raise ParameterError(
            "signing needs the private half of the Ed25519 key; with the public half given one can verify only."
        )


def _ed25519_matches(key: Ed25519Key, content: str, value: str) -> bool:
    module = ed25519()
    from cryptography.exceptions import InvalidSignature

    if key.public is not None:
        public = module.Ed25519PublicKey.from_public_bytes(key.public)
    else:
        public = module.Ed25519PrivateKey.from_private_bytes(key.private).public_key()
    with suppress(InvalidSignature):
        public.verify(bytes.fromhex(value), content.encode())
        return True
    return False


def _hmac(key: HmacKey, content: str) -> str:
    return hmac.new(key.secret, content.encode(), hashlib.sha256).hexdigest()


def ed25519() -> Any:
    """The module of that name of ``cryptography``."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingExtraError(
            "Ed25519 needs cryptography. Install it with: pip install 'rareswitch[sign]'"
        ) from error
    return ed25519
