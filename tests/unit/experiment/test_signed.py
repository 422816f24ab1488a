"""All that a signed experiment rests on is refused where it was changed, whoever changed it knows the format."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rareswitch.core import canonical_json
from rareswitch.core.codec import pack, unpack
from rareswitch.errors import FileFormatError, ParameterError
from rareswitch.experiment import Experiment, create, open_experiment
from rareswitch.policy import Ed25519Key, HmacKey, Key, new_key, policy_from_bytes, policy_to_bytes
from rareswitch.store import VersionRow
from reference.refusals import raises
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
    """A file with an experiment after two updates."""
    file = tmp_path_factory.mktemp("trials") / "trial.db"
    told: dict[str, Any] = {"dim": 3, "horizon": 300, "policies": 4, "seed": 5, "now": 0.0}
    with create(f"sqlite:///{file}", "spring", key=keys[0], **told) as trial:
        for _ in range(2):
            advance_batch(trial)
    return file


@pytest.fixture
def file(made: Path, tmp_path: Path) -> Path:
    """A copy of it to do harm to."""
    return Path(shutil.copy(made, tmp_path / "trial.db"))


def opened(file: Path, key: Key | None = None) -> Experiment:
    """The experiment, with all that it rests on looked at."""
    with open_experiment(f"sqlite:///{file}", "spring", key=key) as trial:
        trial.policies, trial.status(now=1000.0)
    return open_experiment(f"sqlite:///{file}", "spring", key=key)


def edit(file: Path, change: Change) -> None:
    """Change the description."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        whole = json.loads(connection.execute("SELECT description FROM rareswitch_experiments").fetchone()[0])
        change(whole)
        connection.execute("UPDATE rareswitch_experiments SET description = ?", (canonical_json(whole).decode(),))


def read_version(file: Path, number: int) -> VersionRow:
    with closing(sqlite3.connect(file)) as connection:
        query = f"SELECT {', '.join(VersionRow._fields)} FROM rareswitch_versions WHERE number = ?"
        return VersionRow(*connection.execute(query, (number,)).fetchone())


def edit_version(file: Path, number: int, **change: Any) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for name, value in change.items():
            connection.execute(f"UPDATE rareswitch_versions SET {name} = ? WHERE number = ?", (value, number))


def test_a_signed_experiment_opens_with_its_key_and_goes_on(file: Path, keys: tuple[Key, Key]) -> None:
    assert opened(file, keys[1]).signature == "checked"
    assert advance_batch(opened(file, keys[0])).version == 4
    assert opened(file, keys[1]).verify().holds


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["content"]["settings"].update(design_share=0.5),
        lambda d: d["content"]["settings"].update(horizon=301),
        lambda d: d["content"].update(seed=1),
        lambda d: d["content"].update(context_sample_rate=0.5),
        lambda d: d["content"]["rewards"].update(default=1.0),
        lambda d: d["content"].update(version="9.9.9"),
        lambda d: d["signature"].update(value="00" * (len(d["signature"]["value"]) // 2)),
        "the signature of a policy",
    ],
)
def test_edits_of_the_description_are_refused(file: Path, keys: tuple[Key, Key], change: Change | str) -> None:
    of_policy = unpack(read_version(file, 1).policy)[0]["signature"]
    edit(file, (lambda d: d.update(signature=of_policy)) if isinstance(change, str) else change)
    raises(FileFormatError, r"experiment 'spring' in sqlite:.*: the signature does not match", opened, file, keys[1])
    assert opened(file).signature == "unchecked"  # without the key nothing is known of it


@pytest.mark.parametrize("name", ["state", "summaries", "report"])
def test_a_version_that_was_changed_with_its_digests_is_refused(name: str, file: Path, keys: tuple[Key, Key]) -> None:
    row = read_version(file, 3)
    if name == "report":
        edit_version(file, 3, report=row.report.replace('"forecast":', '"forecast" :'))
    else:
        meta, tensors = unpack(getattr(row, name))
        edit_version(file, 3, **{name: pack(meta, {key: array * 2 for key, array in tensors.items()})})
    with pytest.raises(FileFormatError, match=r"policy 3 of this experiment is not what was published: the signature"):
        opened(file, keys[1])


def test_a_signature_that_was_taken_away_is_refused(file: Path, keys: tuple[Key, Key]) -> None:
    edit(file, lambda d: d.update(signature={"scheme": "sha256", "value": ""}))
    raises(FileFormatError, r"it is not signed, and a key was given to check it with", opened, file, keys[1])


def test_policies_whose_signature_was_taken_away_are_refused(file: Path, keys: tuple[Key, Key]) -> None:
    edit_version(file, 2, policy=policy_to_bytes(policy_from_bytes(read_version(file, 2).policy)))
    raises(FileFormatError, r"policy 2 of this experiment .*: the policy is not signed", opened, file, keys[1])


@pytest.mark.parametrize(("number", "from_"), [(2, 3), (3, 2), (1, 2)])
def test_versions_that_changed_places_are_refused(number: int, from_: int, file: Path, keys: tuple[Key, Key]) -> None:
    """All signed with the same key."""
    other = read_version(file, from_)
    edit_version(file, number, **{name: getattr(other, name) for name in other._fields if name != "number"})
    with pytest.raises(FileFormatError, match=rf"policy {number} of this experiment .*the signature does not match"):
        opened(file, keys[1])


def test_a_version_of_another_experiment_is_refused(file: Path, keys: tuple[Key, Key], tmp_path: Path) -> None:
    told: dict[str, Any] = {"dim": 3, "horizon": 300, "policies": 4, "seed": 5, "now": 0.0}
    create(f"sqlite:///{tmp_path}/other.db", "autumn", key=keys[0], **told).close()
    other = read_version(tmp_path / "other.db", 1)
    assert other.policy == read_version(file, 1).policy
    edit_version(file, 1, signature=other.signature)
    raises(FileFormatError, r"policy 1 of this experiment .*the signature does not match", opened, file, keys[1])


def test_other_keys_are_refused(file: Path, keys: tuple[Key, Key]) -> None:
    with pytest.raises(FileFormatError, match=r"the signature does not match"):
        opened(file, HmacKey(secret=b"another secret" * 2) if isinstance(keys[0], HmacKey) else new_key("ed25519"))
    scheme = "hmac-sha256" if isinstance(keys[0], HmacKey) else "ed25519"
    other = PUBLIC if isinstance(keys[0], HmacKey) else KEYS["hmac"][0]
    raises(FileFormatError, rf"it is signed with '{scheme}'; the key given is for", opened, file, other)


def test_an_update_is_signed_or_there_is_none(file: Path, keys: tuple[Key, Key]) -> None:
    unchecked = opened(file)
    with pytest.raises(ParameterError, match=r"this experiment is signed, and its next policy must be. Open it with"):
        advance_batch(unchecked)
    if isinstance(keys[1], Ed25519Key):
        with pytest.raises(ParameterError, match="with the public half given one can verify only"):
            opened(file, keys[1]).advance(now=1000.0, force=True)
    assert len(opened(file, keys[1]).policies) == 3
