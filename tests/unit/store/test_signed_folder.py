"""All that a signed deployment rests on is refused where it was changed, whoever changed it knows the format."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.files import canonical_json, pack, unpack
from rareswitch.policy import Ed25519Key, HmacKey, Key, load_policy, new_key, save_policy
from rareswitch.store import Deployment
from reference.logs import played, recount

PAIR = new_key("ed25519")
assert isinstance(PAIR, Ed25519Key)
PUBLIC = Ed25519Key(public=PAIR.public)
KEYS: dict[str, tuple[Key, Key]] = {"hmac": (HmacKey(secret=bytes(32)),) * 2, "ed25519": (PAIR, PUBLIC)}
Change = Callable[[dict[str, Any]], Any]


def advanced(deployment: Deployment) -> Deployment:
    return deployment.advance(recount([played(deployment)], deployment).summary)


@pytest.fixture(scope="module", params=KEYS)
def keys(request: pytest.FixtureRequest) -> tuple[Key, Key]:
    """To sign with, and to verify with."""
    return KEYS[request.param]


@pytest.fixture(scope="module")
def run() -> tuple[Deployment, Deployment]:
    """A deployment, and the one after it."""
    second = advanced(Deployment.begin("foresight", dim=3, horizon=300, updates=4))
    return second, advanced(second)


@pytest.fixture
def folder(run: tuple[Deployment, Deployment], keys: tuple[Key, Key], tmp_path: Path) -> Path:
    run[0].save(tmp_path / "signed", key=keys[0])
    return tmp_path / "signed"


def edit(folder: Path, change: Change) -> None:
    path = folder / "learner.json"
    described = json.loads(path.read_bytes())
    change(described)
    path.write_bytes(canonical_json(described))


def test_a_signed_folder_loads_with_its_key_and_goes_on(folder: Path, keys: tuple[Key, Key], tmp_path: Path) -> None:
    there = Deployment.load(folder, key=keys[1])
    assert there.signature == "checked"
    after = advanced(there)
    after.save(tmp_path / "after", key=keys[0])
    again = Deployment.load(tmp_path / "after", key=keys[1])
    assert (again.signature, again.policy.id) == ("checked", after.policy.id)
    for path in (tmp_path / "after").glob("*.safetensors"):
        if "policy" in path.name:
            load_policy(path, key=keys[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["settings"].update(floor=0.5),
        lambda d: d["settings"].update(horizon=301),
        lambda d: d["settings"].update(seed=1),
        lambda d: d["updates"][0].update(ahead=77),
        lambda d: d.update(version="9.9.9"),
        lambda d: d["signature"].update(value="00" * (len(d["signature"]["value"]) // 2)),
    ],
)
def test_edits_of_the_description_are_refused(folder: Path, keys: tuple[Key, Key], change: Change) -> None:
    edit(folder, change)
    with pytest.raises(FileFormatError, match=r"learner.json: the signature does not match"):
        Deployment.load(folder, key=keys[1])
    assert Deployment.load(folder).signature == "unchecked"  # without the key nothing is known of it


def test_another_state_with_its_digest_is_refused(
    folder: Path, keys: tuple[Key, Key], run: tuple[Deployment, Deployment]
) -> None:
    path = folder / "state.safetensors"
    meta, tensors = unpack(path.read_bytes())
    data = pack(meta, {name: array * 2 for name, array in tensors.items()})
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"state.safetensors: not the file that learner.json tells of"):
        Deployment.load(folder, key=keys[1])
    edit(folder, lambda d: d.update(state=hashlib.sha256(data).hexdigest()))
    with pytest.raises(FileFormatError, match=r"learner.json: the signature does not match"):
        Deployment.load(folder, key=keys[1])


def test_other_summaries_with_their_digest_are_refused(folder: Path, keys: tuple[Key, Key]) -> None:
    path = folder / "batch-0001.summary"
    path.write_bytes(data := path.read_bytes() + b" ")
    edit(folder, lambda d: d["updates"][0].update(summary=hashlib.sha256(data).hexdigest()))
    with pytest.raises(FileFormatError, match=r"learner.json: the signature does not match"):
        Deployment.load(folder, key=keys[1])


def test_a_signature_that_was_taken_away_is_refused(folder: Path, keys: tuple[Key, Key], tmp_path: Path) -> None:
    older = Path(shutil.copytree(folder, tmp_path / "older"))
    edit(folder, lambda d: d.update(signature=None))
    edit(older, lambda d: (d.pop("signature"), d.update(schema=2)))
    for path in (folder, older):
        with pytest.raises(FileFormatError, match=r"learner.json: the deployment is not signed, and a key was given"):
            Deployment.load(path, key=keys[1])
        assert Deployment.load(path).signature == "unchecked"  # its policies still are
    policy = folder / "policy.safetensors"
    save_policy(load_policy(policy), policy)
    assert Deployment.load(folder).signature == "none"


def test_policies_whose_signature_was_taken_away_are_refused(folder: Path, keys: tuple[Key, Key]) -> None:
    for name in ("policy.safetensors", "batch-0001.policy.safetensors"):
        data = (folder / name).read_bytes()
        save_policy(load_policy(folder / name), folder / name)
        with pytest.raises(FileFormatError, match=rf"{name}: the policy is not signed"):
            Deployment.load(folder, key=keys[1])
        (folder / name).write_bytes(data)


def test_old_descriptions_and_swapped_policies_are_refused(
    folder: Path, keys: tuple[Key, Key], run: tuple[Deployment, Deployment], tmp_path: Path
) -> None:
    """All signed with the same key."""
    run[1].save(newer := tmp_path / "newer", key=keys[0])
    mixed = Path(shutil.copytree(newer, tmp_path / "mixed"))
    shutil.copy(folder / "learner.json", mixed)
    with pytest.raises(FileFormatError, match=r"batch-0002\..*: belongs to no batch"):
        Deployment.load(mixed, key=keys[1])
    for path in mixed.glob("batch-0002.*"):
        path.unlink()
    with pytest.raises(FileFormatError, match=r"policy.safetensors: holds policy"):
        Deployment.load(mixed, key=keys[1])
    shutil.copy(newer / "batch-0001.policy.safetensors", newer / "batch-0002.policy.safetensors")
    with pytest.raises(FileFormatError, match=r"batch-0002.policy.safetensors: holds policy"):
        Deployment.load(newer, key=keys[1])


def test_a_signature_of_a_policy_is_none_of_a_description(folder: Path, keys: tuple[Key, Key]) -> None:
    meta, _ = unpack((folder / "policy.safetensors").read_bytes())
    edit(folder, lambda d: d.update(signature=meta["signature"]))
    with pytest.raises(FileFormatError, match=r"learner.json: the signature does not match"):
        Deployment.load(folder, key=keys[1])


def test_other_keys_are_refused(folder: Path, keys: tuple[Key, Key]) -> None:
    with pytest.raises(FileFormatError, match=r"learner.json: the signature does not match"):
        Deployment.load(
            folder, key=HmacKey(secret=b"another secret" * 2) if isinstance(keys[0], HmacKey) else new_key("ed25519")
        )
    scheme = "hmac-sha256" if isinstance(keys[0], HmacKey) else "ed25519"
    other = PUBLIC if isinstance(keys[0], HmacKey) else KEYS["hmac"][0]
    with pytest.raises(FileFormatError, match=rf"learner.json: it is signed with '{scheme}'; the key given is for"):
        Deployment.load(folder, key=other)


def test_signatures_carry_over_or_are_given_up_on_purpose(folder: Path, keys: tuple[Key, Key], tmp_path: Path) -> None:
    out = tmp_path / "out"
    checked, unchecked = advanced(Deployment.load(folder, key=keys[1])), advanced(Deployment.load(folder))
    for deployment in (checked, unchecked):
        with pytest.raises(ParameterError, match=r"is signed, and what follows it must be. Give its key: --key-file"):
            deployment.save(out)
    with pytest.raises(ParameterError, match="what was not checked is not signed again"):
        unchecked.save(out, key=keys[0])
    with pytest.raises(ParameterError, match="with the public half given one can verify only"):
        checked.save(out, key=PUBLIC)
    assert not out.exists()
    checked.unsigned().save(out)
    assert Deployment.load(out).signature == "none"


def test_a_new_key_takes_over(folder: Path, keys: tuple[Key, Key], tmp_path: Path) -> None:
    new = new_key("hmac")
    Deployment.load(folder, key=keys[1]).save(tmp_path / "new", key=new)
    assert Deployment.load(tmp_path / "new", key=new).signature == "checked"
    with pytest.raises(FileFormatError):
        Deployment.load(tmp_path / "new", key=keys[1])


def test_folders_of_the_schema_before_are_read(run: tuple[Deployment, Deployment], tmp_path: Path) -> None:
    key = KEYS["hmac"][0]
    run[1].save(tmp_path / "old")
    edit(tmp_path / "old", lambda d: (d.pop("signature"), d.update(schema=2)))
    there = Deployment.load(tmp_path / "old")
    assert (there.policy.id, there.signature) == (run[1].policy.id, "none")
    there.save(tmp_path / "new", key=key)
    assert Deployment.load(tmp_path / "new", key=key).signature == "checked"
    with pytest.raises(FileFormatError, match="not signed, and a key was given"):
        Deployment.load(tmp_path / "old", key=key)
