"""All that a signed experiment rests on is refused where it was changed, whoever changed it knows the format."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.experiment import Experiment, create, open_experiment
from rareswitch.files import canonical_json, pack, unpack
from rareswitch.policy import Ed25519Key, HmacKey, Key, load_policy, new_key, save_policy
from rareswitch.store.folder_files import read_json, read_version, write_json, write_version
from reference.trials import advance_batch

PAIR = new_key("ed25519")
assert isinstance(PAIR, Ed25519Key)
PUBLIC = Ed25519Key(public=PAIR.public)
KEYS: dict[str, tuple[Key, Key]] = {"hmac": (HmacKey(secret=bytes(32)),) * 2, "ed25519": (PAIR, PUBLIC)}
Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module", params=KEYS)
def keys(request: pytest.FixtureRequest) -> tuple[Key, Key]:
    """To sign with, and to verify with."""
    return KEYS[request.param]


@pytest.fixture(scope="module")
def made(keys: tuple[Key, Key], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an experiment after two updates."""
    folder = tmp_path_factory.mktemp("trials")
    told: dict[str, Any] = {"dim": 3, "horizon": 300, "updates": 4, "seed": 5, "now": 0.0}
    trial = create(f"folder:{folder}", "spring", key=keys[0], **told)
    for _ in range(2):
        advance_batch(trial)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of it to do harm to."""
    return Path(shutil.copytree(made, tmp_path / "trials"))


def opened(folder: Path, key: Key | None = None) -> Experiment:
    """The experiment, with all that it rests on looked at."""
    trial = open_experiment(f"folder:{folder}", "spring", key=key)
    trial.policies, trial.status(now=1000.0)
    return trial


def edit(folder: Path, change: Change) -> None:
    """Change the description, with its digest."""
    path = folder / "spring" / "experiment.json"
    told = read_json(path)
    whole = json.loads(told["description"])
    change(whole)
    write_json(path, told | {"description": canonical_json(whole).decode()})


def edit_version(folder: Path, number: int, **change: Any) -> None:
    """Change a version, with its digests."""
    path = folder / "spring" / "versions" / f"{number:04d}"
    row = read_version(path)._replace(**change)
    shutil.rmtree(path)
    write_version(path, row)


def test_a_signed_experiment_opens_with_its_key_and_goes_on(folder: Path, keys: tuple[Key, Key]) -> None:
    assert opened(folder, keys[1]).signature == "checked"
    assert advance_batch(opened(folder, keys[0])).version == 4
    there = opened(folder, keys[1])
    assert there.verify().holds
    for path in (folder / "spring" / "versions").glob("*/policy.safetensors"):
        load_policy(path, key=keys[1])  # what servers are given


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["description"]["settings"].update(floor=0.5),
        lambda d: d["description"]["settings"].update(horizon=301),
        lambda d: d["description"].update(seed=1),
        lambda d: d["description"].update(keep=0.5),
        lambda d: d["description"]["rewards"].update(default=1.0),
        lambda d: d["description"].update(version="9.9.9"),
        lambda d: d["signature"].update(value="00" * (len(d["signature"]["value"]) // 2)),
    ],
)
def test_edits_of_the_description_are_refused(folder: Path, keys: tuple[Key, Key], change: Change) -> None:
    edit(folder, change)
    with pytest.raises(FileFormatError, match=r"experiment 'spring' in folder:.*: the signature does not match"):
        opened(folder, keys[1])
    assert opened(folder).signature == "unchecked"  # without the key nothing is known of it


@pytest.mark.parametrize("name", ["state", "summaries", "report"])
def test_a_version_that_was_changed_with_its_digests_is_refused(name: str, folder: Path, keys: tuple[Key, Key]) -> None:
    row = read_version(folder / "spring" / "versions" / "0003")
    if name == "report":
        edit_version(folder, 3, report=row.report.replace('"ahead":', '"ahead" :'))
    else:
        meta, tensors = unpack(getattr(row, name))
        edit_version(folder, 3, **{name: pack(meta, {key: array * 2 for key, array in tensors.items()})})
    with pytest.raises(FileFormatError, match=r"policy 3 of this experiment is not what was published: the signature"):
        opened(folder, keys[1])


def test_a_signature_that_was_taken_away_is_refused(folder: Path, keys: tuple[Key, Key]) -> None:
    edit(folder, lambda d: d.update(signature=None))
    with pytest.raises(FileFormatError, match=r"it is not signed, and a key was given to check it with"):
        opened(folder, keys[1])


def test_policies_whose_signature_was_taken_away_are_refused(folder: Path, keys: tuple[Key, Key]) -> None:
    path = folder / "plain.safetensors"
    save_policy(load_policy(folder / "spring" / "versions" / "0002" / "policy.safetensors"), path)
    edit_version(folder, 2, policy=path.read_bytes())
    with pytest.raises(FileFormatError, match=r"policy 2 of this experiment .*: the policy is not signed"):
        opened(folder, keys[1])


@pytest.mark.parametrize(("number", "from_"), [(2, 3), (3, 2), (1, 2)])
def test_versions_that_changed_places_are_refused(number: int, from_: int, folder: Path, keys: tuple[Key, Key]) -> None:
    """All signed with the same key."""
    other = read_version(folder / "spring" / "versions" / f"{from_:04d}")
    edit_version(folder, number, **{name: getattr(other, name) for name in other._fields if name != "number"})
    with pytest.raises(FileFormatError, match=rf"policy {number} of this experiment .*the signature does not match"):
        opened(folder, keys[1])


def test_a_version_of_another_experiment_is_refused(folder: Path, keys: tuple[Key, Key], tmp_path: Path) -> None:
    told: dict[str, Any] = {"dim": 3, "horizon": 300, "updates": 4, "seed": 5, "now": 0.0}
    create(f"folder:{tmp_path}/other", "autumn", key=keys[0], **told)
    other = read_version(tmp_path / "other" / "autumn" / "versions" / "0001")
    assert other.policy == read_version(folder / "spring" / "versions" / "0001").policy
    edit_version(folder, 1, signature=other.signature)
    with pytest.raises(FileFormatError, match=r"policy 1 of this experiment .*the signature does not match"):
        opened(folder, keys[1])


def test_a_signature_of_a_policy_is_none_of_a_description(folder: Path, keys: tuple[Key, Key]) -> None:
    meta, _ = unpack(read_version(folder / "spring" / "versions" / "0001").policy)
    edit(folder, lambda d: d.update(signature=meta["signature"]))
    with pytest.raises(FileFormatError, match=r"the signature does not match"):
        opened(folder, keys[1])


def test_other_keys_are_refused(folder: Path, keys: tuple[Key, Key]) -> None:
    with pytest.raises(FileFormatError, match=r"the signature does not match"):
        opened(folder, HmacKey(secret=b"another secret" * 2) if isinstance(keys[0], HmacKey) else new_key("ed25519"))
    scheme = "hmac-sha256" if isinstance(keys[0], HmacKey) else "ed25519"
    other = PUBLIC if isinstance(keys[0], HmacKey) else KEYS["hmac"][0]
    with pytest.raises(FileFormatError, match=rf"it is signed with '{scheme}'; the key given is for"):
        opened(folder, other)


def test_an_update_is_signed_or_there_is_none(folder: Path, keys: tuple[Key, Key]) -> None:
    unchecked = opened(folder)
    with pytest.raises(ParameterError, match=r"this experiment is signed, and its next policy must be. Open it with"):
        advance_batch(unchecked)
    if isinstance(keys[1], Ed25519Key):
        with pytest.raises(ParameterError, match="with the public half given one can verify only"):
            opened(folder, keys[1]).advance(now=1000.0, anyway=True)
    assert len(opened(folder, keys[1]).policies) == 3
