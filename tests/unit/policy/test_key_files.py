import os
import stat
import sys
from pathlib import Path

import pytest

from rareswitch.errors import FileFormatError, MissingExtraError, ParameterError
from rareswitch.policy import Ed25519Key, HmacKey, key_from_text, load_key, new_key, save_key, sign, verify_signature
from reference.refusals import raises

HEX = "00112233445566778899aabbccddeeff"


def test_an_hmac_key_comes_back(tmp_path: Path) -> None:
    key = new_key("hmac")
    (path,) = save_key(key, tmp_path / "key")
    assert load_key(path) == key
    assert path.read_text() == f"hmac-sha256:{key.secret.hex()}\n"
    assert len(key.secret) == 32
    assert new_key("hmac") != key


def test_an_ed25519_key_comes_back_in_two_halves(tmp_path: Path) -> None:
    private, public = map(load_key, save_key(new_key("ed25519"), tmp_path / "key"))
    assert public.private is None
    verify_signature(public, "text", sign(private, "text"))
    raises(ParameterError, "with the public half given one can verify only", sign, public, "text")
    raises(ParameterError, "private half", save_key, public, tmp_path / "more")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key", "key.pub"]


def test_files_with_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        secret, public = save_key(new_key("ed25519"), tmp_path / "key")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (secret, public)] == [0o600, 0o644]
    for mode in (0o640, 0o604, 0o620, 0o777):
        secret.chmod(mode)
        raises(FileFormatError, rf"key: holds a secret, .*\(mode {mode:04o}\).*chmod 600 {secret}", load_key, secret)
    secret.chmod(0o400)
    load_key(secret)


def test_keys_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    (tmp_path / "b.pub").write_text("mine")
    for name in ("a", "b"):
        with pytest.raises(FileFormatError, match=rf"{name}.*: exists already, and a key is never overwritten"):
            save_key(new_key("ed25519"), tmp_path / name)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "mine", "b.pub": "mine"}
    raises(FileFormatError, "cannot be written", save_key, new_key("hmac"), tmp_path / "nowhere" / "key")


def test_keys_in_pem(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    made = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    plain = made.private_bytes(*form, serialization.NoEncryption())
    assert key_from_text(plain, "k") == Ed25519Key(private=bytes(range(32)))
    shown = made.public_key().public_bytes(form[0], serialization.PublicFormat.SubjectPublicKeyInfo)
    assert key_from_text(shown, "k") == Ed25519Key(public=made.public_key().public_bytes_raw())
    hidden = made.private_bytes(*form, serialization.BestAvailableEncryption(b"password"))
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(*form, serialization.NoEncryption())
    for data, words in ((hidden, "encrypted"), (plain[:60], "damaged"), (other, "another kind than Ed25519")):
        raises(FileFormatError, words, key_from_text, data, "k")


BAD = ["", HEX, f"hmac-sha256:{HEX[:30]}", f"hmac-sha256:{HEX}0", f"hmac-sha256: {HEX}", f"hmac:{HEX}", "\0" * 99]
BAD += [f"hmac-sha256:{HEX} {HEX}", f"ed25519-private:{HEX}", f"ed25519-public:{HEX * 3}", f"hmac-sha256:{'é' * 32}"]


@pytest.mark.parametrize("text", [*BAD, "-----BEGIN X"])
def test_what_is_no_key_is_refused_and_not_repeated(text: str, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(text.encode())
    with pytest.raises(FileFormatError, match=r"key: not a key \(.*hmac-sha256:HEX.*rareswitch key") as caught:
        load_key(path)
    assert HEX[:16] not in str(caught.value)


def test_files_that_cannot_be_keys(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        raises(FileFormatError, "cannot be read", load_key, path)
    raises(FileFormatError, "not a key", load_key, "/dev/zero")


def test_keys_do_not_show_what_is_secret() -> None:
    assert "secret" not in repr(HmacKey(secret=b"secret and long enough"))
    assert repr(Ed25519Key(private=b"p" * 32)) == "Ed25519Key(public=None)"


def test_other_schemes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raises(ParameterError, "'hmac' or 'ed25519'; got 'rsa'", new_key, "rsa")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    raises(MissingExtraError, r"rareswitch\[sign\]", new_key, "ed25519")
