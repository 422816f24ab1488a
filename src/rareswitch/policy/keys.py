"""Signatures, with a shared secret (HMAC-SHA256) or a key pair (Ed25519), and keys as text.

What is signed is a text that begins with its kind, ``1/`` for a policy, ``experiment/`` for the description of an
experiment, ``version/`` for what is kept with a policy and ``plan/`` for what is frozen of an update, so that no
signature passes for one of another kind.

A key file is a line ``hmac-sha256:HEX``, ``ed25519-private:HEX`` or ``ed25519-public:HEX``; Ed25519 also as PEM. No
error repeats what a key file holds.
"""

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal

from rareswitch.errors import FileFormatError, MissingExtraError, ParameterError

__all__ = ["Ed25519Key", "HmacKey", "Key", "check_signature", "check_signs", "find_key", "key_from_text", "load_key"]
__all__ += ["new_key", "save_key", "sign", "verify_signature"]


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


def check_signature(signature: Mapping[str, str]) -> None:
    """Refuse what no key ever made; a signature has one form alone."""
    if not isinstance(signature, dict) or set(signature) != {"scheme", "value"}:
        raise FileFormatError("the signature is damaged: it must have a scheme and a value.")
    scheme, value = signature["scheme"], signature["value"]
    texts = isinstance(scheme, str) and isinstance(value, str)
    if not texts or len(value) != DIGITS.get(scheme) or not {*value} <= {*"0123456789abcdef"}:
        rules = " or ".join(f"{name!r} with {count} digits" for name, count in DIGITS.items())
        raise FileFormatError(f"the signature is damaged: it must be {rules}, 0 to 9 and a to f.")


def verify_signature(key: Key, content: str, signature: Mapping[str, str] | None) -> None:
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
    public = ed25519().Ed25519PublicKey.from_public_bytes(_public_half(key))
    from cryptography.exceptions import InvalidSignature

    with suppress(InvalidSignature):
        public.verify(bytes.fromhex(value), content.encode())
        return True
    return False


def _public_half(key: Ed25519Key) -> bytes:
    if key.public is not None:
        return key.public
    public: bytes = ed25519().Ed25519PrivateKey.from_private_bytes(key.private).public_key().public_bytes_raw()
    return public


def _hmac(key: HmacKey, content: str) -> str:
    return hmac.new(key.secret, content.encode(), hashlib.sha256).hexdigest()


def ed25519() -> ModuleType:
    """The module of that name of ``cryptography``."""
    try:
        return import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
    except ImportError as error:
        raise MissingExtraError(
            "Ed25519 needs cryptography. Install it with: pip install 'rareswitch[sign]'"
        ) from error


_LINE = re.compile(rb"(hmac-sha256|ed25519-private|ed25519-public):((?:[0-9a-fA-F]{2})+)\s*")
_LARGEST = 1 << 14


def new_key(scheme: Literal["hmac", "ed25519"]) -> Key:
    """A fresh secret of 32 bytes to share, or a fresh key pair.

    >>> new_key("hmac")
    HmacKey()
    """
    if scheme == "hmac":
        return HmacKey(secret=secrets.token_bytes(32))
    if scheme != "ed25519":
        raise ParameterError(f"keys have the scheme 'hmac' or 'ed25519'; got {scheme!r}.")
    private_key = ed25519().Ed25519PrivateKey.generate()
    return Ed25519Key(private=private_key.private_bytes_raw(), public=private_key.public_key().public_bytes_raw())


def save_key(key: Key, path: str | Path) -> list[Path]:
    """Write a key that can sign to a fresh file that only its owner may read, and its public half to ``path.pub``.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "team.key"
    >>> [written.name for written in save_key(new_key("ed25519"), path)]
    ['team.key', 'team.key.pub']
    >>> load_key(f"{path}.pub").private is None
    True
    """
    check_signs(key)
    if isinstance(key, HmacKey):
        content = {Path(path): ("hmac-sha256", key.secret, 0o600)}
    else:
        assert key.private is not None  # as it signs
        content = {Path(path): ("ed25519-private", key.private, 0o600)}
        content[Path(f"{path}.pub")] = ("ed25519-public", _public_half(key), 0o644)
    written: list[Path] = []
    try:
        for place, (kind, value, mode) in content.items():
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            written.append(place)
            with os.fdopen(handle, "w") as file:
                file.write(f"{kind}:{value.hex()}\n")
                file.flush()
                os.fsync(handle)
    except BaseException as error:
        for place in written:
            place.unlink()
        if isinstance(error, FileExistsError):
            rule = "exists already, and a key is never overwritten. Name another file"
            raise FileFormatError(f"{error.filename}: {rule}, or remove it if nothing is signed with it.") from error
        if isinstance(error, OSError):
            raise FileFormatError(f"{path}: cannot be written ({error.strerror or error}).") from error
        raise
    return written


def load_key(path: str | Path) -> Key:
    """Read a key file; one with a secret only if nobody but its owner may read or change it."""
    try:
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(_LARGEST)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read ({error.strerror or error}).") from error
    key = key_from_text(data, str(path))
    secret = isinstance(key, HmacKey) or key.private is not None
    if secret and os.name == "posix" and mode & 0o077:
        raise FileFormatError(
            f"{path}: holds a secret, and users other than its owner may read or change it (mode {mode:04o}). Make a "
            f"new key if they may have done so; otherwise close the file: chmod 600 {path}"
        )
    return key


#: A longer text that no variable is called by is taken for a key.
_LONGEST_NAME = 31


def find_key(path: str | Path | None, variable: str | None) -> Key | None:
    """The key in a file, or in the environment variable of that name; None where neither is named."""
    if path is not None:
        return load_key(path)
    if variable is None:
        return None
    text = os.environ.get(variable)
    if text is not None:
        return key_from_text(text.encode(errors="replace"), f"the environment variable {variable}")
    if not (variable.isidentifier() and variable.isascii() and len(variable) <= _LONGEST_NAME):
        raise ParameterError(
            "--key takes the name of an environment variable, never the key itself, and what was given cannot be one. "
            "If it was a key, others may have seen it on the command line: make a new one, and pass it with "
            "--key-file FILE or in a variable."
        )
    raise ParameterError(
        f"--key takes the name of an environment variable that holds the key; there is no variable {variable}. Set "
        "it, or pass a file: --key-file FILE."
    )


def key_from_text(data: bytes, where: str) -> Key:
    """The key in the content of a key file; errors name ``where`` it is from."""
    line = _LINE.fullmatch(data)
    try:
        if line is None and data.startswith(b"-----BEGIN "):
            return _from_pem(data)
        if line is None:
            raise FileFormatError("it is something else")
        kind, value = line[1], bytes.fromhex(line[2].decode())
        if kind == b"hmac-sha256":
            return HmacKey(secret=value)
        return Ed25519Key(private=value) if kind == b"ed25519-private" else Ed25519Key(public=value)
    except (FileFormatError, ParameterError) as error:
        raise FileFormatError(
            f"{where}: not a key ({str(error).removesuffix('.')}). A key is a line hmac-sha256:HEX, "
            "ed25519-private:HEX or ed25519-public:HEX, or an Ed25519 key in PEM. Make one with: rareswitch key"
        ) from None


def _from_pem(data: bytes) -> Key:
    module = ed25519()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    try:
        if b"PRIVATE KEY" in data:
            private = serialization.load_pem_private_key(data, password=None)
            if isinstance(private, module.Ed25519PrivateKey):
                return Ed25519Key(private=private.private_bytes_raw())
        else:
            public = serialization.load_pem_public_key(data)
            if isinstance(public, module.Ed25519PublicKey):
                return Ed25519Key(public=public.public_bytes_raw())
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise FileFormatError("a PEM that is damaged, or encrypted with a password") from error
    raise FileFormatError("a PEM of another kind than Ed25519")
